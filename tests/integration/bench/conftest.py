"""What the benchmarks stand on is tried like all else: a single controller on free ports."""

from __future__ import annotations

from tests.integration.server.conftest import properties

__all__ = ["properties"]
