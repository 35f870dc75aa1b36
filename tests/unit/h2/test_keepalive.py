"""The action that is due for a connection, by its times."""

from __future__ import annotations

from quorate.h2.keepalive import Due, Liveness
from quorate.h2.protocol.limits import IDLE_S, PING_EVERY_S, PING_PATIENCE_S, PREFACE_S, UNREAD_S

BEGUN_S = 1000.0


def spoken(at_s: float = BEGUN_S) -> Liveness:
    liveness = Liveness(BEGUN_S)
    liveness.on_bytes(at_s)
    return liveness


def test_a_peer_that_never_speaks_has_a_time_limit() -> None:
    liveness = Liveness(BEGUN_S)
    assert liveness.check(BEGUN_S + PREFACE_S, has_calls=False) is Due.NOTHING
    assert liveness.check(BEGUN_S + PREFACE_S + 0.1, has_calls=False) is Due.NO_PREFACE


def test_a_silent_peer_is_pinged_once_and_then_given_up() -> None:
    liveness = spoken()
    now_s = BEGUN_S + PING_EVERY_S + 0.1
    assert liveness.check(now_s, has_calls=True) is Due.PING
    assert liveness.check(now_s + PING_PATIENCE_S, has_calls=True) is Due.NOTHING
    assert liveness.check(now_s + PING_PATIENCE_S + 0.1, has_calls=True) is Due.NOT_ANSWERING


def test_an_answered_ping_is_followed_by_the_next_one() -> None:
    liveness = spoken()
    now_s = BEGUN_S + PING_EVERY_S + 0.1
    assert liveness.check(now_s, has_calls=True) is Due.PING
    liveness.on_bytes(now_s)
    liveness.on_pong()
    assert liveness.check(now_s + PING_EVERY_S, has_calls=True) is Due.NOTHING
    assert liveness.check(now_s + PING_EVERY_S + 0.1, has_calls=True) is Due.PING


def test_idle_counts_from_the_last_call() -> None:
    liveness = spoken()
    liveness.on_last_call(BEGUN_S + 50)
    liveness.on_bytes(BEGUN_S + IDLE_S + 50)
    assert liveness.check(BEGUN_S + IDLE_S + 50, has_calls=False) is Due.NOTHING
    assert liveness.check(BEGUN_S + IDLE_S + 50.1, has_calls=True) is Due.NOTHING
    assert liveness.check(BEGUN_S + IDLE_S + 50.1, has_calls=False) is Due.IDLE


def test_a_peer_that_reads_nothing_is_given_up_whatever_it_sends() -> None:
    liveness = spoken()
    liveness.blocked_s = BEGUN_S
    late_s = BEGUN_S + UNREAD_S + 0.1
    liveness.on_bytes(late_s)
    assert liveness.check(late_s, has_calls=True) is Due.NOT_READING
    liveness.blocked_s = None
    assert liveness.check(late_s, has_calls=True) is Due.NOTHING


def test_a_backlog_of_ours_is_not_the_peers_silence() -> None:
    liveness = spoken()
    now_s = BEGUN_S + PING_EVERY_S + 0.1
    assert liveness.check(now_s, has_calls=True) is Due.PING
    late_s = now_s + PING_PATIENCE_S + 0.1
    liveness.on_backlog(late_s)
    assert liveness.check(late_s, has_calls=True) is Due.NOTHING
    assert liveness.check(late_s + PING_EVERY_S + 0.1, has_calls=True) is Due.PING
