"""Decides and appends: the controller, elections, voter changes.

Elections and voter changes are control records of the leader, with the contents that the consensus
core writes. Everything is committed as soon as it is appended: a log that agrees with the others
has no records that a leader did not commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.decision import ControllerSettings
from quorate.controller.features.levels import METADATA_VERSION
from quorate.records.batch import encode_batch
from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    encode_control_batch,
)
from quorate.records.ids import DirectoryId, Epoch, NodeId, Offset, OffsetAndEpoch, ReplicaKey
from quorate.records.metadata import METADATA_VERSION_LATEST, FeatureLevelRecord, encode_record
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.sim.log_generator.options import START_MS
from quorate.sim.log_generator.replicas import Replicas
from quorate.sim.log_generator.scenario import SESSION_MS, controllers_of
from quorate.sim.log_generator.stock_records import StockController, controller_registration
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quorate.controller.decision import Decision
    from quorate.controller.image import MetadataImage
    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.records.metadata import MetadataRecord
    from quorate.sim.log_generator.options import WeekOptions
    from quorate.storage.file_system import FileSystem

LISTENER: Final = "CONTROLLER"
# The level that the first release finalises (Kafka 4.1); the next release finalises the latest.
METADATA_VERSION_FIRST: Final = 27
_KRAFT_VERSION: Final = 1
_PORT: Final = 9093
# The minimum time between two batches of the same activity.
_STEP_MS: Final = 2
# The time without a leader after one has crashed.
_GAP_MS: Final = 1800
_TAKEN_TOGETHER: Final = 500
_SOMEBODY: Final = Caller("User:admin")


def bootstrap_records() -> tuple[FeatureLevelRecord, ...]:
    """The records that `quorate storage format` leaves for the first leader."""
    levels = {METADATA_VERSION: METADATA_VERSION_FIRST, "group.version": 1}
    levels |= {"transaction.version": 2}
    return tuple(
        FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()
    )


class LogLeader:
    """The leader; one controller represents all of them, because all replay the same log."""

    def __init__(self, options: WeekOptions, fs: FileSystem, root: str) -> None:
        """Format the directories, without a leader yet."""
        self.now_ms = START_MS
        self.record_count = 0
        self.epoch = Epoch(0)
        self.leader: ReplicaKey | None = None
        self._options = options
        self._random_source = RandomSource(options.seed, "controllers")
        self._topic_ids = RandomSource(options.seed, "topic ids")
        self._end = Offset(0)
        self._has_voters = False
        self.cluster_id = self._random_source.cluster_id()
        bootstrap = bootstrap_records()
        self.controller = StockController(
            ControllerSettings(
                cluster_id=self.cluster_id,
                new_topic_id=self._topic_ids.topic_id,
                default_replication_factor=min(3, options.brokers),
                broker_session_timeout_ms=SESSION_MS,
                # The generator rebalances leaders at times of its own (brokers.py).
                auto_leader_rebalance_enable=False,
            ),
            bootstrap,
        )
        self._who = controllers_of(options)
        self.voters = VoterSet.of(self.new_voter(node) for node in self._who.first)
        self._replicas = Replicas(
            fs, root, options, self.cluster_id, [encode_record(record, 0) for record in bootstrap]
        )
        for node in self._who.written:
            voter = self.voters.by_id(NodeId(node))
            if voter is not None and node != self._who.refilled:
                self._replicas.found(voter.key, self.voters, now_ms=self.now_ms)

    # --- time -------------------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    @property
    def replayed(self) -> Offset:
        """The last offset, up to which all up-to-date replicas have replayed."""
        return Offset(self._end - 1)

    def at(self, now_ms: int) -> None:
        """Advance the clock to `now_ms`, unless it is later already."""
        self.now_ms = max(self.now_ms, now_ms)

    # --- metadata ---------------------------------------------------------------------------------

    def decide(self, request: WriteRequest) -> WriteReply:
        """Send a request to the active controller and commit its decision."""
        decision = self.controller.decide(request, _SOMEBODY, self.now_ms)
        self._append(decision)
        assert decision.reply is not None, "a request has an answer"
        return decision.reply

    def take(self, records: Iterable[MetadataRecord | None]) -> None:
        """Commit records that Kafka's controller would have decided on; None is skipped."""
        found = [record for record in records if record is not None]
        for start in range(0, len(found), _TAKEN_TOGETHER):
            self._append(self.controller.take(found[start : start + _TAKEN_TOGETHER]))

    def settle(self) -> None:
        """Append the leader and ISR changes after broker changes, in slices of one batch each."""
        while True:
            wake_ms = self.controller.wake_at_ms
            if wake_ms is None or wake_ms > self.now_ms:
                return
            decision = self.controller.expire(self.now_ms)
            if decision is not None:
                self._append(decision)

    def _append(self, decision: Decision) -> None:
        if not decision.values:
            return
        assert decision.base_offset == self._end, "decisions leave no gap"
        self._write(self._encoded(decision), len(decision.values))
        self.controller.commit(self._end, self.now_ms)
        self._replicas.maybe_snapshot(self.image, now_ms=self.now_ms)
        self.now_ms += _STEP_MS

    def _encoded(self, decision: Decision) -> bytes:
        return encode_batch(
            decision.values,
            timestamp_ms=self.now_ms,
            base_offset=decision.base_offset,
            epoch=self.epoch,
        )

    def _write(self, data: bytes, count: int) -> None:
        self._end = Offset(self._end + count)
        self.record_count += count
        end = OffsetAndEpoch(epoch=self.epoch, offset=self._end)
        self._replicas.append(data, end, now_ms=self.now_ms)

    def _write_control(self, records: Sequence[ControlRecord]) -> None:
        data = encode_control_batch(
            records, timestamp_ms=self.now_ms, base_offset=self._end, epoch=self.epoch
        )
        self._write(data, len(records))

    # --- the quorum -------------------------------------------------------------------------------

    def elect(
        self, *, is_orderly: bool, gap_ms: int, epochs_lost: int, heir: ReplicaKey | None = None
    ) -> None:
        """Elect another voter, `heir` if possible, after `gap_ms` without a leader."""
        self.at(self.now_ms + gap_ms)
        others = [voter for voter in self.voters if voter.key != self.leader]
        leader = next(
            (voter for voter in others if voter.key == heir),
            self._random_source.random.choice(others),
        )
        # If the others are not a majority, the election needs the vote of the old leader.
        has_all = is_orderly or len(others) < self.voters.majority
        granting = [voter.key.node_id for voter in (self.voters if has_all else others)]
        while len(granting) > self.voters.majority and self._random_source.chance(0.5):
            granting.remove(next(node for node in granting if node != leader.key.node_id))
        self.controller.deactivate()
        self.epoch = Epoch(self.epoch + 1 + epochs_lost)
        self.leader = leader.key
        base_offset = self._end
        ids = tuple(voter.key.node_id for voter in self.voters)
        records: list[ControlRecord] = [LeaderChange(leader.key.node_id, ids, tuple(granting))]
        if not self._has_voters:
            records += [KRaftVersion(_KRAFT_VERSION), KRaftVoters(self.voters)]
            self._has_voters = True
        self._replicas.elected(self.epoch, leader.key, granting)
        self._write_control(records)
        self.controller.replay(
            (),
            base_offset=base_offset,
            end_offset=self._end,
            epoch=self.epoch,
            timestamp_ms=self.now_ms,
        )
        self.now_ms += _STEP_MS
        self._append(self.controller.activate(self.epoch, self._end, self.now_ms))
        self.settle()

    def change_voters(self, voters: VoterSet) -> None:
        """Commit another voter set."""
        self.voters = voters
        self._write_control([KRaftVoters(voters)])
        self.controller.advance(self._end)
        self.controller.commit(self._end, self.now_ms)
        self.now_ms += _STEP_MS

    def new_voter(self, node: int, host: str | None = None) -> Voter:
        """A voter with a new directory id."""
        endpoint = Endpoint(LISTENER, host or f"controller-{node}.kafka.internal", _PORT)
        key = ReplicaKey(NodeId(node), DirectoryId(self._random_source.uuid()))
        return Voter(key, (endpoint,))

    def join(self, node: int) -> None:
        """Let a node with an empty disk catch up as an observer and become a voter."""
        voter = self.new_voter(node)
        assert self.leader is not None, "somebody has to add it"
        if node in self._who.written:
            self._replicas.join(voter.key, self.epoch, self.leader, now_ms=self.now_ms)
        self.change_voters(self.voters.with_voter(voter))
        self.register_controllers(node)

    def leave(self, node: int) -> None:
        """Remove a voter; a leader resigns first, because it must not remove itself."""
        if self.leader is not None and self.leader.node_id == node:
            self.elect(is_orderly=True, gap_ms=50, epochs_lost=0)
        voter = self.voters.by_id(NodeId(node))
        assert voter is not None, f"{node} is a voter"
        self.change_voters(self.voters.without(voter.key))

    def move(self, node: int) -> None:
        """Change the endpoint of a voter."""
        old = self.voters.by_id(NodeId(node))
        assert old is not None, f"{node} is a voter"
        endpoint = Endpoint(LISTENER, f"controller-{node}.new.kafka.internal", _PORT)
        self.change_voters(self.voters.with_voter(Voter(old.key, (endpoint,))))
        self.register_controllers(node)

    def register_controllers(self, *nodes: int) -> None:
        """Append the registrations of controllers that have just started."""
        voters = (voter for voter in self.voters if voter.key.node_id in nodes)
        self.take([controller_registration(voter, self._random_source.uuid()) for voter in voters])

    def raise_metadata_version(self) -> None:
        """Finalise the latest metadata.version, once all brokers run the new release."""
        level = METADATA_VERSION_LATEST
        self.take([FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)])

    def lose_last(self) -> None:
        """Let the last of several directories lead and crash with a batch no other replica has."""
        last = self._replicas.last
        if last is None:
            return
        if self.leader != last:
            self.elect(is_orderly=True, gap_ms=50, epochs_lost=0, heir=last)
        change = ConfigChange("num.network.threads", AlterOperation.SET, "4")
        everybody = ConfigAlteration(ConfigResource(ResourceType.BROKER, ""), (change,))
        request = IncrementalAlterConfigs((everybody,))
        decision = self.controller.decide(request, _SOMEBODY, self.now_ms)
        end = OffsetAndEpoch(epoch=self.epoch, offset=decision.end_offset)
        data = self._encoded(decision)
        self._replicas.cut_off(last.node_id, data, end, now_ms=self.now_ms)
        self.elect(is_orderly=False, gap_ms=_GAP_MS, epochs_lost=0)

    def close(self) -> None:
        self._replicas.close()
