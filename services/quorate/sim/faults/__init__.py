"""Fault injection: schedules, fault models, survivability checks."""
