"""Features: the levels that are finalised, and who may take part."""
