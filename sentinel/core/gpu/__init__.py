"""GPUs: what the driver says of them, what it means, and who uses them."""
