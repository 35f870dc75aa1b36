"""AlterPartition: the leader of a partition adds replicas to the ISR and removes them.

Checks are in Kafka's order, and the first one that fails determines the error. This controller does
not start reassignments, but logs of Kafka may have them; the change that completes one clears its
fields.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.controller.brokers.registration import sender_problem
from quorate.controller.configs.config_resources import min_insync_replicas
from quorate.controller.decision import Context, Outcome, Proposal, too_large
from quorate.controller.errors import RefusedError
from quorate.controller.features.levels import (
    DIRECTORIES_LEVEL,
    ISR_SHRINK_KEEPS_EPOCH_LEVEL,
    has_eligible_replicas,
    metadata_version,
)
from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.leader_isr_sweep import PassWanted
from quorate.controller.partitions.partition import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
)
from quorate.controller.partitions.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    SLICE_PARTITIONS,
    changed,
    directories_for,
)
from quorate.controller.replication.messages import (
    ANY_BROKER_EPOCH,
    PARTITIONS_MAX,
    AlteredPartition,
    AlteredTopic,
    AlterPartitionReply,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import format_uuid
from quorate.records.metadata import PartitionChangeRecord
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions.partition import Partition
    from quorate.controller.replication.messages import (
        AlterPartition,
        IsrMember,
        PartitionAlteration,
        TopicAlteration,
    )
    from quorate.controller.slices import Slices
    from quorate.controller.topics.image import Topic
    from quorate.records.ids import TopicId


def alter_partitions_in_slices(context: Context, request: AlterPartition) -> Slices[Outcome]:
    """Change partitions one by one, each with a result of its own."""
    # No other decision is made before this one ends, so the image stays the newest.
    image = context.freeze()
    level = metadata_version(image.features)
    problem = sender_problem(image.brokers, request.broker_id, request.broker_epoch)
    if problem is not None:
        # Kafka returns the same error for a broker that is not registered.
        reply = AlterPartitionReply(ErrorCode.STALE_BROKER_EPOCH, problem[1])
        return Outcome(Proposal(level), reply)
    count = sum(len(topic.partitions) for topic in request.topics)
    if count > PARTITIONS_MAX:
        message = f"The request has {count} partitions and may have {PARTITIONS_MAX}; split it."
        return Outcome(Proposal(level), AlterPartitionReply(ErrorCode.INVALID_REQUEST, message))
    alteration = _Alteration(image, request, level)
    topics = yield from alteration.alter_all()
    soft = (PassWanted(),) if alteration.leaves_leaderless else ()
    return Outcome(alteration.proposal, AlterPartitionReply(topics=topics), soft)


@value_type
class _Target:
    """The ISR and the replicas that a partition is to have."""

    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    completes_reassignment: bool


class _Alteration:
    """One valid request in progress."""

    def __init__(self, image: MetadataImage, request: AlterPartition, level: int) -> None:
        self._image = image
        self._request = request
        self._level = level
        self._acceptor = LeaderAcceptor.of(image.brokers)
        self._has_eligible = has_eligible_replicas(image.features)
        self._changed: set[tuple[bytes, int]] = set()
        self._judged = 0
        self.proposal = Proposal(level)
        self.leaves_leaderless = False

    def alter_all(self) -> Slices[tuple[AlteredTopic, ...]]:
        """Propose the changes, with pauses."""
        altered: list[AlteredTopic] = []
        for asked in self._request.topics:
            topic = yield from self._alter(asked)
            altered.append(topic)
        return tuple(altered)

    def _alter(self, asked: TopicAlteration) -> Slices[AlteredTopic]:
        topic = self._image.topics.by_id.get(asked.topic_id)
        results: list[AlteredPartition] = []
        for partition in asked.partitions:
            self._judged += 1
            if self._judged % SLICE_PARTITIONS == 0:
                yield
            try:
                results.append(self._alter_partition(asked.topic_id, topic, partition))
            except RefusedError as refused:
                index = partition.partition_index
                results.append(AlteredPartition(index, refused.error, refused.message))
        return AlteredTopic(asked.topic_id, tuple(results))

    def _alter_partition(
        self, topic_id: TopicId, topic: Topic | None, asked: PartitionAlteration
    ) -> AlteredPartition:
        if topic is None:
            message = f"There is no topic with the id {format_uuid(topic_id)}."
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_ID, message)
        index = asked.partition_index
        partition = self._image.topics.partition(topic.topic_id, index)
        if partition is None:
            message = f"Topic {topic.name!r} has no partition {index}."
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        self._check_epochs(partition, asked)
        if (topic.topic_id, index) in self._changed:
            message = f"Partition {index} occurs twice in the request; name it once."
            raise RefusedError(ErrorCode.INVALID_UPDATE_VERSION, message)
        _check_isr(partition, asked, self._request.broker_id)
        for member in asked.new_isr:
            self._check_eligible(member)
        target = _target(partition, asked)
        record = self._record(topic, index, partition, target, asked.leader_recovery_state)
        if record is None:
            return _result(index, partition)
        if not self.proposal.add((record,)):
            message = too_large(f"The change of partition {index} of topic {topic.name!r}")
            raise RefusedError(ErrorCode.POLICY_VIOLATION, message)
        self._changed.add((topic.topic_id, index))
        after = changed(partition, record)
        self.leaves_leaderless |= after.leader == NO_LEADER
        if after.leader != partition.leader:
            if target.completes_reassignment:
                why = "The ISR is changed, which completes the reassignment"
            else:
                why = f"The replica of broker {partition.leader} is in no directory that it has"
            who = "no broker" if after.leader == NO_LEADER else f"broker {after.leader}"
            message = f"{why}; {who} leads the partition now."
            raise RefusedError(ErrorCode.NEW_LEADER_ELECTED, message)
        return _result(index, after)

    def _check_epochs(self, partition: Partition, asked: PartitionAlteration) -> None:
        leader_epoch, epoch = asked.leader_epoch, asked.partition_epoch
        if leader_epoch > partition.leader_epoch or epoch > partition.partition_epoch:
            message = (
                f"The partition has leader epoch {partition.leader_epoch} and partition epoch"
                f" {partition.partition_epoch}, below {leader_epoch} and {epoch}: this controller"
                " may be one that was replaced; look for the active one."
            )
            raise RefusedError(ErrorCode.NOT_CONTROLLER, message)
        if leader_epoch < partition.leader_epoch:
            message = (
                f"The leader epoch is {partition.leader_epoch}, not {leader_epoch}: follow the log."
            )
            raise RefusedError(ErrorCode.FENCED_LEADER_EPOCH, message)
        if partition.leader != self._request.broker_id:
            message = f"Broker {partition.leader} leads the partition; only its leader may ask."
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        if epoch < partition.partition_epoch:
            message = (
                f"The partition epoch is {partition.partition_epoch}, not {epoch}: follow the log."
            )
            raise RefusedError(ErrorCode.INVALID_UPDATE_VERSION, message)

    def _check_eligible(self, member: IsrMember) -> None:
        broker = self._image.brokers.by_id.get(member.broker_id)
        if broker is None:
            why = "is not registered"
        elif broker.registration.in_controlled_shutdown:
            why = "is shutting down"
        elif broker.registration.fenced:
            why = "is fenced"
        elif member.broker_epoch not in (ANY_BROKER_EPOCH, broker.registration.broker_epoch):
            why = f"is registered with epoch {broker.registration.broker_epoch} by now"
        else:
            return
        message = f"Broker {member.broker_id} {why} and cannot be in sync."
        raise RefusedError(ErrorCode.INELIGIBLE_REPLICA, message)

    def _record(
        self, topic: Topic, index: int, partition: Partition, target: _Target, recovery: int
    ) -> PartitionChangeRecord | None:
        """The change as a record; None if nothing changes."""
        isr = None if target.isr == partition.isr else target.isr
        moved = self._moved(partition, target)
        replicas = None if target.replicas == partition.replicas else target.replicas
        recovers = recovery != partition.leader_recovery_state
        leader = self._leader(moved, target)
        is_same = isr is None and leader == NO_LEADER_CHANGE
        if is_same and not recovers and not target.completes_reassignment:
            return None
        eligible, last_known = self._eligible(topic, partition, target)
        done = () if target.completes_reassignment else None
        directories = None
        if self._level >= DIRECTORIES_LEVEL and (replicas is not None or moved is not partition):
            directories = directories_for(moved, target.replicas)
        return PartitionChangeRecord(
            partition_id=index,
            topic_id=topic.topic_id,
            isr=isr,
            leader=leader,
            replicas=replicas,
            removing_replicas=done if partition.removing_replicas else None,
            adding_replicas=done if partition.adding_replicas else None,
            leader_recovery_state=recovery if recovers else NO_RECOVERY_CHANGE,
            directories=directories,
            eligible_leader_replicas=eligible,
            last_known_elr=last_known,
        )

    def _moved(self, partition: Partition, target: _Target) -> Partition:
        """The partition with the directories of the replicas that join the ISR.

        A replica that was copied to a new disk joins with the current directory of its broker;
        Kafka's brokers report it themselves (AssignReplicasToDirs). Nothing is known about the
        directories of other replicas.
        """
        directories = list(partition.directories)
        for place, id_ in enumerate(partition.replicas):
            broker = self._image.brokers.by_id.get(id_)
            joins = id_ in target.isr and id_ not in partition.isr
            if joins and broker is not None and not broker.has_online(directories[place]):
                directories[place] = broker.directory_of_new_replicas
        if tuple(directories) == partition.directories:
            return partition
        return replace(partition, directories=tuple(directories))

    def _leader(self, partition: Partition, target: _Target) -> int:
        """The leader that the change elects; the current one if only its epoch has to rise."""
        leader = next(
            (
                id_
                for id_ in (partition.leader, *target.replicas)
                if id_ in target.isr and self._acceptor.accepts(partition, id_)
            ),
            NO_LEADER,
        )
        if leader != partition.leader:
            return leader
        # Removed replicas have to be notified, and before 3.6 a broker noticed that its ISR had
        # shrunk only by a new leader epoch (KAFKA-15021).
        shrinks = not set(partition.isr) <= set(target.isr)
        rises = not set(partition.replicas) <= set(target.replicas) or (
            shrinks and self._level < ISR_SHRINK_KEEPS_EPOCH_LEVEL
        )
        return partition.leader if rises else NO_LEADER_CHANGE

    def _eligible(
        self, topic: Topic, partition: Partition, target: _Target
    ) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
        """The eligible and the last known eligible replicas; None for no change.

        With enough replicas in sync, or without the feature, no other replica is eligible. With
        fewer, none becomes eligible, since eligibility could not be revoked after an unclean
        shutdown of its broker.
        """
        old, last_known = partition.eligible_leader_replicas, partition.last_known_elr
        if not (old or last_known):
            return None, None
        minimum = min_insync_replicas(self._image, topic.name, len(target.replicas))
        if not self._has_eligible or len(target.isr) >= minimum:
            return () if old else None, () if last_known else None
        left = tuple(id_ for id_ in old if id_ in target.replicas and id_ not in target.isr)
        return None if left == old else left, None


def _check_isr(partition: Partition, asked: PartitionAlteration, leader: int) -> None:
    """Raise RefusedError for an ISR or a recovery state that no partition can have."""
    ids = [member.broker_id for member in asked.new_isr]
    recovery = asked.leader_recovery_state
    if len(set(ids)) < len(ids) or not set(ids) <= set(partition.replicas):
        problem = (
            f"The new ISR {ids} has to be of the replicas {list(partition.replicas)}, each once."
        )
    elif leader not in ids:
        problem = f"The new ISR {ids} lacks the leader {leader}."
    elif recovery not in (RECOVERED, RECOVERING):
        problem = f"The leader recovery state is {recovery}; give {RECOVERED} or {RECOVERING}."
    elif recovery == RECOVERING and len(ids) > 1:
        problem = f"The new ISR {ids} has more than the leader, which is recovering."
    elif recovery == RECOVERING and partition.leader_recovery_state == RECOVERED:
        problem = "The leader has recovered; only an election makes it recover again."
    else:
        return
    raise RefusedError(ErrorCode.INVALID_REQUEST, problem)


def _target(partition: Partition, asked: PartitionAlteration) -> _Target:
    """The new ISR and replicas, without those that a completed reassignment removes."""
    isr = tuple(member.broker_id for member in asked.new_isr)
    removing, adding = set(partition.removing_replicas), set(partition.adding_replicas)
    if not removing and not adding:
        return _Target(isr, partition.replicas, completes_reassignment=False)
    left = tuple(id_ for id_ in isr if id_ not in removing)
    replicas = tuple(id_ for id_ in partition.replicas if id_ not in removing)
    is_complete = bool(left) and adding <= set(left)
    if len(adding) < len(removing):
        is_complete = is_complete and set(replicas) <= set(left)
    if not is_complete:
        left, replicas = isr, partition.replicas
    return _Target(left, replicas, completes_reassignment=is_complete)


def _result(index: int, partition: Partition) -> AlteredPartition:
    return AlteredPartition(
        index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
