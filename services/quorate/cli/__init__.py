"""The `quorate` command."""
