"""Every table of every job as the walks have it, and as the jobs do, in values that compare."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING

from quorate.pipeline.jobs.registry import JOBS
from tests.pipeline.jobs.rows import rows_of
from tests.pipeline.walks import image, quorum, settings, sizes
from tests.pipeline.walks.brokers import Brokers
from tests.pipeline.walks.partitions import Partitions
from tests.pipeline.walks.past import Cells, Past, ordered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from tests.pipeline.log_frames import Row

Tables = dict[str, list[Cells]]
OPTIONS = {"flap_window_s": 60, "flap_count": 3, "at": None, "to": None}
# Jobs that say something of several logs; of one, too.
OF_SEVERAL = ("health", "compare")
OF_ONE = tuple(name for name, job in JOBS.items() if job.tables and name not in OF_SEVERAL)
RECORD_TYPES = ",".join(sorted({name for job in JOBS.values() for name in job.record_types}))
# A share is a quotient; so many digits of it are the same however it was added up.
SHARE_DIGITS = 9


def walked(job: str, rows: Sequence[Row], start: int) -> Tables:
    """The expected tables for the rows of one log; `start` is the offset that a diff is from."""
    past = Past(rows)
    match job:
        case "elections":
            return {"elections": quorum.elections(past)}
        case "membership":
            return {
                "changes": quorum.voter_changes(past),
                "voter_sets": quorum.voter_sets(past),
            }
        case "features":
            return {"features": settings.features(past)}
        case "brokers":
            return Brokers(past).tables(60_000, 3)
        case "partitions":
            return Partitions(past).tables()
        case "configs":
            return {"configs": settings.configs(past)}
        case "acls":
            return {"acls": settings.acls(past)}
        case "image":
            return image.image_at(rows, None).tables()
        case "diff":
            return {"diff": image.differences(rows, start, None)}
        case "sizes":
            return sizes.sizes(past)
        case "health":
            return {
                "health": ordered((name, *cells) for name, cells in quorum.health(rows).items())
            }
        case "compare":
            return quorum.compared(rows)
    raise AssertionError(job)


def found(job: str, log: DataFrame, start: int) -> Tables:
    """The tables that the job makes of a frame."""
    tables: Mapping[str, DataFrame] = import_module(JOBS[job].module).tables(
        log, {**OPTIONS, "from": start}
    )
    assert tuple(tables) == JOBS[job].tables
    return {name: _cells(job, table) for name, table in tables.items()}


def _cells(job: str, table: DataFrame) -> list[Cells]:
    columns = {name: at for at, name in enumerate(table.columns)}
    rows = rows_of(table.drop("what") if job == "health" else table)
    if job == "diff":
        return ordered((*row[:4], *map(_sorted_json, row[4:])) for row in rows)
    if "share" in columns:
        return ordered(tuple(map(_rounded, row)) for row in rows)
    return ordered(tuple(map(_listed, row)) for row in rows)


def _sorted_json(cell: object) -> object:
    return json.dumps(json.loads(cell), sort_keys=True) if isinstance(cell, str) else cell


def _rounded(cell: object) -> object:
    return round(cell, SHARE_DIGITS) if isinstance(cell, float) else cell


def _listed(cell: object) -> object:
    """Structs and lists as tuples."""
    return tuple(map(_listed, cell)) if isinstance(cell, tuple | list) else cell
