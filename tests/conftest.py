"""What all tests share: the folder of stock Kafka's files, Hypothesis without a deadline.

A busy machine is no failure.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

VARIABLE = "QUORATE_KAFKA_FIXTURES"

settings.register_profile("quorate", deadline=None)
settings.load_profile("quorate")


@pytest.fixture(scope="session")
def kafka_fixtures() -> Path:
    """The folder that QUORATE_KAFKA_FIXTURES names; missing, the test fails in CI, else skips."""
    named = os.environ.get(VARIABLE)
    if named and (Path(named) / "schemas.json").is_file():
        return Path(named)
    problem = (
        f"files of stock Kafka are needed: {VARIABLE}=FOLDER make test, "
        f"with the folder that holds schemas.json (now it is {named!r})"
    )
    if os.environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)
