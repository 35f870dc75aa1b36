"""Faults on real processes: no acknowledged write is lost, and a majority continues."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.chaos.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.mark.usefixtures("machine")
async def test_a_quorum_survives_chaos(
    tmp_path: Path, controllers: int, seconds: float, seed: int, kinds: Sequence[str]
) -> None:
    report = await run(tmp_path, controllers=controllers, seconds=seconds, seed=seed, kinds=kinds)
    sys.stdout.write(f"\n{report}\n")
