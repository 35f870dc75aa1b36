"""The tables of an image by the controller's own replay, which knows nothing of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.replay import Replayer
from quorate.records.ids import Epoch, Offset, format_uuid
from quorate.records.metadata import AccessControlEntryRecord
from tests.pipeline.jobs.test_acls import told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.pipeline.jobs.histories import Entry

Rows = list[tuple[object, ...]]
TYPES = {2: "TOPIC", 4: "BROKER"}


def image_of(entries: Sequence[Entry]) -> MetadataImage:
    """The image after all of them; their offsets count from zero."""
    replayer = Replayer(MetadataImage())
    position = LogPosition(Offset(len(entries)), Epoch(1), 0)
    records = [entry.record for entry in entries]
    replayer.replay(records, base_offset=Offset(0), position=position)
    return replayer.image


def tables_of(
    image: MetadataImage, entries: Sequence[Entry], *, has_secrets: bool = False
) -> dict[str, Rows]:
    """Rows by table, sorted, with passwords withheld unless told otherwise."""
    found: dict[str, Rows] = {
        "topics": [],
        "partitions": [],
        "brokers": [],
        "configs": [],
        "acls": [],
    }
    for topic in image.topics.by_id.values():
        topic_id = format_uuid(topic.topic_id)
        partitions = list(image.topics.partitions_of(topic.topic_id))
        found["topics"].append((topic.name, topic_id, len(partitions)))
        for number, state in partitions:
            found["partitions"].append(
                (
                    topic.name,
                    topic_id,
                    number,
                    state.leader,
                    state.leader_epoch,
                    state.partition_epoch,
                    state.replicas,
                    state.isr,
                    state.adding_replicas,
                    state.removing_replicas,
                    state.eligible_leader_replicas,
                    state.last_known_elr,
                    ("RECOVERED", "RECOVERING")[state.leader_recovery_state],
                )
            )
    for broker_id, broker in image.brokers.by_id.items():
        told_of = broker.registration
        found["brokers"].append(
            (
                broker_id,
                told_of.broker_epoch,
                format_uuid(told_of.incarnation_id),
                told_of.rack,
                told_of.fenced,
                told_of.in_controlled_shutdown,
                tuple(f"{point.name}://{point.host}:{point.port}" for point in told_of.end_points),
                tuple(map(format_uuid, told_of.log_dirs)),
                tuple(map(format_uuid, told_of.cordoned_log_dirs or ())),
            )
        )
    for (resource_type, resource), values in image.configs.by_owner.items():
        for name, value in values.items():
            shown = "(withheld)" if "password" in name and not has_secrets else value
            found["configs"].append((TYPES[resource_type], resource, name, shown))
    ids = {
        record.id
        for record in image.opaque.group("acls").values()
        if isinstance(record, AccessControlEntryRecord)
    }
    found["acls"] = [
        told(entry)
        for entry in entries
        if isinstance(entry.record, AccessControlEntryRecord) and entry.record.id in ids
    ]
    return {name: sorted(rows, key=repr) for name, rows in found.items()}
