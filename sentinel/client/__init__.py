"""The typed way to ask a running daemon."""
