from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from tests.conformance.fuzz import fuzz
from tests.conformance.grammar import Grammar
from tests.conformance.recordings import mutate, split
from tests.conformance.transports import OURS

if TYPE_CHECKING:
    from pathlib import Path

FRAMES: Final = 20_000


# grpcio is the reference elsewhere: what harms it here is known, and cannot be fixed by us.
@pytest.mark.parametrize("transport", OURS)
async def test_no_frames_harm_a_listener(transport: str, folder: Path | None) -> None:
    start = time.time_ns()
    tally, problem = await fuzz(
        transport, has_tls=folder is not None, frames=FRAMES, seconds=0, start=start
    )
    assert problem is None, f"start {start}: {problem}: {tally.words()}"
    assert tally.frames >= FRAMES
    assert len(tally.conversations) == 4


def test_a_start_draws_the_same_frames_again() -> None:
    drawn = [[Grammar(Random(7)).frame() for _ in range(100)] for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_frames_are_split_and_mutated() -> None:
    grammar = Grammar(Random(3))
    frames = [frame for _ in range(50) for frame in split(grammar.frame())]
    assert split(b"".join(frames[:1])) == frames[:1]
    assert mutate(frames, Random(1)) != frames
