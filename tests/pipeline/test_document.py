"""docs/pipeline.md is true: what it quotes can be typed, and says what it says there.

A block of ```console begins with a command behind `$`, and continues with its output, of which a
line `...` stands for any number of lines.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.cli.main import COMMANDS, make_parser
from quorate.cli.main import main as quorate
from quorate.pipeline.jobs import job_runner
from quorate.pipeline.jobs.job_runner import chosen_tables, source_options
from quorate.pipeline.jobs.registry import JOBS
from quorate.pipeline.jobs.table_filters import parse_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
BLOCK = re.compile(r"^```console\n\$ (.*?[^\\])\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAG = re.compile(r"`(--[a-z-]+)")
ELIDED = "..."
QUESTIONS_MIN = 10


@dataclass(frozen=True, slots=True)
class Quoted:
    """One command and its output."""

    command: str
    output: str

    @property
    def words(self) -> list[str]:
        """The words into which a shell splits it."""
        return shlex.split(self.command)

    @property
    def name(self) -> str:
        """The job or command, and its tables, for the name of its test."""
        words = self.words
        tables = [word for flag, word in pairwise(words) if flag == "--table"]
        return "-".join([self.job or words[0], *tables])

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
JOB_RUNS = [each for each in QUOTED if each.job is not None]


def outputs() -> list[Quoted]:
    """Quotes to compare: every run over the generated log whose output the document has."""
    return [each for each in JOB_RUNS if "--path" in each.words and each.output]


def matches(output: str, said: str) -> bool:
    """True if a text equals the quoted output, with any lines in the place of each `...`."""
    parts = re.split(rf"^{re.escape(ELIDED)}\n", output, flags=re.MULTILINE)
    pattern = r"(?:.*\n)*".join(re.escape(part) for part in parts)
    return re.fullmatch(pattern, said) is not None


def test_a_line_of_dots_stands_for_lines_that_were_left_out() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not matches("a\n...\nd\n", "a\nb\nc\n")
    assert not matches("a\n", "a\nb\n")


def test_ten_questions_have_a_command_and_its_output_each() -> None:
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    questions = [section for section in sections if section.partition("\n")[0].endswith("?")]
    runs = [[each for each in quoted(section) if each.job is not None] for section in questions]
    assert all(runs)
    assert sum(any(each.output for each in found) for found in runs) >= QUESTIONS_MIN


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
        parse_filter(parsed, {name: schemas[name] for name in chosen_tables(job, parsed)})


def test_each_flag_that_it_names_is_one_of_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    for name in JOBS:
        with pytest.raises(SystemExit):
            make_parser("pipeline").parse_args(["pipeline", name, "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert [flag for flag in FLAG.findall(TEXT) if flag not in known] == []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log that the document generates, and the copy that it damages."""
    folder = tmp_path_factory.mktemp("document")
    generating = next(each.words for each in OURS if each.words[1] == "generate-log")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert quorate(generating[1:]) == 0
        for each in QUOTED:
            if each.words[0] == "cp":
                subprocess.run(each.command, shell=True, check=True)  # noqa: S602 - as it is typed
    return folder


def test_nearly_all_of_the_questions_are_compared_with_their_outputs() -> None:
    assert len({each.job for each in outputs()}) >= QUESTIONS_MIN


@pytest.mark.parametrize("each", outputs(), ids=lambda each: each.name)
def test_its_output_is_that_of_the_job(
    spark: SparkSession,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    each: Quoted,
) -> None:
    monkeypatch.setattr(job_runner, "session", lambda *_, **__: nullcontext(spark))
    # The session that all tests share was begun in another folder.
    words = [str(place / word) if word.startswith("build/") else word for word in each.words[1:]]
    assert quorate(words) == 0
    said = capsys.readouterr().out.replace(f"{place}/", "")
    assert matches(each.output, said), said
