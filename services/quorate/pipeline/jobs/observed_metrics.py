"""Reads Spark observations, also for empty inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Observation


def observed_values(seen: Observation) -> Mapping[str, Any]:
    """The observed values, after an action has read the rows; empty without rows.

    Spark optimizes away a part of a plan that has no rows, with its observation. An observation
    without values raises an error of Java's.
    """
    try:
        return dict(seen.get)
    except Py4JJavaError:
        return {}
