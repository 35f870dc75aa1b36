"""Fixtures of the client tests: a scripted quorum and a sidecar."""

from __future__ import annotations

from tests.integration.client.conftest import beside, membership, quorum

__all__ = ["beside", "membership", "quorum"]
