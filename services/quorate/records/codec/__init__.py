"""Schemas, and encoders and decoders compiled from them."""
