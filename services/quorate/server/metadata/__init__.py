"""The metadata controller on the log: activation, writes, reads, replay."""
