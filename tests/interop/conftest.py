"""Stock Kafka for the tests that run it, and its handling of damage next to ours."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest

from tests.interop.class_archive import with_archive
from tests.interop.stock_kafka import StockKafka
from tests.lacking import lack
from tools.fetch_kafka import is_complete, jars_folder

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

SIDE_BY_SIDE: Final = pytest.StashKey[list[tuple[str, str, str]]]()
"""Damage, what stock Kafka does with it, what we do."""


@pytest.fixture(scope="session")
def stock() -> StockKafka:
    """The jars that `make kafka` copies; without them the test fails in CI and skips elsewhere."""
    folder = jars_folder(os.environ)
    if not is_complete(folder):
        lack(f"stock Kafka is needed, and {folder} does not hold it: make interop")
    return with_archive(StockKafka(folder))


@pytest.fixture(scope="session")
def side_by_side(pytestconfig: pytest.Config) -> list[tuple[str, str, str]]:
    """The table that the end of the run prints."""
    return pytestconfig.stash.setdefault(SIDE_BY_SIDE, [])


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print the table, as far as its tests have run."""
    rows = config.stash.get(SIDE_BY_SIDE, [])
    if rows:
        terminalreporter.section("damaged directories, side by side")
        for row in [("damage", "stock Kafka", "ours"), *sorted(rows)]:
            terminalreporter.write_line("{:<40}{:<20}{}".format(*row))
