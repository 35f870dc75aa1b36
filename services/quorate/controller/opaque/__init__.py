"""Record types that the controller keeps but does not interpret."""
