"""Shared fixtures of the pipeline: one Spark session, since each takes seconds to start.

Without PySpark or Java each file is one test that is skipped, and fails in CI.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.lacking import lack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

REMEDY = "make pipeline"


def what_lacks() -> str | None:
    """The missing requirements of the tests, with the command that provides them."""
    for name in ("pyspark", "pyarrow", "pandas"):
        if find_spec(name) is None:
            return f"{name} is needed: {REMEDY}"
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        return "Java 17 or newer is needed: apt-get install openjdk-17-jre-headless"
    return None


class Lacking(pytest.Item):
    """Stands for the tests of a file that cannot be imported."""

    def runtest(self) -> None:
        """Say why they do not run."""
        lack(what_lacks() or "")


class LackingModule(pytest.Module):
    """A file of tests that is not imported."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item for all that is in it."""
        yield Lacking.from_parent(self, name="needs_spark")


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Files of this folder are imported where there is Spark to import."""
    if what_lacks() is None:
        return None
    return LackingModule.from_parent(parent, path=module_path)


@pytest.fixture(scope="session", autouse=True)
def short_lived_java() -> Iterator[None]:
    """Java starts sooner in every session, those of commands in processes of their own included."""
    from quorate.pipeline.jobs import progress
    from quorate.pipeline.session import SHORT_LIVED

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_SUBMIT_OPTS", SHORT_LIVED)
        # However slow the machine is, stderr has only what a test is about.
        patched.setattr(progress, "_KEPT_EVERY_S", 3600)
        yield


@pytest.fixture(scope="session")
def spark(short_lived_java: None) -> Iterator[SparkSession]:
    """A session of two threads, with as few tasks as small frames need."""
    from quorate.pipeline.session import session
    from tests.pipeline.log_frames import SMALL_FRAMES

    with session("local[2]", memory_mib=1024) as opened:
        for name, value in SMALL_FRAMES.items():
            opened.conf.set(name, value)
        yield opened


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    """Remove what a job let Spark keep: each plan is compared with all that is kept."""
    yield
    if find_spec("pyspark") is not None:
        from pyspark.sql import SparkSession

        opened = SparkSession.getActiveSession()
        if opened is not None:
            opened.catalog.clearCache()
