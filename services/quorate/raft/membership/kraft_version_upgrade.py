"""UpdateFeatures at the leader: upgrades kraft.version from 0 to 1, never back (KIP-853).

KRaftVersion and the voters, now with directory ids, are in one batch of the log, so that no replica
ever has one without the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.membership.rejection import Rejection
from quorate.raft.messages import MembershipResponse, Reason, UpdateFeaturesRequest
from quorate.raft.roles import Leader, PendingChange
from quorate.raft.trace_events import TraceEventKind
from quorate.records.control import KRaftVersion
from quorate.records.errors import ErrorCode
from quorate.records.voters import KRAFT_VERSION, KRAFT_VERSION_MAX, Voter, VoterSet

if TYPE_CHECKING:
    from quorate.raft.membership.voter_changes import VoterChanges
    from quorate.raft.trace_events import Value
    from quorate.records.ids import ReplyToken


class KRaftVersionUpgrade:
    """UpdateFeatures at a leader."""

    def __init__(self, voter_changes: VoterChanges) -> None:
        self.voter_changes = voter_changes
        self.replica = voter_changes.replica
        # The highest kraft.version that every registered broker can read; None without brokers.
        self.brokers_max_kraft_version: int | None = None

    def handle(self, token: ReplyToken, request: UpdateFeaturesRequest) -> None:
        """Append the version if all voters and brokers support it."""
        replica = self.replica
        target = request.kraft_version
        obstacle = self.voter_changes.check_leader(None) or self._why_impossible(target)
        # A repeated request while the upgrade is in progress must not get the answer that it is
        # complete.
        is_done = (
            target == replica.log.kraft_version
            and replica.log.kraft_version_offset < replica.high_watermark
        )
        if obstacle is None and not is_done:
            assert isinstance(replica.role, Leader)
            obstacle = (
                self.voter_changes.check_epoch_committed(replica.role)
                or self.voter_changes.check_no_pending_change(replica.role)
                or self._why_unsupported(replica.role, target)
            )
        if obstacle is not None:
            self.voter_changes.reject(token, obstacle)
            return
        if request.validate_only or is_done:
            replica.out.reply(token, MembershipResponse(ErrorCode.NONE, "", replica.leader_info))
            return
        assert isinstance(replica.role, Leader)
        what = f"upgrade {KRAFT_VERSION} to {target}"
        about: dict[str, Value] = {"change": "upgrade", "kraft_version": target}
        replica.out.note(
            TraceEventKind.CHANGE_APPENDED,
            f"{what}: appended at offset {replica.log.end.offset}",
            **about,
            offset=replica.log.end.offset,
        )
        deadline = replica.timers.after(replica.config.request_timeout_ms)
        voters = VoterSet.of(self._entries(replica.role))
        pending = PendingChange(token, what, deadline, about)
        self.voter_changes.append(pending, KRaftVersion(target), voters=voters)

    def _why_impossible(self, target: int) -> Rejection | None:
        replica = self.replica
        if target < replica.log.kraft_version:
            text = (
                f"{KRAFT_VERSION} is {replica.log.kraft_version} and does not go back to "
                f"{target}: the "
                "log holds records that only this version reads"
            )
        elif target > KRAFT_VERSION_MAX:
            text = (
                f"{KRAFT_VERSION} {target} is not known: this release supports up to "
                f"{KRAFT_VERSION_MAX}"
            )
        else:
            return None
        return Rejection(ErrorCode.INVALID_UPDATE_VERSION, Reason.INVALID_UPDATE_VERSION, text)

    def _entries(self, role: Leader) -> list[Voter]:
        replica = self.replica
        own = Voter(replica.key, replica.config.endpoints)
        updates = {**role.updates, replica.node_id: own}
        return [updates.get(v.key.node_id, v) for v in replica.voters]

    def _why_unsupported(self, role: Leader, target: int) -> Rejection | None:
        silent = [v.key.node_id for v in self._entries(role) if v.key.directory_id is None]
        if silent:
            text = (
                f"voters {silent} have not told this leader their directory ids: see that they run "
                "this release and fetch, then try again"
            )
            return Rejection(ErrorCode.INVALID_UPDATE_VERSION, Reason.DIRECTORY_ID_UNKNOWN, text)
        old = [
            v.key.node_id
            for v in self._entries(role)
            if not v.kraft_version_min <= target <= v.kraft_version_max
        ]
        if old:
            text = f"voters {old} do not support {KRAFT_VERSION} {target}: upgrade them first"
            return Rejection(ErrorCode.INVALID_UPDATE_VERSION, Reason.VOTER_UNSUPPORTED, text)
        if self.brokers_max_kraft_version is not None and self.brokers_max_kraft_version < target:
            text = (
                f"a registered broker supports {KRAFT_VERSION} up to "
                f"{self.brokers_max_kraft_version} only: "
                "upgrade or unregister it first"
            )
            return Rejection(ErrorCode.INVALID_UPDATE_VERSION, Reason.VOTER_UNSUPPORTED, text)
        return None
