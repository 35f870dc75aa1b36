"""The metadata at a moment and the difference of two moments, by keeping the state."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.pipeline.walks.partitions import State, changed, created
from tests.pipeline.walks.past import Cells, Event, Past, ids, ordered
from tests.pipeline.walks.settings import RESOURCES, acl, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.pipeline.log_frames import Row

RECOVERY = ("RECOVERED", "RECOVERING")
COLUMNS = {
    "topics": ("topic", "topic_id", "partitions"),
    "partitions": (
        "topic",
        "topic_id",
        "partition",
        "leader",
        "leader_epoch",
        "partition_epoch",
        "replicas",
        "isr",
        "adding_replicas",
        "removing_replicas",
        "eligible_leader_replicas",
        "last_known_elr",
        "leader_recovery_state",
    ),
    "brokers": (
        "broker",
        "broker_epoch",
        "incarnation_id",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "listeners",
        "log_dirs",
        "cordoned_log_dirs",
    ),
    "configs": ("resource_type", "resource", "config", "value"),
    "acls": (
        "principal",
        "permission",
        "operation",
        "resource_type",
        "resource",
        "pattern_type",
        "host",
        "acl_id",
    ),
}
# What names a row of each table.
KEYS = {
    "topics": ("topic_id",),
    "partitions": ("topic_id", "partition"),
    "brokers": ("broker",),
    "configs": ("resource_type", "resource", "config"),
    "acls": ("acl_id",),
}
WORDS = {
    "topics": ("topic",),
    "partitions": ("topic", "partition"),
    "brokers": ("broker",),
    "configs": ("resource_type", "resource", "config"),
    "acls": ("principal", "permission", "operation", "resource_type", "pattern_type", "resource"),
}


@dataclass
class Image:
    """Everything that is there, from record to record."""

    topics: dict[str, str] = field(default_factory=dict)
    partitions: dict[tuple[str, int], State] = field(default_factory=dict)
    brokers: dict[int, dict[str, Any]] = field(default_factory=dict)
    configs: dict[tuple[int, str, str], str] = field(default_factory=dict)
    acls: dict[str, Cells] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """The state after a record."""
        data = event.data
        match event.kind:
            case "TopicRecord":
                self.topics[data["topicId"]] = data["name"]
            case "RemoveTopicRecord":
                self._remove_topic(data["topicId"])
            case "PartitionRecord":
                self.partitions[data["topicId"], data["partitionId"]] = created(event)
            case "PartitionChangeRecord":
                key = data["topicId"], data["partitionId"]
                self.partitions[key] = changed(self.partitions[key], event)
            case "ClearElrRecord":
                self._clear(data["topicName"])
            case "ConfigRecord":
                of = data["resourceType"], data["resourceName"], data["name"]
                self.configs.pop(of, None)
                if data["value"] is not None:
                    self.configs[of] = data["value"]
            case "AccessControlEntryRecord":
                self.acls[data["id"]] = acl(data)
            case "RemoveAccessControlEntryRecord":
                del self.acls[data["id"]]
            case _:
                self._take_broker(event.kind, data)

    def _remove_topic(self, topic_id: str) -> None:
        name = self.topics.pop(topic_id)
        for key in [key for key in self.partitions if key[0] == topic_id]:
            del self.partitions[key]
        for of in [of for of in self.configs if of[:2] == (2, name)]:
            del self.configs[of]

    def _clear(self, name: str) -> None:
        for key, state in self.partitions.items():
            if name in ("", self.topics[key[0]]):
                has_any = bool(state.eligible or state.last_known)
                epoch = state.partition_epoch + has_any
                cleared = replace(state, partition_epoch=epoch, eligible=(), last_known=())
                self.partitions[key] = cleared

    def _take_broker(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "RegisterBrokerRecord":
                self.brokers[data["brokerId"]] = {
                    "inControlledShutdown": False,
                    "logDirs": [],
                    "cordonedLogDirs": None,
                    **data,
                }
            case "UnregisterBrokerRecord":
                del self.brokers[data["brokerId"]]
            case "FenceBrokerRecord" | "UnfenceBrokerRecord":
                self.brokers[data["id"]]["fenced"] = kind.startswith("Fence")
            case "BrokerRegistrationChangeRecord":
                broker = self.brokers[data["brokerId"]]
                if data.get("fenced", 0):
                    broker["fenced"] = data["fenced"] == 1
                if data.get("inControlledShutdown", 0):
                    broker["inControlledShutdown"] = True
                if data.get("logDirs"):
                    broker["logDirs"] = data["logDirs"]
                if data.get("cordonedLogDirs") is not None:
                    broker["cordonedLogDirs"] = data["cordonedLogDirs"]

    def tables(self, *, has_secrets: bool = False) -> dict[str, list[Cells]]:
        """All five."""
        return {
            "topics": ordered(
                (name, topic_id, sum(key[0] == topic_id for key in self.partitions))
                for topic_id, name in self.topics.items()
            ),
            "partitions": ordered(
                (
                    self.topics[topic_id],
                    topic_id,
                    number,
                    state.leader,
                    state.leader_epoch,
                    state.partition_epoch,
                    state.replicas,
                    state.isr,
                    state.adding,
                    state.removing,
                    state.eligible,
                    state.last_known,
                    RECOVERY[state.recovery],
                )
                for (topic_id, number), state in self.partitions.items()
            ),
            "brokers": ordered(_broker(broker) for broker in self.brokers.values()),
            "configs": ordered(
                (RESOURCES[kind], resource, name, value if has_secrets else shown(name, value))
                for (kind, resource, name), value in self.configs.items()
            ),
            "acls": ordered(self.acls.values()),
        }


def _broker(data: dict[str, Any]) -> Cells:
    return (
        data["brokerId"],
        data["brokerEpoch"],
        data["incarnationId"],
        data["rack"],
        data["fenced"],
        data["inControlledShutdown"],
        # Kafka keeps them in a hash map: their order says nothing.
        tuple(sorted(f"{at['name']}://{at['host']}:{at['port']}" for at in data["endPoints"])),
        ids(data["logDirs"]),
        ids(data["cordonedLogDirs"]),
    )


def image_at(rows: Sequence[Row], at: int | None) -> Image:
    """The state after the record at that offset, or after all of them."""
    image = Image()
    for event in Past([row for row in rows if at is None or row.offset <= at]).effective:
        image.take(event)
    return image


def differences(rows: Sequence[Row], start: int, end: int | None) -> list[Cells]:
    """subject, key, change, fields, what was and what is as JSON with sorted keys."""
    images = [image_at(rows, at) for at in (start, end)]
    secret = [image.tables(has_secrets=True) for image in images]
    public = [image.tables() for image in images]
    found: list[Cells] = []
    for table, columns in COLUMNS.items():
        key_of = [columns.index(name) for name in KEYS[table]]
        old, new = (_by_key(each[table], key_of) for each in secret)
        told_old, told_new = (_by_key(each[table], key_of) for each in public)
        for key in old.keys() | new.keys():
            before, after = old.get(key), new.get(key)
            pairs = zip(columns, before or (), after or (), strict=False)
            differing = tuple(sorted(name for name, a, b in pairs if a != b))
            if before == after:
                continue
            is_change = before is not None and after is not None
            word = "changed" if is_change else "added" if before is None else "removed"
            fields = differing if is_change else columns
            found.append(
                (
                    table,
                    _worded(table, before or after or ()),
                    word,
                    differing if is_change else None,
                    _told(told_old.get(key), columns, fields),
                    _told(told_new.get(key), columns, fields),
                )
            )
    return ordered(found)


def _worded(table: str, row: Cells) -> str:
    """The name that people use for a row."""
    cells = dict(zip(COLUMNS[table], map(str, row), strict=True))
    separator = "-" if table == "partitions" else " "
    return separator.join(cells[name] for name in WORDS[table])


def _by_key(rows: list[Cells], key_of: list[int]) -> dict[Cells, Cells]:
    return {tuple(row[at] for at in key_of): row for row in rows}


def _told(row: Cells | None, columns: tuple[str, ...], fields: tuple[str, ...]) -> str | None:
    if row is None:
        return None
    told = {name: _text(cell) for name, cell in zip(columns, row, strict=True) if name in fields}
    return json.dumps(told, sort_keys=True)


def _text(cell: object) -> str | None:
    """A cell as SQL writes it."""
    if isinstance(cell, tuple):
        return f"[{', '.join(map(str, cell))}]"
    if isinstance(cell, bool):
        return str(cell).lower()
    return None if cell is None else str(cell)
