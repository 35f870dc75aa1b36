"""The controller process: an asyncio driver for core, state machine, storage and gRPC."""
