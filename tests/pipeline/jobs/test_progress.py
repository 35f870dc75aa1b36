from __future__ import annotations

import errno
import io
import os
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from py4j.protocol import Py4JNetworkError

from quorate.pipeline.jobs import progress as module
from quorate.pipeline.jobs.progress import Progress, progress, say, show, stage_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_nothing_is_said_where_nobody_looks(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress(spark):
        spark.range(10).count()
    assert capsys.readouterr().err == ""


def be_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stderr be one, of 40 columns."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((40, 20)))


def test_a_terminal_is_left_clean(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_a_terminal(monkeypatch)
    with progress(spark):
        spark.range(10).count()
    assert capsys.readouterr().err.endswith("\r\x1b[K")
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]


def test_a_line_is_no_longer_than_the_terminal_is_wide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_a_terminal(monkeypatch)
    show("x" * 372)
    # The last column would have the cursor go to the next line.
    assert capsys.readouterr().err == f"\r\x1b[K{'x' * 39}"


def test_a_line_that_stays_takes_the_place_of_one_that_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_a_terminal(monkeypatch)
    say("damage")
    assert capsys.readouterr().err == "\r\x1b[Kdamage\n"


def test_there_is_no_line_between_stages(spark: SparkSession) -> None:
    assert stage_line(spark) == ""


def busy(*stages: tuple[int, int, int]) -> SparkSession:
    """A session with stages in progress: tasks that are done, all of them, and those at work."""
    found = {
        number: SimpleNamespace(
            stageId=number, numCompletedTasks=done, numTasks=count, numActiveTasks=active
        )
        for number, (done, count, active) in enumerate(stages, 7)
    }
    tracker = SimpleNamespace(getActiveStageIds=lambda: list(found), getStageInfo=found.get)
    context = SimpleNamespace(statusTracker=lambda: tracker)
    return cast("SparkSession", SimpleNamespace(sparkContext=context))


def test_stages_under_way_are_one_line() -> None:
    assert stage_line(busy((1, 3, 2))) == "1 of 3 tasks, 2 under way (stage 7)"
    assert stage_line(busy((1, 3, 2), (0, 40, 0))) == "1 of 43 tasks, 2 under way (stages 7, 8)"


def test_the_part_under_way_is_told_with_how_many_there_are() -> None:
    shown = Progress()
    told = [(name, shown.part) for name, _ in shown.each({"history": 1, "offline": 2})]
    assert told == [("history", "part 1 of 2, history"), ("offline", "part 2 of 2, offline")]


class Kept:
    """A stderr that is not a terminal; `line` is set once it has one."""

    def __init__(self) -> None:
        self.text = ""
        self.line = threading.Event()

    def isatty(self) -> bool:
        """True for a terminal."""
        return False

    def write(self, text: str) -> None:
        """Keep it."""
        self.text += text
        if "\n" in text:
            self.line.set()

    def flush(self) -> None:
        """There is nothing to flush."""


def test_elsewhere_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    monkeypatch.setattr(sys, "stderr", kept)
    monkeypatch.setattr(module, "_KEPT_EVERY_S", 0.001)
    with progress(busy((1, 3, 2))) as shown:
        for _name, _table in shown.each({"offline": 1}):
            for _ in range(2):
                # The first one may have been made before this part began.
                kept.line.clear()
                assert kept.line.wait(60)
    lines = kept.text.splitlines()
    assert lines[-1] == (
        "quorate pipeline: part 1 of 1, offline: 1 of 3 tasks, 2 under way (stage 7)"
    )


def test_java_that_has_gone_ends_the_lines_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = threading.Event()

    def gone(_: object) -> str:
        asked.set()
        raise Py4JNetworkError

    monkeypatch.setattr(module, "stage_line", gone)
    monkeypatch.setattr(module, "_KEPT_EVERY_S", 0.001)
    with progress(busy()):
        assert asked.wait(60)
        for thread in threading.enumerate():
            if thread.name == "progress":
                thread.join()
    assert capfd.readouterr().err == ""


class FullDisk(io.StringIO):
    """A stream that takes nothing."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", text)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_line_that_cannot_be_written_is_left_out(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", FullDisk())
    if is_terminal:
        be_a_terminal(monkeypatch)
    say("one")
    show("two")
