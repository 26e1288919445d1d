"""One module per outside system; none knows another."""
