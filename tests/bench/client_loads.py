"""Legal loads of an ordinary gRPC client that asks for much, for `tests.bench.attacker`.

Each load is a coroutine function of the channels. It runs until it is cancelled, and counts what
was answered and what was refused. Calls are those of the generated stubs.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
import time
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.rpc.channels import open_channel
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc
from tests.bench.floods import Counts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable

REGISTRATIONS: Final = 10_000
REGISTERING_STREAMS: Final = 8
HEARTBEAT_STREAMS: Final = 32
FETCHES: Final = 5_000
READS: Final = 50
TOPICS: Final = 300
PARTITIONS: Final = 20
CONFIGS: Final = 1_000
PAGE: Final = 500
# Ids that no other client of the measurement registers.
_FIRST_BROKER: Final = 10_000
_UUID_BYTES: Final = 16
_CALL_S: Final = 30.0
_MAX_WAIT_MS: Final = 30_000
_FETCH_BYTES: Final = 1 << 20
_PAUSE_S: Final = 0.02
_LOOK_S: Final = 0.05


def registration(broker_id: int, cluster_id: str) -> pb.RegisterBroker:
    """The request of a new incarnation of a broker."""
    return pb.RegisterBroker(
        broker_id=broker_id,
        incarnation_id=secrets.token_bytes(_UUID_BYTES),
        cluster_id=cluster_id,
        listeners=[pb.Listener(name="PLAINTEXT", host="127.0.0.1", port=9092)],
        features=[
            pb.FeatureRange(name=f.name, min_level=f.min_level, max_level=f.max_level)
            for f in SUPPORTED_FEATURES
        ],
        log_dirs=[secrets.token_bytes(_UUID_BYTES)],
    )


class Client:
    """Channels to one controller, and what came of their calls."""

    def __init__(self, address: tuple[str, int], channels: int) -> None:
        self.counts = Counts()
        self.channels = [open_channel(*address) for _ in range(channels)]
        self._controllers: list[controller_pb2_grpc.ControllerAsyncStub] = [
            controller_pb2_grpc.ControllerStub(channel) for channel in self.channels
        ]
        self._rafts: list[raft_pb2_grpc.RaftAsyncStub] = [
            raft_pb2_grpc.RaftStub(channel) for channel in self.channels
        ]

    def controller(self, number: int) -> controller_pb2_grpc.ControllerAsyncStub:
        """The stub of one worker: workers are spread over the channels."""
        return self._controllers[number % len(self._controllers)]

    def raft(self, number: int) -> raft_pb2_grpc.RaftAsyncStub:
        """The stub of one worker."""
        return self._rafts[number % len(self._rafts)]

    def workers(self, at_least: int) -> range:
        """As many, and at least one for each channel."""
        return range(max(at_least, len(self.channels)))

    async def again(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again and again; after a refusal with a short pause."""
        while True:
            try:
                await work()
            except grpc.aio.AioRpcError:
                self.counts.refusals += 1
                await asyncio.sleep(_PAUSE_S)

    async def cluster_id(self) -> str:
        """The id of the cluster."""
        while True:
            try:
                answer = await self.raft(0).ApiVersions(
                    raft_pb2.ApiVersionsRequest(), timeout=_CALL_S
                )
            except grpc.aio.AioRpcError:
                await asyncio.sleep(_PAUSE_S)
            else:
                return answer.cluster_id

    async def write_all(self, number: int, requests: Iterable[pb.WriteRequest]) -> None:
        """Write these on one WriteStream as fast as it takes them, until all are answered."""

        async def sent() -> AsyncIterator[pb.WriteRequest]:
            for sequence, request in enumerate(requests, 1):
                request.sequence = sequence
                yield request

        call = self.controller(number).WriteStream(sent())
        try:
            async for response in call:
                for result in response.results:
                    if result.error:
                        self.counts.refusals += 1
                    else:
                        self.counts.answers += 1
        finally:
            call.cancel()

    async def close(self) -> None:
        """Close all channels together."""
        await asyncio.gather(*(channel.close() for channel in self.channels))


async def register(client: Client) -> None:
    """10,000 brokers are registered on 8 WriteStreamLimits, or on one of each channel."""
    cluster_id = await client.cluster_id()
    numbers = client.workers(REGISTERING_STREAMS)
    each = REGISTRATIONS // len(numbers)

    async def work(number: int) -> None:
        first = _FIRST_BROKER + number * each
        requests = (
            pb.WriteRequest(register_broker=registration(broker_id, cluster_id))
            for broker_id in range(first, first + each)
        )
        try:
            await client.write_all(number, requests)
        except grpc.aio.AioRpcError:
            client.counts.ended += 1

    await asyncio.gather(*(work(number) for number in numbers))


