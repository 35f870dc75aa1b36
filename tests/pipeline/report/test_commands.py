"""Commands on the page can be typed, and read what the page read."""

from __future__ import annotations

import argparse
import shlex
from datetime import UTC, datetime

from quorate.pipeline.command import add_jobs
from quorate.pipeline.report.commands import LogCommands, commands_of, ids_in_sql, iso_time


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    return parser.parse_args(words)


def test_a_command_names_the_log_the_table_and_what_of_it() -> None:
    commands = LogCommands(("--path", "/a b", "--starting-offsets", "7"))
    where = 'topic = "x y"'
    words = shlex.split(
        commands.command("partitions", "offline", where=where, order_by="start desc")
    )
    assert words[:2] == ["quorate", "pipeline"]
    asked = parsed(words[2:])
    assert (asked.path, asked.table) == (["/a b"], ["offline"])
    assert (asked.where, asked.order_by) == ('topic = "x y"', "start desc")
    assert asked.starting_offsets == "7"
    assert shlex.split(commands.command("elections"))[2] == "elections"


def test_a_flag_of_a_command_takes_the_place_of_the_same_one_of_the_log() -> None:
    commands = LogCommands(("--path", "x", "--starting-offsets", "7"))
    assert commands.command("sizes", starting_offsets="9") == (
        "quorate pipeline sizes --path x --starting-offsets 9"
    )


def test_commands_read_what_the_page_was_made_of() -> None:
    said = [
        *("--bootstrap-controller", "a:1,b:2", "--command-config", "/c"),
        *("--ending-offsets", "9", "--isolation", "read_uncommitted"),
    ]
    asked = parsed(["report", *said])
    assert commands_of(asked).words == tuple(said)
    assert commands_of(parsed(["report", "--path", "a", "--path", "b"])).words == (
        *("--path", "a"),
        *("--path", "b"),
    )


def test_moments_and_ids_as_conditions_have_them() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 67_000, tzinfo=UTC)
    assert iso_time(at) == "2026-01-02T03:04:05.067Z"
    assert ids_in_sql([3, 1]) == "cast(array(3, 1) as array<int>)"
