"""Production's controller in one simulated process, and the clients that wait for it.

Clients write and read as they would over the network, and the oracle hears what they are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.api.handlers import ControllerApiError
from quorate.consensus.application import MetadataApplication
from quorate.consensus.config import LogSettings
from quorate.consensus.snapshotting import Snapshotter
from quorate.controller.controller import Controller
from quorate.controller.decision import ControllerSettings
from quorate.controller.requests import Caller
from quorate.controller.topics.messages import ListTopics
from quorate.records.ids import UUID_BYTES, Offset, TopicId
from quorate.sim.configuring import CLUSTER_ID
from quorate.sim.machine import Machine, request_of
from quorate.sim.storage import LOG_DIR

if TYPE_CHECKING:
    import asyncio

    from quorate.controller.replies import WriteReply
    from quorate.raft.api import AppendToLog, PublishProgress
    from quorate.raft.messages import ProposalResponse, ReadResponse
    from quorate.records.ids import ReplyToken
    from quorate.sim.host import SimulatedHost
    from quorate.sim.sides import MachineBelow

CLIENT: Final = Caller("User:client", "client")
TICK_S: Final = 1.0
# What a record has in a batch beside its value.
_OVERHEAD_BYTES: Final = 40
_NEVER: Final = 1 << 40


class Application(MetadataApplication):
    """One process's controller; a process may die before whatever is told to it."""

    def __init__(self, node: MachineBelow, host: SimulatedHost) -> None:
        options = node.world.options
        every = options.snapshot_every_records
        settings = LogSettings(
            directory=LOG_DIR,
            segment_bytes=options.segment_bytes,
            retention_bytes=options.retention_bytes,
            retention_ms=-1,
            snapshot_bytes=every * (options.record_bytes + _OVERHEAD_BYTES) or _NEVER,
            snapshot_interval_ms=0,
            free_bytes_min=0,
        )
        decides = ControllerSettings(
            cluster_id=CLUSTER_ID, new_topic_id=lambda: TopicId(bytes(UUID_BYTES))
        )
        super().__init__(
            node.driver,
            Controller(decides, gathers=True),
            Snapshotter(node.driver, settings, node.random.random),
            linger_ms=options.linger_ms,
            pause_ms=options.fetch_timeout_ms * 3 // 2,
        )
        self._node = node
        self._host = host
        self._oracle = node.world.oracle
        self._writes: dict[asyncio.Future[WriteReply], tuple[int, ...]] = {}

    def keep_house(self) -> None:
        """Once a second, as long as the process lives."""
        self.tick()
        self._loop.call_later(TICK_S, self.keep_house)

    # --- what the driver tells --------------------------------------------------------------------

    def appended(self, effect: AppendToLog, timestamp_ms: int) -> None:
        self._node.appended(effect)
        super().appended(effect, timestamp_ms)

    def progressed(self, progress: PublishProgress) -> None:
        self._node.published(progress)
        super().progressed(progress)

    def answered(self, token: ReplyToken, response: ProposalResponse | ReadResponse) -> None:
        self._node.may_die()
        super().answered(token, response)

    # --- clients ----------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether this process takes writes."""
        return self._writing.decides

    @property
    def applied(self) -> Offset:
        """Up to where the committed metadata goes."""
        return self.controller.image.position.end_offset

    @property
    def machine(self) -> Machine:
        """The committed metadata, as the model of it."""
        return Machine.of(self.controller.image)

    def propose(self, operations: tuple[int, ...], size_bytes: int) -> bool:
        """Take a client's write; False when this process is not the active one."""
        if not self.is_active:
            return False
        self._host.loop.run(self._propose, operations, size_bytes)
        return True

    def _propose(self, operations: tuple[int, ...], size_bytes: int) -> None:
        future = self.write(request_of(operations, size_bytes), CLIENT)
        self._writes[future] = operations
        future.add_done_callback(self._told)

    def _told(self, future: asyncio.Future[WriteReply]) -> None:
        self._node.may_die()
        operations = self._writes.pop(future)
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or (isinstance(error, ControllerApiError) and error.outcome_unknown):
            self._leave_open(operations)
        elif error is not None:
            for operation in operations:
                self._oracle.was_refused(operation)
        else:
            last = max(self._oracle.committed_at.get(number, Offset(-1)) for number in operations)
            self._node.world.watch.acknowledging(self._node, Offset(last + 1))
            for operation in operations:
                self._oracle.was_acknowledged(operation)

    def _leave_open(self, operations: tuple[int, ...]) -> None:
        for operation in operations:
            self._oracle.was_left_open(operation)

    def process_ended(self) -> None:
        """Connections break: clients learn nothing about what was under way."""
        for operations in self._writes.values():
            self._leave_open(operations)
        self._writes.clear()

    def read_current(self) -> None:
        """Take a read that must reflect everything that any client knows by now."""
        self._host.loop.run(self._begin_read, self._oracle.read_floor)

    def _begin_read(self, floor: Offset) -> None:
        task = self._loop.create_task(self._read_current(floor))
        task.add_done_callback(self._was_read)

    async def _read_current(self, floor: Offset) -> None:
        try:
            await self.read(ListTopics(), min_offset=0, current=True, timeout_ms=0)
        except ControllerApiError:
            return
        self._oracle.current_read_answered(self.machine, floor)

    def _was_read(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._host.loop.fail(error)

    def read_any(self, seen: Offset) -> Offset:
        """Answer a read from what this process has, unless its client has seen more already."""
        if self.applied < seen:
            return seen
        self._oracle.read_answered(self.machine, seen)
        return self.applied
