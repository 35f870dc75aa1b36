"""gRPC over HTTP/2 in pure Python: a sans-I/O protocol core and asyncio around it."""
