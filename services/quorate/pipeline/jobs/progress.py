"""How far a long job is, on stderr where somebody looks at it."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_EVERY_S: Final = 0.5
_CLEAR: Final = "\r\x1b[K"


@contextmanager
def progress(spark: SparkSession) -> Iterator[None]:
    """While the block runs, the tasks that are done of the stage under way; gone at its end."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, ended), name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


def stage_line(spark: SparkSession) -> str:
    """`stage 3: 12 of 40 tasks, 2 under way`, or an empty string between stages."""
    tracker = spark.sparkContext.statusTracker()
    parts = []
    for stage_id in sorted(tracker.getActiveStageIds()):
        stage = tracker.getStageInfo(stage_id)
        if stage is not None:
            parts.append(
                f"stage {stage_id}: {stage.numCompletedTasks} of {stage.numTasks} tasks,"
                f" {stage.numActiveTasks} under way"
            )
    return "; ".join(parts)


def _watch(spark: SparkSession, ended: threading.Event) -> None:
    while not ended.wait(_EVERY_S):
        line = stage_line(spark)
        if not ended.is_set():
            sys.stderr.write(_CLEAR + line)
            sys.stderr.flush()
