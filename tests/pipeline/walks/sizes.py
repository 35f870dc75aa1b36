"""Use of a log's bytes, by adding up what lies in its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.pipeline.walks.past import Cells, ordered

if TYPE_CHECKING:
    from tests.pipeline.log_frames import Row
    from tests.pipeline.walks.past import Past

HEADER_BYTES = 61
TOPIC_RECORDS = ("TopicRecord", "PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord")
# A record of one of these types stands for the same thing as an earlier one with the same values.
THINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "TopicRecord": ("topic", ("topicId",)),
    "PartitionRecord": ("partition", ("topicId", "partitionId")),
    "RegisterBrokerRecord": ("broker", ("brokerId",)),
    "UnregisterBrokerRecord": ("broker", ("brokerId",)),
    "RegisterControllerRecord": ("controller", ("controllerId",)),
    "FeatureLevelRecord": ("feature", ("name",)),
    "ConfigRecord": ("config", ("resourceType", "resourceName", "name")),
    "ClientQuotaRecord": ("quota", ("entity", "key")),
    "ProducerIdsRecord": ("producer ids", ()),
    "UserScramCredentialRecord": ("user", ("name", "mechanism")),
    "RemoveUserScramCredentialRecord": ("user", ("name", "mechanism")),
    "AccessControlEntryRecord": ("acl", ("id",)),
    "RemoveAccessControlEntryRecord": ("acl", ("id",)),
    "DelegationTokenRecord": ("token", ("tokenId",)),
    "RemoveDelegationTokenRecord": ("token", ("tokenId",)),
    "KRaftVersionRecord": ("kraft.version", ()),
    "VotersRecord": ("voters", ()),
}


@dataclass
class Count:
    """So many records of so many bytes."""

    records: int = 0
    size_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """One more."""
        self.records += 1
        self.size_bytes += size_bytes


def varint_bytes(number: int) -> int:
    """The size of the zigzag varint of a number that is not negative."""
    return max(1, -(-(2 * number).bit_length() // 7))


def on_disk(row: Row, first_ms: int) -> int:
    """A record with its length in front, of a batch whose first record has that time."""
    body = 1 + varint_bytes(row.at_ms - first_ms) + varint_bytes(row.offset - row.batch_base_offset)
    for cell in (row.key, row.value):
        body += 1 if cell is None else varint_bytes(len(cell)) + len(cell)
    body += 1
    return varint_bytes(body) + body


def alive(past: Past) -> dict[Cells, Row]:
    """The record that a snapshot at the end would have for each thing that is there."""
    names: dict[str, str] = {}
    found: dict[Cells, Row] = {}
    for event in past.effective:
        data, kind = event.data, event.kind
        if kind == "TopicRecord":
            names[data["topicId"]] = data["name"]
        if kind == "RemoveTopicRecord":
            gone: list[Cells] = [
                ("topic", data["topicId"]),
                ("partition", data["topicId"]),
                ("config", 2, names[data["topicId"]]),
            ]
            for key in [key for key in found if any(key[: len(k)] == k for k in gone)]:
                del found[key]
        if kind not in THINGS:
            continue
        thing, fields = THINGS[kind]
        key = (thing, *(_plain(data[name]) for name in fields))
        found.pop(key, None)
        if not _removes(kind, data):
            found[key] = event.row
    return found


def _plain(cell: Any) -> object:  # noqa: ANN401 - whatever a field holds
    return str(cell) if isinstance(cell, list) else cell


def _removes(kind: str, data: dict[str, Any]) -> bool:
    return (
        kind.startswith(("Remove", "Unregister"))
        or (kind == "ConfigRecord" and data["value"] is None)
        or (kind == "ClientQuotaRecord" and bool(data["remove"]))
        or (kind == "FeatureLevelRecord" and data["featureLevel"] == 0)
    )


def sizes(past: Past) -> dict[str, list[Cells]]:
    """Both tables."""
    rows = [event.row for event in past.events]
    first_ms: dict[tuple[str, int], int] = {}
    for row in rows:
        first_ms.setdefault((row.segment, row.batch_base_offset), row.at_ms)
    sized = [(row, on_disk(row, first_ms[row.segment, row.batch_base_offset])) for row in rows]
    of_log = [(row, size) for row, size in sized if not row.from_snapshot]
    by_type: dict[str, Count] = {}
    by_topic: dict[str, Count] = {}
    names: dict[str, str] = {}
    for row in rows:
        if row.record_type == "TopicRecord":
            names[row.data["topicId"]] = row.data["name"]
            by_topic.setdefault(row.data["topicId"], Count())
    for row, size_bytes in of_log:
        by_type.setdefault(str(row.record_type), Count()).add(size_bytes)
        if row.record_type in TOPIC_RECORDS:
            by_topic.setdefault(row.data["topicId"], Count()).add(size_bytes)
    batches = {row.batch_base_offset for row, _ in of_log}
    by_type["(batch headers)"] = Count(len(batches), HEADER_BYTES * len(batches))
    live: dict[str, Count] = {}
    of_row = {id(row): size for row, size in sized}
    for row in alive(past).values():
        live.setdefault(str(row.record_type), Count()).add(of_row[id(row)])
    for kind in live:
        by_type.setdefault(kind, Count())
    whole = sum(count.size_bytes for count in by_type.values())
    of_topics = sum(count.size_bytes for count in by_topic.values())
    return {
        "by_type": ordered(
            _of_type(kind, count, live.get(kind, Count()), whole) for kind, count in by_type.items()
        ),
        "by_topic": ordered(
            (
                names.get(topic_id),
                topic_id,
                count.records,
                count.size_bytes,
                share(count.size_bytes, of_topics),
            )
            for topic_id, count in by_topic.items()
        ),
    }


def _of_type(kind: str, count: Count, live: Count, whole: int) -> Cells:
    saved = max(0, count.size_bytes - live.size_bytes)
    part = share(count.size_bytes, whole)
    return (kind, count.records, count.size_bytes, part, live.records, live.size_bytes, saved)


def share(size_bytes: int, whole: int) -> float | None:
    """A part of the total; None if the total is 0."""
    return round(size_bytes / whole, 9) if whole else None
