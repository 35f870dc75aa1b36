"""What a call holds is freed when it is over, without the garbage collector.

The collector never comes to what it has set aside (consensus/garbage.py), and a call under way may
be among that.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

import pytest

from quorate.controller.topics.messages import ListTopicsReply
from quorate.records.ids import Offset
from quorate.rpc.gen.controller.v1 import controller_pb2, controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2_grpc
from tests.integration.rpc.test_raft_server import next_of
from tests.unit.consensus.conftest import eventually
from tests.unit.rpc.fetches import fetch_from, fetched

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc.aio

    from tests.integration.rpc.conftest import Served

CONTEXTS: Final = ("_ServicerContext", "ServerCall")


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def contexts() -> int:
    return sum(type(found).__name__ in CONTEXTS for found in gc.get_objects())


async def test_a_read_that_is_over_is_freed(served: Served, channel: grpc.aio.Channel) -> None:
    served.controller.read_replies += [ListTopicsReply(Offset(1), ())] * 2
    stub = controller_pb2_grpc.ControllerStub(channel)
    for _ in range(2):
        await stub.Read(controller_pb2.ReadRequest(list_topics=controller_pb2.ListTopics()))
    await eventually(lambda: contexts() == 0)


async def test_a_stream_that_is_over_is_freed(served: Served, channel: grpc.aio.Channel) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    await call.write(fetch_from(2, 10))
    asked = await served.raft.asked()
    asked.answer.set_result(fetched(3))
    assert await next_of(call) == 3
    assert contexts() == 1
    call.cancel()
    await eventually(lambda: contexts() == 0)
