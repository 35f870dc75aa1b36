"""A seed is a whole experiment: the same one gives the same transcript, in any process.

Other versions of Python are those for which `make pythons` has made environments.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import quorate
from tests.lacking import lack

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = sorted(ROOT.glob(".venv-*/bin/python"))
SERVICES = Path(quorate.__file__).resolve().parents[1]


def transcripts_hash(seed: int, hash_seed: int, python: Path = Path(sys.executable)) -> str:
    """The hash of a seed's transcript, from a process of its own."""
    program = "from quorate.sim.runner import run_seed; import sys; "
    program += "print(run_seed(int(sys.argv[1]), digest=True).digest)"
    environment = {
        **os.environ,
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONPATH": str(SERVICES),
        # Environments share the folder of the sources.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [python, "-c", program, str(seed)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("seed", [3, 10, 17])
def test_a_seed_gives_one_transcript_whatever_the_hash_seed(seed: int) -> None:
    assert transcripts_hash(seed, 1) == transcripts_hash(seed, 2)


@pytest.fixture
def pythons() -> list[Path]:
    """All that there are; without any the test fails in CI, else skips."""
    if not PYTHONS:
        lack("another version of Python is needed: make pythons PYTHONS=python3.12")
    return PYTHONS


@pytest.mark.parametrize("seed", [3, 10])
def test_a_seed_gives_one_transcript_whatever_the_version_of_python(
    seed: int, pythons: list[Path]
) -> None:
    hashes = {str(python): transcripts_hash(seed, 1, python) for python in pythons}
    assert set(hashes.values()) == {transcripts_hash(seed, 1)}, hashes


def test_other_seeds_give_other_transcripts() -> None:
    assert transcripts_hash(3, 1) != transcripts_hash(4, 1)
