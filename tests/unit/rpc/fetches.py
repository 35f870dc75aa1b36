"""A Fetch and its answer, for tests that serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from quorate.rpc.convert import raft as convert
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.rpc.gen.raft.v1 import raft_pb2 as pb

LEADER: Final = m.LeaderInfo(NodeId(1), Epoch(4))


def fetch_from(replica: int, offset: int) -> pb.FetchRequest:
    return convert.pb_fetch_request(
        m.FetchRequest(
            cluster_id=cores.CLUSTER,
            replica=cores.key(replica),
            current_leader_epoch=Epoch(4),
            fetch_offset=Offset(offset),
            last_fetched_epoch=Epoch(4),
            max_wait_ms=Millis(500),
            max_bytes=1024,
        )
    )


def fetched(high_watermark: int, data: bytes = b"") -> m.FetchResponse:
    records = m.FetchedBatches(data, ())
    return m.FetchResponse(
        error=ErrorCode.NONE,
        leader=LEADER,
        high_watermark=Offset(high_watermark),
        log_start_offset=Offset(0),
        records=records,
    )
