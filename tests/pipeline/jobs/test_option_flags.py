"""No message that comes through the command names an option that cannot be typed there."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import pytest

from quorate.pipeline import source
from quorate.pipeline.command import add_jobs
from quorate.pipeline.jobs.option_flags import in_flags
from quorate.pipeline.source import options

SOURCE = Path(source.__file__).parent
# Names that are not English words: a sentence has them for the option alone.
OF_SOURCE = [name for name in options._NAMES if not name.islower() or "." in name]
VALUES = {"START": options.START, "END": options.END}


def sentences() -> list[str]:
    """The texts of all that the source raises, as far as they stand in the code."""
    found = []
    for path in sorted(SOURCE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case (
                    ast.Raise(exc=ast.Call(args=[text, *_]))
                    | ast.Return(value=ast.Call(func=ast.Name(id="OptionError"), args=[text, *_]))
                ):
                    found.append(text_of(text))
                case _:
                    pass
    return [text for text in found if text]


def text_of(node: ast.expr) -> str:
    """A literal with a word in the place of each value."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(text_of, parts))
        case ast.FormattedValue(value=ast.Name(id=name)):
            return VALUES.get(name, "word")
        case ast.FormattedValue():
            return "word"
    return ""


def flags() -> set[str]:
    """Every option of every job."""
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    (jobs,) = (each.choices for each in parser._actions if isinstance(each.choices, dict))
    return {
        flag for job in jobs.values() for action in job._actions for flag in action.option_strings
    }


def test_all_that_the_source_raises_names_options_of_the_command() -> None:
    # The command sets some options in its own words, and others never.
    unset = tuple(f"{name}:" for name in OF_SOURCE if in_flags(name) == name)
    told = [sentence for sentence in sentences() if not sentence.startswith(unset)]
    assert len(told) > 15
    known = flags()
    for sentence in map(in_flags, told):
        named = set(re.findall(r"--[a-z][a-z-]+", sentence))
        assert named <= known, sentence
        left = [name for name in OF_SOURCE if name in sentence]
        assert not left, sentence
        assert "the query" not in sentence
        assert not sentence.startswith(("path:", "isolation:"))


@pytest.mark.parametrize(
    ("of_source", "of_command"),
    [
        ("path: /a/path is empty", "--path: /a/path is empty"),
        (
            "endingOffsets: 7 is gone; startingOffsets=snapshot with endingOffsets=9 reads it",
            "--ending-offsets: 7 is gone; --starting-offsets snapshot with --ending-offsets 9"
            " reads it",
        ),
        (
            "bootstrap.servers: no answer; see commandConfig",
            "--bootstrap-controller: no answer; see --command-config",
        ),
        (
            "gone; set failOnDataLoss to false to go on, or give the query a new checkpoint",
            "gone; say --go-on-after-loss yes to go on, or name another --checkpoint and --output",
        ),
        (
            "path: /a/* is not there; no pattern is filled in: name each directory, separated by"
            " commas",
            "--path: /a/* is not there; no pattern is filled in: name each directory with --path",
        ),
        ("/logs/onDamage/x cannot be read", "/logs/onDamage/x cannot be read"),
    ],
)
def test_options_are_named_as_they_are_typed(of_source: str, of_command: str) -> None:
    assert in_flags(of_source) == of_command
