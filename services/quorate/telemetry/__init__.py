"""Structured logs, metrics and tracing."""
