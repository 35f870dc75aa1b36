"""Interfaces of cluster and machine that simulated processes use.

Nodes create processes and their parts, and clusters create nodes. The created objects know their
creators only by these protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from quorate.sim.engine.event_loop import Timeline
from quorate.sim.views import SeenNode, SeenWorld

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.api import (
        AppendToLog,
        CallFailure,
        Peer,
        PublishProgress,
        Random,
        SendRequest,
    )
    from quorate.raft.messages import MembershipResponse, PeerResponse
    from quorate.records.ids import CallId, OffsetAndEpoch, ReplyToken, TopicId
    from quorate.records.voters import VoterSet
    from quorate.server.config import ControllerConfig
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.sim.engine.disk import SimulatedDisk
    from quorate.sim.engine.network import PeerCaller
    from quorate.sim.faults.file_tampering import Spoiling
    from quorate.sim.invariants.invariant import Invariant
    from quorate.sim.randomness import Fates
    from quorate.sim.transcript import Transcript
    from quorate.storage.meta_properties import MetaProperties


class EndingsAround(Protocol):
    """Decides about injected process deaths, and gets notified of process exits."""

    def is_time_to_die(self, node: SeenNode) -> bool: ...
    def died(self, node: SeenNode) -> None:
        """It died between two effects, or two calls to its disk."""
        ...

    def refused(self, node: SeenNode, error: Exception) -> None:
        """It could not begin."""
        ...

    def ran_short(self, node: SeenNode) -> None:
        """It ended for want of descriptors."""
        ...

    def stopped(self, node: SeenNode) -> None:
        """It ended by itself."""
        ...


class WorldAround(SeenWorld, Protocol):
    """The time and its draws, the way to the other nodes, and those who look on."""

    @property
    def fates(self) -> Fates: ...
    @property
    def transcript(self) -> Transcript: ...
    @property
    def watch(self) -> Invariant:
        """All invariants, told as one."""
        ...

    @property
    def answers(self) -> dict[ReplyToken, MembershipResponse]:
        """The responses to operators."""
        ...

    @property
    def static_voters(self) -> VoterSet: ...

    def schedule(self, delay_us: int, action: Callable[[], None]) -> None: ...
    def remark(self, text: str) -> None: ...
    def next_token(self) -> ReplyToken: ...

    # --- draws ------------------------------------------------------------------------------------

    def draw_fsync_us(self, node: SeenNode) -> int: ...
    def new_topic_id(self) -> TopicId: ...
    def is_aimed_at(self, node: SeenNode, rate: float) -> bool:
        """Whether what would be bad just now happens."""
        ...

    def is_taken_over(self, node: SeenNode) -> bool:
        """Whether somebody else answers at its address."""
        ...

    def tempt_fate(self, node: SeenNode) -> None:
        """A process does what it would be bad to die at."""
        ...

    def spoil(self, node: MachineBelow, snapshot_id: OffsetAndEpoch) -> None:
        """A snapshot has been fetched; it may be spoiled before it is checked."""
        ...

    # --- the end of a process ---------------------------------------------------------------------

    @property
    def endings(self) -> EndingsAround: ...
    def process_ended(self, node: SeenNode, callers: dict[ReplyToken, PeerCaller]) -> None:
        """It is gone, and its machine tells everybody who is connected to it."""
        ...

    # --- messages ---------------------------------------------------------------------------------

    def send_request(self, source: SeenNode, effect: SendRequest) -> None: ...
    def send_response(
        self, source: SeenNode, caller: PeerCaller, response: PeerResponse | CallFailure
    ) -> None: ...
    def send_probe(self, source: SeenNode, call: CallId, peer: Peer) -> None: ...


class MachineBelow(SeenNode, Timeline, Protocol):
    """One machine, of which its process knows more than an onlooker."""

    troubles: int

    @property
    def world(self) -> WorldAround: ...
    @property
    def random(self) -> Random: ...
    @property
    def disk(self) -> SimulatedDisk: ...
    @property
    def spoiling(self) -> Spoiling:
        """The tampering with its files since its last valid start."""
        ...

    @property
    def driver(self) -> RaftDriver:
        """The driver of the process of now."""
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
        """Something is about to leave the process, or to reach its disk. May raise ProcessDied."""
        ...

    def fail(self, message: str) -> None:
        """The disk failed."""
        ...

    # --- what befalls its log ---------------------------------------------------------------------

    def appended(self, effect: AppendToLog) -> None: ...
    def published(self, progress: PublishProgress) -> None: ...
    def begin_log_at(self, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot has taken the place of the log."""
        ...

    def healed(self) -> None:
        """The log has reached what it once was, or what its voter may once have known."""
        ...
