"""Log directories read by Kafka's own message definitions, and by nothing of the product.

What `schemas.json` of the stock fixtures says is all that is known here of records; batches are
read as Kafka documents them. Whatever the source gives of a log, and whatever a job finds in it,
has to equal what follows from these rows.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tests.pipeline.log_frames import Row, moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADER = struct.Struct(">qiibIhiqqqhii")
CONTROL_BIT = 0x20
CONTROLS = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}
# Of numbers by their type's name: how struct spells it.
NUMBERS = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q"}


class Bytes:
    """Bytes with a place in them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next so many."""
        assert self.at + count <= len(self.data)
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, spelling: str) -> Any:  # noqa: ANN401 - whatever it spells
        """A number of fixed width."""
        return struct.unpack(">" + spelling, self.take(struct.calcsize(spelling)))[0]

    def unsigned(self) -> int:
        """A varint."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """A zigzag varint."""
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def sized(self) -> bytes | None:
        """A key or value of a record."""
        size = self.signed()
        return None if size < 0 else self.take(size)


@dataclass(frozen=True)
class Definitions:
    """Kafka's messages."""

    path: Path

    @cached_property
    def by_name(self) -> dict[str, dict[str, Any]]:
        """Every one that the file has."""
        named: dict[str, dict[str, Any]] = json.loads(self.path.read_text())
        return named

    @cached_property
    def records(self) -> dict[int, dict[str, Any]]:
        """The metadata records by their key."""
        return {
            each["apiKey"]: each for each in self.by_name.values() if each["type"] == "metadata"
        }

    def read(self, message: dict[str, Any], version: int, data: Bytes) -> dict[str, Any]:
        """One message, whose fields have the names of Kafka's JSON."""
        common = {each["name"]: each["fields"] for each in message.get("commonStructs", [])}
        return _fields(message["fields"], version, data, common)

    def metadata(self, value: bytes) -> tuple[str, int, dict[str, Any] | None]:
        """Type, version and fields of a metadata record; no fields if they are unknown."""
        data = Bytes(value)
        assert data.unsigned() == 1
        key, version = data.unsigned(), data.unsigned()
        message = self.records.get(key)
        if message is None:
            return f"Unknown({key})", version, None
        return message["name"], version, self.read(message, version, data)

    def control(self, key: bytes, value: bytes) -> tuple[str, int, dict[str, Any]]:
        """The same of a control record."""
        name = CONTROLS[struct.unpack(">hh", key)[1]]
        version = struct.unpack(">h", value[:2])[0]
        return name, version, self.read(self.by_name[name], version, Bytes(value))


def _fields(
    fields: list[dict[str, Any]], version: int, data: Bytes, common: dict[str, Any]
) -> dict[str, Any]:
    def lies_in(versions: str) -> bool:
        first, _, last = versions.rstrip("+").partition("-")
        newest = version if versions.endswith("+") else int(last or first)
        return versions != "none" and int(first) <= version <= newest

    found: dict[str, Any] = {}
    tagged: dict[int, tuple[str, dict[str, Any]]] = {}
    for field in fields:
        name = field["name"][0].lower() + field["name"][1:]
        if not lies_in(field["versions"]):
            continue
        if "tag" in field and lies_in(field["taggedVersions"]):
            tagged[field["tag"]] = (name, field)
            continue
        found[name] = _value(field["type"], field.get("fields"), version, data, common)
    for _ in range(data.unsigned()):
        tag, size = data.unsigned(), data.unsigned()
        part = Bytes(data.take(size))
        # As Kafka's readers do, pass over the fields of others.
        if tag in tagged:
            name, field = tagged[tag]
            found[name] = _value(field["type"], field.get("fields"), version, part, common)
    return found


def _value(
    kind: str, own: list[dict[str, Any]] | None, version: int, data: Bytes, common: dict[str, Any]
) -> Any:  # noqa: ANN401 - whatever the definition says
    if kind in NUMBERS:
        return data.number(NUMBERS[kind])
    if kind == "bool":
        return data.take(1) != b"\0"
    if kind == "uuid":
        return base64.urlsafe_b64encode(data.take(16)).decode().rstrip("=")
    if kind == "float64":
        return data.number("d")
    if kind.startswith("[]"):
        count = data.unsigned() - 1
        return (
            None
            if count < 0
            else [_value(kind[2:], own, version, data, common) for _ in range(count)]
        )
    if kind in ("string", "bytes"):
        size = data.unsigned() - 1
        text = None if size < 0 else data.take(size)
        if kind == "bytes":
            return None if text is None else base64.b64encode(text).decode()
        return None if text is None else text.decode()
    return _fields(common[kind] if own is None else own, version, data, common)


def records_of(
    path: Path, definitions: Definitions, source_node: int | None = None
) -> Iterator[Row]:
    """Every record of a segment or snapshot, in its order."""
    data = Bytes(path.read_bytes())
    end, _, snapshot = path.name.removesuffix(".checkpoint").partition("-")
    while data.at < len(data.data):
        base, size, epoch, magic, _, attributes, _, at_ms, _, _, _, _, count = HEADER.unpack_from(
            data.data, data.at
        )
        assert magic == 2
        batch = Bytes(data.take(12 + size))
        batch.take(HEADER.size)
        for _ in range(count):
            record = Bytes(batch.take(batch.signed()))
            record.take(1)
            shift_ms, shift = record.signed(), record.signed()
            key, value = record.sized(), record.sized() or b""
            is_control = bool(attributes & CONTROL_BIT)
            name, version, fields = (
                definitions.control(key or b"", value)
                if is_control
                else definitions.metadata(value)
            )
            yield Row(
                offset=int(end) - 1 if snapshot else base + shift,
                leader_epoch=epoch,
                timestamp=moment(at_ms + shift_ms),
                is_control=is_control,
                record_type=name,
                record_version=version,
                key=key,
                value=value,
                payload=json.dumps(fields),
                batch_base_offset=base,
                segment=path.name,
                source_node=source_node,
            )


def read_log(directory: Path, definitions: Definitions) -> list[Row]:
    """A `metadata.log.dir` from where its log begins: with the oldest snapshot, if not at 0."""
    properties = (directory / "meta.properties").read_text().splitlines()
    node = next(int(line.removeprefix("node.id=")) for line in properties if "node.id=" in line)
    log = directory / "__cluster_metadata-0"
    snapshots = sorted(log.glob("*.checkpoint"))
    rows = [
        row for path in sorted(log.glob("*.log")) for row in records_of(path, definitions, node)
    ]
    if rows and rows[0].offset == 0:
        snapshots = [path for path in snapshots if path.name.startswith("0" * 20)]
    before = list(records_of(snapshots[0], definitions, node)) if snapshots else []
    start = before[0].offset + 1 if before else 0
    return [*before, *(row for row in rows if row.offset >= start)]
