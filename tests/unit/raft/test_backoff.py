"""Waits grow, end at a cap, and are never in step."""

from __future__ import annotations

from random import Random

import pytest

from quorate.raft.backoff import backoff_ms
from tests.unit.raft.cores import Midway

pytestmark = pytest.mark.rule("retry_backoff")


def test_a_wait_doubles_up_to_its_cap() -> None:
    waits = [
        backoff_ms(count, first_ms=20, longest_ms=1000, random=Midway()) for count in range(1, 9)
    ]
    assert waits == [16, 31, 61, 121, 241, 481, 751, 751]
    assert backoff_ms(10**9, first_ms=20, longest_ms=1000, random=Midway()) == 751


def test_half_of_a_wait_is_drawn() -> None:
    random = Random(1)
    waits = [backoff_ms(20, first_ms=20, longest_ms=1000, random=random) for _ in range(200)]
    assert min(waits) > 500
    assert max(waits) <= 1000
    assert len(set(waits)) > 50
