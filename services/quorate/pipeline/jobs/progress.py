"""Progress line on stderr while a job runs; without a terminal, a line every 30 s."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

T = TypeVar("T")
_EVERY_S: Final = 0.5
# In a file or in the logs of a cluster, lines are few.
_KEPT_EVERY_S: Final = 30
_COLUMNS: Final = 80
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """The part of its result that a job is computing, if its parts are known."""

    def __init__(self) -> None:
        self.part = ""

    def each(self, parts: Mapping[str, T]) -> Iterator[tuple[str, T]]:
        """Yield the parts with their names; each is in progress until the next is requested."""
        for number, (name, part) in enumerate(parts.items(), 1):
            self.part = f"part {number} of {len(parts)}, {name}"
            yield name, part


class LastLine:
    """Shows a job's newest line on a terminal; elsewhere prints one at most every 30 s."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._said = ""
        self._said_s = time.monotonic()

    def show(self, line: str) -> None:
        """Show a line, which may be the same as before, or empty."""
        if sys.stderr.isatty():
            show(line)
            return
        now_s = time.monotonic()
        if line not in ("", self._said) and now_s - self._said_s >= _KEPT_EVERY_S:
            self._said, self._said_s = line, now_s
            say(f"quorate pipeline {self._job}: {line}")


@contextmanager
def progress(spark: SparkSession) -> Iterator[Progress]:
    """Show the number of completed tasks of active stages while the block runs."""
    shown = Progress()
    ended = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(spark, shown, ended), name="progress", daemon=True
    )
    watcher.start()
    try:
        yield shown
    finally:
        ended.set()
        watcher.join()
        show("")


def stage_line(spark: SparkSession) -> str:
    """`12 of 40 tasks, 2 under way (stage 3)`, or an empty string between stages."""
    tracker = spark.sparkContext.statusTracker()
    found = (tracker.getStageInfo(stage_id) for stage_id in sorted(tracker.getActiveStageIds()))
    stages = [stage for stage in found if stage is not None]
    if not stages:
        return ""
    done = sum(stage.numCompletedTasks for stage in stages)
    count = sum(stage.numTasks for stage in stages)
    active = sum(stage.numActiveTasks for stage in stages)
    numbers = ", ".join(str(stage.stageId) for stage in stages)
    word = "stage" if len(stages) == 1 else "stages"
    return f"{done} of {count} tasks, {active} under way ({word} {numbers})"


def show(line: str) -> None:
    """Show a line on the terminal until the next one; do nothing without a terminal."""
    if sys.stderr.isatty():
        _write(_CLEAR + line[: _columns() - 1])


def say(line: str) -> None:
    """Print a line that stays; on a terminal it replaces the shown line."""
    _write(f"{_CLEAR if sys.stderr.isatty() else ''}{line}\n")


def _write(text: str) -> None:
    """Write to stderr; a job does not fail if that is a file on a full disk."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _columns() -> int:
    with suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
    return _COLUMNS


def _watch(spark: SparkSession, shown: Progress, ended: threading.Event) -> None:
    is_terminal = sys.stderr.isatty()
    while not ended.wait(_EVERY_S if is_terminal else _KEPT_EVERY_S):
        try:
            line = ": ".join(filter(None, (shown.part, stage_line(spark))))
        except (Py4JError, ConnectionError):
            # Java has exited, which the job itself reports.
            return
        if ended.is_set():
            return
        if is_terminal:
            show(line)
        elif line:
            say(f"quorate pipeline: {line}")
