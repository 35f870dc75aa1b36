"""The admin sidecar: carries out membership changes for callers at the current leader."""
