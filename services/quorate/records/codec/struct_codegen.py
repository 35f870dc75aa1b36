"""Generates the reader and the writer of a structure as straight-line functions.

The functions inline the fields of nearly every record: runs of fixed fields, strings and arrays of
numbers whose compact length takes one byte, no tags. For all other fields, and for invalid values,
they call the closures of records/codec/primitives.py.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from quorate.records.codec.code_builder import CodeBuilder
from quorate.records.codec.primitives import Reader, Writer, check_uuid
from quorate.records.codec.schema import TAGGED, SchemaError
from quorate.records.codec.varint import encode_uvarint
from quorate.records.ids import UUID_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from quorate.records.codec.varint import Buffer

# Reads the tagged fields in their order, and unknown tags last.
ReadTags: TypeAlias = "Callable[[Buffer, int, list[Any]], int]"

TEXT: Final = "text"
# A compact length is the length plus one, and takes one byte below this.
_TWO_BYTES: Final = 0x80
# Arrays below this length have precomputed layouts.
_SHORT: Final = 16
_UUID: Final = f"{UUID_BYTES}s"
# The errors of values that cannot be read, or written.
_READING: Final = (struct.error, IndexError, ValueError)
_WRITING: Final = (struct.error, ValueError, TypeError, AttributeError)


class Run(NamedTuple):
    """Neighbouring fields of fixed size, and the `struct` format of each."""

    names: Sequence[str]
    codes: Sequence[str]


class Part(NamedTuple):
    """Any other field. With a compact length `kind` is TEXT, or the format of each number."""

    name: str
    read: Reader
    write: Writer
    kind: str | None = None


class Tag(NamedTuple):
    """A field that is encoded under a tag, unless it has its default."""

    tag: int
    default: Any
    part: Part


class Tags(NamedTuple):
    """All tagged fields of a flexible version; other versions have none."""

    known: Sequence[Tag]
    read: ReadTags

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of the fields that have a tag."""
        return {each.part.name: each.default for each in self.known}


def make_struct_decoder(
    shape: type, parts: Sequence[Run | Part], tags: Tags | None, absent: Mapping[str, Any]
) -> Reader:
    """Generate a reader of the parts and then the tags; absent fields get their defaults."""
    source = CodeBuilder(f"read {shape.__name__}", "buffer", "position")
    values = {name: source.bind(value, name) for name, value in absent.items()}
    source.line("size, name = len(buffer), ''")
    with source.block("try:"):
        source.line("pass")
        for part in parts:
            if isinstance(part, Run):
                values |= _read_run(source, part)
            else:
                values[part.name] = _read_part(source, part)
    _name_errors(source, _READING)
    values |= {TAGGED: "()"} if tags is None else _read_tags(source, tags)
    source.line(f"return {source.instance(shape, values)}, position")
    made: Reader = source.compiled()
    return made


def _name_errors(code_builder: CodeBuilder, errors: tuple[type[Exception], ...]) -> None:
    refuse = code_builder.bind(SchemaError, "SchemaError")
    with code_builder.block(f"except {code_builder.bind(errors, 'errors')} as error:"):
        code_builder.line(f"raise {refuse}(f'{{name}}: {{error}}') from error")


def _read_run(code_builder: CodeBuilder, run: Run) -> dict[str, str]:
    layout = struct.Struct(">" + "".join(run.codes))
    found = {name: code_builder.local(name) for name in run.names}
    code_builder.line(f"name = {', '.join(run.names)!r}")
    unpack = code_builder.bind(layout.unpack_from, "unpack")
    code_builder.line(f"{', '.join(found.values())}, = {unpack}(buffer, position)")
    code_builder.line(f"position += {layout.size}")
    return found


def _read_part(code_builder: CodeBuilder, part: Part) -> str:
    found, count, end = (code_builder.local(hint) for hint in (part.name, "count", "end"))
    at_length = f"{found}, position = {code_builder.bind(part.read, 'read')}(buffer, position)"
    code_builder.line(f"name = {part.name!r}")
    if part.kind is None:
        code_builder.line(at_length)
        return found
    code_builder.line(f"{count} = buffer[position]")
    if part.kind == TEXT:
        code_builder.line(f"{end} = position + {count}")
        with code_builder.block(f"if 0 < {count} < {_TWO_BYTES} and {end} <= size:"):
            code_builder.line(f"{found} = str(buffer[position + 1:{end}], 'utf-8')")
            code_builder.line(f"position = {end}")
    else:
        layouts = _short_layouts(part.kind)
        unpacks = code_builder.bind((None, *(layout.unpack_from for layout in layouts)), "unpacks")
        with code_builder.block(f"if 0 < {count} <= {_SHORT}:"):
            code_builder.line(f"{found} = {unpacks}[{count}](buffer, position + 1)")
            code_builder.line(f"position += 1 + ({count} - 1) * {layouts[1].size}")
    with code_builder.block("else:"):
        code_builder.line(at_length)
    return found


def _short_layouts(code: str) -> list[struct.Struct]:
    return [struct.Struct(f">{count}{code}") for count in range(_SHORT)]


