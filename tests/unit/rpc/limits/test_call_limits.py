"""The limits that a call counts against."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from quorate.rpc.limits.admission import AdmissionError
from quorate.rpc.limits.call_limits import CALLS_MAX, CallLimits
from quorate.rpc.method_table import METHODS, UNKNOWN

RAFT = "/quorate.raft.v1.Raft/"
CONTROLLER = "/quorate.controller.v1.Controller/"


@pytest.mark.parametrize("name", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchOnce"])
def test_what_clients_hold_keeps_no_peer_out(name: str) -> None:
    places = CallLimits()
    with ExitStack() as held:
        for method in ("Read", "Write"):
            admission = places.of(METHODS[CONTROLLER + method])
            for number in range(CALLS_MAX):
                held.enter_context(admission.slot(f"ipv4:10.0.0.{number % 2}:1"))
            with pytest.raises(AdmissionError):
                admission.acquire("ipv4:10.0.0.3:1")
        with places.of(METHODS[RAFT + name]).slot("ipv4:10.0.0.3:1"):
            assert METHODS[RAFT + name].is_peer_method
    of_peers, of_clients = METHODS[RAFT + name], METHODS[CONTROLLER + "Read"]
    assert places.arrivals_of(of_peers) is not places.arrivals_of(of_clients)


def test_neither_calls_nor_bytes_of_one_kind_are_in_the_way_of_another() -> None:
    places = CallLimits()
    of_raft = ("FetchSnapshot", "FetchOnce", "Vote", "DescribeQuorum")
    kinds = (CONTROLLER + "Read", CONTROLLER + "Write", *(RAFT + name for name in of_raft))
    with ExitStack() as held:
        for method in kinds:
            admission = places.of(METHODS[method])
            for host in (1, 2):
                half = admission.byte_budget.bytes_max // 2
                held.enter_context(admission.slot(f"ipv4:10.0.0.{host}:1", half))
            with pytest.raises(AdmissionError), admission.slot("ipv4:10.0.0.3:1", 1):
                pass


def test_every_method_has_its_places() -> None:
    places = CallLimits()
    for row in (*METHODS.values(), UNKNOWN):
        assert row.has_own_places or places.of(row).byte_budget.bytes_max > 0
