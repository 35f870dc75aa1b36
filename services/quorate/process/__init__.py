"""The process's own resources: stop signals and standard streams."""
