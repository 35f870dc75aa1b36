"""Metadata record types of Kafka 4.3."""
