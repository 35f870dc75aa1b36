"""Schemas against Kafka's own: ours are equal, and the machinery carries every message there is.

`schemas.json` holds Kafka 4.3.1's message definitions. Each message, in each version, is filled
with random values and comes back; `kio` must understand the same bytes; and captured exchanges
between stock nodes are decoded and encoded back to what went over the wire.
"""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pytest
from kio.index import UnknownEntity, load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from quorate.records import control
from quorate.records.codec.compiler import Codec, compile_codec
from quorate.records.codec.schema import Field, Schema, Struct, Versions, schema_of, zero_of
from quorate.records.metadata import RECORD_TYPES
from tests.interop.random_messages import INTEGERS, message_for

if TYPE_CHECKING:
    from pathlib import Path

Definition: TypeAlias = Mapping[str, Any]
Schemas: TypeAlias = dict[str, Schema]

FIRST_TAG_OF_OURS: Final = 10_000
CONTROL_MESSAGES = {
    "LeaderChangeMessage": control.LeaderChangeMessage,
    "SnapshotHeaderRecord": control.SnapshotHeaderRecord,
    "SnapshotFooterRecord": control.SnapshotFooterRecord,
    "KRaftVersionRecord": control.KRaftVersionRecord,
    "VotersRecord": control.VotersRecord,
}


# --- from Kafka's definitions to schemas --------------------------------------------------------


