"""The help of what rescues a quorum says what a human must know before, and loads nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from quorate.cli.main import main, make_parser

GUIDE = Path(__file__).parents[3] / "docs" / "recovery.md"


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(["storage", command, "--help"])
    assert exit_.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def test_help_says_what_a_recovery_gives_up(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("recover", capsys)
    assert "what only lost disks had is gone" in text
    assert "Nothing is changed without --execute" in text


def test_help_says_what_a_backup_holds(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("backup", capsys)
    assert "the backup holds exactly what is committed" in text
    assert "nothing is written to its directory" in text


def test_help_says_what_a_restoration_makes(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("restore", capsys)
    assert "Make a quorum of one controller out of a backup" in text
    assert "while a leader of that cluster answers, nothing is restored" in text


def commands_in(document: Path) -> list[list[str]]:
    """The commands that a document shows in blocks, one a line."""
    lines = (line.strip() for line in document.read_text(encoding="utf-8").splitlines())
    return [shlex.split(line) for line in lines if line.startswith("quorate ")]


def test_every_command_of_the_guide_is_one_that_we_have() -> None:
    commands = commands_in(GUIDE)
    assert len(commands) > 7
    for program, command, *arguments in commands:
        assert program == "quorate"
        assert callable(make_parser(command).parse_args([command, *arguments]).run)
