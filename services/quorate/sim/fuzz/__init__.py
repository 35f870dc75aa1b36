"""Invalid, mutated and forged requests and responses."""
