"""Sans-I/O HTTP/2."""
