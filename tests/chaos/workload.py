"""Clients that create, change, read and delete topics, and probes that tell when commits happen.

Clients use the product's own client, which searches for the leader; that takes time of its own, so
the longest time without a commit is measured by probes: each asks one node only, in short
intervals, for a change that only a leader can make.
"""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
)
from quorate.client.controller_client import ControllerClient
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    IncrementalAlterConfigsReply,
    ResourceType,
)
from quorate.controller.topics.messages import (
    CreateTopics,
    CreateTopicsReply,
    DeleteTopics,
    DeleteTopicsReply,
    DescribeTopics,
    DescribeTopicsReply,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.rpc.channels import open_channel
from quorate.rpc.convert.controller import write_request
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from tests.chaos.history import ABSENT, History, Kind, LocalRead, Operation, Outcome
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from random import Random

    from quorate.controller.request_types import WriteReply, WriteRequestOf
    from quorate.records.errors import ErrorCode as Error
    from tests.chaos.cluster import Cluster

CLIENTS: Final = 8
OPERATIONS_A_SECOND: Final = 160.0
CALL_MS: Final = 1000
PROBE_EVERY_S: Final = 0.1
PROBE_TIMEOUT_S: Final = 0.3
# Topics of the first kind stay once they are there, so that their values are changed and read
# often; those of the second come and go.
STAYING: Final = ("staying-1", "staying-2", "staying-3", "staying-4")
PASSING: Final = ("passing-1", "passing-2", "passing-3", "passing-4")
KEYS: Final = STAYING + PASSING
CONFIG: Final = "retention.ms"


def _request(kind: Kind, key: str, value: int) -> WriteRequestOf[Any]:
    if kind is Kind.CREATE:
        configs = ((CONFIG, str(value)),)
        return CreateTopics((NewTopic(key, partitions=2, replication_factor=3, configs=configs),))
    if kind is Kind.DELETE:
        return DeleteTopics((key,))
    return _setting(ConfigResource(ResourceType.TOPIC, key), CONFIG, value)


def _setting(resource: ConfigResource, name: str, value: int) -> IncrementalAlterConfigs:
    change = ConfigChange(name, AlterOperation.SET, str(value))
    return IncrementalAlterConfigs((ConfigAlteration(resource, (change,)),))


def _error(reply: WriteReply) -> Error:
    match reply:
        case CreateTopicsReply(topics=(item,)) | DeleteTopicsReply(topics=(item,)):
            return item.error
        case IncrementalAlterConfigsReply(resources=(resource,)):
            return resource.error
    raise AssertionError(reply)


class Workload:
    """All clients of one run and what they recorded. `is_over` ends them."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self.history = History()
        self.commits: list[int] = []
        self.without_effect = 0
        self.is_over = False
        self._cluster = cluster
        self._random = random
        self._values = count(1)

    async def run(self) -> None:
        """Until `is_over`; every operation comes to its end, however that is."""
        clients = [self._client(number) for number in range(CLIENTS)]
        probes = [self._probe(node_id) for node_id in self._cluster.nodes]
        await asyncio.gather(*clients, *probes)

    def _open(self) -> ControllerClient:
        servers = [node.address for node in self._cluster.nodes.values()]
        self._random.shuffle(servers)
        return ControllerClient(
            servers, timeout_ms=CALL_MS, transport=self._cluster.client_transport
        )

    async def _client(self, number: int) -> None:
        random, seen = self._random, 0
        async with self._open() as client:
            while not self.is_over:
                await asyncio.sleep(random.expovariate(OPERATIONS_A_SECOND / CLIENTS))
                key = random.choice(STAYING if random.random() < 0.7 else PASSING)
                draw = random.random()
                if draw < 0.25:
                    node_id = random.choice(list(self._cluster.nodes))
                    min_offset = seen if random.random() < 0.5 else 0
                    seen = max(seen, await self._read_at(client, node_id, key, min_offset))
                elif draw < 0.55:
                    seen = max(seen, await self._read(client, number, key))
                elif key in STAYING:
                    kind = Kind.CREATE if draw < 0.56 else Kind.SET
                    await self._write(client, number, kind, key)
                else:
                    kind = random.choice((Kind.CREATE, Kind.SET, Kind.DELETE))
                    await self._write(client, number, kind, key)

    # --- operations -------------------------------------------------------------------------------

    async def _write(self, client: ControllerClient, number: int, kind: Kind, key: str) -> None:
        value = next(self._values)
        begin = time.monotonic_ns()
        end: int | None = None
        outcome = Outcome.UNKNOWN
        try:
            error = _error(await client.write(_request(kind, key, value)))
        except OutcomeUnknownError:
            pass
        except (QuorumUnavailableError, RequestRefusedError):
            self.without_effect += 1
            return
        else:
            end = time.monotonic_ns()
            is_there = ErrorCode.TOPIC_ALREADY_EXISTS
            refusal = is_there if kind is Kind.CREATE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error is ErrorCode.NONE:
                outcome = Outcome.OK
                self.commits.append(end)
            elif error is refusal:
                outcome = Outcome.REFUSED
            else:
                # For want of brokers that are awake, for example.
                self.without_effect += 1
                return
        written = ABSENT if kind is Kind.DELETE else value
        self.history.operations.append(
            Operation(
                client=number,
                key=key,
                kind=kind,
                begin=begin,
                end=end,
                outcome=outcome,
                value=written,
            )
        )

    async def _read(self, client: ControllerClient, number: int, key: str) -> int:
        """A linearizable read; the offset that it reflects, 0 without an answer.

        Half of them ask one node only: one that takes itself for the leader has to know that it is.
        """
        asked = None
        if self._random.random() < 0.5 and not self.is_over:
            asked = self._random.choice(list(self._cluster.nodes.values())).address
        begin = time.monotonic_ns()
        try:
            reply = await client.read(DescribeTopics((key,)), current=True, controller=asked)
        except (QuorumUnavailableError, RequestRefusedError):
            return 0
        end = time.monotonic_ns()
        offset, value = _seen(reply)
        self.history.operations.append(
            Operation(client=number, key=key, kind=Kind.READ, begin=begin, end=end, value=value)
        )
        # Current reads never go back either, no matter which node answers: all are one controller.
        self._record(0, 0, key, begin=begin, min_offset=0, offset=offset, value=value, end=end)
        return offset

    async def _read_at(
        self, client: ControllerClient, node_id: int, key: str, min_offset: int
    ) -> int:
        """A read of one controller; the offset that it reflects, 0 without an answer."""
        life = self._cluster.lives[node_id]
        begin = time.monotonic_ns()
        address = self._cluster.nodes[node_id].address
        try:
            reply = await client.read(
                DescribeTopics((key,)), min_offset=min_offset, controller=address
            )
        except (QuorumUnavailableError, RequestRefusedError):
            return 0
        end = time.monotonic_ns()
        offset, value = _seen(reply)
        if life == self._cluster.lives[node_id]:
            self._record(
                node_id,
                life,
                key,
                begin=begin,
                min_offset=min_offset,
                offset=offset,
                value=value,
                end=end,
            )
        return offset

    def _record(
        self,
        controller: int,
        life: int,
        key: str,
        *,
        begin: int,
        end: int,
        min_offset: int,
        offset: int,
        value: int | None,
    ) -> None:
        self.history.local_reads.append(
            LocalRead(
                controller=controller,
                life=life,
                key=key,
                begin=begin,
                end=end,
                min_offset=min_offset,
                offset=offset,
                value=value,
            )
        )

    async def read_everything(self, high_watermark: int) -> None:
        """Every key once more: a current read, and one at every node. Each has to be answered."""
        expected = len(self.history.local_reads) + len(KEYS) * (1 + len(self._cluster.nodes))
        async with self._open() as client:
            for key in KEYS:
                await self._read(client, CLIENTS, key)
                for node_id in self._cluster.nodes:
                    await self._read_at(client, node_id, key, high_watermark)
        assert len(self.history.local_reads) == expected, "a read after the end has no answer"

    # --- probes -----------------------------------------------------------------------------------

    async def _probe(self, node_id: int) -> None:
        """Note every commit that this node answers for."""
        resource = ConfigResource(ResourceType.BROKER, "")
        address = self._cluster.nodes[node_id].address
        async with open_channel(*address, transport=chosen()) as channel:
            stub = controller_pb2_grpc.ControllerStub(channel)
            while not self.is_over:
                await asyncio.sleep(PROBE_EVERY_S)
                request = write_request(_setting(resource, f"chaos.probe.{node_id}", self.probed()))
                try:
                    response = await stub.Write(request, timeout=PROBE_TIMEOUT_S)
                except grpc.aio.AioRpcError:
                    continue
                result = response.results[0]
                if result.error == ErrorCode.NONE and not result.outcome_unknown:
                    self.commits.append(time.monotonic_ns())

    def probed(self) -> int:
        return next(self._values)


def _seen(reply: object) -> tuple[int, int | None]:
    """The offset of an answer about one topic, and the topic's value."""
    assert isinstance(reply, DescribeTopicsReply)
    (topic,) = reply.topics
    if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return reply.offset, ABSENT
    assert topic.error is ErrorCode.NONE, topic
    return reply.offset, int(dict(topic.configs)[CONFIG])
