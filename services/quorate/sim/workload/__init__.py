"""Simulated clients and brokers, and the reference model of their data."""
