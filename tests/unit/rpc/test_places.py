"""Whose places a call takes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from quorate.rpc.admission import AdmissionError
from quorate.rpc.authorization import NEEDS, NEEDS_OF_REQUESTS
from quorate.rpc.places import CALLS_MAX, Places, is_of_peers, takes_own_places

RAFT = "/quorate.raft.v1.Raft/"
CONTROLLER = "/quorate.controller.v1.Controller/"


@pytest.mark.parametrize("name", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchOnce"])
def test_what_clients_hold_keeps_no_peer_out(name: str) -> None:
    places = Places()
    with ExitStack() as held:
        for method in ("Read", "Write"):
            admission = places.of(CONTROLLER + method)
            for number in range(CALLS_MAX):
                held.enter_context(admission.place(f"ipv4:10.0.0.{number % 2}:1"))
            with pytest.raises(AdmissionError):
                admission.enter("ipv4:10.0.0.3:1")
        with places.of(RAFT + name).place("ipv4:10.0.0.3:1"):
            assert is_of_peers(RAFT + name)
    assert places.arrivals_of(RAFT + name) is not places.arrivals_of(CONTROLLER + "Read")


def test_neither_calls_nor_bytes_of_one_kind_are_in_the_way_of_another() -> None:
    places = Places()
    of_raft = ("FetchSnapshot", "FetchOnce", "Vote", "DescribeQuorum")
    kinds = (CONTROLLER + "Read", CONTROLLER + "Write", *(RAFT + name for name in of_raft))
    with ExitStack() as held:
        for method in kinds:
            admission = places.of(method)
            for host in (1, 2):
                half = admission.pool.bytes_max // 2
                held.enter_context(admission.place(f"ipv4:10.0.0.{host}:1", half))
            with pytest.raises(AdmissionError), admission.place("ipv4:10.0.0.3:1", 1):
                pass


def test_every_method_has_its_places() -> None:
    places = Places()
    for method in (*NEEDS, *NEEDS_OF_REQUESTS, "/grpc.health.v1.Health/Watch"):
        assert takes_own_places(method) or places.of(method).pool.bytes_max > 0
