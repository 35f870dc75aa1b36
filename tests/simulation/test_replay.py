"""A seed is a whole experiment: the same one gives the same transcript, in any process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def transcripts_hash(seed: int, hash_seed: int) -> str:
    """The hash of a seed's transcript, from a process of its own."""
    program = "from quorate.sim.simulation import run_seed; import sys; "
    program += "print(run_seed(int(sys.argv[1]), digest=True).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(seed)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("seed", [3, 10, 17])
def test_a_seed_gives_one_transcript_whatever_the_hash_seed(seed: int) -> None:
    assert transcripts_hash(seed, 1) == transcripts_hash(seed, 2)


def test_other_seeds_give_other_transcripts() -> None:
    assert transcripts_hash(3, 1) != transcripts_hash(4, 1)
