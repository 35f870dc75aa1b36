"""The controller process: drives the core, the metadata state machine, storage and gRPC."""
