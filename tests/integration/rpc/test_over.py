"""Everything that a call holds is freed when it is over, without the garbage collector.

The collector never scans what it has frozen (server/memory/gc_tuning.py), and a call in
flight may be among that.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

import pytest

from quorate.controller.topics.messages import ListTopicsReply
from quorate.records.ids import Offset
from quorate.rpc.gen.controller.v1 import controller_pb2, controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2_grpc
from tests.integration.rpc.raft.test_servicer import next_of
from tests.unit.rpc.fetches import fetch_from, fetched
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc.aio

    from tests.integration.rpc.conftest import Served

CONTEXTS: Final = ("_ServicerContext", "ServerCall")


class Contexts:
    """The contexts of calls that began after this was made."""

    def __init__(self) -> None:
        # A test before this one may have left some behind. Held, they keep their identities.
        self._before = _all_contexts()

    def count(self) -> int:
        known = set(map(id, self._before))
        return sum(id(found) not in known for found in _all_contexts())


def _all_contexts() -> list[object]:
    return [found for found in gc.get_objects() if type(found).__name__ in CONTEXTS]


@pytest.fixture
def contexts() -> Iterator[Contexts]:
    """The contexts, counted while the collector is disabled."""
    gc.collect()
    gc.disable()
    yield Contexts()
    gc.enable()


async def test_a_read_that_is_over_is_freed(
    served: Served, channel: grpc.aio.Channel, contexts: Contexts
) -> None:
    served.controller.read_replies += [ListTopicsReply(Offset(1), ())] * 2
    stub = controller_pb2_grpc.ControllerStub(channel)
    for _ in range(2):
        await stub.Read(controller_pb2.ReadRequest(list_topics=controller_pb2.ListTopics()))
    await eventually(lambda: contexts.count() == 0)


async def test_a_stream_that_is_over_is_freed(
    served: Served, channel: grpc.aio.Channel, contexts: Contexts
) -> None:
    call = raft_pb2_grpc.RaftStub(channel).Fetch()
    await call.write(fetch_from(2, 10))
    asked = await served.raft.asked()
    asked.answer.set_result(fetched(3))
    assert await next_of(call) == 3
    assert contexts.count() == 1
    call.cancel()
    await eventually(lambda: contexts.count() == 0)
