"""When a dead controller is started again, and how its end is put into words.

The processes themselves are in the integration tests of `up`.
"""

from __future__ import annotations

import pytest

from quorate.cli.supervisor import BACKOFF_MAX_S, BACKOFF_MIN_S, exit_words, next_backoff_s


def test_the_backoff_doubles_up_to_a_limit_while_a_process_dies_young() -> None:
    waits = [BACKOFF_MIN_S]
    for _ in range(6):
        waits.append(next_backoff_s(waits[-1], lived_s=0.1))
    assert waits == [1, 2, 4, 8, 16, 30, BACKOFF_MAX_S]


def test_a_process_that_lived_for_a_while_starts_from_the_shortest_wait() -> None:
    assert next_backoff_s(BACKOFF_MAX_S, lived_s=60) == BACKOFF_MIN_S


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit status 0"),
        (1, "exit status 1"),
        (-9, "killed by SIGKILL"),
        (-99, "killed by signal 99"),
    ],
)
def test_an_exit_is_put_into_words(status: int, words: str) -> None:
    assert exit_words(status) == words
