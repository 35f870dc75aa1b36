"""Settings of the command line, and the report of a refusal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quorate.api.admin_api import AdminError
from quorate.cli.output import CommandError, admin_error, parse_setting, report_errors
from quorate.records.errors import ErrorCode


def test_settings_are_split_at_the_first_equals_sign() -> None:
    assert parse_setting("--config", "k=a=b") == ("k", "a=b")
    assert parse_setting("--config", "k=") == ("k", "")
    with pytest.raises(CommandError, match="--config: 'k' is no KEY=VALUE"):
        parse_setting("--config", "k")


def test_an_admin_error_is_kafkas_error_the_reason_and_the_sentence() -> None:
    error = AdminError("VOTER_LAGGING", ErrorCode.REQUEST_TIMED_OUT, "behind: wait")
    assert admin_error(error) == "REQUEST_TIMED_OUT (VOTER_LAGGING): behind: wait"
    same = AdminError("VOTER_NOT_FOUND", ErrorCode.VOTER_NOT_FOUND, "4 is no voter")
    assert admin_error(same) == "VOTER_NOT_FOUND: 4 is no voter"


def test_refused_items_are_reported_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    items = [("a", ErrorCode.NONE, ""), ("b", ErrorCode.INVALID_PARTITIONS, "zero")]
    assert report_errors(items) == 1
    assert capsys.readouterr().err == "error: b: INVALID_PARTITIONS: zero\n"
    assert report_errors(items[:1]) == 0


def test_what_a_terminal_would_obey_is_shown_as_an_escape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_errors([("a\n", ErrorCode.INVALID_TOPIC_EXCEPTION, "b\x1b")])
    assert capsys.readouterr().err == "error: a\\n: INVALID_TOPIC_EXCEPTION: b\\x1b\n"


def test_formatting_needs_neither_grpc_nor_numpy() -> None:
    script = (
        "import sys, quorate.cli.storage;"
        "print(sorted({'grpc', 'numpy', 'google.protobuf'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
