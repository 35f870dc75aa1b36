"""Brokers: registration, heartbeats and sessions."""
