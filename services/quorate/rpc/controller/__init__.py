"""Metadata service."""
