"""Mutants: deliberate bugs that the simulator must detect."""
