"""A node that keeps ending with damage is opened ever more rarely."""

from __future__ import annotations

from quorate.server.restart_backoff import HEALTHY_AFTER_S, LONGEST_S, SHORTAGE_S, RestartBackoff


class Most:
    def random(self) -> float:
        return 1.0


def test_the_first_restart_is_at_once_and_each_one_after_it_later() -> None:
    restarts = RestartBackoff(Most())
    waits = [restarts.next_wait_s(0.01) for _ in range(13)]
    assert waits[:4] == [0.0, 0.1, 0.2, 0.4]
    assert waits[-2:] == [LONGEST_S, LONGEST_S]


def test_who_lived_long_is_opened_again_at_once() -> None:
    restarts = RestartBackoff(Most())
    for _ in range(9):
        restarts.next_wait_s(1)
    assert restarts.next_wait_s(HEALTHY_AFTER_S) == 0.0
    assert restarts.next_wait_s(1) == 0.1


def test_a_shortage_has_a_wait_of_its_own() -> None:
    restarts = RestartBackoff(Most())
    assert [restarts.shortage_wait_s() for _ in range(9)] == [2 * SHORTAGE_S] * 9
    assert restarts.next_wait_s(1) == 0.0
