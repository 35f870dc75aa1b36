"""Logs that tests make up: random histories of a cluster, and frames of them as the source has it.

A history is valid: the controller's own replay accepts it. It starts where the clock says; `seed`
is in the name of whatever fails, so that it can be made again.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T

from quorate.records.codec.schema import schema_of
from quorate.records.ids import DirectoryId, TopicId
from quorate.records.json_format import record_to_json
from quorate.records.metadata import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    encode_record,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

FRAME_SCHEMA: Final = T.StructType(
    [
        T.StructField("offset", T.LongType()),
        T.StructField("leader_epoch", T.IntegerType()),
        T.StructField("timestamp", T.TimestampType()),
        T.StructField("is_control", T.BooleanType()),
        T.StructField("record_type", T.StringType()),
        T.StructField("record_version", T.ShortType()),
        T.StructField("key", T.BinaryType()),
        T.StructField("value", T.BinaryType()),
        T.StructField("payload", T.StringType()),
        T.StructField("batch_base_offset", T.LongType()),
        T.StructField("segment", T.StringType()),
        T.StructField("crc_valid", T.BooleanType()),
        T.StructField("source_node", T.IntegerType()),
    ]
)
START_MS: Final = 1_760_000_000_000
BROKERS: Final = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a log, and when it was written in milliseconds since 1970."""

    offset: int
    timestamp_ms: int
    record: MetadataRecord


