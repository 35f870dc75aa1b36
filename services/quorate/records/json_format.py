"""Records as JSON, in the format of Kafka's tools.

Names are Kafka's, in camel case; uuids are 22 characters of base64, bytes padded base64; a tagged
field at its default is left out, as it is on the wire.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from quorate.records.codec.compiler import codec_of
from quorate.records.codec.schema import schema_of
from quorate.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from quorate.records.ids import format_uuid
from quorate.records.metadata import UnknownRecord

if TYPE_CHECKING:
    from quorate.records.codec.schema import Field, Struct
    from quorate.records.metadata import MetadataRecord

# The label of a control record in dump-log, and its message, by the type in its key.
CONTROLS: Final[dict[int, tuple[str, type]]] = {
    2: ("LeaderChange: ", LeaderChangeMessage),
    3: ("SnapshotHeader ", SnapshotHeaderRecord),
    4: ("SnapshotFooter ", SnapshotFooterRecord),
    5: ("KRaftVersion ", KRaftVersionRecord),
    6: ("KRaftVoters ", VotersRecord),
}


def record_to_json(record: MetadataRecord, version: int) -> dict[str, object]:
    """A metadata record as {"type", "version", "data"}; unknown records have bytes as data."""
    if isinstance(record, UnknownRecord):
        name = f"UNKNOWN_RECORD_{record.api_key}"
        return {"type": name, "version": version, "data": base64.b64encode(record.body).decode()}
    data = _struct(record, schema_of(type(record)).body, version)
    return {"type": _type_name(type(record).__name__), "version": version, "data": data}


def control_to_json(key: bytes, value: bytes) -> tuple[str, dict[str, object]]:
    """The label of a control record and its fields. Raises ValueError for an unknown type."""
    control_type = int.from_bytes(key[2:4], "big")
    if control_type not in CONTROLS:
        raise ValueError(f"control record of unknown type {control_type}")
    label, shape = CONTROLS[control_type]
    version = int.from_bytes(value[:2], "big")
    message: object = codec_of(shape, version).decode(value)[0]
    return label, _struct(message, schema_of(shape).body, version)


def _struct(value: object, struct: Struct, version: int) -> dict[str, object]:
    fields: dict[str, object] = {}
    for field in struct.fields:
        item = getattr(value, field.name)
        is_tagged = field.tag is not None and version in field.tagged
        if version not in field.versions or (is_tagged and item == field.default):
            continue
        fields[field_name(field.name)] = value_to_json(item, field, version)
    return fields


def value_to_json(item: object, field: Field, version: int) -> object:
    """The value of a field as JSON."""
    if item is None:
        return None
    if field.is_array:
        assert isinstance(item, tuple)
        return [single_to_json(part, field, version) for part in item]
    return single_to_json(item, field, version)


def single_to_json(item: object, field: Field, version: int) -> object:
    """A single value as JSON: the field's value, or an element of an array."""
    if field.struct is not None:
        return _struct(item, field.struct, version)
    if isinstance(item, bytes):
        return format_uuid(item) if field.element == "uuid" else base64.b64encode(item).decode()
    return item


def field_name(name: str) -> str:
    """The name of a field in Kafka: topicId for topic_id."""
    first, *rest = name.replace("kraft_", "k_raft_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def _type_name(name: str) -> str:
    """The name of a type in Kafka's tools: TOPIC_RECORD for TopicRecord."""
    letters = [f"_{c}" if c.isupper() and at else c.upper() for at, c in enumerate(name)]
    return "".join(letters).upper()
