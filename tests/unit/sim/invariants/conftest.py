"""As much of a simulated cluster as the invariants look at."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.sim.faults.option_mix import draw_mix


@pytest.fixture
def node() -> Any:  # noqa: ANN401 - as much of a node as the invariants look at
    """An active controller with one broker, which is unfenced."""
    registration = SimpleNamespace(fenced=False, broker_epoch=5)
    brokers = SimpleNamespace(by_id={1: SimpleNamespace(registration=registration)})
    return SimpleNamespace(
        node_id=1,
        incarnation=1,
        active_epoch=3,
        local_ms=100_000,
        waiting=[],
        image=SimpleNamespace(brokers=brokers),
        troubles=0,
        is_stepped=True,
        is_stopping=False,
        progress=None,
    )


@pytest.fixture
def world(node: Any) -> Any:  # noqa: ANN401 - as above
    options = draw_mix(1)
    options = replace(options, fleet=replace(options.fleet, brokers=1))
    return SimpleNamespace(options=options, running=lambda: [node])
