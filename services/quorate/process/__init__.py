"""The process's own resources: stop signals, standard streams and their descriptors."""
