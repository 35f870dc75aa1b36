"""Topics: creation, deletion and description."""
