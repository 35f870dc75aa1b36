"""gRPC between controllers and towards clients; protobuf types stop at this package's border."""
