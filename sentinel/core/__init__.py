"""Pure: values in, values and reasons out. No clock, no I/O, no threads, no logging."""
