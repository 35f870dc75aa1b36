"""Brokers: registrations, heartbeats, sessions."""
