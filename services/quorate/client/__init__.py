"""Clients of a quorum: leader discovery, metadata, membership and admin API."""
