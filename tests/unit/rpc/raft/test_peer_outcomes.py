"""The last outcome at each address, and what is warned about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio

from quorate.raft.api import Peer
from quorate.records.ids import NodeId
from quorate.rpc.raft.peer_outcomes import ADDRESSES_MAX, WORDS_MAX, PeerOutcomes

if TYPE_CHECKING:
    import pytest

PEER = Peer(NodeId(2), "two.example", 9094)


def error(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=details)


def unavailable(details: str) -> grpc.aio.AioRpcError:
    return error(grpc.StatusCode.UNAVAILABLE, details)


def last(outcomes: PeerOutcomes) -> str | None:
    return outcomes.last(PEER.host, PEER.port)


def test_the_newest_outcome_counts() -> None:
    outcomes = PeerOutcomes(None)
    assert last(outcomes) is None
    outcomes.failed(PEER, unavailable("failed to connect to two.example:9094: Connection refused"))
    assert last(outcomes) == "connection refused"
    outcomes.answered(PEER, "answers Vote with INVALID_VOTER_KEY")
    assert last(outcomes) == "answers Vote with INVALID_VOTER_KEY"
    outcomes.silent(PEER)
    assert last(outcomes) == "no answer in time"
    outcomes.answered(PEER, None)
    assert last(outcomes) is None


def test_what_no_retry_repairs_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = PeerOutcomes(None)
    wants_tls = unavailable("failed to connect to two.example:9094: Socket closed")
    denied = error(grpc.StatusCode.PERMISSION_DENIED, "no")
    for failure in (wants_tls, wants_tls, denied, denied):
        outcomes.failed(PEER, failure)
    for _ in range(2):
        outcomes.unreadable(PEER, ValueError("too short"))
    outcomes.answered(PEER, None)
    outcomes.unreadable(PEER, ValueError("too short"))
    assert [record.getMessage() for record in caplog.records] == [
        "node 2 cannot be called: the server closed the connection: it may want TLS, or have too "
        "many connections",
        "node 2 cannot be called: PERMISSION_DENIED: no",
        "node 2 cannot be called: its answer is refused: too short",
        "node 2 cannot be called: its answer is refused: too short",
    ]


def test_another_replica_is_warned_about_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = PeerOutcomes(None)
    outcomes.is_another(PEER, "node 3, not node 2")
    assert last(outcomes) == "is node 3, not node 2"
    (record,) = caplog.records
    assert record.getMessage().startswith("two.example:9094 is node 3, not node 2: ")
    # Of one key a line a minute is written.
    assert record.__dict__["repeats"] == ("another replica", "two.example:9094")


def test_what_is_kept_is_bounded() -> None:
    outcomes = PeerOutcomes(None)
    for port in range(1, ADDRESSES_MAX + 2):
        outcomes.answered(Peer(NodeId(2), "two.example", port), "x" * (WORDS_MAX + 1))
    assert outcomes.last("two.example", 1) is None
    assert outcomes.last("two.example", ADDRESSES_MAX + 1) == "x" * WORDS_MAX + "..."
