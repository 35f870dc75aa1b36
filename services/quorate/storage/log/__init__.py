"""The metadata log: segments, cache, epoch checkpoint."""
