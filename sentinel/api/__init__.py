"""The HTTP faces: the socket of the CLI and, if asked for, a TCP address."""
