"""The roles of a replica, the state each role carries, and the table of legal transitions.

Unattached (with or without a vote), Prospective, Candidate, Follower, Leader, Resigned; observers
are Unattached or Follower. `TRANSITIONS` is the complete table, from the start of a process on: any
other change of role is a bug and fails an assertion (`Replica.take_role`). The diagram in
docs/protocol.md is drawn from it.
Sources: Kafka's QuorumState, KIP-595, KIP-996.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.raft.replication.fetch_purgatory import FetchPurgatory
from quorate.records.ids import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from quorate.raft.api import RecordsProposed
    from quorate.raft.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
    from quorate.raft.replication.check_quorum import CheckQuorum
    from quorate.raft.trace_events import Value
    from quorate.records.errors import ErrorCode
    from quorate.records.ids import (
        CallId,
        Epoch,
        Millis,
        NodeId,
        Offset,
        OffsetAndEpoch,
        ReplicaKey,
        ReplyToken,
    )
    from quorate.records.voters import Endpoint, Voter, VoterSet


@dataclass(slots=True)
class Initializing:
    """The process has just started, and has not assumed the role of its recovered state yet."""


@dataclass(slots=True)
class Unattached:
    """Has no leader: searches for one, may have voted, campaigns when its timer expires."""

    election_deadline: Millis


@dataclass(slots=True)
class VoteTally:
    """The voters of a round and their answers; None without an answer yet."""

    votes: dict[NodeId, bool | None]
    majority: int

    @property
    def granted(self) -> int:
        return sum(1 for vote in self.votes.values() if vote)

    @property
    def rejected(self) -> int:
        return sum(1 for vote in self.votes.values() if vote is False)

    @property
    def is_won(self) -> bool:
        return self.granted >= self.majority

    @property
    def is_lost(self) -> bool:
        open_votes = sum(1 for vote in self.votes.values() if vote is None)
        return self.granted + open_votes < self.majority


@dataclass(slots=True)
class Prospective:
    """Requests pre-votes, without raising the epoch (KIP-996).

    `resume_deadline` is the fetch deadline to restore if the round fails, `lease_expiry` the
    expiry of each pre-vote received, `contender_seen_ms` the time of the last request of another
    nominee.
    """

    vote_tally: VoteTally
    election_deadline: Millis
    resume_deadline: Millis | None = None
    lease_expiry: dict[NodeId, Millis] = field(default_factory=dict)
    contender_seen_ms: Millis | None = None


@dataclass(slots=True)
class Candidate:
    """Has raised the epoch, voted for itself, and requests votes."""

    vote_tally: VoteTally
    election_deadline: Millis
    has_lost: bool = False


@dataclass(slots=True)
class SnapshotDownload:
    """A snapshot that is being fetched: the next position, and if it is being installed.

    `first` is its first chunk, which identifies the file; `before` is an unfinished download of a
    snapshot with the same id from an earlier leader.
    """

    snapshot_id: OffsetAndEpoch
    position: int = 0
    is_installing: bool = False
    first: bytes = b""
    size_bytes: int = 0
    before: SnapshotDownload | None = None


@dataclass(slots=True)
class Follower:
    """Fetches from the leader of its epoch.

    `leader_resigned` is set by the leader's EndQuorumEpoch: the leader is no longer live.
    `error_count` are the errors since its last successful response, `last_error` is the latest.
    `is_fetch_failing` is set while no Fetch gets a response.
    """

    leader_id: NodeId
    fetch_deadline: Millis
    has_fetched: bool = False
    leader_resigned: bool = False
    is_fetch_failing: bool = False
    download: SnapshotDownload | None = None
    error_count: int = 0
    last_error: ErrorCode | None = None


@dataclass(slots=True)
class Progress:
    """A leader's view of one replica; `fetch_offset` is that replica's flushed end.

    `last_fetch_ms` is the time of its last Fetch with a log that matches this leader's,
    `last_contact_ms` that of a voter's last Fetch with any log. `caught_up_mark` is the offset
    available to it at the previous Fetch, and `mark_ms` the time of that Fetch.
    `told_high_watermark` is for replicas that send none. `told_round` is the read round that was
    sent to a voter immediately.
    """

    fetch_offset: Offset | None = None
    last_fetch_ms: Millis | None = None
    last_contact_ms: Millis | None = None
    last_caught_up_ms: Millis | None = None
    caught_up_mark: Offset | None = None
    mark_ms: Millis | None = None
    told_high_watermark: Offset = UNKNOWN_OFFSET
    told_round: int = 0
    endpoints: tuple[Endpoint, ...] = ()
    has_fetched: OffsetAndEpoch | None = None


@dataclass(slots=True)
class PendingChange:
    """A voter change that a caller waits for; a leader has one at a time.

    `what` is its description, `trace_fields` its fields. `offset` is the log offset of the new
    voter set; None before it is appended. Until then `request` waits until a majority of the new
    set echoes `read_round` or a later one, at most until `live_by`; with round 0 it does not wait.
    An addition also waits for the answer to `call`, which identifies `voter`.
    """

    token: ReplyToken
    what: str
    deadline: Millis
    trace_fields: dict[str, Value]
    offset: Offset | None = None
    request: AddRaftVoterRequest | RemoveRaftVoterRequest | None = None
    read_round: int = 0
    live_by: Millis | None = None
    call: CallId | None = None
    voter: Voter | None = None


@dataclass(slots=True)
class PendingTransfer:
    """A transfer of leadership to `to`, once that has the complete log and has answered.

    Proposals are held until then. `is_answered` is set once it has answered this leader.
    """

    token: ReplyToken
    to: ReplicaKey
    deadline: Millis
    is_answered: bool = False
    held_proposals: list[RecordsProposed] = field(default_factory=list)


@dataclass(slots=True)
class ShutdownPermit:
    """A voter's permit to stop: until it returns it counts as unavailable, even if it fetches.

    `has_returned` is set by the first Fetch after a silence, which may have been in flight for that
    time.
    """

    given_ms: Millis
    until_ms: Millis
    has_returned: bool = False


@dataclass(slots=True)
class Process:
    """One process that fetches as a voter, identified by its random number.

    See rule `one_process_per_voter`. `first_round` is the read round that began with its first
    Fetch, `echoed` the newest round that it has echoed. `has_ended` is set when the connection of
    its parked Fetch ends.
    """

    number: int
    heard_ms: Millis
    first_round: int = 0
    echoed: int = 0
    endpoints: tuple[Endpoint, ...] = ()
    has_ended: bool = False


@dataclass(slots=True)
class Doubles:
    """The processes that fetched as one voter, the one that takes precedence first.

    `is_clone` is set while two of them are known to run; then the current one is the voter.
    """

    current: int
    processes: list[Process] = field(default_factory=list)
    is_clone: bool = False

    def process(self, number: int) -> Process | None:
        """The process of this number, if it is known."""
        return next((process for process in self.processes if process.number == number), None)

    def is_before_current(self, process: Process) -> bool:
        """True if this process takes precedence over the current one."""
        numbers = [each.number for each in self.processes]
        return numbers.index(process.number) < numbers.index(self.current)


@dataclass(slots=True)
class Leader:
    """Leads its epoch from `epoch_start` on.

    `reads` are the pending linearizable reads, in the order of their rounds: each needs an echo of
    its round from a majority; `read_rounds_echoed` is the newest round that each voter has echoed.
    `updates` are the entries that voters reported at kraft.version 0, where no record can hold
    them. `unconfirmed` are voters that may not be at the address known to this leader, `doubles`
    the processes that have fetched as each voter (rule `one_process_per_voter`).
    """

    epoch_start: Offset
    elected_ms: Millis
    check_quorum: CheckQuorum
    begin_epoch_deadline: Millis
    progress: dict[ReplicaKey, Progress] = field(default_factory=dict)
    parked: FetchPurgatory = field(default_factory=FetchPurgatory)
    reads: dict[ReplyToken, int] = field(default_factory=dict)
    read_round: int = 0
    read_round_is_sent: bool = False
    read_rounds_echoed: dict[ReplicaKey, int] = field(default_factory=dict)
    pending: PendingChange | None = None
    transfer: PendingTransfer | None = None
    updates: dict[NodeId, Voter] = field(default_factory=dict)
    shutdown_permits: dict[ReplicaKey, ShutdownPermit] = field(default_factory=dict)
    unconfirmed: set[ReplicaKey] = field(default_factory=set)
    doubles: dict[ReplicaKey, Doubles] = field(default_factory=dict)

    def begin_round(self) -> int:
        """Return a read round that no response has contained yet."""
        if self.read_round_is_sent or self.read_round == 0:
            self.read_round += 1
            self.read_round_is_sent = False
        return self.read_round

    def known(self, high_watermark: Offset) -> Offset | None:
        """The high watermark to report: None until it has committed in its own epoch.

        Until then more records may be committed than this leader knows.
        """
        return high_watermark if high_watermark > self.epoch_start else None


@dataclass(slots=True)
class Resigned:
    """Led this epoch, will neither lead nor vote in it again, and notifies the other voters.

    `preferred` is the order in which they should campaign, `recent_fetchers` are the voters that
    acknowledged it. `turn_until` is the time by which the first one has to acknowledge it; None
    before it was notified.
    """

    election_deadline: Millis
    unacknowledged: dict[NodeId, None]
    preferred: tuple[ReplicaKey, ...] = ()
    recent_fetchers: set[NodeId] = field(default_factory=set)
    turn_until: Millis | None = None


Role: TypeAlias = Initializing | Unattached | Prospective | Candidate | Follower | Leader | Resigned

TRANSITIONS: Final[dict[tuple[type, type], str]] = {
    (Initializing, Unattached): "no leader is known, or no way to it",
    (Initializing, Prospective): "the only voter",
    (Initializing, Candidate): "voted for itself before the restart",
    (Initializing, Follower): "the leader before the restart",
    (Initializing, Resigned): "led its epoch before the restart",
    (Unattached, Unattached): "a higher epoch is seen, or a vote is granted",
    (Unattached, Prospective): "election timeout",
    (Unattached, Follower): "a leader with an endpoint is learned",
    (Prospective, Unattached): "a higher epoch, a stop, or pre-vote lost without a leader",
    (Prospective, Candidate): "majority of pre-votes; the epoch rises",
    (Prospective, Follower): "a leader is learned, or pre-vote lost and the last leader is known",
    (Candidate, Unattached): "a higher epoch is seen, or a stop was asked for",
    (Candidate, Prospective): "election timeout",
    (Candidate, Leader): "majority of votes",
    (Candidate, Follower): "a leader is learned",
    (Follower, Unattached): "a higher epoch is seen, or an observer lost its leader",
    (Follower, Prospective): "fetch timeout, or the leader's process is gone",
    (Follower, Follower): "a leader of a higher epoch is learned, or an election is left to others",
    (Leader, Unattached): "a higher epoch is seen",
    (Leader, Follower): "a leader of a higher epoch is learned",
    (Leader, Resigned): "check-quorum, shutdown, a hung disk, removed as a voter, or two quorums",
    (Resigned, Unattached): "a higher epoch is seen, or election timeout; the epoch rises",
    (Resigned, Follower): "a leader of a higher epoch is learned",
}


def role_name(role: Role) -> str:
    """A role's name in logs, metrics and spans; a replica that starts is unattached."""
    kind = Unattached if isinstance(role, Initializing) else type(role)
    return kind.__name__.lower()


@dataclass(slots=True)
class LeaderSuspicion:
    """Suspicion of a dead leader: its stream broke, possibly a connect was refused.

    See rule `early_suspicion`. `campaign_at_ms` is the time to request pre-votes, `probe_at_ms` the
    time of the next probe.
    """

    leader_id: NodeId
    is_connection_refused: bool = False
    campaign_at_ms: Millis | None = None
    probe_at_ms: Millis | None = None
    probe: CallId | None = None


@dataclass(slots=True)
class Abstention:
    """Abstention of a replica (rule `empty_log_abstains`): voters that have answered, and its goal.

    The goal is the offset that its log has to reach: the high watermark that the leader of that
    epoch reported.
    """

    is_on: bool
    heard: set[NodeId] = field(default_factory=set)
    goal: tuple[Epoch, Offset] | None = None

    def unheard(self, own: ReplicaKey, voters: VoterSet) -> list[NodeId]:
        """The other voters that have not answered yet; empty if this voter is not in the set."""
        if own not in voters:
            return []
        ids = (voter.key.node_id for voter in voters)
        return [i for i in ids if i != own.node_id and i not in self.heard]
