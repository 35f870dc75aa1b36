"""One client takes of a leader whatever it can get; the others and the quorum do not notice."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from quorate.client.controller_calls import OutcomeUnknownError
from quorate.controller.configs.messages import IncrementalAlterConfigsReply
from quorate.records.errors import ErrorCode
from quorate.rpc.gen.controller.v1 import controller_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2
from tests.integration.quorum import DEADLINE_S, Quorum
from tests.integration.raw_http2 import RawConnection
from tests.integration.server.test_shortage import change
from tests.ports import HOST
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from quorate.cli.local_quorum import NodePlan

log = logging.getLogger(__name__)
MIB: Final = 1024 * 1024
# What docs/operations.md states for one address that does all of it in parallel.
RSS_MAX: Final = 1024 * MIB
ABUSER: Final = "127.0.0.2"
CONNECTIONS: Final = 10
READ = "/quorate.controller.v1.Controller/Read"
WRITE = "/quorate.controller.v1.Controller/Write"
WRITE_STREAM = "/quorate.controller.v1.Controller/WriteStream"
FETCH_ONCE = "/quorate.raft.v1.Raft/FetchOnce"
VOTE = "/quorate.raft.v1.Raft/Vote"
WATCH = "/grpc.health.v1.Health/Watch"


def rss(pid: int) -> int:
    """The resident memory of a process, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no memory")


def parked_read() -> bytes:
    read = controller_pb2.ReadRequest(min_offset=1 << 40, timeout_ms=60_000)
    read.describe_topics.names.extend(f"{number:0200}" for number in range(500))
    return read.SerializeToString()


def write(sequence: int) -> bytes:
    """A change that is decided, and has a reply as large as itself."""
    request = controller_pb2.WriteRequest(sequence=sequence)
    request.delete_topics.names.append("n" * 4000)
    return request.SerializeToString()


def fetch(cluster_id: str, replica_id: int, epoch: int) -> bytes:
    return raft_pb2.FetchRequest(
        cluster_id=cluster_id,
        replica_id=replica_id,
        replica_directory_id=replica_id.to_bytes(16, "big"),
        current_leader_epoch=epoch,
        fetch_offset=1,
        last_fetched_epoch=epoch,
        max_wait_ms=60_000,
        max_bytes=8 * MIB,
    ).SerializeToString()


class Abuse:
    """Connections of one address, and the responses that they got."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._connections: dict[str, list[RawConnection]] = {}

    async def connect(
        self, path: str, address: tuple[str, int], *, reads_nothing: bool = False
    ) -> list[RawConnection]:
        made = [
            await self._stack.enter_async_context(
                RawConnection(address, source=ABUSER, reads_nothing=reads_nothing)
            )
            for _ in range(CONNECTIONS)
        ]
        self._connections[path] = made
        return made

    def told(self, path: str) -> bytes:
        """The ends of all calls of a method, as they came."""
        return b"".join(part for one in self._connections[path] for part in one.trailers)

    async def of_controller(self, node: NodePlan, cluster_id: str, epoch: int) -> None:
        """Do everything in parallel, by the thousand."""
        read, large = parked_read(), bytes(MIB - 1000)
        writes = [write(number) for number in range(100)]
        address = node.address
        for connection in await self.connect(READ, address, reads_nothing=True):
            for _ in range(300):
                connection.begin(READ, read)
        for connection in await self.connect(WRITE, address):
            for _ in range(250):
                connection.begin(WRITE, large, is_whole=False)
        for connection in await self.connect(VOTE, address):
            for _ in range(200):
                connection.begin(VOTE, large, is_whole=False)
        for connection in await self.connect(WRITE_STREAM, address, reads_nothing=True):
            for _ in range(60):
                connection.begin(WRITE_STREAM, *writes)
        fetches = await self.connect(FETCH_ONCE, address, reads_nothing=True)
        for index, connection in enumerate(fetches):
            for number in range(120):
                replica_id = 1000 + index * 120 + number
                connection.begin(FETCH_ONCE, fetch(cluster_id, replica_id, epoch))
        health = (HOST, node.health_port)
        watch = health_pb2.HealthCheckRequest(service="liveness").SerializeToString()
        for connection in await self.connect(WATCH, health, reads_nothing=True):
            for _ in range(60):
                connection.begin(WATCH, watch)
        for _ in range(30):
            await self.connect("nothing", address)


async def is_alive(node: NodePlan) -> bool:
    async with grpc.aio.insecure_channel(f"{HOST}:{node.health_port}") as channel:
        request = health_pb2.HealthCheckRequest(service="liveness")
        answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=DEADLINE_S)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def written(quorum: Quorum, number: int) -> None:
    """A change is committed; one whose answer comes late is asked for again."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(OutcomeUnknownError):
                reply = await quorum.client.write(change(number))
                break
    assert isinstance(reply, IncrementalAlterConfigsReply)
    assert [result.error for result in reply.resources] == [ErrorCode.NONE]


async def test_a_leader_bounds_what_one_address_takes(tmp_path: Path) -> None:
    # Elections as the defaults have them: this machine is busy with the abuse itself.
    calm = {
        "controller.quorum.election.timeout.ms": "1000",
        "controller.quorum.fetch.timeout.ms": "2000",
    }
    async with Quorum(tmp_path, calm) as quorum, AsyncExitStack() as stack:
        before = await quorum.leader()
        assert before.leader.leader_id is not None
        node = quorum.nodes[before.leader.leader_id]
        pid = quorum.processes[before.leader.leader_id].pid
        abuse = Abuse(stack)
        highest = [rss(pid)]

        async def watch() -> None:
            while True:
                highest.append(rss(pid))
                await asyncio.sleep(0.05)

        watching = asyncio.ensure_future(watch())
        doing = asyncio.ensure_future(
            abuse.of_controller(node, str(quorum.plan.cluster_id), before.leader.epoch)
        )
        for number in range(20):
            await written(quorum, number)
            if number == 10:
                await doing
                await asyncio.sleep(2)
        after = await quorum.leader()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        grown = f"from {highest[0] // MIB} to {max(highest) // MIB} MiB"
        log.info("the leader grew %s", grown)
        assert max(highest) < RSS_MAX, grown
        assert (after.leader.leader_id, after.leader.epoch) == (
            before.leader.leader_id,
            before.leader.epoch,
        )
        assert await is_alive(node)
        wait = b"wait for answers before asking again"
        whole = b"send requests whole and at once"
        for path in (READ, WRITE_STREAM, FETCH_ONCE, WATCH):
            await eventually(lambda path=path: wait in abuse.told(path))  # type: ignore[misc]
        await eventually(lambda: whole in abuse.told(VOTE))
        # Which of the two bounds ends them depends on how many reach the leader in one turn.
        await eventually(lambda: whole in abuse.told(WRITE) or wait in abuse.told(WRITE))
