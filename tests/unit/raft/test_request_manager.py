"""Requests in flight: one per peer and kind, timeouts, backoffs."""

from __future__ import annotations

from quorate.raft.request_manager import RequestKind, RequestManager
from quorate.records.ids import CallId, Epoch, Millis, NodeId

PEER = NodeId(2)


def test_a_peer_is_asked_one_thing_of_a_kind_at_a_time() -> None:
    calls = RequestManager()
    call = calls.register(RequestKind.VOTE, PEER, Epoch(1), Millis(100))
    assert not calls.may_send(RequestKind.VOTE, PEER, Millis(0))
    assert calls.may_send(RequestKind.FETCH, PEER, Millis(0))
    assert calls.complete(call.call) == call
    assert calls.complete(call.call) is None
    assert calls.may_send(RequestKind.VOTE, PEER, Millis(0))


def test_a_call_is_over_at_its_deadline() -> None:
    calls = RequestManager()
    call = calls.register(RequestKind.VOTE, PEER, Epoch(1), Millis(100))
    assert calls.expired(Millis(99)) == []
    assert list(calls.deadlines(Millis(0))) == [100]
    assert calls.expired(Millis(100)) == [call]
    assert calls.complete(CallId(call.call)) is None


def test_a_failure_leaves_the_peer_alone_for_a_while() -> None:
    calls = RequestManager()
    calls.back_off(RequestKind.FETCH, PEER, Millis(20))
    assert not calls.may_send(RequestKind.FETCH, PEER, Millis(19))
    assert list(calls.deadlines(Millis(19))) == [20]
    assert calls.may_send(RequestKind.FETCH, PEER, Millis(20))
    assert list(calls.deadlines(Millis(20))) == []
    calls.back_off(RequestKind.FETCH, PEER, Millis(50))
    calls.clear_backoff()
    assert calls.may_send(RequestKind.FETCH, PEER, Millis(21))


def test_abandoned_calls_have_no_answer() -> None:
    calls = RequestManager()
    call = calls.register(RequestKind.FETCH, PEER, Epoch(1), Millis(100))
    probe = calls.register(RequestKind.PROBE, PEER, Epoch(1), Millis(100))
    calls.abandon(RequestKind.FETCH)
    assert calls.complete(call.call) is None
    assert calls.in_flight(RequestKind.PROBE)
    assert calls.complete(probe.call) == probe
