"""Configurations of topics and brokers."""
