"""Mutants that wait for ever or never retry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.election.campaign import Campaign
from quorate.raft.leader_eligibility import LeaderEligibility
from quorate.raft.replication.leader import LeaderReplication
from quorate.raft.replication.leader_contact import LeaderContact
from quorate.raft.request_manager import RequestManager
from quorate.raft.roles import Leader, Resigned
from quorate.server.driver.barriers import Barriers
from quorate.server.driver.wakeup_timer import WakeupTimer
from quorate.sim.mutants.mutant import SHORT_TIMEOUTS, Mutant, Patch, constant

if TYPE_CHECKING:
    import asyncio

    from quorate.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse
    from quorate.records.ids import Epoch, Millis


_NEVER_MS: Final = 1 << 40

_set = WakeupTimer.set
_end = Barriers._end
_expired = RequestManager.expired
_refused = LeaderContact.on_error_response
_expire_elections = Campaign.expire
_expire_leading = LeaderReplication.expire
_handle_fetch_snapshot = LeaderReplication.handle_fetch_snapshot


def _lead_on(self: LeaderReplication) -> None:
    if isinstance(self.replica.role, Leader):
        self.replica.role.check_quorum.restart(self.replica.timers.after(_NEVER_MS))
    _expire_leading(self)


def _stay_resigned(self: Campaign) -> None:
    if isinstance(self.replica.role, Resigned):
        self.replica.role.election_deadline = self.replica.timers.after(_NEVER_MS)
    _expire_elections(self)


def _ask_once(self: Campaign) -> Millis:
    return self.replica.timers.after(_NEVER_MS)


def _stand_on(self: Barriers, task: asyncio.Task[None]) -> None:
    stood = self.is_standing
    _end(self, task)
    self.is_standing = stood


def _hear_no_download(
    self: LeaderReplication, request: FetchSnapshotRequest
) -> FetchSnapshotResponse:
    role = self.replica.role
    if not isinstance(role, Leader):
        return _handle_fetch_snapshot(self, request)
    before = role.check_quorum
    role.check_quorum = replace(before, fetched=dict(before.fetched))
    answer = _handle_fetch_snapshot(self, request)
    role.check_quorum = before
    return answer


def _wait_on(self: LeaderEligibility, epoch: Epoch) -> bool:
    del epoch
    return self.is_disk_stalled or not self.is_loaded


def _keep_the_later(self: WakeupTimer) -> None:
    if self._timer is None:
        _set(self)


# Some of the three voters are often unavailable, or behind the log start and downloading a
# snapshot for long.
_LONG_DOWNLOADS: Final = {
    **SHORT_TIMEOUTS,
    "voters": 3,
    "observers": 0,
    "duration_ms": 20_000,
    "delay_us": 10_000,
    "kill_every_ms": 1200,
    "restart_ms": 2500,
    "write_every_ms": 20,
    "record_bytes": 300,
    "chunk_bytes": 64,
    "segment_bytes": 1024,
    "snapshot_every_records": 10,
    "retention_bytes": 500,
}

BUGS: Final = (
    Mutant(
        "leads-without-a-quorum",
        "a leader leads on although no majority fetches",
        (8,),
        (Patch(LeaderReplication, "expire", _lead_on),),
    ),
    Mutant(
        "resigned-for-ever",
        "a leader that resigned waits for a successor without an end",
        (1,),
        (Patch(Campaign, "expire", _stay_resigned),),
    ),
    Mutant(
        "pre-vote-asked-once",
        "a voter that has lost a pre-vote asks for no other one",
        (42,),
        (Patch(Campaign, "_draw_retry", _ask_once),),
    ),
    Mutant(
        "stands-for-ever",
        "a driver whose disk took too long once answers nobody any more (rule disk_call_deadline)",
        (1,),
        (Patch(Barriers, "_end", _stand_on),),
    ),
    Mutant(
        "later-timer-kept",
        "the driver does not wake up earlier than it was to, whatever the core says",
        (1795522677224,),
        (Patch(WakeupTimer, "set", _keep_the_later),),
    ),
    Mutant(
        "repeat-not-armed",
        "no timer is set for the moment at which a voter is asked for its vote once more",
        (1,),
        (Patch(RequestManager, "resend_deadlines", constant(answer=())),),
    ),
    Mutant(
        "downloads-count-for-nothing",
        "a voter that fetches a snapshot is not heard by its leader (KIP-630)",
        (10, 1),
        (Patch(LeaderReplication, "handle_fetch_snapshot", _hear_no_download),),
        world=_LONG_DOWNLOADS,
    ),
    Mutant(
        "unready-for-ever",
        "a voter whose state machine is behind leaves all elections to others "
        "(rule unready_voter_waits)",
        (4,),
        (Patch(LeaderEligibility, "should_defer_campaign", _wait_on),),
    ),
)
