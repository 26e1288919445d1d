"""Parse, ask the daemon, print."""
