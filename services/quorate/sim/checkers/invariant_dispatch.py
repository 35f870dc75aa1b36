"""Dispatches hooks to all invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.invariants import ALL
from quorate.sim.invariants.invariant import Invariant

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


class Watch(Invariant):
    """All invariants of one world, told as one."""

    def __init__(self, world: SeenWorld) -> None:
        super().__init__(world)
        invariants = [invariant(world) for invariant in ALL]
        for invariant in invariants:
            invariant.watch = self
        # Of each hook only those who listen to it: most invariants have two or three.
        self._listening = {
            hook: [one for one in invariants if getattr(type(one), hook) is not nothing]
            for hook, nothing in vars(Invariant).items()
            if callable(nothing) and not hook.startswith("_")
        }

    def started(self, node: SeenNode, recovered: RecoveredState) -> None:
        for watcher in self._listening["started"]:
            watcher.started(node, recovered)

    def stopped(self, node: SeenNode) -> None:
        for watcher in self._listening["stopped"]:
            watcher.stopped(node)

    def ended(self, node: SeenNode, exit_reason: ExitReason, message: str) -> None:
        for watcher in self._listening["ended"]:
            watcher.ended(node, exit_reason, message)

    def refused(self, node: SeenNode, error: Exception) -> None:
        for watcher in self._listening["refused"]:
            watcher.refused(node, error)

    def published(self, node: SeenNode, progress: PublishProgress) -> None:
        for watcher in self._listening["published"]:
            watcher.published(node, progress)

    def committed(self, node: SeenNode, entry: Entry) -> None:
        for watcher in self._listening["committed"]:
            watcher.committed(node, entry)

    def appended(self, node: SeenNode, entry: Entry) -> None:
        for watcher in self._listening["appended"]:
            watcher.appended(node, entry)

    def truncating(self, node: SeenNode, to: OffsetAndEpoch) -> None:
        for watcher in self._listening["truncating"]:
            watcher.truncating(node, to)

    def voted(self, node: SeenNode, epoch: Epoch, candidate: ReplicaKey) -> None:
        for watcher in self._listening["voted"]:
            watcher.voted(node, epoch, candidate)

    def promised(self, node: SeenNode, epoch: Epoch, nominee: ReplicaKey) -> None:
        for watcher in self._listening["promised"]:
            watcher.promised(node, epoch, nominee)

    def saving(self, node: SeenNode, state: ElectionState) -> None:
        for watcher in self._listening["saving"]:
            watcher.saving(node, state)

    def forgot(self, node: SeenNode, state: ElectionState) -> None:
        for watcher in self._listening["forgot"]:
            watcher.forgot(node, state)

    def decided(self, node: SeenNode, request: WriteRequest, decision: Decision) -> None:
        for watcher in self._listening["decided"]:
            watcher.decided(node, request, decision)

    def expired(self, node: SeenNode, decision: Decision) -> None:
        for watcher in self._listening["expired"]:
            watcher.expired(node, decision)

    def claimed(self, epoch: Epoch) -> None:
        for watcher in self._listening["claimed"]:
            watcher.claimed(epoch)

    def looked(self) -> None:
        for watcher in self._listening["looked"]:
            watcher.looked()

    def installing(self, node: SeenNode, snapshot_id: OffsetAndEpoch) -> None:
        for watcher in self._listening["installing"]:
            watcher.installing(node, snapshot_id)

    def snapshot(self, node: SeenNode, snapshot_id: OffsetAndEpoch) -> None:
        for watcher in self._listening["snapshot"]:
            watcher.snapshot(node, snapshot_id)

    def acknowledging(self, node: SeenNode, offset: Offset) -> None:
        for watcher in self._listening["acknowledging"]:
            watcher.acknowledging(node, offset)

    def fetching(self, node: SeenNode, request: FetchRequest | FetchSnapshotRequest) -> None:
        for watcher in self._listening["fetching"]:
            watcher.fetching(node, request)

    def asked(self, node: SeenNode, token: ReplyToken, request: MembershipRequest) -> None:
        for watcher in self._listening["asked"]:
            watcher.asked(node, token, request)

    def asking_in_vain(self, token: ReplyToken) -> None:
        for watcher in self._listening["asking_in_vain"]:
            watcher.asking_in_vain(token)

    def writing_in_vain(self, request: WriteRequest) -> None:
        for watcher in self._listening["writing_in_vain"]:
            watcher.writing_in_vain(request)

    def handled(
        self, node: SeenNode, request: RequestReceived, update: Update, *, is_due: bool
    ) -> None:
        for watcher in self._listening["handled"]:
            watcher.handled(node, request, update, is_due=is_due)

    def noted(self, node: SeenNode, trace_event: TraceEvent) -> None:
        for watcher in self._listening["noted"]:
            watcher.noted(node, trace_event)

    def answered(
        self, node: SeenNode, token: ReplyToken, request: Request, response: Response
    ) -> None:
        for watcher in self._listening["answered"]:
            watcher.answered(node, token, request, response)

    def told(self, request: WriteRequest, reply: object) -> None:
        for watcher in self._listening["told"]:
            watcher.told(request, reply)

    def answering(self, node: SeenNode, token: ReplyToken, response: MembershipResponse) -> None:
        for watcher in self._listening["answering"]:
            watcher.answering(node, token, response)

    def changing(self, node: SeenNode) -> None:
        for watcher in self._listening["changing"]:
            watcher.changing(node)

    def joining(self, node: SeenNode, request: AddRaftVoterRequest) -> None:
        for watcher in self._listening["joining"]:
            watcher.joining(node, request)

    def sending(self, node: SeenNode, part: SnapshotRange) -> None:
        for watcher in self._listening["sending"]:
            watcher.sending(node, part)

    def reading(self, node: SeenNode, token: ReplyToken) -> None:
        for watcher in self._listening["reading"]:
            watcher.reading(node, token)

    def sending_round(self, node: SeenNode, read_round: int) -> None:
        for watcher in self._listening["sending_round"]:
            watcher.sending_round(node, read_round)

    def confirming(self, node: SeenNode, token: ReplyToken) -> None:
        for watcher in self._listening["confirming"]:
            watcher.confirming(node, token)

    def cleaned(self, node: SeenNode, event: LogCleaned) -> None:
        for watcher in self._listening["cleaned"]:
            watcher.cleaned(node, event)

    def heard_leader(self, node: SeenNode) -> None:
        for watcher in self._listening["heard_leader"]:
            watcher.heard_leader(node)
