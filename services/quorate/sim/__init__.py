"""The deterministic simulator: the real core, controller and storage in a world drawn from a seed."""
