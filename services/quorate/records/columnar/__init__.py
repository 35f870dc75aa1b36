"""Records as numpy columns."""
