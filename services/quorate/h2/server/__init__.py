"""grpc.aio-compatible server."""
