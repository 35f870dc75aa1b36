"""ElectLeaders: preferred leaders, or any leader if an operator accepts the loss of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.decision import Context, Outcome, Proposal, too_large
from quorate.controller.errors import RefusedError
from quorate.controller.features.levels import metadata_version
from quorate.controller.partitions.bulk_leader_election import lacks_preferred
from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.leader_election import (
    choose_preferred,
    choose_unclean,
    make_record,
)
from quorate.controller.partitions.leader_isr_sweep import CELLS_SLICE
from quorate.controller.partitions.partition import NO_LEADER
from quorate.controller.partitions.records import SLICE_PARTITIONS, changed
from quorate.controller.partitions.rows import PARTITION_ID_MAX
from quorate.controller.replication.messages import (
    PARTITIONS_MAX,
    ElectedLeader,
    ElectionType,
    ElectLeadersReply,
    LeaderElection,
)
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions.partition import Partition
    from quorate.controller.partitions.rows import Bits, PartitionRows
    from quorate.controller.replication.messages import ElectLeaders
    from quorate.controller.slices import Slices
    from quorate.controller.topics.image import Topic


def elect_leaders_in_slices(context: Context, request: ElectLeaders) -> Slices[Outcome]:
    """Elect leaders one by one, each from the state before the request."""
    # No other decision is made before this one ends, so the image stays the newest.
    image = context.freeze()
    election = _Election(image, request.election_type)
    try:
        asked = yield from election.asked(request)
    except RefusedError as refused:
        reply = ElectLeadersReply(refused.error, refused.message)
        return Outcome(Proposal(metadata_version(image.features)), reply)
    results: list[ElectedLeader] = []
    for place, partition in enumerate(asked, start=1):
        results.append(election.elect(partition))
        if place % SLICE_PARTITIONS == 0:
            yield
    return Outcome(election.proposal, ElectLeadersReply(partitions=tuple(results)))


class _Election:
    """One request in progress."""

    def __init__(self, image: MetadataImage, election_type: ElectionType) -> None:
        self._image = image
        self._is_preferred = election_type is ElectionType.PREFERRED
        self._acceptor = LeaderAcceptor.of(image.brokers)
        self._changed: dict[tuple[bytes, int], Partition] = {}
        self.proposal = Proposal(metadata_version(image.features))

    def asked(self, request: ElectLeaders) -> Slices[tuple[LeaderElection, ...]]:
        """The requested partitions, or all that can change.

        Raises RefusedError if there are more than one request may change.
        """
        if not request.every_partition:
            return request.partitions
        if request.partitions:
            message = "Name partitions or ask for every partition, not both."
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        return (yield from self._find_changeable())

    def _find_changeable(self) -> Slices[tuple[LeaderElection, ...]]:
        found: list[LeaderElection] = []
        rows, key = self._image.topics.partitions.rows, 0
        while (part := rows.rows_from(key, CELLS_SLICE)) is not None:
            at = np.flatnonzero(self._can_change(part))
            if len(found) + len(at) > PARTITIONS_MAX:
                message = (
                    f"More than {PARTITIONS_MAX} partitions would change, which is too many for one"
                    " request; name some of them."
                )
                raise RefusedError(ErrorCode.POLICY_VIOLATION, message)
            ids = (part.keys[at] & PARTITION_ID_MAX).tolist()
            for topic_id, partition_id in zip(part.topics_at(at), ids, strict=True):
                name = self._image.topics.by_id[topic_id].name
                found.append(LeaderElection(name, partition_id))
            key = int(part.keys[-1]) + 1
            yield
        return tuple(found)

    def _can_change(self, rows: PartitionRows) -> Bits:
        if self._is_preferred:
            return lacks_preferred(rows, self._acceptor)
        has_candidate = self._acceptor.may_lead(rows, rows.replicas.T).any(axis=0)
        can_change: Bits = (rows.leaders == NO_LEADER) & has_candidate
        return can_change

    def elect(self, asked: LeaderElection) -> ElectedLeader:
        """Propose the change of one partition and return its result."""
        try:
            leader = self._elect(asked)
        except RefusedError as refused:
            partition = self._find(asked)[1]
            leader = NO_LEADER if partition is None else partition.leader
            return ElectedLeader(
                asked.topic, asked.partition, refused.error, refused.message, leader
            )
        return ElectedLeader(asked.topic, asked.partition, leader_id=leader)

    def _find(self, asked: LeaderElection) -> tuple[Topic | None, Partition | None]:
        topic = self._image.topics.by_name_or_none(asked.topic)
        if topic is None:
            return None, None
        return topic, self._image.topics.partition(topic.topic_id, asked.partition)

    def _elect(self, asked: LeaderElection) -> int:
        topic, partition = self._find(asked)
        if topic is None or partition is None:
            what = "topic" if topic is None else f"partition {asked.partition} of topic"
            message = f"There is no {what} {asked.topic!r}."
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        known = self._changed.get((topic.topic_id, asked.partition))
        if known is not None:
            return known.leader
        self._check_needed(partition)
        choose = choose_preferred if self._is_preferred else choose_unclean
        choice = choose(partition, self._acceptor)
        if choice.leader in (partition.leader, NO_LEADER):
            raise self._refuse(partition)
        record = make_record(self._image, topic, asked.partition, partition, choice)
        if not self.proposal.add((record,)):
            message = too_large(f"The election of {asked.topic!r}-{asked.partition}")
            raise RefusedError(ErrorCode.POLICY_VIOLATION, message)
        self._changed[topic.topic_id, asked.partition] = changed(partition, record)
        return choice.leader

    def _check_needed(self, partition: Partition) -> None:
        if self._is_preferred:
            if partition.replicas[:1] == (partition.leader,):
                message = f"The first replica, broker {partition.leader}, leads the partition."
                raise RefusedError(ErrorCode.ELECTION_NOT_NEEDED, message)
        elif partition.leader != NO_LEADER:
            message = f"Broker {partition.leader} leads the partition."
            raise RefusedError(ErrorCode.ELECTION_NOT_NEEDED, message)

    def _refuse(self, partition: Partition) -> RefusedError:
        """The error with the reason why no replica can be elected."""
        if not self._is_preferred:
            message = (
                f"None of the replicas {list(partition.replicas)} is active in a log directory that"
                " its broker registered; start one of them, with its disks."
            )
            return RefusedError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message)
        first = partition.replicas[0] if partition.replicas else NO_LEADER
        if first not in self._acceptor.active:
            why = "not active"
        elif self._acceptor.accepts(partition, first):
            why = "not in sync"
        else:
            why = "in a log directory that it did not register"
        message = f"The first replica, broker {first}, is {why}."
        return RefusedError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, message)
