"""The basis of the benchmarks is tested, too: a single controller on free ports."""

from __future__ import annotations

from tests.integration.server.conftest import properties

__all__ = ["properties"]
