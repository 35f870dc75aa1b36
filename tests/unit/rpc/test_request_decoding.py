from __future__ import annotations

import pytest

from quorate.rpc.gen.controller.v1 import controller_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2
from quorate.rpc.method_table import METHODS, SMALL_BYTES_MAX
from quorate.rpc.request_decoding import decoder

VOTE = "/quorate.raft.v1.Raft/Vote"
WRITE_STREAM = "/quorate.controller.v1.Controller/WriteStream"


def test_a_request_is_decoded() -> None:
    request = raft_pb2.VoteRequest(cluster_id="c", voter_id=3)
    decode = decoder(VOTE, METHODS[VOTE], raft_pb2.VoteRequest.FromString)
    assert decode(request.SerializeToString()) == request


def test_a_large_request_is_not_even_decoded() -> None:
    seen: list[bytes] = []
    with pytest.raises(ValueError, match="takes 65536 at most: send it in parts"):
        decoder(VOTE, METHODS[VOTE], seen.append)(bytes(SMALL_BYTES_MAX + 1))
    assert seen == []


def test_what_is_no_request_is_told_in_one_line() -> None:
    decode = decoder(VOTE, METHODS[VOTE], raft_pb2.VoteRequest.FromString)
    with pytest.raises(ValueError, match="these 3 bytes are not a request of") as told:
        decode(b"\xff\xff\xff")
    assert "\n" not in str(told.value)
    assert told.value.__cause__ is None


def test_requests_of_a_stream_of_writes_come_with_their_size() -> None:
    data = controller_pb2.WriteRequest(sequence=7).SerializeToString()
    request, size = decoder(
        WRITE_STREAM, METHODS[WRITE_STREAM], controller_pb2.WriteRequest.FromString
    )(data)
    assert (request.sequence, size) == (7, len(data))
