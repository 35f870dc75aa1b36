"""The deterministic simulator: the real core and the real storage in a world drawn from a seed."""
