"""Requests under way: one per peer and kind, timeouts, backoffs."""

from __future__ import annotations

from quorate.raft.request_manager import CallKind, Calls
from quorate.records.ids import CallId, Epoch, Millis, NodeId

PEER = NodeId(2)


def test_a_peer_is_asked_one_thing_of_a_kind_at_a_time() -> None:
    calls = Calls()
    call = calls.open(CallKind.VOTE, PEER, Epoch(1), Millis(100))
    assert not calls.may_call(CallKind.VOTE, PEER, Millis(0))
    assert calls.may_call(CallKind.FETCH, PEER, Millis(0))
    assert calls.close(call.call) == call
    assert calls.close(call.call) is None
    assert calls.may_call(CallKind.VOTE, PEER, Millis(0))


def test_a_call_is_over_at_its_deadline() -> None:
    calls = Calls()
    call = calls.open(CallKind.VOTE, PEER, Epoch(1), Millis(100))
    assert calls.expired(Millis(99)) == []
    assert list(calls.deadlines(Millis(0))) == [100]
    assert calls.expired(Millis(100)) == [call]
    assert calls.close(CallId(call.call)) is None


def test_a_failure_leaves_the_peer_alone_for_a_while() -> None:
    calls = Calls()
    calls.back_off(CallKind.FETCH, PEER, Millis(20))
    assert not calls.may_call(CallKind.FETCH, PEER, Millis(19))
    assert list(calls.deadlines(Millis(19))) == [20]
    assert calls.may_call(CallKind.FETCH, PEER, Millis(20))
    assert list(calls.deadlines(Millis(20))) == []
    calls.back_off(CallKind.FETCH, PEER, Millis(50))
    calls.clear_backoff()
    assert calls.may_call(CallKind.FETCH, PEER, Millis(21))


def test_abandoned_calls_have_no_answer() -> None:
    calls = Calls()
    call = calls.open(CallKind.FETCH, PEER, Epoch(1), Millis(100))
    probe = calls.open(CallKind.PROBE, PEER, Epoch(1), Millis(100))
    calls.abandon(CallKind.FETCH)
    assert calls.close(call.call) is None
    assert calls.in_flight(CallKind.PROBE)
    assert calls.close(probe.call) == probe
