"""The transcripts say what replicas do and why; `--rewrite` rewrites them for a diff."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.story import parse, play

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_goes_as_it_is_told(path: Path, request: pytest.FixtureRequest) -> None:
    told = path.read_text(encoding="utf-8")
    played = play(parse(told))
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == told


def test_there_are_a_dozen_stories() -> None:
    assert len(STORIES) >= 12
