"""Damage that a job comes across: a line on stderr; the answer is what the rest of the log says."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from quorate.pipeline.jobs.log_rows import is_damaged
from quorate.pipeline.jobs.observed_metrics import figures_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming import StreamingQuery

_NAME: Final = "damage"
_SAID: Final = "error string, file string, position bigint"


def first_damage() -> Column:
    """The first place of rows that are damaged, for `told_damage`."""
    said = F.from_json("payload", _SAID)
    return F.min(F.struct(said["file"], said["position"], said["error"]))


def told_damage(first: str) -> Column:
    """The file, the byte and what is wrong; null where nothing is."""
    of = F.col(first)
    told = F.format_string("%s: byte %d: %s", of["file"], of["position"], of["error"])
    return F.when(of.isNotNull(), told)


class DamageSeen:
    """What of a frame's rows is about damage, once a query has gone through them.

    A query whose answer is known to be empty goes through nothing. Then `read` gives the frame once
    more, which need have no more than what is told of damage.
    """

    def __init__(self, read: Callable[[], DataFrame]) -> None:
        self._seen = Observation()
        self._read = read

    def watched(self, log: DataFrame) -> DataFrame:
        """The frame, which is looked at on the way."""
        return observed(log, self._seen)

    def warn(self, job: str) -> None:
        """Say so if the answer lacks something."""
        figures = figures_of(self._seen)
        if figures.get("count") is None:
            found = self._read().agg(*_figures()).first()
            assert found is not None
            figures = found.asDict()
        _warn(job, figures, "left out of the answer")


def observed(log: DataFrame, seen: Observation | str = _NAME) -> DataFrame:
    """A frame on whose way damage is counted; of a stream, for `DamagedBatches`."""
    return log.observe(seen, *_figures())


def _figures() -> tuple[Column, Column]:
    first = F.min(F.when(is_damaged(), F.struct("offset", "payload")))
    return F.count_if(is_damaged()).alias("count"), first.alias("first")


class DamagedBatches:
    """The batches of a stream, looked at since the last time."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._told = -1

    def look(self, query: StreamingQuery) -> None:
        """Say what damage was in the batches that have ended."""
        for progress in query.recentProgress:
            if progress["batchId"] > self._told:
                self._told = progress["batchId"]
                figures = progress["observedMetrics"].get(_NAME)
                if figures is not None:
                    _warn(self._job, figures.asDict(), "in the output as record_type=damaged")


def _warn(job: str, figures: Mapping[str, Any], where: str) -> None:
    """Say how many places are damaged, and which one is the first; nothing where none is."""
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
