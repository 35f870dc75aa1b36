"""Conversion between dataclasses and protobuf."""
