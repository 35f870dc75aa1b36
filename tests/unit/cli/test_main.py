"""The `quorate` command finds its sub-commands and fails in one line."""

from __future__ import annotations

import errno
import io
import sys

import pytest

import quorate
from quorate.cli.main import COMMANDS, main


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"quorate {quorate.__version__}\n"


def test_an_unknown_command_is_named_with_those_that_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["topic"]) == 1
    assert capsys.readouterr().err.startswith("quorate: unknown command 'topic': it is one of ")


def test_an_unknown_flag_points_to_the_help_of_the_action_that_was_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["topics", "create", "--topic", "t", "--partitons", "3"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        "quorate topics create: unknown arguments: --partitons 3\n"
        "see `quorate topics create --help`\n"
    )


def test_bad_input_ends_with_status_1_and_says_which_argument(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--seeds", "x"])
    assert ended.value.code == 1
    assert "--seeds" in capsys.readouterr().err


class FailingOutput(io.StringIO):
    """A stdout that keeps what it is given until it is flushed, as a file's and a pipe's do."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def flush(self) -> None:
        raise self.error


@pytest.mark.parametrize("arguments", [["storage", "random-uuid"], ["--help"], ["--version"]])
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (
            errno.ENOSPC,
            "error: stdout: No space left on device: the output is not whole; a change that was"
            " asked for may have been made\n",
        ),
        (errno.EPIPE, ""),
    ],
)
def test_output_that_cannot_be_written_ends_with_status_1_and_no_traceback(
    arguments: list[str],
    number: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing = FailingOutput(OSError(number, "No space left on device"))
    monkeypatch.setattr(sys, "stdout", failing)
    assert main(arguments) == 1
    assert capsys.readouterr().err == said
    # The interpreter flushes it once more at its end.
    assert sys.stdout is not failing
