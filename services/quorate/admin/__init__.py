"""The admin sidecar: changes of the quorum, asked of its leader, for callers beside it."""
