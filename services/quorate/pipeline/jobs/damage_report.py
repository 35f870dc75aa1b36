"""Reports damage that a job skipped: one line on stderr; the result covers the rest of the log."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from quorate.pipeline.jobs.log_rows import is_damaged
from quorate.pipeline.jobs.observed_metrics import observed_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming import StreamingQuery

_NAME: Final = "damage"
_SAID: Final = "error string, file string, position bigint"


def first_damage() -> Column:
    """The first damaged position among the rows, for `told_damage`."""
    said = F.from_json("payload", _SAID)
    return F.min(F.struct(said["file"], said["position"], said["error"]))


def damage_message(first: str) -> Column:
    """The file, the byte and the error; null without damage."""
    of = F.col(first)
    told = F.format_string("%s: byte %d: %s", of["file"], of["position"], of["error"])
    return F.when(of.isNotNull(), told)


class DamageObservation:
    """The damage in a frame's rows, once a query has read them.

    A query whose result is known to be empty reads nothing. In that case `read` provides the frame
    again, of which only the columns for damage are read.
    """

    def __init__(self, read: Callable[[], DataFrame]) -> None:
        self._seen = Observation()
        self._read = read

    def watched(self, log: DataFrame) -> DataFrame:
        """The frame, observed while it is read."""
        return observed(log, self._seen)

    def warn(self, job: str) -> None:
        """Print a warning if damage was left out of the result."""
        figures = observed_values(self._seen)
        if figures.get("count") is None:
            found = self._read().agg(*_figures()).first()
            assert found is not None
            figures = found.asDict()
        _warn(job, figures, "left out of the answer")


def observed(log: DataFrame, seen: Observation | str = _NAME) -> DataFrame:
    """Count the damage in a frame while it is read; for a stream, see `DamagedBatches`."""
    return log.observe(seen, *_figures())


def _figures() -> tuple[Column, Column]:
    first = F.min(F.when(is_damaged(), F.struct("offset", "payload")))
    return F.count_if(is_damaged()).alias("count"), first.alias("first")


class DamagedBatches:
    """Reports the damage in the batches of a stream, each batch once."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._told = -1

    def look(self, query: StreamingQuery) -> None:
        """Report the damage in the batches that have completed since the last call."""
        for progress in query.recentProgress:
            if progress["batchId"] > self._told:
                self._told = progress["batchId"]
                figures = progress["observedMetrics"].get(_NAME)
                if figures is not None:
                    _warn(self._job, figures.asDict(), "in the output as record_type=damaged")


def _warn(job: str, figures: Mapping[str, Any], where: str) -> None:
    """Report the number of damaged positions and the first one; nothing without damage."""
    count = figures.get("count")
    if not count:
        return
    first = figures["first"]
    said = json.loads(first["payload"])
    at = f"{said['file']}: byte {said['position']}"
    if first["offset"] is not None:
        at += f", offset {first['offset']}"
    many = "1 damaged place is" if count == 1 else f"{count} damaged places are"
    more = "--table logs" if job == "compare" else "quorate pipeline compare"
    sys.stderr.write(
        f"quorate pipeline {job}: {many} {where}, the first at {at}: {said['error']};"
        f" {more} tells more, --on-damage fail stops at the first\n"
    )