@dataclass
class _Partition:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@dataclass
class History:
    """Draws a log of about `size` records; everything about it follows from `seed`."""

    seed: int
    size: int
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._now_ms = START_MS
        self._brokers: dict[int, int] = {}
        self._topics: dict[TopicId, str] = {}
        self._partitions: dict[tuple[TopicId, int], _Partition] = {}
        self._acls: list[bytes] = []
        self._in_transaction = False
        self._write(FeatureLevelRecord(name="metadata.version", feature_level=30))
        while len(self.entries) < self.size:
            self._step()

    def _step(self) -> None:
        draw = self._random
        acts = (
            (self._topic, 3),
            (self._remove_topic, 1),
            (self._change, 30),
            (self._reassign, 4),
            (self._config, 6),
            (self._acl, 3),
            (self._broker, 5),
            (self._clear_elr, 1),
            (self._abort, 1),
            (self._transaction, 1),
            (lambda: self._write(NoOpRecord()), 1),
        )
        act = draw.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        act()

    def _write(self, record: MetadataRecord) -> None:
        # Several records of one batch have one time; it need not advance between batches.
        self._now_ms += self._random.choice((0, 0, 1, 500, 20_000))
        self.entries.append(Entry(len(self.entries), self._now_ms, record))

    def _uuid(self) -> bytes:
        return self._random.randbytes(16)

    def _some(self, least: int = 1) -> tuple[int, ...]:
        return tuple(self._random.sample(BROKERS, self._random.randint(least, 4)))

    def _topic(self) -> None:
        topic_id = TopicId(self._uuid())
        name = f"topic-{self._random.randint(1, 6)}"
        if name in self._topics.values():
            return
        self._topics[topic_id] = name
        self._write(TopicRecord(name=name, topic_id=topic_id))
        for partition_id in range(self._random.randint(1, 3)):
            replicas = self._some()
            leader = self._random.choice((-1, *replicas))
            self._partitions[topic_id, partition_id] = _Partition(replicas, replicas, leader)
            self._write(
                PartitionRecord(
                    partition_id=partition_id,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=leader,
                    leader_epoch=self._random.randint(0, 3),
                    partition_epoch=self._random.randint(0, 3),
                    directories=tuple(DirectoryId(self._uuid()) for _ in replicas),
                )
            )

    def _remove_topic(self) -> None:
        if not self._topics:
            return
        topic_id = self._random.choice(list(self._topics))
        del self._topics[topic_id]
        for key in [key for key in self._partitions if key[0] == topic_id]:
            del self._partitions[key]
        self._write(RemoveTopicRecord(topic_id=topic_id))

    def _change(self) -> None:
        if not self._partitions:
            return
        draw = self._random
        (topic_id, partition_id), state = draw.choice(list(self._partitions.items()))
        isr = tuple(draw.sample(state.replicas, draw.randint(1, len(state.replicas))))
        leader = draw.choice((-2, -2, -1, *state.replicas))
        says_isr = draw.random() < 0.7
        self._write(
            PartitionChangeRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                isr=isr if says_isr else None,
                leader=leader,
                leader_recovery_state=draw.choice((-1, -1, -1, 0, 1)),
                eligible_leader_replicas=draw.choice((None, None, (), state.replicas[:1])),
                last_known_elr=draw.choice((None, None, (), state.replicas[-1:])),
            )
        )

    def _reassign(self) -> None:
        if not self._partitions:
            return
        draw = self._random
        (topic_id, partition_id), state = draw.choice(list(self._partitions.items()))
        if state.adding or state.removing:
            state.replicas = tuple(r for r in state.replicas if r not in state.removing)
            state.adding = state.removing = ()
        elif draw.random() < 0.3:
            state.replicas = self._some()
        else:
            target = self._some()
            state.adding = tuple(r for r in target if r not in state.replicas)
            state.removing = tuple(r for r in state.replicas if r not in target)
            state.replicas += state.adding
        self._write(
            PartitionChangeRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=state.replicas,
                adding_replicas=state.adding,
                removing_replicas=state.removing,
                directories=tuple(DirectoryId(self._uuid()) for _ in state.replicas),
            )
        )

    def _config(self) -> None:
        draw = self._random
        names = (*self._topics.values(), "topic-7")
        resource_type, resource = draw.choice(((2, draw.choice(names)), (4, "1"), (4, "")))
        self._write(
            ConfigRecord(
                resource_type=resource_type,
                resource_name=resource,
                name=draw.choice(("retention.ms", "segment.ms", "ssl.key.password")),
                value=draw.choice((None, "", "1", "2", "3")),
            )
        )

    def _acl(self) -> None:
        draw = self._random
        if self._acls and draw.random() < 0.4:
            acl_id = self._acls.pop(draw.randrange(len(self._acls)))
            self._write(RemoveAccessControlEntryRecord(id=acl_id))
            return
        self._acls.append(self._uuid())
        self._write(
            AccessControlEntryRecord(
                id=self._acls[-1],
                resource_type=draw.choice((2, 3, 4, 99)),
                resource_name="r<&>",
                pattern_type=draw.choice((3, 4)),
                principal=f"User:{draw.randint(1, 9)}",
                host="*",
                operation=draw.randint(2, 15),
                permission_type=draw.choice((2, 3)),
            )
        )

    def _broker(self) -> None:
        draw = self._random
        broker_id = draw.choice(BROKERS)
        epoch = self._brokers.get(broker_id)
        if epoch is None or draw.random() < 0.2:
            self._brokers[broker_id] = len(self.entries)
            self._write(
                RegisterBrokerRecord(
                    broker_id=broker_id,
                    incarnation_id=self._uuid(),
                    broker_epoch=len(self.entries),
                    end_points=(
                        BrokerEndpoint(name="B", host="h", port=65_535, security_protocol=0),
                        BrokerEndpoint(name="A", host="h", port=9092, security_protocol=0),
                    ),
                    features=(),
                    rack=draw.choice((None, "a", "b")),
                    fenced=draw.random() < 0.8,
                    log_dirs=draw.choice(((), (DirectoryId(self._uuid()),))),
                )
            )
            return
        directory = DirectoryId(self._uuid())
        record = draw.choice(
            (
                FenceBrokerRecord(id=broker_id, epoch=epoch),
                UnfenceBrokerRecord(id=broker_id, epoch=epoch),
                UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch),
                BrokerRegistrationChangeRecord(
                    broker_id=broker_id,
                    broker_epoch=epoch,
                    fenced=draw.choice((-1, 0, 1)),
                    in_controlled_shutdown=draw.choice((0, 0, 1)),
                    log_dirs=draw.choice(((), (directory,))),
                    cordoned_log_dirs=draw.choice((None, (), (directory,))),
                ),
            )
        )
        if isinstance(record, UnregisterBrokerRecord):
            del self._brokers[broker_id]
        self._write(record)

    def _clear_elr(self) -> None:
        self._write(ClearElrRecord(topic_name=self._random.choice(("", *self._topics.values()))))

    def _abort(self) -> None:
        """A transaction that changes something, and then never happened."""
        self._write(BeginTransactionRecord(name="undone"))
        self._write(ConfigRecord(resource_type=4, resource_name="", name="retention.ms", value="9"))
        for (topic_id, partition_id), state in list(self._partitions.items())[:1]:
            self._write(
                PartitionChangeRecord(
                    partition_id=partition_id, topic_id=topic_id, isr=state.replicas[:1], leader=-1
                )
            )
        self._write(AbortTransactionRecord(reason="no"))

    def _transaction(self) -> None:
        """A transaction that takes effect; the log may end in the middle of it."""
        self._write(BeginTransactionRecord(name="done"))
        self._config()
        self._change()
        self._write(EndTransactionRecord())


def frame_of(
    spark: SparkSession, entries: Sequence[Entry], *, shuffled: random.Random | None = None
) -> DataFrame:
    """The frame that the source would give of those records."""
    rows = [_row(entry) for entry in entries]
    if shuffled is not None:
        shuffled.shuffle(rows)
    return spark.createDataFrame(rows, FRAME_SCHEMA)


def _row(entry: Entry) -> tuple[object, ...]:
    record = entry.record
    version = min(schema_of(type(record)).versions.last, 4)
    at = datetime.fromtimestamp(entry.timestamp_ms / 1000, tz=UTC)
    return (
        entry.offset,
        1,
        at,
        False,
        type(record).__name__,
        version,
        None,
        encode_record(record, version),
        json.dumps(record_to_json(record, version)["data"]),
        entry.offset,
        "00000000000000000000.log",
        True,
        None,
    )
