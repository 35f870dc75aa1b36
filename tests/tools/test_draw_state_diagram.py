"""The diagram in the protocol document is the table that the code asserts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft.roles import TRANSITIONS, Initializing
from tools import draw_state_diagram

if TYPE_CHECKING:
    from pathlib import Path


def test_the_committed_diagram_is_fresh() -> None:
    assert draw_state_diagram.main(["--check"]) == 0


def test_every_transition_is_drawn_once() -> None:
    drawn = draw_state_diagram.diagram()
    for old, new in TRANSITIONS:
        begin = "[*]" if old is Initializing else old.__name__
        assert drawn.count(f"    {begin} --> {new.__name__}: ") == 1


def test_a_stale_diagram_is_found_and_redrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "protocol.md"
    document.write_text(f"before\n{draw_state_diagram.BEGIN}old\n{draw_state_diagram.END}after\n")
    assert draw_state_diagram.main(["--check"], document) == 1
    assert "protocol.md: the diagram of roles is stale" in capsys.readouterr().err
    assert draw_state_diagram.main([], document) == 0
    assert draw_state_diagram.main(["--check"], document) == 0
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_marks_must_be_there(tmp_path: Path) -> None:
    document = tmp_path / "protocol.md"
    document.write_text("no marks\n")
    with pytest.raises(ValueError, match="lacks"):
        draw_state_diagram.main([], document)
