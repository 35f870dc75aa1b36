"""docs/pipeline.md tells the truth: what it quotes can be typed.

A block of ```console begins with a command behind `$`, and goes on with its output, if it has any.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from quorate.cli.main import COMMANDS, make_parser
from quorate.pipeline.jobs.narrowing import narrowing_of
from quorate.pipeline.jobs.registry import JOBS
from quorate.pipeline.jobs.running import chosen_tables, source_options

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
BLOCK = re.compile(r"^```console\n\$ (.*?[^\\])\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAG = re.compile(r"`(--[a-z-]+)")
QUESTIONS_MIN = 10


@dataclass(frozen=True, slots=True)
class Quoted:
    """One command and its output."""

    command: str
    output: str

    @property
    def words(self) -> list[str]:
        """What a shell makes of it."""
        return shlex.split(self.command)

    @property
    def job(self) -> str | None:
        """The job that it runs."""
        words = self.words
        return words[2] if words[:2] == ["quorate", "pipeline"] else None


def quoted(text: str) -> list[Quoted]:
    """The blocks of a document, in its order."""
    return [Quoted(command.replace("\\\n", " "), output) for command, output in BLOCK.findall(text)]


TEXT = DOCUMENT.read_text(encoding="utf-8")
QUOTED = quoted(TEXT)
OURS = [each for each in QUOTED if each.words[0] == "quorate"]


def test_ten_questions_have_a_command_each() -> None:
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    asked = {section.splitlines()[0]: quoted(section) for section in sections if "?\n" in section}
    questions = {title: blocks for title, blocks in asked.items() if title.endswith("?")}
    assert len(questions) >= QUESTIONS_MIN
    for title, blocks in questions.items():
        assert any(each.job is not None for each in blocks), title


@pytest.mark.parametrize("each", OURS, ids=lambda each: each.command)
def test_each_command_can_be_typed(each: Quoted) -> None:
    words = each.words[1:]
    assert words[0] in COMMANDS
    parsed = make_parser(words[0]).parse_args(words)
    if each.job is None:
        return
    job = JOBS[each.job]
    source_options(job, parsed)
    if job.tables:
        schemas = import_module(job.module).SCHEMAS
        narrowing_of(parsed, {name: schemas[name] for name in chosen_tables(job, parsed)})


def test_each_flag_that_it_names_is_one_of_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    for name in JOBS:
        with pytest.raises(SystemExit):
            make_parser("pipeline").parse_args(["pipeline", name, "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert [flag for flag in FLAG.findall(TEXT) if flag not in known] == []
