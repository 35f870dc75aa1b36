"""Base class of an invariant, with the hooks it may override; they raise on a violation.

The docstring of each invariant states its property in one sentence and names its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.controller.decision import Decision
    from quorate.controller.request_types import WriteRequest
    from quorate.raft.api import (
        LogCleaned,
        PublishProgress,
        RecoveredState,
        RequestReceived,
        Update,
    )
    from quorate.raft.messages import (
        AddRaftVoterRequest,
        ElectionState,
        FetchRequest,
        FetchSnapshotRequest,
        MembershipRequest,
        MembershipResponse,
        Request,
        Response,
        SnapshotRange,
    )
    from quorate.raft.trace_events import TraceEvent
    from quorate.records.ids import Epoch, Offset, OffsetAndEpoch, ReplicaKey, ReplyToken
    from quorate.server.driver.raft_driver import ExitReason
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import SeenNode, SeenWorld


class Invariant:
    """One property of the whole quorum."""

    def __init__(self, world: SeenWorld) -> None:
        self.world = world
        # All invariants, combined in one.
        self.watch: Invariant = self

    def started(self, node: SeenNode, recovered: RecoveredState) -> None:
        """A process has recovered its disk and is about to start its core."""

    def stopped(self, node: SeenNode) -> None:
        """A process has ended, or its machine has lost power."""

    def ended(self, node: SeenNode, exit_reason: ExitReason, message: str) -> None:
        """A process has exited by itself, with the reason."""

    def refused(self, node: SeenNode, error: Exception) -> None:
        """A process refuses to start on the contents of its disk."""

    def published(self, node: SeenNode, progress: PublishProgress) -> None:
        """A core has reported a change of role, epoch, leader or high watermark."""

    def committed(self, node: SeenNode, entry: Entry) -> None:
        """A replica is the first to report this batch as committed."""

    def appended(self, node: SeenNode, entry: Entry) -> None:
        """A batch has been written at the end of a log."""

    def truncating(self, node: SeenNode, to: OffsetAndEpoch) -> None:
        """A log is about to be truncated; the node's view still holds the removed batches."""

    def installing(self, node: SeenNode, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot is about to replace a log."""

    def voted(self, node: SeenNode, epoch: Epoch, candidate: ReplicaKey) -> None:
        """A vote (no pre-vote) leaves a process, or counts for itself."""

    def promised(self, node: SeenNode, epoch: Epoch, nominee: ReplicaKey) -> None:
        """A pre-vote leaves a process."""

    def saving(self, node: SeenNode, state: ElectionState) -> None:
        """Epoch, leader and vote are about to be made durable."""

    def forgot(self, node: SeenNode, state: ElectionState) -> None:
        """A process is about to start with this stale quorum-state, and cannot detect the loss."""

    def decided(self, node: SeenNode, request: WriteRequest, decision: Decision) -> None:
        """A controller has decided on a request."""

    def expired(self, node: SeenNode, decision: Decision) -> None:
        """A controller has made a periodic decision."""

    def claimed(self, epoch: Epoch) -> None:
        """A Byzantine peer has named an epoch that receivers may accept."""

    def looked(self) -> None:
        """A little time has passed, a part of an election timeout."""

    def snapshot(self, node: SeenNode, snapshot_id: OffsetAndEpoch) -> None:
        """A snapshot has been written, or fetched and installed."""

    def acknowledging(self, node: SeenNode, offset: Offset) -> None:
        """A write below `offset` is about to be acknowledged to its client."""

    def fetching(self, node: SeenNode, request: FetchRequest | FetchSnapshotRequest) -> None:
        """A process is about to handle a Fetch or a FetchSnapshot."""

    def asked(self, node: SeenNode, token: ReplyToken, request: MembershipRequest) -> None:
        """A process is about to handle a membership request."""

    def asking_in_vain(self, token: ReplyToken) -> None:
        """A process is about to get an invalid request of a peer."""

    def writing_in_vain(self, request: WriteRequest) -> None:
        """A controller is about to get an invalid request of a client."""

    def handled(
        self, node: SeenNode, request: RequestReceived, update: Update, *, is_due: bool
    ) -> None:
        """A core has handled a request; `is_due` is whether a timer acted in the same step."""

    def noted(self, node: SeenNode, trace_event: TraceEvent) -> None:
        """A core has made a trace event; no other node has seen an effect of this step yet."""

    def answered(
        self, node: SeenNode, token: ReplyToken, request: Request, response: Response
    ) -> None:
        """A request has its response, even if its caller does not wait any more."""

    def told(self, request: WriteRequest, reply: object) -> None:
        """A client with an invalid request has a reply, an error, or a broken connection."""

    def answering(self, node: SeenNode, token: ReplyToken, response: MembershipResponse) -> None:
        """The response to a membership request is about to leave the process."""

    def changing(self, node: SeenNode) -> None:
        """A leader has decided on another voter set, and is about to write it."""

    def joining(self, node: SeenNode, request: AddRaftVoterRequest) -> None:
        """A process auto-joins: it requests to become a voter."""

    def sending(self, node: SeenNode, part: SnapshotRange) -> None:
        """A chunk of a snapshot is about to be sent."""

    def reading(self, node: SeenNode, token: ReplyToken) -> None:
        """A core has begun a linearizable read; the effects of this step have not left yet."""

    def sending_round(self, node: SeenNode, read_round: int) -> None:
        """The answer to a Fetch, with that round of reads, is about to be sent."""

    def confirming(self, node: SeenNode, token: ReplyToken) -> None:
        """A core reports that a linearizable read may be answered."""

    def cleaned(self, node: SeenNode, event: LogCleaned) -> None:
        """Snapshots and segments have been deleted; the process does not know it yet."""

    def heard_leader(self, node: SeenNode) -> None:
        """A follower has received a Fetch answer of its leader."""
