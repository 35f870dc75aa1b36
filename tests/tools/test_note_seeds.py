"""Seeds that no longer catch a mutant are searched again, and noted in their place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from quorate.sim.mutants.registry import MUTANTS
from tools import note_seeds
from tools.note_seeds import Noted

if TYPE_CHECKING:
    from pathlib import Path

# Caught in the first world, which takes a fraction of a second.
SOON = "answers-before-commit"
PLANTED = '''"""Bugs; naïve ones."""

BUGS = (
    Mutant("first", "it waits", (1, 2), (Patch(A, "b", c),), within=9),
    Mutant(
        "second",
        "it does not",
        (
            1795522677153,
            1795522677154,
        ),
        (Patch(A, "b", c),),
    ),
)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bug.py").write_text("class Bug: ...\n", encoding="utf-8")
    (tmp_path / "some.py").write_text(PLANTED, encoding="utf-8")
    return tmp_path


def test_seeds_are_written_where_they_stand(folder: Path) -> None:
    note_seeds.write(Noted("first", (7,)), folder)
    note_seeds.write(Noted("second", (3, 4)), folder)
    text = (folder / "some.py").read_text(encoding="utf-8")
    assert '"first", "it waits", (7,), (Patch(A' in text
    assert "(3, 4),\n        (Patch(A" in text
    ast.parse(text)
    assert text.startswith(PLANTED.split("BUGS")[0])


def test_a_bug_that_no_file_plants_is_an_error(folder: Path) -> None:
    with pytest.raises(ValueError, match="plants third"):
        note_seeds.write(Noted("third", (1,)), folder)


def test_each_bug_stands_in_a_file_with_its_seeds() -> None:
    texts = [path.read_text(encoding="utf-8") for path in note_seeds.MUTANTS_FOLDER.glob("*.py")]
    for name, bug in MUTANTS.items():
        places = [(text, note_seeds._place(text, name)) for text in texts]
        noted = [text[place[0] : place[1]] for text, place in places if place is not None]
        assert [ast.literal_eval(seeds) for seeds in noted] == [bug.seeds]


def test_a_seed_that_still_catches_a_bug_is_kept() -> None:
    noted = note_seeds.look(SOON, limit_s=0, is_searched=True)
    assert noted == Noted(SOON, MUTANTS[SOON].seeds)


def test_where_none_does_seeds_are_run_from_the_first_one_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(note_seeds, "catches", lambda _, seed: seed in (5, 6))
    assert note_seeds.look(SOON, limit_s=60, is_searched=True) == Noted(SOON, (5,), is_new=True)
    assert note_seeds.look(SOON, limit_s=60, is_searched=False) == Noted(SOON, ())


def test_without_time_or_seeds_a_bug_is_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_seeds, "catches", lambda *_: False)
    assert note_seeds.search(SOON, 60) is None
    assert note_seeds.search(SOON, -1) is None


def test_a_check_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert note_seeds.main(["--check", "--jobs", "1", "--bugs", SOON], folder) == 0
    assert "1 of 1 bugs have a seed" in capsys.readouterr().out
    assert (folder / "some.py").read_text(encoding="utf-8") == PLANTED