def _read_tags(code_builder: CodeBuilder, tags: Tags) -> dict[str, str]:
    found = {name: code_builder.local(name) for name in (*tags.defaults, TAGGED)}
    names, defaults = (
        ", ".join(found.values()),
        code_builder.bind((*tags.defaults.values(), ()), "none"),
    )
    with code_builder.block("if position < size and not buffer[position]:"):
        code_builder.line(f"{names}, = {defaults}")
        code_builder.line("position += 1")
    with code_builder.block("else:"):
        code_builder.line(f"values = list({defaults})")
        code_builder.line(
            f"position = {code_builder.bind(tags.read, 'read_tags')}(buffer, position, values)"
        )
        code_builder.line(f"{names}, = values")
    return found


def make_struct_encoder(
    shape: type,
    parts: Sequence[Run | Part],
    tags: Tags | None,
    guarded: Mapping[str, Any],
    version: int,
) -> Writer:
    """Generate a writer of the parts and then the tags; `guarded` fields must have this value."""
    source = CodeBuilder(f"write {shape.__name__}", "out", "value")
    names = [name for part in parts for name in (part.names if isinstance(part, Run) else part[:1])]
    tagged = [] if tags is None else [*tags.defaults]
    values = {name: source.local(name) for name in (*names, *tagged, *guarded, TAGGED)}
    for name, local in values.items():
        source.line(f"{local} = value.{name}")
    source.line("name = ''")
    with source.block("try:"):
        source.line("pass")
        for part in parts:
            if isinstance(part, Run):
                _write_run(source, part, [values[name] for name in part.names])
            else:
                _write_part(source, part, values[part.name])
    _name_errors(source, _WRITING)
    for name, default in guarded.items():
        with source.block(f"if {values[name]} != {source.bind(default, 'default')}:"):
            refuse = source.bind(_refuse_value, "refuse")
            source.line(f"{refuse}({name!r}, {values[name]}, {version})")
    _write_tags(source, tags, [values[name] for name in (*tagged, TAGGED)])
    made: Writer = source.compiled()
    return made


def _write_run(code_builder: CodeBuilder, run: Run, values: Sequence[str]) -> None:
    pack = code_builder.bind(struct.Struct(">" + "".join(run.codes)).pack, "pack")
    code_builder.line(f"name = {', '.join(run.names)!r}")
    for value, code in zip(values, run.codes, strict=True):
        if code == _UUID:
            with code_builder.block(
                f"if type({value}) is not bytes or len({value}) != {UUID_BYTES}:"
            ):
                code_builder.line(f"{code_builder.bind(check_uuid, 'check_uuid')}({value})")
    code_builder.line(f"out += {pack}({', '.join(values)})")


def _write_part(code_builder: CodeBuilder, part: Part, value: str, out: str = "out") -> None:
    count, content = code_builder.local("count"), code_builder.local("content")
    write = f"{code_builder.bind(part.write, 'write')}({out}, {value})"
    code_builder.line(f"name = {part.name!r}")
    if part.kind is None:
        code_builder.line(write)
        return
    with code_builder.block(f"if {value} is None:"):
        code_builder.line(write)
    with code_builder.block("else:"):
        if part.kind == TEXT:
            code_builder.line(f"{content} = {value}.encode()")
            code_builder.line(f"{count} = len({content}) + 1")
            with code_builder.block(f"if {count} < {_TWO_BYTES}:"):
                code_builder.line(f"{out}.append({count})")
                code_builder.line(f"{out} += {content}")
        else:
            packs = code_builder.bind(
                [layout.pack for layout in _short_layouts(part.kind)], "packs"
            )
            code_builder.line(f"{count} = len({value})")
            with code_builder.block(f"if {count} < {_SHORT}:"):
                code_builder.line(f"{out}.append({count} + 1)")
                code_builder.line(f"{out} += {packs}[{count}](*{value})")
        with code_builder.block("else:"):
            code_builder.line(write)


def _write_tags(code_builder: CodeBuilder, tags: Tags | None, values: Sequence[str]) -> None:
    if tags is None:
        with code_builder.block(f"if {values[-1]}:"):
            code_builder.line(f"{code_builder.bind(_refuse_tags, 'refuse')}()")
        return
    code_builder.line(f"found = list({values[-1]})")
    for each, value in zip(tags.known, values, strict=False):
        with code_builder.block(f"if {value} != {code_builder.bind(each.default, 'default')}:"):
            code_builder.line("content = bytearray()")
            _write_part(code_builder, each.part, value, "content")
            code_builder.line(f"found.append(({each.tag}, content))")
    with code_builder.block("if found:"):
        code_builder.line(f"{code_builder.bind(_write_found, 'write_found')}(out, found)")
    with code_builder.block("else:"):
        code_builder.line("out.append(0)")


def _write_found(out: bytearray, found: list[tuple[int, bytes | bytearray]]) -> None:
    found.sort()
    out += encode_uvarint(len(found))
    for tag, content in found:
        out += encode_uvarint(tag)
        out += encode_uvarint(len(content))
        out += content


def _refuse_value(name: str, value: object, version: int) -> NoReturn:
    raise SchemaError(f"{name} is {value!r}, but version {version} has no such field")


def _refuse_tags() -> NoReturn:
    raise SchemaError("a version that is not flexible has no tagged fields")
