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


def test_reads_and_writes_share_the_bytes_but_not_the_calls() -> None:
    places = Places()
    reads, writes = places.of(CONTROLLER + "Read"), places.of(CONTROLLER + "Write")
    assert reads is not writes
    assert reads.pool is writes.pool


def test_every_method_has_its_places() -> None:
    places = Places()
    for method in (*NEEDS, *NEEDS_OF_REQUESTS, "/grpc.health.v1.Health/Watch"):
        assert takes_own_places(method) or places.of(method).pool.bytes_max > 0
