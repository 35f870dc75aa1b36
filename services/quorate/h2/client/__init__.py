"""grpc.aio-compatible client channel."""
