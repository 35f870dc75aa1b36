"""A controller without sockets: a single voter on a real directory, which leads immediately."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING

import pytest

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    Listener,
    RegisterBroker,
    RegisterBrokerReply,
)
from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.topics.messages import CreateTopics, ListTopics, ListTopicsReply, NewTopic
from quorate.raft.api import RaftConfig
from quorate.raft.core import RaftCore
from quorate.records.ids import (
    UUID_BYTES,
    ClusterId,
    DirectoryId,
    Millis,
    NodeId,
    Offset,
    ReplicaKey,
    TopicId,
)
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.server.config import LogSettings
from quorate.server.driver.raft_driver import ExitReason, RaftDriver
from quorate.server.metadata.application import MetadataApplication
from quorate.server.snapshots.snapshotter import Snapshotter
from quorate.storage.file_system import OsFile, OsFileSystem
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.raft import api
    from quorate.records.ids import OffsetAndEpoch
    from quorate.server.driver.observers import Observers

NODE = NodeId(1)
DIRECTORY = DirectoryId(b"d" * UUID_BYTES)
CLUSTER = ClusterId("cluster")
CALLER = Caller("User:test")
WAIT_S = 60

REGISTRATION = RegisterBroker(
    broker_id=1,
    incarnation_id=b"i" * UUID_BYTES,
    cluster_id=CLUSTER,
    listeners=(Listener("PLAINTEXT", "broker", 9092),),
    features=SUPPORTED_FEATURES,
    log_dirs=(b"l" * UUID_BYTES,),
)


class Silence:
    """A network on which no peer answers; it remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[api.SendRequest | api.ProbeLeader] = []

    def send(self, effect: api.SendRequest) -> None:
        self.sent.append(effect)

    def probe(self, effect: api.ProbeLeader) -> None:
        self.sent.append(effect)


class Stack:
    """The parts of one process, opened on a directory and closed again."""

    def __init__(
        self,
        directory: Path,
        *,
        snapshot_bytes: int = 1 << 30,
        observers: Observers | None = None,
    ) -> None:
        endpoints = (Endpoint("GRPC", "127.0.0.1", 9094),)
        self.directory = directory
        self.ended: asyncio.Future[ExitReason] = asyncio.get_running_loop().create_future()
        store, recovered = LogStore.open(
            OsFileSystem(), str(directory), StorageConfig(node_id=NODE, segment_bytes=4096)
        )
        config = RaftConfig(
            node_id=NODE,
            directory_id=DIRECTORY,
            cluster_id=CLUSTER,
            endpoints=endpoints,
            # No disk of a test is so slow that the core is taken to stand.
            fetch_timeout_ms=Millis(WAIT_S * 1000),
        )
        core = RaftCore(config, recovered.state, random.Random(1))
        self.driver = RaftDriver(core, store, self._end, observers)
        self.settings = LogSettings(
            directory=str(directory),
            segment_bytes=4096,
            retention_bytes=4096,
            retention_ms=-1,
            snapshot_bytes=snapshot_bytes,
            snapshot_interval_ms=0,
            free_bytes_min=0,
        )
        self.snapshotter = Snapshotter(self.driver, self.settings)
        controller = Controller(
            ControllerSettings(
                cluster_id=CLUSTER,
                new_topic_id=lambda: TopicId(random.randbytes(UUID_BYTES)),
                # Brokers of a test register, and are not heard of again.
                broker_session_timeout_ms=WAIT_S * 1000,
            ),
            gathers=True,
        )
        self.application = MetadataApplication(self.driver, controller, self.snapshotter)
        self.network = Silence()
        self._snapshots = recovered.state.snapshots
        self.is_closed = False

    def _end(self, exit_reason: ExitReason, _message: str) -> None:
        self.ended.set_result(exit_reason)

    def start(self) -> None:
        self.driver.start(self.network, self.application)
        newest = self._snapshots[-1].snapshot_id if self._snapshots else None
        self.application.begin(newest)

    async def until_active(self) -> None:
        """Return when the bootstrap metadata is committed."""
        await eventually(lambda: len(self.application.controller.image.features) > 0)

    async def register(self) -> None:
        """Register and unfence the broker 1, so that topics can be created."""
        registered = await self.write(REGISTRATION)
        assert isinstance(registered, RegisterBrokerReply)
        await self.write(
            BrokerHeartbeat(
                broker_id=1,
                broker_epoch=registered.broker_epoch,
                current_metadata_offset=Offset(registered.broker_epoch),
            )
        )

    async def write(self, request: WriteRequest) -> WriteReply:
        return await asyncio.wait_for(self.application.write(request, CALLER), WAIT_S)

    async def create(self, *names: str) -> WriteReply:
        return await self.write(CreateTopics(tuple(NewTopic(name) for name in names)))

    async def topic_count(self, min_offset: int = 0) -> int:
        reply = await self.application.read(
            ListTopics(), CALLER, min_offset=min_offset, current=True, timeout_ms=WAIT_S * 1000
        )
        assert isinstance(reply, ListTopicsReply)
        return len(reply.topics)

    async def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            await self.application.close()
            await self.driver.close()


async def eventually(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds; fails after WAIT_S."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - the parts have no event for what is asked
            await asyncio.sleep(0.001)


@pytest.fixture
async def open_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Awaitable[Stack]]]:
    """Opens the one directory of a test, formatted for a single voter; closes at the end."""
    # Whether a decision has to pause must not hang on how busy the machine is.
    monkeypatch.setattr("quorate.server.metadata.decision_executor.INLINE_BUDGET_S", WAIT_S)
    voter = Voter(ReplicaKey(NODE, DIRECTORY), (Endpoint("GRPC", "127.0.0.1", 9094),))
    formatting = Formatting(
        meta=MetaProperties(NODE, CLUSTER, DIRECTORY), records=(), voters=VoterSet((voter,))
    )
    format_directory(OsFileSystem(), str(tmp_path), formatting, timestamp_ms=0)
    stacks: list[Stack] = []

    async def open_one(
        *,
        snapshot_bytes: int = 1 << 30,
        is_active: bool = True,
        observers: Observers | None = None,
    ) -> Stack:
        stack = Stack(tmp_path, snapshot_bytes=snapshot_bytes, observers=observers)
        stacks.append(stack)
        stack.start()
        if is_active:
            await stack.until_active()
        return stack

    yield open_one
    for stack in stacks:
        await stack.close()


async def newest_of(stack: Stack) -> OffsetAndEpoch:
    """The newest snapshot, once the log knows it, too, and nothing more is done for it."""
    driver, snapshotter = stack.driver, stack.snapshotter

    def is_stored() -> bool:
        newest = snapshotter.newest
        is_known = newest is not None and driver.store.log.state.newest_snapshot == newest
        return (
            is_known and snapshotter._task is driver._barriers._task is None and not driver._inbox
        )

    await eventually(is_stored)
    assert snapshotter.newest is not None
    return snapshotter.newest


async def hanging_call(stack: Stack, what: str) -> None:
    def hangs() -> bool:
        oldest = stack.driver.access.calls.oldest()
        return oldest is not None and oldest.what == what

    await eventually(hangs)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Reads of files do not return before it is set."""
    opens = threading.Event()
    read_at = OsFile.read_at

    def waiting(file: OsFile, position: int, size: int) -> bytes:
        opens.wait()
        return read_at(file, position, size)

    monkeypatch.setattr(OsFile, "read_at", waiting)
    yield opens
    opens.set()
