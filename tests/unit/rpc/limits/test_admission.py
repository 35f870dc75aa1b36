"""A client cannot hold more than its share of a listener."""

from __future__ import annotations

from contextlib import ExitStack

import grpc
import pytest

from quorate.rpc.limits.admission import (
    TOO_MANY_BYTES,
    TOO_MANY_CALLS,
    AdmissionControl,
    AdmissionError,
    ByteBudget,
)


def test_one_client_has_half_of_the_places_whatever_its_ports() -> None:
    admission = AdmissionControl("reads", calls_max=8, byte_budget=ByteBudget(1000))
    with ExitStack() as places:
        for port in range(4):
            places.enter_context(admission.slot(f"ipv4:10.0.0.1:{port}"))
        with pytest.raises(AdmissionError) as refused, admission.slot("ipv4:10.0.0.1:99"):
            pass
        assert refused.value.refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert refused.value.refusal.reason == TOO_MANY_CALLS
        assert "4 of one client and 8 of all clients are the most" in str(refused.value)
        with admission.slot("ipv4:10.0.0.2:1"):
            assert admission.calls == 5
    assert (admission.calls, admission.byte_budget.bytes, admission._calls) == (0, 0, {})


def test_the_addresses_of_an_ipv6_network_are_one_client() -> None:
    admission = AdmissionControl("reads", calls_max=4, byte_budget=ByteBudget(1000))
    with ExitStack() as places:
        for host in range(2):
            places.enter_context(admission.slot(f"ipv6:%5B2001:db8::{host}:1%5D:1"))
        with pytest.raises(AdmissionError), admission.slot("ipv6:%5B2001:db8::2:1%5D:1"):
            pass
        with admission.slot("ipv6:%5B2001:db8:0:1::1%5D:1"):
            assert admission.calls == 3


def test_all_clients_together_have_no_more_than_all_places() -> None:
    admission = AdmissionControl("reads", calls_max=4, byte_budget=ByteBudget(1000))
    with ExitStack() as places:
        for host in range(4):
            places.enter_context(admission.slot(f"ipv4:10.0.0.{host}:1"))
        with pytest.raises(AdmissionError), admission.slot("ipv4:10.0.0.9:1"):
            pass


def test_bytes_are_bounded_but_one_alone_may_be_as_large_as_a_message() -> None:
    admission = AdmissionControl("reads", calls_max=8, byte_budget=ByteBudget(100))
    with admission.slot("a", 5000):
        with pytest.raises(AdmissionError) as refused, admission.slot("b", 1):
            pass
        assert refused.value.refusal.reason == TOO_MANY_BYTES
    with admission.slot("a", 50), admission.slot("b", 50):
        assert admission.byte_budget.bytes == 100


def test_a_place_is_given_back_when_the_call_fails() -> None:
    admission = AdmissionControl("reads", calls_max=2, byte_budget=ByteBudget(10))
    with pytest.raises(ZeroDivisionError), admission.slot("a", 3):
        raise ZeroDivisionError
    assert (admission.calls, admission.byte_budget.bytes) == (0, 0)


def test_a_place_is_held_until_the_answer_has_left_and_given_back_once() -> None:
    admission = AdmissionControl("reads", calls_max=8, byte_budget=ByteBudget(100))
    place = admission.acquire("a")
    place.hold(30)
    place.hold(20)
    with pytest.raises(AdmissionError, match="read the answers"):
        place.hold(1)
    assert (admission.calls, admission.byte_budget.bytes) == (1, 50)
    place.release()
    place.release()
    assert (admission.calls, admission.byte_budget.bytes) == (0, 0)


def test_whoever_is_refused_leaves_no_trace() -> None:
    admission = AdmissionControl("reads", calls_max=2, byte_budget=ByteBudget(100))
    with admission.slot("a"), admission.slot("b"):
        for name in ("c", "d"):
            with pytest.raises(AdmissionError):
                admission.acquire(name)
        assert set(admission._calls) == {"a", "b"}


def test_an_answer_that_tells_what_was_done_is_counted_and_never_refused() -> None:
    pool = ByteBudget(10)
    place = AdmissionControl("writes", calls_max=4, byte_budget=pool).acquire("ipv4:1.2.3.4:5")
    place.hold(10)
    with pytest.raises(AdmissionError):
        place.hold(1)
    place.charge(50)
    assert pool.bytes == 60
    place.release()
    assert pool.bytes == 0


def test_one_client_has_half_of_the_bytes_whatever_its_ports() -> None:
    admission = AdmissionControl("reads", calls_max=8, byte_budget=ByteBudget(100))
    with admission.slot("ipv4:10.0.0.1:1", 30), admission.slot("ipv4:10.0.0.1:2", 20):
        with pytest.raises(AdmissionError) as refused, admission.slot("ipv4:10.0.0.1:3", 1):
            pass
        assert "of ipv4:10.0.0.1 hold 50 bytes, 50 of all clients" in str(refused.value)
        with admission.slot("ipv4:10.0.0.2:1", 50):
            pass
    assert (admission.byte_budget.bytes, admission.byte_budget._held) == (0, {})


def test_whoever_is_refused_for_bytes_leaves_no_trace() -> None:
    pool = ByteBudget(10)
    pool.reserve("a", 10)
    with pytest.raises(AdmissionError):
        pool.reserve("b", 1)
    assert set(pool._held) == {"a"}
