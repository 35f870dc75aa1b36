"""A client that asks for much and reads nothing of it does not hinder other clients."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from quorate.client.controller_client import ControllerClient
from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    CreateTopicsReply,
    ListedTopic,
    ListTopics,
    ListTopicsReply,
    NewTopic,
)
from quorate.records.ids import UUID_BYTES, Offset, TopicId
from quorate.rpc.gen.controller.v1 import controller_pb2
from quorate.rpc.limits.call_limits import ANSWERS_BYTES_MAX
from tests.integration.raw_http2 import RawConnection
from tests.integration.rpc.conftest import WAIT_S
from tests.integration.transports import chosen
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from tests.integration.rpc.conftest import Served

READ: Final = "/quorate.controller.v1.Controller/Read"
ABUSER: Final = "127.0.0.2"
# Five answers are a little less than the half of what all may hold.
TOPICS: Final = ANSWERS_BYTES_MAX // 10 // 230
LARGE: Final = ListTopicsReply(
    Offset(9),
    tuple(ListedTopic(f"{n:0200}", TopicId(b"t" * UUID_BYTES), 1) for n in range(TOPICS)),
)
ASKED: Final = 40


async def test_others_read_and_write_while_one_reads_none_of_his_answers(served: Served) -> None:
    controller = served.controller
    controller.read_replies += [LARGE] * (ASKED + 1)
    request = controller_pb2.ReadRequest(list_topics=controller_pb2.ListTopics())
    async with AsyncExitStack() as stack:
        for _ in range(4):
            abuser = RawConnection(served.address, source=ABUSER, reads_nothing=True)
            connection = await stack.enter_async_context(abuser)
            for _ in range(ASKED // 4):
                connection.begin(READ, request.SerializeToString())
        await eventually(lambda: len(controller.reads) == ASKED)
        client = ControllerClient(
            [served.address], timeout_ms=int(WAIT_S * 1000), transport=chosen()
        )
        await stack.enter_async_context(client)
        assert await client.read(ListTopics()) == LARGE
        writing = asyncio.ensure_future(client.write(CreateTopics((NewTopic("a"),))))
        created = CreateTopicsReply((CreatedTopic("a", topic_id=TopicId(b"t" * UUID_BYTES)),))
        (await controller.asked())[1].set_result(created)
        assert await writing == created
