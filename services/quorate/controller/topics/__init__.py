"""Topics: names, creation, deletion, descriptions."""
