"""Stock Kafka for the tests that run it."""

from __future__ import annotations

import os

import pytest

from tests.interop.stock_kafka import StockKafka
from tools.fetch_kafka import is_complete, jars_folder


@pytest.fixture(scope="session")
def stock() -> StockKafka:
    """The jars that `make kafka` copies; without them the test fails in CI and skips elsewhere."""
    folder = jars_folder(os.environ)
    if is_complete(folder):
        return StockKafka(folder)
    problem = f"stock Kafka is needed, and {folder} does not hold it: make interop"
    if os.environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)
