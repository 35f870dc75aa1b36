"""What Spark counted on the way through a log, also where there was nothing on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Observation


def figures_of(seen: Observation) -> Mapping[str, Any]:
    """What was observed, once an action has gone through the rows; empty where there were none.

    Spark leaves a part of a plan out that gives no rows, what observes them included, and an
    observation without figures ends with an error of Java's.
    """
    try:
        return dict(seen.get)
    except Py4JJavaError:
        return {}
