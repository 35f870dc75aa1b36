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
    from quorate.raft.trace_events import Note
    from quorate.records.ids import Epoch, Offset, OffsetAndEpoch, ReplicaKey, ReplyToken
    from quorate.server.driver.raft_driver import Ending
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import SeenNode, SeenWorld


class Invariant:
    """One property of the whole quorum."""

    def __init__(self, world: SeenWorld) -> None:
        self.world = world
        # All of them, told as one.
        self.watch: Invariant = self

    def started(self, node: SeenNode, recovered: RecoveredState) -> None:
        """A process has recovered its disk and is about to start its core."""

    def stopped(self, node: SeenNode) -> None:
        """A process has ended, or its machine has lost power."""

    def ended(self, node: SeenNode, ending: Ending, message: str) -> None:
        """A process has ended by itself, and says why."""

    def refused(self, node: SeenNode, error: Exception) -> None:
        """A process does not begin on what its disk holds."""

    def published(self, node: SeenNode, progress: PublishProgress) -> None:
        """A core has told a change of role, epoch, leader or high watermark."""

    def committed(self, node: SeenNode, entry: Entry) -> None:
        """A replica is the first to call this batch committed."""

    def appended(self, node: SeenNode, entry: Entry) -> None:
        """A batch has been written at the end of a log."""

    def truncating(self, node: SeenNode, to: OffsetAndEpoch) -> None:
        """A log is about to be cut; the node's view still holds what goes."""

    def installing(self, node: SeenNode, snapshot_id: OffsetAndEpoch) -> None:
        """A fetched snapshot is about to take the place of a log."""

    def voted(self, node: SeenNode, epoch: Epoch, candidate: ReplicaKey) -> None:
        """A vote (no pre-vote) leaves a process, or counts for itself."""

    def promised(self, node: SeenNode, epoch: Epoch, nominee: ReplicaKey) -> None:
        """A pre-vote leaves a process."""

    def saving(self, node: SeenNode, state: ElectionState) -> None:
        """Epoch, leader and vote are about to be made durable."""

    def forgot(self, node: SeenNode, state: ElectionState) -> None:
        """A process is about to start with this quorum-state, and nobody can tell the loss."""

    def decided(self, node: SeenNode, request: WriteRequest, decision: Decision) -> None:
        """A controller has decided on a request."""

    def expired(self, node: SeenNode, decision: Decision) -> None:
        """A controller has decided what nobody asked for."""

    def claimed(self, epoch: Epoch) -> None:
        """Somebody who lies has named an epoch that may be believed."""

    def looked(self) -> None:
        """A little time has passed, a part of an election timeout."""

    def snapshot(self, node: SeenNode, snapshot_id: OffsetAndEpoch) -> None:
        """A snapshot has been written, or fetched and installed."""

    def acknowledging(self, node: SeenNode, offset: Offset) -> None:
        """A write below `offset` is about to be acknowledged to its client."""

    def fetching(self, node: SeenNode, request: FetchRequest | FetchSnapshotRequest) -> None:
        """A process is about to handle a Fetch, or one for a slice of a snapshot."""

    def asked(self, node: SeenNode, token: ReplyToken, request: MembershipRequest) -> None:
        """A process is about to handle a request for a change of the quorum."""

    def asking_in_vain(self, token: ReplyToken) -> None:
        """A process is about to get a request of a peer that nobody may grant."""

    def writing_in_vain(self, request: WriteRequest) -> None:
        """A controller is about to get a request of a client that nobody may grant."""

    def handled(
        self, node: SeenNode, request: RequestReceived, update: Update, *, is_due: bool
    ) -> None:
        """A core has handled a request; `is_due` is whether a timer acted in the same step."""

    def noted(self, node: SeenNode, note: Note) -> None:
        """A core has said something; no other node has heard yet of what it has just handled."""

    def answered(
        self, node: SeenNode, token: ReplyToken, request: Request, response: Response
    ) -> None:
        """A request has its answer, whether or not somebody still waits for it."""

    def told(self, request: WriteRequest, reply: object) -> None:
        """A client that asked for what nobody may grant has a reply, or an error, or nothing."""

    def answering(self, node: SeenNode, token: ReplyToken, response: MembershipResponse) -> None:
        """The answer to such a request is about to leave the process."""

    def changing(self, node: SeenNode) -> None:
        """A leader has decided on another set of voters, and is about to write it."""

    def joining(self, node: SeenNode, request: AddRaftVoterRequest) -> None:
        """A process asks to become a voter, of itself."""

    def sending(self, node: SeenNode, part: SnapshotRange) -> None:
        """A slice of a snapshot is about to be sent."""

    def reading(self, node: SeenNode, token: ReplyToken) -> None:
        """A core has begun a current read; what it sends in this step has not left yet."""

    def sending_round(self, node: SeenNode, read_round: int) -> None:
        """The answer to a Fetch, with that round of reads, is about to be sent."""

    def confirming(self, node: SeenNode, token: ReplyToken) -> None:
        """A core says that a current read may be answered."""

    def cleaned(self, node: SeenNode, event: LogCleaned) -> None:
        """Snapshots and segments have been deleted; the process has not been told."""

    def heard_leader(self, node: SeenNode) -> None:
        """A follower has received a Fetch answer of its leader."""
