"""Answers Fetch requests at the leader, or parks them until there is data.

Voters may read the complete log and are answered as soon as it grows. Observers may only read
committed records, and are answered in slices, so that a thousand observers do not delay a commit
(rules `fetch_view_at_response`, `linearizable_reads` and `stream_responses`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.identity.log_identity import marks_below
from quorate.raft.messages import FetchResponse, LogRange
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode
from quorate.records.ids import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.raft.replication.fetch_purgatory import ParkedFetch
    from quorate.raft.replication.read_index import ReadIndex
    from quorate.records.ids import Millis, Offset, OffsetAndEpoch, ReplicaKey, ReplyToken


class FetchResponder:
    """Responses to the Fetches of one leadership."""

    def __init__(self, replica: Replica, read_index: ReadIndex) -> None:
        self.replica = replica
        self.read_index = read_index

    def supersede_parked(self, role: Leader, key: ReplicaKey | None) -> None:
        """Answer a replica's older Fetch when a newer one arrives: only one is parked."""
        if key is None:
            return
        older = role.parked.by_replica(key)
        if older is not None:
            role.parked.remove(older.token)
            self.reply(role, older.token)

    def serve_or_park(self, role: Leader, fetch: ParkedFetch, *, by: Millis | None = None) -> None:
        """Send the available data, or park the Fetch for up to its maximum wait time.

        `by` is an earlier limit, if any: the time from which this voter's process counts
        (rule `one_process_per_voter`).
        """
        replica = self.replica
        request = fetch.request
        if self._serve(role, fetch):
            return
        if request.max_wait_ms <= 0 or self._wants_round(role, fetch):
            self.reply(role, fetch.token)
            return
        wait = min(request.max_wait_ms, replica.config.request_timeout_ms // 2)
        if self._wants_high_watermark(role, fetch):
            wait = min(wait, replica.config.high_watermark_linger_ms)
        fetch.deadline = replica.timers.after(wait)
        if by is not None:
            fetch.deadline = min(fetch.deadline, by)
        role.parked.add(fetch)

    def _known_high_watermark(self, role: Leader) -> Offset:
        known = self.replica.commit_state.reportable_high_watermark(role)
        return UNKNOWN_OFFSET if known is None else known

    def _wants_high_watermark(self, role: Leader, fetch: ParkedFetch) -> bool:
        """True if the replica does not know the high watermark yet (KIP-1166).

        A replica that sends none gets it once: it may never send one, and would cause an endless
        loop of answers.
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

    def _wants_round(self, role: Leader, fetch: ParkedFetch) -> bool:
        """True if a Fetch with a newer round is needed: parking this one would only delay that.

        A voter that does not echo the round gets it once: it may never echo one, and would cause an
        endless loop of answers.
        """
        needed, key = self.read_index.needed_round(role), fetch.key
        if fetch.request.read_round >= needed or key is None or key not in self.replica.voters:
            return False
        progress = role.progress.get(key)
        if progress is None or progress.told_round >= needed:
            return False
        progress.told_round = role.read_round
        return True

    def _serve(self, role: Leader, fetch: ParkedFetch) -> bool:
        request = fetch.request
        end = self.replica.commit_state.fetchable_end(fetch.key)
        if request.fetch_offset >= end:
            return False
        bytes_max = min(request.max_bytes, self.replica.config.fetch_max_bytes)
        records = LogRange(start=request.fetch_offset, end=end, bytes_max=bytes_max)
        self.reply(role, fetch.token, records=records)
        return True

    def reply(
        self,
        role: Leader,
        token: ReplyToken,
        *,
        diverging: OffsetAndEpoch | None = None,
        snapshot_id: OffsetAndEpoch | None = None,
        records: LogRange | None = None,
    ) -> None:
        """Answer a Fetch; each response carries the round of the pending reads."""
        replica = self.replica
        role.read_round_is_sent = True
        # The replica may truncate or replace its log because of this answer.
        left = diverging or snapshot_id
        response = FetchResponse(
            error=ErrorCode.NONE,
            leader=replica.leader_info,
            high_watermark=self._known_high_watermark(role),
            log_start_offset=replica.log.log_start,
            diverging=diverging,
            snapshot_id=snapshot_id,
            records=records,
            read_round=role.read_round,
            voters_known=() if left is None else marks_below(replica.log, left.offset),
        )
        replica.out.reply(token, response)

    def _parked_voters(self, role: Leader) -> list[ParkedFetch]:
        """The parked Fetches of the voters of the latest voter set."""
        if not role.parked:
            return []
        found = [role.parked.by_replica(voter.key) for voter in self.replica.voters.voters]
        return [fetch for fetch in found if fetch is not None]

    def answer_parked_voters(self) -> None:
        """Answer the parked voters after an append; observers may not read it before the commit."""
        role = self.replica.role
        if not isinstance(role, Leader):
            return
        for fetch in self._parked_voters(role):
            if self._serve(role, fetch):
                role.parked.remove(fetch.token)

    def flush_parked_voters(self, role: Leader) -> None:
        """Answer the voters' parked Fetches without records: the response carries the round."""
        for fetch in self._parked_voters(role):
            role.parked.remove(fetch.token)
            self.reply(role, fetch.token)

    def answer_on_commit(self, role: Leader) -> None:
        """Answer after a rise of the high watermark: voters now, observers in slices."""
        replica = self.replica
        if not role.parked:
            return
        self.answer_parked_voters()
        linger = replica.timers.after(replica.config.high_watermark_linger_ms)
        for fetch in role.parked.not_due():
            if fetch.request.fetch_offset < replica.high_watermark:
                role.parked.make_due(fetch, replica.timers.now)
            elif self._wants_high_watermark(role, fetch):
                role.parked.answer_by(fetch, linger)
        self._answer_due(role)

    def expire(self, role: Leader) -> None:
        """Answer the Fetches that have reached their deadline."""
        now = self.replica.timers.now
        if role.parked.is_any_due(now):
            for fetch in self._parked_voters(role):
                if fetch.deadline <= now:
                    role.parked.remove(fetch.token)
                    self.reply(role, fetch.token)
            self._answer_due(role)

    def _answer_due(self, role: Leader) -> None:
        for fetch in role.parked.take_due(self.replica.timers.now):
            if not self._serve(role, fetch):
                self.reply(role, fetch.token)
