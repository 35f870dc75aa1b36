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
    from quorate.sim.views import ClusterView, NodeView


class Watch(Invariant):
    """All invariants of one cluster, notified as one."""

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        invariants = [invariant(world) for invariant in ALL]
        for invariant in invariants:
            invariant.watch = self
        # Per hook, the invariants that override it: most override two or three.
        self._listening = {
            hook: [one for one in invariants if getattr(type(one), hook) is not nothing]
            for hook, nothing in vars(Invariant).items()
            if callable(nothing) and not hook.startswith("_")
        }

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        for watcher in self._listening["started"]:
            watcher.started(node, recovered)

    def stopped(self, node: NodeView) -> None:
        for watcher in self._listening["stopped"]:
            watcher.stopped(node)

    def ended(self, node: NodeView, exit_reason: ExitReason, message: str) -> None:
        for watcher in self._listening["ended"]:
            watcher.ended(node, exit_reason, message)

    def refused(self, node: NodeView, error: Exception) -> None:
        for watcher in self._listening["refused"]:
            watcher.refused(node, error)

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        for watcher in self._listening["published"]:
            watcher.published(node, progress)

    def committed(self, node: NodeView, entry: Entry) -> None:
        for watcher in self._listening["committed"]:
            watcher.committed(node, entry)

    def appended(self, node: NodeView, entry: Entry) -> None:
        for watcher in self._listening["appended"]:
            watcher.appended(node, entry)

    def truncating(self, node: NodeView, to: OffsetAndEpoch) -> None:
        for watcher in self._listening["truncating"]:
            watcher.truncating(node, to)

    def voted(self, node: NodeView, epoch: Epoch, candidate: ReplicaKey) -> None:
        for watcher in self._listening["voted"]:
            watcher.voted(node, epoch, candidate)

    def on_pre_vote_granted(self, node: NodeView, epoch: Epoch, nominee: ReplicaKey) -> None:
        for watcher in self._listening["on_pre_vote_granted"]:
            watcher.on_pre_vote_granted(node, epoch, nominee)

    def saving(self, node: NodeView, state: ElectionState) -> None:
        for watcher in self._listening["saving"]:
            watcher.saving(node, state)

    def on_state_lost(self, node: NodeView, state: ElectionState) -> None:
        for watcher in self._listening["on_state_lost"]:
            watcher.on_state_lost(node, state)

    def decided(self, node: NodeView, request: WriteRequest, decision: Decision) -> None:
        for watcher in self._listening["decided"]:
            watcher.decided(node, request, decision)

    def expired(self, node: NodeView, decision: Decision) -> None:
        for watcher in self._listening["expired"]:
            watcher.expired(node, decision)

    def on_forged_epoch(self, epoch: Epoch) -> None:
        for watcher in self._listening["on_forged_epoch"]:
            watcher.on_forged_epoch(epoch)

    def on_tick(self) -> None:
        for watcher in self._listening["on_tick"]:
            watcher.on_tick()

    def installing(self, node: NodeView, snapshot_id: OffsetAndEpoch) -> None:
        for watcher in self._listening["installing"]:
            watcher.installing(node, snapshot_id)

    def snapshot(self, node: NodeView, snapshot_id: OffsetAndEpoch) -> None:
        for watcher in self._listening["snapshot"]:
            watcher.snapshot(node, snapshot_id)

    def acknowledging(self, node: NodeView, offset: Offset) -> None:
        for watcher in self._listening["acknowledging"]:
            watcher.acknowledging(node, offset)

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        for watcher in self._listening["fetching"]:
            watcher.fetching(node, request)

    def asked(self, node: NodeView, token: ReplyToken, request: MembershipRequest) -> None:
        for watcher in self._listening["asked"]:
            watcher.asked(node, token, request)

    def before_invalid_peer_request(self, token: ReplyToken) -> None:
        for watcher in self._listening["before_invalid_peer_request"]:
            watcher.before_invalid_peer_request(token)

    def before_invalid_client_request(self, request: WriteRequest) -> None:
        for watcher in self._listening["before_invalid_client_request"]:
            watcher.before_invalid_client_request(request)

    def handled(
        self, node: NodeView, request: RequestReceived, update: Update, *, is_due: bool
    ) -> None:
        for watcher in self._listening["handled"]:
            watcher.handled(node, request, update, is_due=is_due)

    def noted(self, node: NodeView, trace_event: TraceEvent) -> None:
        for watcher in self._listening["noted"]:
            watcher.noted(node, trace_event)

    def answered(
        self, node: NodeView, token: ReplyToken, request: Request, response: Response
    ) -> None:
        for watcher in self._listening["answered"]:
            watcher.answered(node, token, request, response)

    def on_client_reply(self, request: WriteRequest, reply: object) -> None:
        for watcher in self._listening["on_client_reply"]:
            watcher.on_client_reply(request, reply)

    def answering(self, node: NodeView, token: ReplyToken, response: MembershipResponse) -> None:
        for watcher in self._listening["answering"]:
            watcher.answering(node, token, response)

    def changing(self, node: NodeView) -> None:
        for watcher in self._listening["changing"]:
            watcher.changing(node)

    def joining(self, node: NodeView, request: AddRaftVoterRequest) -> None:
        for watcher in self._listening["joining"]:
            watcher.joining(node, request)

    def sending(self, node: NodeView, part: SnapshotRange) -> None:
        for watcher in self._listening["sending"]:
            watcher.sending(node, part)

    def reading(self, node: NodeView, token: ReplyToken) -> None:
        for watcher in self._listening["reading"]:
            watcher.reading(node, token)

    def sending_round(self, node: NodeView, read_round: int) -> None:
        for watcher in self._listening["sending_round"]:
            watcher.sending_round(node, read_round)

    def confirming(self, node: NodeView, token: ReplyToken) -> None:
        for watcher in self._listening["confirming"]:
            watcher.confirming(node, token)

    def cleaned(self, node: NodeView, event: LogCleaned) -> None:
        for watcher in self._listening["cleaned"]:
            watcher.cleaned(node, event)

    def heard_leader(self, node: NodeView) -> None:
        for watcher in self._listening["heard_leader"]:
            watcher.heard_leader(node)
