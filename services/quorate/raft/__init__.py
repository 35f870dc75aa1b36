"""Consensus core: a pure state machine that takes events and returns effects."""