def snake_case(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return words.lower().replace("k_raft", "kraft")


def parse_default(definition: Definition) -> object:
    kind, default = definition["type"], definition.get("default")
    if default is None:
        return zero_of(kind)
    if default == "null":
        return None
    if kind == "bool":
        return default in (True, "true")
    return int(str(default), 0) if kind in INTEGERS else default


def parse_field(definition: Definition, structs: Mapping[str, Definition]) -> Field:
    kind = definition["type"].removeprefix("[]")
    inner = definition.get("fields") or structs.get(kind, {}).get("fields")
    flexible = definition.get("flexibleVersions")
    return Field(
        name=snake_case(definition["name"]),
        type=definition["type"],
        versions=Versions.parse(definition["versions"]),
        nullable=Versions.parse(definition.get("nullableVersions", "none")),
        tag=definition.get("tag"),
        tagged=Versions.parse(definition.get("taggedVersions", "none")),
        default=parse_default(definition),
        ignorable=definition.get("ignorable", False),
        flexible=None if flexible is None else Versions.parse(flexible),
        struct=None if inner is None else parse_struct(kind, inner, structs),
    )


def parse_struct(name: str, fields: list[Definition], structs: Mapping[str, Definition]) -> Struct:
    return Struct(name, tuple(parse_field(field, structs) for field in fields))


def parse_schema(definition: Definition) -> Schema:
    structs = {struct["name"]: struct for struct in definition.get("commonStructs", [])}
    return Schema(
        definition.get("apiKey"),
        Versions.parse(definition["validVersions"]),
        Versions.parse(definition.get("flexibleVersions", "none")),
        parse_struct(definition["name"], definition["fields"], structs),
    )


def shapes_for(struct: Struct) -> dict[str, type]:
    """A plain dataclass for each structure, for messages that the product has no class for."""
    fields: list[Any] = [(field.name, Any) for field in struct.fields]
    fields.append(("tagged", Any, dataclasses.field(default=())))
    shapes = {struct.name: dataclasses.make_dataclass(struct.name, fields, slots=True)}
    for field in struct.fields:
        if field.struct is not None:
            shapes |= shapes_for(field.struct)
    return shapes


def every_version(schemas: Schemas) -> list[tuple[Schema, dict[str, type], Codec[Any]]]:
    found = []
    for schema in schemas.values():
        shapes = shapes_for(schema.body)
        found += [
            (schema, shapes, compile_codec(schema, version, shapes))
            for version in range(schema.versions.first, schema.versions.last + 1)
        ]
    return found


# --- the tests ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schemas(kafka_fixtures: Path) -> Schemas:
    definitions = json.loads((kafka_fixtures / "schemas.json").read_text())
    return {name: parse_schema(definition) for name, definition in definitions.items()}


def test_every_metadata_record_is_declared_as_kafka_declares_it(schemas: Schemas) -> None:
    ours = {cls.__name__: schema_of(cls) for cls in RECORD_TYPES.values()}
    keys = {record.api_key for record in ours.values()}
    theirs = {name: schemas[name] for name in ours}
    assert len(keys) == len(ours) == 26
    assert ours == theirs


def test_every_metadata_record_of_kafka_is_declared(kafka_fixtures: Path) -> None:
    facts = json.loads((kafka_fixtures / "api-keys.json").read_text())["metadata_records"]
    assert {fact["id"]: fact["message"] for fact in facts} == {
        api_key: cls.__name__ for api_key, cls in RECORD_TYPES.items()
    }


def without_names(struct: Struct) -> Struct:
    """Our classes cannot all be called Voter: structures are compared by their fields."""
    fields = tuple(
        field
        if field.struct is None
        else dataclasses.replace(field, type=field.type[:2], struct=without_names(field.struct))
        for field in struct.fields
    )
    return Struct("", fields)


def kafka_s_part(struct: Struct) -> Struct:
    """Without the tagged fields that are ours alone, which have high numbers."""
    shared = (f for f in struct.fields if f.tag is None or f.tag < FIRST_TAG_OF_OURS)
    return Struct(struct.name, tuple(shared))


@pytest.mark.parametrize("name", CONTROL_MESSAGES)
def test_every_control_message_is_declared_as_kafka_declares_it(
    name: str, schemas: Schemas
) -> None:
    ours, theirs = schema_of(CONTROL_MESSAGES[name]), schemas[name]
    assert without_names(kafka_s_part(ours.body)) == without_names(theirs.body)
    assert (ours.versions, ours.flexible) == (theirs.versions, theirs.flexible)


def test_every_message_in_every_version_comes_back(schemas: Schemas) -> None:
    versions = every_version(schemas)
    assert len(versions) == 664
    for schema, shapes, codec in versions:
        message = message_for(schema, shapes, codec)
        encoded = codec.encode(message)
        assert codec.decode(encoded) == (message, len(encoded)), (schema.name, codec.version)
        assert codec.decode(b"before" + encoded + b"behind", 6) == (message, len(encoded) + 6)


KIO_TYPES: Mapping[str, Literal[EntityType.request, EntityType.response]] = {
    "Request": EntityType.request,
    "Response": EntityType.response,
}


def test_kio_understands_the_newest_version_of_every_request_and_response(schemas: Schemas) -> None:
    """Reading and writing back what we wrote shows that kio sees the same fields."""
    understood = 0
    for schema, shapes, codec in every_version(schemas):
        ending = re.fullmatch(r"(.+)(Request|Response)", schema.name)
        if ending is None or codec.version != schema.versions.last:
            continue
        try:
            entity = load_entity_schema(snake_case(ending[1]), codec.version, KIO_TYPES[ending[2]])
        except UnknownEntity:
            continue
        encoded = codec.encode(message_for(schema, shapes, codec, is_tame=True))
        theirs, size = entity_reader(entity)(encoded, 0)
        assert size == len(encoded), schema.name
        with io.BytesIO() as out:
            entity_writer(entity)(out, theirs)
            assert out.getvalue() == encoded, schema.name
        understood += 1
    assert understood > 150


def test_captured_exchanges_are_decoded_and_encoded_back(
    schemas: Schemas, kafka_fixtures: Path
) -> None:
    index = json.loads((kafka_fixtures / "wire" / "index.json").read_text())
    assert len(index) > 40
    for exchange in index:
        for side in ("request", "response"):
            data = (kafka_fixtures / "wire" / f"{exchange['file']}.{side}.bin").read_bytes()
            name = f"{exchange['request_header']['api']}{side.title()}"
            position = 4
            for part, version in (
                (f"{side.title()}Header", exchange[f"{side}_header"]["header_version"]),
                (name, exchange["request_header"]["version"]),
            ):
                codec = compile_codec(schemas[part], version, shapes_for(schemas[part].body))
                message, end = codec.decode(data, position)
                assert codec.encode(message) == data[position:end], (exchange["file"], part)
                position = end
            assert position == len(data)
