"""The header for a forwarded principal, and calls that are checked before they begin."""

from __future__ import annotations

from urllib.parse import unquote

import grpc
import pytest

from quorate.h2.protocol.header_codec import BlockReader
from quorate.h2.protocol.limits import Limits
from quorate.rpc.limits.admission import CallSlot
from quorate.rpc.limits.call_limits import OTHERS_MAX
from quorate.rpc.method_table import METHODS
from quorate.rpc.security.authorization import (
    ALLOW_ALL,
    FORWARDED_PRINCIPAL,
    CallerInterceptor,
    forwarding,
)


@pytest.mark.parametrize("name", ["User:CN=a\\, b+c,O=Übersee", "User:50%20;x\n"])
def test_a_forwarded_principal_is_ascii_and_comes_back(name: str) -> None:
    ((key, value),) = forwarding(name)
    assert key == FORWARDED_PRINCIPAL
    assert value.isascii()
    assert value.isprintable()
    assert unquote(value) == name


def test_a_client_without_a_place_is_sent_one_ready_made_refusal() -> None:
    guard = CallerInterceptor(ALLOW_ALL, METHODS)
    describe = "/quorate.raft.v1.Raft/DescribeQuorum"
    places = [guard.admit(describe, f"ipv4:10.0.0.1:{port}") for port in range(OTHERS_MAX // 2)]
    refusal = guard.admit(describe, "ipv4:10.0.0.1:9999")
    assert isinstance(refusal, bytes)
    assert guard.admit(describe, "ipv4:10.0.0.1:9998") is refusal
    fields = dict(BlockReader(Limits()).read(refusal).pairs)
    assert fields[b"grpc-status"] == b"%d" % grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert b"256 of one client" in fields[b"grpc-message"]
    # Another address has a place, and so does the same one when a call has ended.
    assert isinstance(guard.admit(describe, "ipv4:10.0.0.2:1"), CallSlot)
    assert isinstance(places[0], CallSlot)
    places[0].release()
    assert isinstance(guard.admit(describe, "ipv4:10.0.0.1:9997"), CallSlot)


@pytest.mark.parametrize("name", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "Fetch"])
def test_calls_of_peers_need_no_place_before_their_request_has_come(name: str) -> None:
    guard = CallerInterceptor(ALLOW_ALL, METHODS)
    for _ in range(OTHERS_MAX):
        assert guard.admit(f"/quorate.raft.v1.Raft/{name}", "ipv4:10.0.0.1:1") is None
