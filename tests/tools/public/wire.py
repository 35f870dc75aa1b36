"""Names that travel: messages and services of protobuf, Kafka's records, error codes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from quorate.records.codec.schema import schema_of
from quorate.records.errors import ErrorCode
from quorate.records.json_format import CONTROLS, field_name
from quorate.records.metadata import RECORD_TYPES
from quorate.rpc import gen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.records.codec.schema import Struct, Versions

_NEWEST: Final = 32767


# --- protobuf -------------------------------------------------------------------------------------


def protobuf() -> Iterator[str]:
    """Every file with its package, messages, enums and services."""
    (folder,) = map(Path, gen.__path__)
    for path in folder.rglob("*_pb2.py"):
        dotted = ".".join(path.relative_to(folder).with_suffix("").parts)
        file = FileDescriptorProto()
        import_module(f"{gen.__name__}.{dotted}").DESCRIPTOR.CopyToProto(file)
        yield from _of_file(file)


def _of_file(file: FileDescriptorProto) -> Iterator[str]:
    package = file.package
    yield f"{file.name}: package {package}"
    for message in file.message_type:
        yield from _of_message(f"{package}.{message.name}", message)
    for enum in file.enum_type:
        yield from _of_enum(f"{package}.{enum.name}", enum)
    for service in file.service:
        yield f"{package}.{service.name} service"
        for method in service.method:
            asks = f"{'stream ' * method.client_streaming}{method.input_type[1:]}"
            answers = f"{'stream ' * method.server_streaming}{method.output_type[1:]}"
            yield f"{package}.{service.name}/{method.name} ({asks}) ({answers})"


def _of_message(name: str, message: DescriptorProto) -> Iterator[str]:
    yield f"{name} message"
    for field in message.field:
        yield f"{name}.{field.name} = {field.number} {_type_of(field, message)}"
    for inner in message.nested_type:
        yield from _of_message(f"{name}.{inner.name}", inner)
    for enum in message.enum_type:
        yield from _of_enum(f"{name}.{enum.name}", enum)


def _type_of(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    words = [field.type_name.removeprefix(".") or kind]
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        words.insert(0, "repeated")
    if field.proto3_optional:
        words.insert(0, "optional")
    elif field.HasField("oneof_index"):
        words.append(f"of oneof {message.oneof_decl[field.oneof_index].name}")
    return " ".join(words)


def _of_enum(name: str, enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"{name} enum"
    for value in enum.value:
        yield f"{name}.{value.name} = {value.number}"


# --- Kafka's records ------------------------------------------------------------------------------


def records() -> Iterator[str]:
    """Every record of the metadata log with its key, and its fields as the wire has them."""
    kinds = [("metadata", key, kind) for key, kind in RECORD_TYPES.items()]
    kinds += [("control", key, kind) for key, (_, kind) in CONTROLS.items()]
    for group, key, kind in kinds:
        schema = schema_of(kind)
        versions = f"versions {_range(schema.versions)}, flexible {_range(schema.flexible)}"
        yield f"{schema.name}: {group} record {key}, {versions}"
        yield from _of_struct(schema.name, schema.body)
    yield from (f"label of a control record: {label.strip()}" for label, _ in CONTROLS.values())


def _of_struct(name: str, struct: Struct) -> Iterator[str]:
    for field in struct.fields:
        words = [field_name(field.name), field.type, _range(field.versions)]
        if field.tag is not None:
            words.append(f"tag {field.tag}")
        if field.nullable.first <= field.nullable.last:
            words.append(f"nullable {_range(field.nullable)}")
        # The attribute in Python, then Kafka's name, which JSON and rows of Spark have.
        yield f"{name}.{field.name}: {' '.join(words)}"
        if field.struct is not None:
            yield from _of_struct(f"{name}.{field.name}", field.struct)


def _range(versions: Versions) -> str:
    if versions.last == _NEWEST:
        return f"{versions.first}+"
    if versions.first > versions.last:
        return "none"
    return f"{versions.first}-{versions.last}"


def errors() -> Iterator[str]:
    """Kafka's error codes that answers have."""
    yield from (f"{code.name} = {code.value}" for code in ErrorCode)
