"""Options of chaos: its duration, the number of controllers, the seed."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from tests.chaos.nemesis import ALONE, KINDS
from tests.chaos.network import missing
from tests.lacking import lack

if TYPE_CHECKING:
    from collections.abc import Sequence


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Three and five controllers, unless one number is asked for."""
    if "controllers" in metafunc.fixturenames:
        asked = metafunc.config.getoption("--chaos-controllers")
        metafunc.parametrize("controllers", [asked] if asked else [3, 5])


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--chaos-seconds"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A new one each time unless one is asked for; the report names it."""
    asked = request.config.getoption("--chaos-seed")
    return secrets.randbelow(1_000_000) if asked is None else int(asked)


@pytest.fixture
def kinds(request: pytest.FixtureRequest) -> Sequence[str]:
    """The kinds of faults that are drawn. Raises UsageError for one that does not exist."""
    asked = request.config.getoption("--chaos-kinds")
    if asked is None:
        return tuple(kind for kind in KINDS if kind not in ALONE)
    if asked == "all":
        return KINDS
    wanted = tuple(asked.split(","))
    if not set(wanted) <= set(KINDS):
        raise pytest.UsageError(f"--chaos-kinds: all, or some of {','.join(KINDS)}")
    return wanted


@pytest.fixture
def machine() -> None:
    """A machine with namespaces and mounts; without, the test fails in CI and skips elsewhere."""
    problem = missing()
    if problem is not None:
        lack(problem)
