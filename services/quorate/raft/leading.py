"""A leader's side of replication: appends, fetches, the high watermark, check-quorum.

A replica's Fetch says what it has flushed; the high watermark is what a majority has, once it
covers a record of the leader's own epoch (seed "KRaft Consensus", LeaderState; rules 3, 4, 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import AppendToLog, RecordsProposed
from quorate.raft.changes import settle
from quorate.raft.leaving import has_leave, heard
from quorate.raft.log_state import Diverging, NeedsSnapshot, Valid
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LogRange,
    ProposalResponse,
)
from quorate.raft.notes import Cause
from quorate.raft.offering import Offering
from quorate.raft.parking import ParkedFetch
from quorate.raft.roles import Leader, Progress
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    UNKNOWN_OFFSET,
    Millis,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyToken,
)

if TYPE_CHECKING:
    from quorate.raft.reads import Reads
    from quorate.raft.replica import Replica
    from quorate.records.control import ControlRecord
    from quorate.records.voters import Endpoint, Voter

# Port, tags and lengths of an endpoint in an answer.
_ENDPOINT_BYTES: Final = 16


class Leading:
    """Serving the log, for one replica."""

    def __init__(self, replica: Replica, reads: Reads) -> None:
        self.r = replica
        self.reads = reads
        self.offering = Offering(replica)

    # --- appends ----------------------------------------------------------------------------------

    def propose(self, event: RecordsProposed) -> None:
        """Append a proposer's batch at once; the disk and the followers work on it side by side."""
        r = self.r
        role = r.role
        if not isinstance(role, Leader) or event.epoch != r.epoch or r.is_stopping:
            r.reply(event.token, ProposalResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, r.leader_info))
            return
        if role.hand_over is not None:
            role.hand_over.held.append(event)
            return
        batch = event.batch
        if not 0 < len(batch.data) <= r.config.batch_bytes_max or batch.record_count < 1:
            r.reply(event.token, ProposalResponse(ErrorCode.INVALID_REQUEST, r.leader_info))
            return
        base = r.log.end.offset
        end = OffsetAndEpoch(epoch=r.epoch, offset=Offset(base + batch.record_count))
        r.emit(AppendToLog(base, end, batch))
        r.log.append(end)
        last = Offset(end.offset - 1)
        r.reply(event.token, ProposalResponse(ErrorCode.NONE, r.leader_info, base, last))
        self.serve_parked()

    def append_voters(self, *records: ControlRecord) -> None:
        """Append control records with a voter set, which is in force at once (KIP-853)."""
        r = self.r
        role = r.role
        assert isinstance(role, Leader)
        r.append_control(*records)
        self._key_anew(role)
        # Rule 5: the new set gets a whole interval before check-quorum judges it.
        role.heard.clear()
        role.check_quorum_deadline = r.check_quorum_deadline()
        role.begin_epoch_deadline = r.now
        # Rule 3: an observer that waits may be a voter now, and its Fetch commits this record.
        self.serve_parked()
        self.update_high_watermark()

    def _key_anew(self, role: Leader) -> None:
        """With kraft.version 1 the voters get directory ids, by which they are known from here."""
        for key, progress in list(role.progress.items()):
            voter = self.r.voters.by_id(key.node_id)
            if key.directory_id is None and voter is not None and voter.key != key:
                del role.progress[key]
                progress.key = voter.key
                role.progress[voter.key] = progress
                if (leave := role.leaves.pop(key, None)) is not None:
                    role.leaves[voter.key] = leave
        role.parked.key_anew(lambda fetch: self._known_key(fetch.request.replica))

    # --- fetches ----------------------------------------------------------------------------------

    def handle_fetch(self, token: ReplyToken, request: FetchRequest) -> None:
        """Answer a Fetch, or park it until there is something to send."""
        r = self.r
        role = r.role
        error = self._reason_to_refuse(request) or self._malformed(request)
        if error is not None or not isinstance(role, Leader):
            error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
            r.reply(token, FetchResponse(error, r.believing.told_with(error)))
            return
        key = self._known_key(request.replica)
        self._release_older(role, key)
        is_voter = key is not None and key in r.voters
        if is_voter and key is not None and request.read_round > 0:
            self.reads.confirm(role, key, request.read_round)
        match r.log.validate(request.fetch_offset, request.last_fetched_epoch):
            case Diverging(end=end):
                self._reply(role, token, diverging=end)
            case NeedsSnapshot(snapshot_id=snapshot_id):
                self._reply(role, token, snapshot_id=snapshot_id)
            case Valid():
                # A replica with another log, or none, does not follow yet: check-quorum is about
                # those who could commit what is appended now.
                self._heard(role, key)
                self._acknowledge(role, key, request, is_voter=is_voter)
                if is_voter:
                    self.update_high_watermark()
                # Committing its own removal ends leadership within this very step.
                if r.role is role:
                    self._serve_or_park(role, ParkedFetch(token, key, request, r.now))
                else:
                    info = r.leader_info
                    r.reply(token, FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, info))

    def _reason_to_refuse(self, request: FetchRequest | FetchSnapshotRequest) -> ErrorCode | None:
        r = self.r
        if request.cluster_id != r.config.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if request.current_leader_epoch < r.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.current_leader_epoch > r.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not isinstance(r.role, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None

    def _malformed(self, request: FetchRequest) -> ErrorCode | None:
        """What no replica of ours asks: records of an epoch to come, or this leader's of itself."""
        is_own = request.replica is not None and request.replica.node_id == self.r.node_id
        if is_own or request.last_fetched_epoch > request.current_leader_epoch:
            return ErrorCode.INVALID_REQUEST
        return None

    def _known_key(self, replica: ReplicaKey | None) -> ReplicaKey | None:
        """The replica by the key that the voter set uses (kraft.version 0 has no directories)."""
        if replica is None:
            return None
        voter = self.r.voters.voter(replica)
        return voter.key if voter is not None else replica

    def _release_older(self, role: Leader, key: ReplicaKey | None) -> None:
        if key is None:
            return
        older = role.parked.of(key)
        if older is not None:
            role.parked.remove(older.token)
            self._reply(role, older.token)

    def _heard(self, role: Leader, key: ReplicaKey | None) -> None:
        """Check-quorum: a majority of the voters that fetch restarts the interval."""
        r = self.r
        if key is None:
            return
        # Last in the order: those that have been silent for longest come first.
        progress = role.progress.pop(key, None)
        is_voter = key in r.voters
        if progress is None:
            progress = Progress(key)
            if not is_voter:
                self._make_room(role)
        if role.leaves:
            heard(r, role, key, progress.last_fetch_ms)
        progress.last_fetch_ms = r.now
        role.progress[key] = progress
        if not is_voter or key.node_id == r.node_id:
            return
        role.heard[key.node_id] = None
        if len(role.heard) + (1 if r.is_voter else 0) >= r.voters.majority:
            role.heard.clear()
            role.check_quorum_deadline = r.check_quorum_deadline()

    def _acknowledge(
        self, role: Leader, key: ReplicaKey | None, request: FetchRequest, *, is_voter: bool
    ) -> None:
        """What the replica has flushed, and when it last had everything that it could have."""
        r = self.r
        if key is None:
            return
        progress = role.progress[key]
        progress.fetch_offset = request.fetch_offset
        endpoints = request.replica_endpoints
        if endpoints != progress.endpoints and (
            _size(endpoints) <= r.config.observer_endpoints_max
        ):
            progress.endpoints = endpoints
        if request.high_watermark >= 0:
            # It sends one: should it know of none later, then it has been started anew.
            progress.told_high_watermark = UNKNOWN_OFFSET
        # Rule 4: observers are never served the leader's end, so theirs is the high watermark.
        available = r.log.end.offset if is_voter else r.high_watermark
        if request.fetch_offset >= available:
            progress.last_caught_up_ms = r.now
        elif progress.mark is not None and request.fetch_offset >= progress.mark:
            # It has what there was when it fetched before: that is when it was caught up.
            progress.last_caught_up_ms = progress.mark_ms
        progress.mark, progress.mark_ms = available, r.now

    def _serve_or_park(self, role: Leader, fetch: ParkedFetch) -> None:
        r = self.r
        request = fetch.request
        if self._serve(role, fetch):
            return
        # A read waits for a Fetch sent later than this one: parking it would delay the read.
        is_needed = (
            self.reads.needs_more_than(role, request.read_round)
            and fetch.key is not None
            and fetch.key in r.voters
        )
        if request.max_wait_ms <= 0 or is_needed:
            self._reply(role, fetch.token)
            return
        wait = min(request.max_wait_ms, r.config.request_timeout_ms // 2)
        if self._wants_high_watermark(role, fetch):
            wait = min(wait, r.config.high_watermark_linger_ms)
        fetch.deadline = r.after(wait)
        role.parked.add(fetch)

    def _known_high_watermark(self, role: Leader) -> Offset:
        known = role.known(self.r.high_watermark)
        return UNKNOWN_OFFSET if known is None else known

    def _wants_high_watermark(self, role: Leader, fetch: ParkedFetch) -> bool:
        """Whether the high watermark alone is news to it (KIP-1166).

        One that sends none is told once: it may never send one, and would be answered without end.
        """
        known, has = self._known_high_watermark(role), fetch.request.high_watermark
        if has >= known:
            return False
        if has >= 0:
            return True
        progress = role.progress.get(fetch.key) if fetch.key is not None else None
        if progress is None or progress.told_high_watermark >= known:
            return False
        progress.told_high_watermark = known
        return True

    def readable_end(self, key: ReplicaKey | None) -> Offset:
        """Rule 3: voters of the latest set get the whole log, others what is committed.

        Decided when a Fetch is answered, never when it arrives.
        """
        if key is not None and key in self.r.voters:
            return self.r.log.end.offset
        return self.r.high_watermark

    def _serve(self, role: Leader, fetch: ParkedFetch) -> bool:
        request = fetch.request
        end = self.readable_end(fetch.key)
        if request.fetch_offset >= end:
            return False
        bytes_max = min(request.max_bytes, self.r.config.fetch_max_bytes)
        records = LogRange(request.fetch_offset, end, bytes_max)
        self._reply(role, fetch.token, records=records)
        return True

    def _reply(
        self,
        role: Leader,
        token: ReplyToken,
        *,
        diverging: OffsetAndEpoch | None = None,
        snapshot_id: OffsetAndEpoch | None = None,
        records: LogRange | None = None,
    ) -> None:
        r = self.r
        role.read_round_is_sent = True
        response = FetchResponse(
            ErrorCode.NONE,
            r.leader_info,
            self._known_high_watermark(role),
            r.log.log_start,
            diverging,
            snapshot_id,
            records,
            role.read_round,
        )
        r.reply(token, response)

    def _parked_voters(self, role: Leader) -> list[ParkedFetch]:
        """The parked Fetches of the voters of the latest set."""
        if not role.parked:
            return []
        found = [role.parked.of(voter.key) for voter in self.r.voters.voters]
        return [fetch for fetch in found if fetch is not None]

    def serve_parked(self) -> None:
        """Something was appended: answer the voters that wait, for observers see it later."""
        role = self.r.role
        if not isinstance(role, Leader):
            return
        for fetch in self._parked_voters(role):
            if self._serve(role, fetch):
                role.parked.remove(fetch.token)

    def release_voters(self, role: Leader) -> None:
        """Answer the voters' parked fetches with nothing: a read wants to hear from them."""
        for fetch in self._parked_voters(role):
            role.parked.remove(fetch.token)
            self._reply(role, fetch.token)

    def _serve_committed(self, role: Leader) -> None:
        """The high watermark has risen: voters are answered now, observers in slices."""
        r = self.r
        if not role.parked:
            return
        self.serve_parked()
        linger = r.after(r.config.high_watermark_linger_ms)
        for fetch in role.parked.idle():
            if fetch.request.fetch_offset < r.high_watermark:
                role.parked.make_due(fetch, r.now)
            elif self._wants_high_watermark(role, fetch):
                role.parked.hasten(fetch, linger)
        self._answer_due(role)

    def _answer_due(self, role: Leader) -> None:
        for fetch in role.parked.take_due(self.r.now):
            if not self._serve(role, fetch):
                self._reply(role, fetch.token)

    def handle_fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """A slice of a snapshot; it counts for check-quorum as a Fetch does (KIP-630)."""
        r = self.r
        role = r.role
        error = self._reason_to_refuse(request)
        if error is not None or not isinstance(role, Leader):
            error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
            return FetchSnapshotResponse(error, r.believing.told_with(error))
        key = self._known_key(request.replica)
        self._heard(role, key)
        return self.offering.answer(request, None if key is None else role.progress[key])

    # --- the high watermark -----------------------------------------------------------------------

    def own_end(self) -> Offset:
        """What the leader counts for itself: only what is on its disk."""
        return self.r.log.flushed

    def replicated_end(self, role: Leader, voter: Voter) -> Offset:
        """What one voter has flushed, as far as this leader knows."""
        if voter.key.node_id == self.r.node_id and voter.key.directory_id in (
            None,
            self.r.key.directory_id,
        ):
            return self.own_end()
        progress = role.progress.get(voter.key)
        if progress is None or progress.fetch_offset is None:
            return Offset(0)
        return progress.fetch_offset

    def majority_end(self, role: Leader) -> Offset:
        """What a majority of the latest set has; a leader outside it does not count itself."""
        ends = [self.replicated_end(role, voter) for voter in self.r.voters.voters]
        ends.sort(reverse=True)
        return ends[len(ends) // 2] if ends else Offset(0)

    def commits_own_epoch(self, role: Leader, end: Offset) -> bool:
        """The epoch-start rule: nothing is committed before a record of the leader's own epoch."""
        return end > role.epoch_start

    def update_high_watermark(self) -> None:
        """Commit what a majority has; tell those who waited for it."""
        r = self.r
        role = r.role
        if not isinstance(role, Leader):
            return
        end = self.majority_end(role)
        if not self.commits_own_epoch(role, end) or not r.advance_high_watermark(end):
            return
        self._serve_committed(role)
        self.reads.committed(role)
        settle(r, role)
        if self.has_left():
            self.resign(Cause.REMOVED, "its own removal is committed")

    def has_left(self) -> bool:
        """Whether this replica is known to be no voter any more."""
        return not self.r.is_voter and self.r.log.voters_offset < self.r.high_watermark

    # --- timers -----------------------------------------------------------------------------------

    def resign(self, cause: Cause, why: str, *, first: ReplicaKey | None = None) -> None:
        """Give up leadership and name the best successors first (KIP-595, EndQuorumEpoch)."""
        role = self.r.role
        if not isinstance(role, Leader):
            return
        others = [voter for voter in self.r.voters if voter.key.node_id != self.r.node_id]
        # A voter that has leave to stop would have to hand over again.
        others.sort(
            key=lambda v: (
                v.key != first,
                has_leave(self.r, role, v.key),
                -self.replicated_end(role, v),
            )
        )
        self.r.become_resigned(tuple(voter.key for voter in others), cause, why)

    def expire(self) -> None:
        """Check the quorum first: nothing may be answered by a leader that lost it (rule 21)."""
        r = self.r
        role = r.role
        if not isinstance(role, Leader):
            return
        if role.check_quorum_deadline <= r.now and not r.is_only_voter:
            why = "no majority of the voters has fetched within the check-quorum interval"
            self.resign(Cause.CHECK_QUORUM, why)
            return
        if r.unflushed_since is not None and self.must_yield():
            age_ms = r.now - r.unflushed_since
            why = f"its disk has not confirmed a flush for {age_ms} ms"
            self.resign(Cause.DISK_HANGS, why)
            return
        if role.parked.is_any_due(r.now):
            for fetch in self._parked_voters(role):
                if fetch.deadline <= r.now:
                    role.parked.remove(fetch.token)
                    self._reply(role, fetch.token)
            self._answer_due(role)

    def must_yield(self) -> bool:
        """Rule 24: followers flush for a leader whose disk hangs, but it must not rely on that.

        An only voter has nobody to lead in its place.
        """
        return self.r.is_disk_hanging and not self.r.is_only_voter

    def _make_room(self, role: Leader) -> None:
        """An observer is a name that anybody may invent: the longest silent one is forgotten."""
        r = self.r
        if len(role.progress) < r.config.observers_max:
            return
        silent = next((key for key in role.progress if key not in r.voters), None)
        if silent is not None:
            del role.progress[silent]

    def forget_observers(self, role: Leader) -> None:
        """Observers that have not fetched for their session time are gone."""
        r = self.r
        oldest = r.now - r.config.observer_session_timeout_ms
        for key, progress in list(role.progress.items()):
            if key not in r.voters and (progress.last_fetch_ms or 0) < oldest:
                del role.progress[key]

    def add_deadlines(self, due: list[Millis]) -> None:
        """When check-quorum, an announcement or a parked Fetch is due."""
        r = self.r
        role = r.role
        if isinstance(role, Leader):
            if not r.is_only_voter:
                due.append(role.check_quorum_deadline)
                flush_deadline = r.flush_deadline
                if flush_deadline is not None:
                    due.append(flush_deadline)
            due.append(role.begin_epoch_deadline)
            answer_ms = role.parked.next_ms()
            if answer_ms is not None:
                due.append(answer_ms)


def _size(endpoints: tuple[Endpoint, ...]) -> int:
    """What these take in DescribeQuorum, about."""
    return sum(len(e.name) + len(e.host) + _ENDPOINT_BYTES for e in endpoints)
