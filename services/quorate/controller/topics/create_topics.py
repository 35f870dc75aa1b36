"""CreateTopics, with replica placement or a manual assignment."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Never

import numpy as np

from quorate.controller.authorization.authorizer import Operation, topic_resource
from quorate.controller.configs.config_definitions import topic_config_problem
from quorate.controller.configs.messages import ResourceType
from quorate.controller.configs.records import config_records
from quorate.controller.decision import Context, Outcome, Proposal, too_large
from quorate.controller.errors import RefusedError
from quorate.controller.features.levels import metadata_version
from quorate.controller.partitions.partition import Partition, is_reserved
from quorate.controller.partitions.records import partition_record
from quorate.controller.partitions.replica_placer import place, place_many_in_slices
from quorate.controller.topics.messages import (
    USE_DEFAULT,
    CreatedTopic,
    CreateTopicsReply,
)
from quorate.controller.topics.new_partition_rows import (
    COLUMNS_MIN,
    NewRows,
    rows_max,
    size_max,
)
from quorate.controller.topics.topic_names import (
    has_similar_form,
    name_problem,
    similar_form,
    similar_problem,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import TopicId, format_uuid
from quorate.records.metadata import TopicRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.partitions.rows import Rows
    from quorate.controller.slices import Slices
    from quorate.controller.topics.image import Topics, TopicsDelta
    from quorate.controller.topics.messages import CreateTopics, NewTopic
    from quorate.records.metadata import MetadataRecord

# Partitions that are placed and encoded between two pauses: about a millisecond.
SLICE_PARTITIONS: Final = 32


class _Creation:
    """One CreateTopics request in progress; the next topics see those accepted so far."""

    def __init__(self, context: Context, request: CreateTopics) -> None:
        self._context = context
        self._settings = context.settings
        view = context.view
        # The registered brokers stay the same while a request is decided.
        self._brokers = view.brokers
        self._level = metadata_version(view.features)
        self._rows = NewRows(self._brokers, self._level)
        self._asked = Counter(topic.name for topic in request.topics)
        self._similar: dict[str, list[str]] = {}
        self._placed = view.topics.partition_count
        # Small topics whose partitions are made together, with their numbers of partitions.
        self._small: list[tuple[TopicId, int]] = []
        self._small_count = self._small_factor = 0
        self.proposal = Proposal(self._level)

    @property
    def _topics(self) -> Topics | TopicsDelta:
        return self._context.view.topics

    def create(self, topic: NewTopic, *, validate_only: bool) -> Slices[CreatedTopic]:
        """Propose one topic, or return its error."""
        if not self._joins_small(topic):
            yield from self.propose_small()
        mark = self.proposal.savepoint()
        try:
            self._check_name(topic.name)
            self._check_configs(topic)
            if topic.assignments:
                yield from self._check_manual(topic)
                partitions, factor = len(topic.assignments), len(topic.assignments[0])
            else:
                partitions, factor = self._size(topic)
            topic_id = self._new_topic_id()
            self._propose(topic, self._head(topic, topic_id))
            if self._is_small(topic):
                self._keep_small(topic, topic_id, partitions, factor)
            elif partitions >= COLUMNS_MIN:
                yield from self._propose_columns(topic, topic_id, partitions, factor)
            else:
                yield from self._propose_records(topic, topic_id)
        except RefusedError as refused:
            self.proposal.rollback_to(mark)
            return CreatedTopic(topic.name, refused.error, refused.message)
        self._placed += partitions
        self._similar.setdefault(similar_form(topic.name), []).append(topic.name)
        return CreatedTopic(
            topic.name,
            topic_id=None if validate_only else topic_id,
            partitions=partitions,
            replication_factor=factor,
        )

    def _is_small(self, topic: NewTopic) -> bool:
        """True for a small topic, whose partitions are created together with those of others."""
        return not topic.assignments and self._wanted(topic)[0] < COLUMNS_MIN

    def _joins_small(self, topic: NewTopic) -> bool:
        """True if it can be in the same columns as the collected small topics."""
        if not self._is_small(topic):
            return False
        partitions, factor = self._wanted(topic)
        is_alike = not self._small or factor == self._small_factor
        return is_alike and self._small_count + partitions <= rows_max(max(factor, 1))

    def _keep_small(self, topic: NewTopic, topic_id: TopicId, partitions: int, factor: int) -> None:
        """Collect an accepted topic; space for its partitions is reserved."""
        if not self.proposal.keep_room(partitions, partitions * size_max(factor)):
            self._refuse_size(topic)
        self._small.append((topic_id, partitions))
        self._small_count += partitions
        self._small_factor = factor

    def propose_small(self) -> Slices[None]:
        """Propose the partitions of the collected small topics."""
        topics, count, factor = self._small, self._small_count, self._small_factor
        if not topics:
            return
        self._small, self._small_count = [], 0
        self.proposal.give_room(count, count * size_max(factor))
        placed = self._placed - count
        if count >= COLUMNS_MIN:
            replicas = yield from self._place_many(count, factor, placed)
            is_taken = self.proposal.add_bulk(self._rows.created_small(topics, replicas))
            assert is_taken, "room was kept"
            yield
            return
        every = place(
            self._brokers.striped, partitions=count, replication_factor=factor, placed=placed
        )
        done = 0
        for topic_id, partitions in topics:
            is_taken = self.proposal.add(
                self._partitions(topic_id, 0, every[done : done + partitions])
            )
            assert is_taken, "room was kept"
            done += partitions

    def _propose_records(self, topic: NewTopic, topic_id: TopicId) -> Slices[None]:
        for first in range(0, len(topic.assignments), SLICE_PARTITIONS):
            assignments = topic.assignments[first : first + SLICE_PARTITIONS]
            self._propose(topic, self._partitions(topic_id, first, assignments))
            yield

    def _place_many(self, count: int, factor: int, placed: int) -> Slices[Rows]:
        return place_many_in_slices(
            self._brokers.striped, partitions=count, replication_factor=factor, placed=placed
        )

    def _propose_columns(
        self, topic: NewTopic, topic_id: TopicId, partitions: int, factor: int
    ) -> Slices[None]:
        step = rows_max(factor)
        for first in range(0, partitions, step):
            count = min(step, partitions - first)
            if topic.assignments:
                replicas = np.array(topic.assignments[first : first + count], np.int32)
            else:
                replicas = yield from self._place_many(count, factor, self._placed + first)
            yield
            if not self.proposal.add_bulk(self._rows.created(topic_id, first, replicas)):
                self._refuse_size(topic)
            yield

    def _refuse_size(self, topic: NewTopic) -> Never:
        raise RefusedError(ErrorCode.POLICY_VIOLATION, too_large(f"The topic {topic.name!r}"))

    def _check_name(self, name: str) -> None:
        if self._asked[name] > 1:
            message = f"The topic {name!r} occurs twice in the request; name it once."
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        if name in self._topics.ids:
            raise RefusedError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"The topic {name!r} exists already."
            )
        problem = name_problem(name)
        if problem is None and has_similar_form(name):
            form = similar_form(name)
            others = [
                *self._topics.similar_names.get(form, ()),
                *self._similar.get(form, ()),
            ]
            problem = similar_problem(name, others, self._may_describe)
        if problem is not None:
            raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)

    def _may_describe(self, name: str) -> bool:
        return self._context.rights.may(Operation.DESCRIBE, topic_resource(name))

    def _check_configs(self, topic: NewTopic) -> None:
        problem = topic_config_problem(topic.configs)
        if problem is not None:
            raise RefusedError(ErrorCode.INVALID_CONFIG, problem)

    def _new_topic_id(self) -> TopicId:
        """An unused topic id that does not look like a command-line option."""
        while True:
            topic_id = self._settings.new_topic_id()
            if (
                topic_id not in self._topics.by_id
                and not is_reserved(topic_id)
                and not format_uuid(topic_id).startswith("-")
            ):
                return topic_id

    def _wanted(self, topic: NewTopic) -> tuple[int, int]:
        """The requested numbers of partitions and of replicas."""
        settings = self._settings
        partitions, factor = topic.partitions, topic.replication_factor
        if partitions == USE_DEFAULT:
            partitions = settings.num_partitions
        if factor == USE_DEFAULT:
            factor = settings.default_replication_factor
        return partitions, factor

    def _size(self, topic: NewTopic) -> tuple[int, int]:
        """Count partitions and replicas. Raises RefusedError if they cannot be placed."""
        partitions, factor = self._wanted(topic)
        if partitions < 1:
            message = (
                f"The number of partitions is {partitions}; give at least 1, or -1 for the default."
            )
            raise RefusedError(ErrorCode.INVALID_PARTITIONS, message)
        if factor < 1:
            message = f"The replication factor is {factor}; give at least 1, or -1 for the default."
            raise RefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        striped = self._brokers.striped
        if factor > len(striped):
            message = (
                f"The replication factor {factor} needs as many brokers, but"
                f" {len(self._brokers.by_id)} are registered and {len(striped)} of them are"
                " unfenced; start more brokers or ask for fewer replicas."
            )
            raise RefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        # Checked before any replica is placed, which would be wasted work.
        if not self.proposal.has_room(partitions + len(topic.configs) + 1):
            self._refuse_size(topic)
        return partitions, factor

    def _check_manual(self, topic: NewTopic) -> Slices[None]:
        if (topic.partitions, topic.replication_factor) != (USE_DEFAULT, USE_DEFAULT):
            message = (
                "Assignments say how many partitions and replicas there are; leave partitions and"
                " replication factor at -1 beside them."
            )
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        for partition, replicas in enumerate(topic.assignments):
            problem = self._manual_problem(replicas, len(topic.assignments[0]))
            if problem is not None:
                message = f"The assignment of partition {partition} {problem}."
                raise RefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
            if partition % SLICE_PARTITIONS == SLICE_PARTITIONS - 1:
                yield

    def _manual_problem(self, replicas: tuple[int, ...], factor: int) -> str | None:
        if not replicas:
            return "names no broker; name at least one"
        if len(set(replicas)) < len(replicas):
            return f"names a broker twice: {list(replicas)}; name each once"
        unknown = [broker for broker in replicas if broker not in self._brokers.by_id]
        if unknown:
            return (
                f"names brokers that are not registered: {unknown}; register them or choose others"
            )
        if len(replicas) != factor:
            return (
                f"has {len(replicas)} replicas where partition 0 has {factor}; give each partition"
                " the same number"
            )
        if not any(broker in self._brokers.active for broker in replicas):
            return (
                f"names only brokers that are fenced or shutting down: {list(replicas)}; wait for"
                " one of them or choose others"
            )
        return None

    def _propose(self, topic: NewTopic, records: Sequence[MetadataRecord]) -> None:
        if not self.proposal.add(records):
            self._refuse_size(topic)

    def _head(self, topic: NewTopic, topic_id: TopicId) -> list[MetadataRecord]:
        key = (int(ResourceType.TOPIC), topic.name)
        return [
            TopicRecord(name=topic.name, topic_id=topic_id),
            *config_records(key, topic.configs),
        ]

    def _partitions(
        self, topic_id: TopicId, first: int, assignments: Sequence[tuple[int, ...]]
    ) -> list[MetadataRecord]:
        active = self._brokers.active
        records: list[MetadataRecord] = []
        for partition_id, replicas in enumerate(assignments, first):
            isr = tuple([broker for broker in replicas if broker in active])
            partition = Partition(
                replicas=replicas,
                isr=isr,
                leader=isr[0],
                directories=tuple(
                    [self._brokers.by_id[id_].directory_of_new_replicas for id_ in replicas]
                ),
            )
            records.append(partition_record(topic_id, partition_id, partition, level=self._level))
        return records


def rejected_topic(_context: Context, topic: NewTopic, refusal: RefusedError) -> CreatedTopic:
    return CreatedTopic(topic.name, refusal.error, refusal.message)


def create_topics_in_slices(context: Context, request: CreateTopics) -> Slices[Outcome]:
    """Create topics, each atomically or with an error of its own, all in one batch."""
    creation = _Creation(context, request)
    results: list[CreatedTopic] = []
    for topic in request.topics:
        results.append((yield from creation.create(topic, validate_only=request.validate_only)))
        yield
    yield from creation.propose_small()
    created = tuple(results)
    if request.validate_only:
        nothing = Proposal(metadata_version(context.view.features))
        return Outcome(nothing, CreateTopicsReply(created))
    return Outcome(creation.proposal, CreateTopicsReply(created))
