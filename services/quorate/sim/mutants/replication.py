"""Mutants of acknowledgement, high watermark, divergence and reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.core import RaftCore
from quorate.raft.messages import FetchRequest, ReadResponse
from quorate.raft.replication.fetch_responder import FetchResponder
from quorate.raft.replication.follower import FollowerReplication
from quorate.raft.replication.high_watermark import CommitState
from quorate.raft.replication.log_state import Diverging, LogState, NeedsSnapshot, Valid
from quorate.raft.replication.read_index import ReadIndex
from quorate.raft.replication.response_validation import FetchResponseValidator
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset, OffsetAndEpoch
from quorate.sim.mutants.mutant import SHORT_TIMEOUTS, Mutant, Patch, constant

if TYPE_CHECKING:
    from quorate.raft.messages import FetchedBatches, SnapshotInfo
    from quorate.raft.replication.fetch_purgatory import ParkedFetch
    from quorate.records.ids import Epoch, Millis, ReplyToken
    from quorate.records.voters import VoterSet

_validate = LogState.validate
_restart_at = LogState.restart_at
_truncate = LogState.truncate
_serve = FetchResponder._serve
_begin = ReadIndex.begin
fetch_request = FollowerReplication.fetch_request
_append_fetched = FollowerReplication._append


def _unflushed_end(self: CommitState) -> Offset:
    return self._log.end.offset


def _minority_end(self: CommitState, role: Leader) -> Offset:
    ends = sorted((self.flushed_end_of(role, v) for v in self._log.voter_set), reverse=True)
    return ends[max(0, len(ends) // 2 - 1)]


def _overlook(self: LogState, offset: Offset, epoch: Epoch) -> Valid | Diverging | NeedsSnapshot:
    verdict = _validate(self, offset, epoch)
    if isinstance(verdict, Diverging) and offset <= self.end.offset:
        return Valid()
    return verdict


def _cut_whole_epoch(self: LogState, diverging: OffsetAndEpoch) -> OffsetAndEpoch:
    starts = [entry.start_offset for entry in self.epochs if entry.epoch <= diverging.epoch]
    offset = max(self.log_start, starts[-1] if starts else self.log_start)
    return OffsetAndEpoch(epoch=self.epoch_before(offset), offset=offset)


def _forget_epoch(
    self: LogState, snapshot: SnapshotInfo, voters: VoterSet | None, kraft_version: int
) -> None:
    _restart_at(self, snapshot, voters, kraft_version)
    self.epochs = []


def _keep_voters(self: LogState, to: OffsetAndEpoch) -> None:
    voters = self.voters
    _truncate(self, to)
    self.voters = voters


def _serve_view_of_arrival(self: FetchResponder, role: Leader, fetch: ParkedFetch) -> bool:
    """Serve a Fetch, but look up only once per leader term if the replica is a voter."""
    key, voters = fetch.key, self.replica.voters
    views = vars(self).setdefault("views", {})
    if views.get("role") is not role:
        views.clear()
        views["role"] = role
    is_voter = views.setdefault(key, key in voters if key is not None else False)
    fetch.key = voters.voters[0].key if is_voter else None
    try:
        return _serve(self, role, fetch)
    finally:
        fetch.key = key


def _claim_flushed(self: FollowerReplication, max_wait_ms: Millis) -> FetchRequest:
    flushed = self.replica.log.flushed_end
    request = fetch_request(self, max_wait_ms)
    return replace(request, fetch_offset=flushed.offset, last_fetched_epoch=flushed.epoch)


def _answer_at_once(self: ReadIndex, role: Leader) -> None:
    for token in role.reads:
        self.replica.out.reply(
            token,
            ReadResponse(ErrorCode.NONE, self.replica.leader_info, self.replica.high_watermark),
        )
    role.reads.clear()


def _note_last_epoch(self: FollowerReplication, fetched: FetchedBatches) -> None:
    log = self.replica.log
    known = list(log.epochs)
    _append_fetched(self, fetched)
    log.epochs = [*known, *log.epochs[len(known) :][-1:]]


def _keep_version(self: LogState, to: OffsetAndEpoch) -> None:
    versions = self.kraft_versions
    _truncate(self, to)
    self.kraft_versions = versions


def _share_round(self: ReadIndex, token: ReplyToken) -> bool:
    role = self.replica.role
    if isinstance(role, Leader) and self.confirmed_round(role) < role.read_round:
        role.read_round_is_sent = False
    return _begin(self, token)


# Many slow flushes and many truncations, so that a truncation happens during a flush.
_CUT_WHILE_FLUSHING: Final = {
    **SHORT_TIMEOUTS,
    "voters": 3,
    "fsync_us": 20_000,
    "slow_fsync_rate": 0.5,
    "slow_fsync_us": 1_000_000,
    "write_every_ms": 20,
    "partition_every_ms": 1000,
    "partition_ms": 1500,
    "power_every_ms": 3000,
}

BUGS: Final = (
    Mutant(
        "fetch-before-flush",
        "a follower fetches on, and so acknowledges, before its log is flushed",
        (1,),
        (Patch(FollowerReplication, "may_fetch", constant(answer=True)),),
    ),
    Mutant(
        "leader-counts-unflushed",
        "the leader counts itself for what it has not flushed",
        (1,),
        (Patch(CommitState, "local_flushed_end", _unflushed_end),),
    ),
    Mutant(
        "no-epoch-start-rule",
        "a leader commits records of earlier epochs before one of its own",
        (1, 2),
        (Patch(CommitState, "covers_own_epoch", constant(answer=True)),),
    ),
    Mutant(
        "minority-commits",
        "the high watermark is what one voter less than a majority has",
        (1, 2),
        (Patch(CommitState, "majority_flushed_end", _minority_end),),
    ),
    Mutant(
        "divergence-ignored",
        "a replica with another epoch at its end is served as if it had the leader's log",
        (12,),
        (Patch(LogState, "validate", _overlook),),
    ),
    Mutant(
        "cut-below-high-watermark",
        "a diverging follower cuts the whole epoch, committed records with it",
        (4, 1),
        (
            Patch(LogState, "truncation_point", _cut_whole_epoch),
            Patch(FetchResponseValidator, "may_truncate", constant(answer=True)),
        ),
    ),
    Mutant(
        "stale-flush-counts",
        "a flush that began before the log was cut counts for what was appended since "
        "(rule log_generation)",
        (13,),
        (
            Patch(RaftCore, "is_current", constant(answer=True)),
            # Followers fetch only when no flush is outstanding. With this patch a follower that
            # acknowledges only flushed records fetches earlier, and may truncate during a flush.
            Patch(FollowerReplication, "may_fetch", constant(answer=True)),
            Patch(FollowerReplication, "fetch_request", _claim_flushed),
        ),
        world=_CUT_WHILE_FLUSHING,
    ),
    Mutant(
        "view-of-arrival",
        "whether a replica is served as a voter is decided at its first Fetch "
        "(rule fetch_view_at_response)",
        (9,),
        (Patch(FetchResponder, "_serve", _serve_view_of_arrival),),
    ),
    Mutant(
        "voters-not-rolled-back",
        "a voter set stays in force although the record that brought it was cut",
        (17,),
        (Patch(LogState, "truncate", _keep_voters),),
    ),
    Mutant(
        "epoch-of-snapshot-forgotten",
        "a log that restarts at a snapshot does not know the epoch of what lies below it",
        (8,),
        (Patch(LogState, "restart_at", _forget_epoch),),
    ),
    Mutant(
        "read-without-quorum",
        "a leader answers current reads without hearing from a majority",
        (4,),
        (Patch(ReadIndex, "_answer_confirmed", _answer_at_once),),
    ),
    Mutant(
        "one-epoch-a-fetch",
        "of the epochs that begin in one fetch a follower notes the last one only",
        (1,),
        (Patch(FollowerReplication, "_append", _note_last_epoch),),
    ),
    Mutant(
        "version-not-rolled-back",
        "kraft.version stays 1 although the upgrade was cut",
        (7,),
        (Patch(LogState, "truncate", _keep_version),),
        world={"kraft_version": 0, "voters": 3, "upgrade_every_ms": 2000},
    ),
    Mutant(
        "read-round-used-twice",
        "a read joins a confirmation round that was sent before it began (rule linearizable_reads)",
        (1,),
        (Patch(ReadIndex, "begin", _share_round),),
    ),
)
