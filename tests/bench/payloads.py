"""The messages that the loads send, encoded by hand where a library would cost too much."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from quorate.records.codec.varint import encode_uvarint
from quorate.rpc.gen.controller.v1 import controller_pb2
from tests.bench.gen.raw.v1 import raw_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE_BYTES: Final = 100
PUT_PATH: Final = "/etcdserverpb.KV/Put"
APPEND_PATH: Final = "/quorate.raw.v1.RawLog/Append"
APPEND_ONCE_PATH: Final = "/quorate.raw.v1.RawLog/AppendOnce"
WRITE_PATH: Final = "/quorate.controller.v1.Controller/WriteStream"
WRITE_ONCE_PATH: Final = "/quorate.controller.v1.Controller/Write"
_KEYS: Final = 1000


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return encode_uvarint(number << 3 | 2) + encode_uvarint(len(data)) + data


def puts() -> Callable[[], bytes]:
    """etcd's PutRequest over a thousand keys, one after the other."""
    value = field(2, bytes(VALUE_BYTES))
    requests = itertools.cycle([field(1, b"key-%06d" % i) + value for i in range(_KEYS)])
    return lambda: next(requests)


def appends(records: int) -> Callable[[int], bytes]:
    """AppendRequest with so many records, by sequence."""
    body = field(2, bytes(VALUE_BYTES)) * records
    return lambda sequence: b"\x08" + encode_uvarint(sequence) + body


def append_once(records: int) -> Callable[[], bytes]:
    """AppendRequest of a single call."""
    body = field(2, bytes(VALUE_BYTES)) * records
    return lambda: body


def last_append(answer: bytes) -> int:
    """The offset that an AppendResponse acknowledges."""
    return raw_pb2.AppendResponse.FromString(answer).last_sequence


def config_change(topic: str, value: str) -> controller_pb2.IncrementalAlterConfigs:
    """One setting of one topic."""
    change = controller_pb2.ConfigChange(name="retention.ms", operation=0, value=value)
    resource = controller_pb2.ConfigResource(type=2, name=topic)
    alteration = controller_pb2.ConfigAlteration(resource=resource, changes=[change])
    return controller_pb2.IncrementalAlterConfigs(alterations=[alteration])


_values = itertools.count()


def next_value() -> str:
    """A setting that no topic has had for long: a change to the same value writes no record."""
    return str(1_000_000 + next(_values) % 9_000_000)


def config_writes(topics: list[str]) -> Callable[[int], bytes]:
    """WriteRequest that sets retention.ms of one topic after the other, to a new value each."""
    # Encoded once for each topic, with a value of the same length in the place of the next one.
    mark = "0000000"
    halves = [
        field(4, config_change(topic, mark).SerializeToString()).split(mark.encode())
        for topic in topics
    ]

    def make(sequence: int) -> bytes:
        head, tail = halves[sequence % len(halves)]
        return b"\x08" + encode_uvarint(sequence) + head + next_value().encode() + tail

    return make


def topic_creations(prefix: str, partitions: int) -> Callable[[int], bytes]:
    """WriteRequest that creates one topic with a replica on one broker."""

    def make(sequence: int) -> bytes:
        topic = controller_pb2.NewTopic(
            name=f"{prefix}-{sequence}", partitions=partitions, replication_factor=1
        )
        request = controller_pb2.CreateTopics(topics=[topic])
        return b"\x08" + encode_uvarint(sequence) + field(2, request.SerializeToString())

    return make


def last_write(answer: bytes) -> int:
    """The offset that a WriteResponse acknowledges. Raises ValueError if its first write failed.

    The others are not looked at, for the generator's sake: the log's growth is checked afterwards.
    """
    response = controller_pb2.WriteResponse.FromString(answer)
    first = response.results[0]
    for resource in first.incremental_alter_configs.resources:
        if resource.error:
            raise ValueError(f"refused: {resource.error} {resource.message}")
    for topic in first.create_topics.topics:
        if topic.error:
            raise ValueError(f"refused: {topic.error} {topic.message}")
    if first.error:
        raise ValueError(f"refused: {first.error} {first.message}")
    return response.last_sequence
