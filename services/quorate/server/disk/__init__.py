"""Disk calls in threads: reads, flushes, exclusive changes, latency and free space."""
