"""gRPC over HTTP/2 without gRPC's core: framing without IO, and asyncio protocols around it."""
