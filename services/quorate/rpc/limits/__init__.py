"""Admission control and concurrency limits."""
