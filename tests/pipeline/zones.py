"""Time zones of a site and of its machines."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator

# West of Greenwich, a quarter of an hour off, and a day ahead.
ZONES: Final = ("America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati")


@contextmanager
def submitted_in(zone: str, spark: SparkSession) -> Iterator[None]:
    """As under spark-submit, where the site's defaults and the machine have a zone."""
    key = "spark.sql.session.timeZone"
    system = spark._jvm.java.lang.System
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", zone)
        patched.setenv("PYSPARK_GATEWAY_PORT", "1")
        # The session is that of all tests.
        patched.setattr(SparkSession, "stop", lambda _: None)
        time.tzset()
        system.setProperty(key, zone)
        spark.conf.set(key, zone)
        try:
            yield
        finally:
            system.clearProperty(key)
            spark.conf.set(key, "UTC")
    time.tzset()
