"""Interfaces of cluster and machine that simulated processes use.

Nodes create processes and their parts, and clusters create nodes. The created objects know their
creators only by these protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from quorate.sim.engine.event_loop import Timeline
from quorate.sim.views import ClusterView, NodeView

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import (
        AppendToLog,
        Peer,
        PublishProgress,
        Random,
        RequestFailure,
        SendRequest,
    )
    from quorate.raft.messages import MembershipResponse, PeerResponse
    from quorate.records.ids import CallId, OffsetAndEpoch, ReplyToken, TopicId
    from quorate.records.voters import VoterSet
    from quorate.server.config import ControllerConfig
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.sim.engine.disk import SimulatedDisk
    from quorate.sim.engine.network import PeerCaller
    from quorate.sim.faults.file_tampering import FileTampering
    from quorate.sim.invariants.invariant import Invariant
    from quorate.sim.randomness import RandomStreams
    from quorate.sim.transcript import Transcript
    from quorate.storage.meta_properties import MetaProperties


class ProcessExitCallbacks(Protocol):
    """Decides when processes crash, and is notified of process exits."""

    def should_crash(self, node: NodeView) -> bool: ...
    def died(self, node: NodeView) -> None:
        """The process crashed between two effects, or two disk calls."""
        ...

    def refused(self, node: NodeView, error: Exception) -> None:
        """The process could not start."""
        ...

    def on_resource_shortage(self, node: NodeView) -> None:
        """The process exited because of too few descriptors."""
        ...

    def stopped(self, node: NodeView) -> None:
        """The process exited on its own."""
        ...


class ClusterInterface(ClusterView, Protocol):
    """The time and randomness, the network, and the observers."""

    @property
    def random_streams(self) -> RandomStreams: ...
    @property
    def transcript(self) -> Transcript: ...
    @property
    def watch(self) -> Invariant:
        """All invariants, combined in one."""
        ...

    @property
    def answers(self) -> dict[ReplyToken, MembershipResponse]:
        """The responses to operators."""
        ...

    @property
    def static_voters(self) -> VoterSet: ...

    def schedule(self, delay_us: int, action: Callable[[], None]) -> None: ...
    def log(self, text: str) -> None: ...
    def next_token(self) -> ReplyToken: ...

    # --- randomness -------------------------------------------------------------------------------

    def draw_fsync_us(self, node: NodeView) -> int: ...
    def new_topic_id(self) -> TopicId: ...
    def is_targeted(self, node: NodeView, rate: float) -> bool:
        """True if a targeted fault happens now."""
        ...

    def is_hijacked(self, node: NodeView) -> bool:
        """True if a foreign cluster answers at its address."""
        ...

    def maybe_crash(self, node: NodeView) -> None:
        """Let a process crash at random at a critical step."""
        ...

    def maybe_corrupt_snapshot(self, node: MachineInterface, snapshot_id: OffsetAndEpoch) -> None:
        """Corrupt a fetched snapshot at random before it is verified."""
        ...

    # --- the end of a process ---------------------------------------------------------------------

    @property
    def process_exits(self) -> ProcessExitCallbacks: ...
    def process_ended(self, node: NodeView, callers: dict[ReplyToken, PeerCaller]) -> None:
        """The process has exited, and its machine closes all its connections."""
        ...

    # --- messages ---------------------------------------------------------------------------------

    def send_request(self, source: NodeView, effect: SendRequest) -> None: ...
    def send_response(
        self, source: NodeView, caller: PeerCaller, response: PeerResponse | RequestFailure
    ) -> None: ...
    def send_probe(self, source: NodeView, call: CallId, peer: Peer) -> None: ...


class MachineInterface(NodeView, Timeline, Protocol):
    """One machine, with the details that only its process needs."""

    troubles: int

    @property
    def world(self) -> ClusterInterface: ...
    @property
    def random(self) -> Random: ...
    @property
    def disk(self) -> SimulatedDisk: ...
    @property
    def file_tampering(self) -> FileTampering:
        """The tampering with its files since its last valid start."""
        ...

    @property
    def driver(self) -> RaftDriver:
        """The driver of the current process."""
        ...

    @property
    def config(self) -> ControllerConfig: ...
    @property
    def meta(self) -> MetaProperties: ...
    @property
    def is_paused(self) -> bool: ...
    @property
    def checked(self) -> set[OffsetAndEpoch]: ...
    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        """The newest snapshot that recovery found."""
        ...

    @property
    def callers(self) -> dict[ReplyToken, PeerCaller]:
        """The callers that wait for responses of this process."""
        ...

    def may_die(self) -> None:
        """Crash if it is due, before an effect or a disk call. May raise ProcessDied."""
        ...

    def fail(self, message: str) -> None:
        """Report that the disk has failed."""
        ...

    # --- events of its log ------------------------------------------------------------------------

    def appended(self, effect: AppendToLog) -> None: ...
    def published(self, progress: PublishProgress) -> None: ...
    def begin_log_at(self, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot has replaced the log."""
        ...

    def healed(self) -> None:
        """The log has reached the healing target: at least the end it had before the damage."""
        ...
