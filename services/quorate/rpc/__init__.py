"""gRPC between controllers and to clients; protobuf types do not leave this package."""
