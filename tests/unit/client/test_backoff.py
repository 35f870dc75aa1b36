"""Waits grow, are drawn, and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.client.backoff import RETRY_FIRST_MS, RETRY_LONGEST_MS, Backoff, told_ms, wait_s

if TYPE_CHECKING:
    from tests.unit.client.conftest import Clock


def test_the_wait_grows_up_to_a_bound_and_half_of_it_is_drawn() -> None:
    for rounds, longest_ms in (
        (1, RETRY_FIRST_MS),
        (2, 2 * RETRY_FIRST_MS),
        (90, RETRY_LONGEST_MS),
    ):
        waits = {wait_s(rounds) * 1000 for _ in range(50)}
        assert min(waits) >= longest_ms // 2
        assert max(waits) <= longest_ms + 1
        assert len(waits) > 1


async def test_waits_end_at_the_deadline(clock: Clock) -> None:
    deadline = clock.now_s + 0.2
    backoff = Backoff(deadline)
    waits = 0
    while await backoff.wait():
        waits += 1
    assert waits > 0
    assert clock.now_s == pytest.approx(deadline)
    assert backoff.left_s <= 0
    assert not await backoff.wait()


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.25, 250), (2_147_483.5, 2_147_483_500), (9_876_543.21, 2_147_483_647)],
)
def test_a_request_tells_no_more_time_than_its_field_holds(seconds: float, told: int) -> None:
    assert told_ms(seconds) == told
