"""The transcripts say what a controller decides; `--rewrite` rewrites them for a diff."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.deciding import play

STORIES = sorted((Path(__file__).parent / "decisions").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_controller_decides_as_it_is_told(path: Path, request: pytest.FixtureRequest) -> None:
    told = path.read_text(encoding="utf-8")
    played = play(told)
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == told


def test_there_are_stories() -> None:
    assert len(STORIES) >= 5