async def heartbeats(client: Client) -> None:
    """One broker's heartbeats on 32 WriteStreamLimits, or on one of each channel."""
    cluster_id = await client.cluster_id()
    request = registration(_FIRST_BROKER, cluster_id)
    beat = pb.BrokerHeartbeat(broker_id=request.broker_id)
    while not beat.broker_epoch:
        try:
            answer = await client.controller(0).RegisterBroker(request, timeout=_CALL_S)
        except grpc.aio.AioRpcError:
            client.counts.refusals += 1
            await asyncio.sleep(_PAUSE_S)
        else:
            beat.broker_epoch = beat.current_metadata_offset = answer.broker_epoch

    def beats() -> Iterable[pb.WriteRequest]:
        while True:
            yield pb.WriteRequest(broker_heartbeat=beat)

    async def work(number: int) -> None:
        await client.again(lambda: client.write_all(number, beats()))

    await asyncio.gather(*(work(number) for number in client.workers(HEARTBEAT_STREAMS)))


async def parked_fetches(client: Client) -> None:
    """5,000 Fetches at the end of the log, each of which is repeated when it ends."""
    newest = raft_pb2.FetchRequest(
        cluster_id=await client.cluster_id(), max_wait_ms=_MAX_WAIT_MS, max_bytes=_FETCH_BYTES
    )

    async def fetch(number: int, request: raft_pb2.FetchRequest) -> None:
        answer = await client.raft(number).FetchOnce(request, timeout=_CALL_S)
        request.current_leader_epoch = answer.current_leader.leader_epoch
        end = _end_of(answer.records)
        if answer.error_code or end is None:
            client.counts.refusals += 1
            await asyncio.sleep(_PAUSE_S)
            return
        client.counts.answers += 1
        request.fetch_offset, request.last_fetched_epoch = end
        request.high_watermark = answer.high_watermark

    async def work(number: int) -> None:
        request = raft_pb2.FetchRequest()
        request.CopyFrom(newest)
        await client.again(lambda: fetch(number, request))

    # The log up to here is fetched once.
    while not newest.fetch_offset:
        try:
            await fetch(0, newest)
        except grpc.aio.AioRpcError:
            client.counts.refusals += 1
            await asyncio.sleep(_PAUSE_S)
    await asyncio.gather(*(work(number) for number in client.workers(FETCHES)))


def _end_of(records: bytes) -> tuple[int, int] | None:
    """The offset after the last whole batch, and its epoch (format version 2)."""
    at, end = 0, None
    while len(records) - at >= 27:
        base, size, epoch = struct.unpack_from(">qii", records, at)
        (last,) = struct.unpack_from(">i", records, at + 23)
        end = base + last + 1, epoch
        at += 12 + size
    return end


async def reads(client: Client) -> None:
    """50 reads in parallel: whole descriptions, pages, settings of 1,000 resources, lists."""
    names = [topic_name(number % TOPICS) for number in range(CONFIGS)]
    resources = [pb.ConfigResource(type=2, name=name) for name in names]
    requests: list[pb.ReadRequest] = [
        pb.ReadRequest(describe_topics=pb.DescribeTopics()),
        pb.ReadRequest(describe_topics=pb.DescribeTopics(response_partition_limit=PAGE)),
        pb.ReadRequest(describe_configs=pb.DescribeConfigs(resources=resources)),
        pb.ReadRequest(list_topics=pb.ListTopics()),
    ]

    async def work(number: int) -> None:
        request = requests[number % len(requests)]

        async def read() -> None:
            answer = await client.controller(number).Read(request, timeout=_CALL_S)
            if answer.error:
                client.counts.refusals += 1
                await asyncio.sleep(_PAUSE_S)
            else:
                client.counts.answers += 1

        await client.again(read)

    await asyncio.gather(*(work(number) for number in client.workers(READS)))


def topic_name(number: int) -> str:
    """The name of a topic that is read."""
    return f"read-{number}"


CLIENT_LOADS: Final[dict[str, Callable[[Client], Coroutine[Any, Any, None]]]] = {
    "register": register,
    "heartbeats": heartbeats,
    "parked-fetches": parked_fetches,
    "reads": reads,
}


class _BoundLoop(asyncio.SelectorEventLoop):
    """An event loop whose connections come from one address."""

    def __init__(self, source: str | None) -> None:
        super().__init__()
        self._source = source

    async def create_connection(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        if self._source is not None:
            options["local_addr"] = (self._source, 0)
        return await super().create_connection(*arguments, **options)


def run_load(
    name: str,
    address: tuple[str, int],
    *,
    channels: int,
    seconds: float,
    answers_max: int,
    source: str | None,
) -> Counts:
    """Run a load for so long, or until so many calls are answered; it may be over before."""

    async def run() -> Counts:
        deadline = time.monotonic() + seconds
        client = Client(address, channels)
        load = asyncio.ensure_future(CLIENT_LOADS[name](client))
        while (left_s := deadline - time.monotonic()) > 0 and not load.done():
            if client.counts.answers >= answers_max:
                break
            await asyncio.wait([load], timeout=min(left_s, _LOOK_S))
        if load.done():
            load.result()
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        await client.close()
        return client.counts

    with asyncio.Runner(loop_factory=lambda: _BoundLoop(source)) as runner:
        return runner.run(run())
