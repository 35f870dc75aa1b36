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
    from quorate.sim.views import ClusterView, NodeView


class Invariant:
    """One property of the whole quorum."""

    def __init__(self, world: ClusterView) -> None:
        self.world = world
        # The dispatcher, which calls the same hook of all invariants.
        self.watch: Invariant = self

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        """A process has recovered its disk and is about to start its core."""

    def stopped(self, node: NodeView) -> None:
        """A process has ended, or its machine has lost power."""

    def ended(self, node: NodeView, exit_reason: ExitReason, message: str) -> None:
        """A process has exited on its own, with the reason."""

    def refused(self, node: NodeView, error: Exception) -> None:
        """A process refuses to start on the contents of its disk."""

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        """A core has reported a change of role, epoch, leader or high watermark."""

    def committed(self, node: NodeView, entry: Entry) -> None:
        """A replica is the first to report this batch as committed."""

    def appended(self, node: NodeView, entry: Entry) -> None:
        """A batch has been written at the end of a log."""

    def truncating(self, node: NodeView, to: OffsetAndEpoch) -> None:
        """A log is about to be truncated; the node's view still holds the removed batches."""

    def installing(self, node: NodeView, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot is about to replace a log."""

    def voted(self, node: NodeView, epoch: Epoch, candidate: ReplicaKey) -> None:
        """A vote (not a pre-vote) leaves a process, or its vote for itself is durable."""

    def on_pre_vote_granted(self, node: NodeView, epoch: Epoch, nominee: ReplicaKey) -> None:
        """A pre-vote leaves a process."""

    def saving(self, node: NodeView, state: ElectionState) -> None:
        """Epoch, leader and vote are about to be made durable."""

    def on_state_lost(self, node: NodeView, state: ElectionState) -> None:
        """A process is about to start with this stale quorum-state, and cannot detect the loss."""

    def decided(self, node: NodeView, request: WriteRequest, decision: Decision) -> None:
        """A controller has decided on a request."""

    def expired(self, node: NodeView, decision: Decision) -> None:
        """A controller has made a periodic decision."""

    def on_forged_epoch(self, epoch: Epoch) -> None:
        """A Byzantine peer has named an epoch that receivers may accept."""

    def on_tick(self) -> None:
        """A fraction of an election timeout has passed: run periodic checks."""

    def snapshot(self, node: NodeView, snapshot_id: OffsetAndEpoch) -> None:
        """A snapshot has been written, or fetched and installed."""

    def acknowledging(self, node: NodeView, offset: Offset) -> None:
        """A write below `offset` is about to be acknowledged to its client."""

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        """A process is about to handle a Fetch or a FetchSnapshot."""

    def asked(self, node: NodeView, token: ReplyToken, request: MembershipRequest) -> None:
        """A process is about to handle a membership request."""

    def before_invalid_peer_request(self, token: ReplyToken) -> None:
        """A process is about to get an invalid request of a peer."""

    def before_invalid_client_request(self, request: WriteRequest) -> None:
        """A controller is about to get an invalid request of a client."""

    def handled(
        self, node: NodeView, request: RequestReceived, update: Update, *, is_due: bool
    ) -> None:
        """A core has handled a request; `is_due` if a timer may have fired in the same step."""

    def noted(self, node: NodeView, trace_event: TraceEvent) -> None:
        """A core has made a trace event; no other node has seen effects of this step yet."""

    def answered(
        self, node: NodeView, token: ReplyToken, request: Request, response: Response
    ) -> None:
        """A request has its response, even if its caller does not wait for it any more."""

    def on_client_reply(self, request: WriteRequest, reply: object) -> None:
        """A client gets a reply, an error or a broken connection for its invalid request."""

    def answering(self, node: NodeView, token: ReplyToken, response: MembershipResponse) -> None:
        """The response to a membership request is about to leave the process."""

    def changing(self, node: NodeView) -> None:
        """A leader has decided on another voter set, and is about to write it."""

    def joining(self, node: NodeView, request: AddRaftVoterRequest) -> None:
        """A process auto-joins: it requests to become a voter."""

    def sending(self, node: NodeView, part: SnapshotRange) -> None:
        """A chunk of a snapshot is about to be sent."""

    def reading(self, node: NodeView, token: ReplyToken) -> None:
        """A core has begun a linearizable read; the effects of this step have not left yet."""

    def sending_round(self, node: NodeView, read_round: int) -> None:
        """The response to a Fetch, with that read round, is about to be sent."""

    def confirming(self, node: NodeView, token: ReplyToken) -> None:
        """A core reports that a linearizable read may be answered."""

    def cleaned(self, node: NodeView, event: LogCleaned) -> None:
        """Snapshots and segments have been deleted; the process does not know it yet."""

    def heard_leader(self, node: NodeView) -> None:
        """A follower has received a Fetch response from its leader."""
