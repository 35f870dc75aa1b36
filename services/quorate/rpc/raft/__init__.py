"""Raft service and transport."""
