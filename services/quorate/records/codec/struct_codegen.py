"""Generates the reader and the writer of a structure as straight-line functions.

The functions inline the fields of nearly every record: runs of fixed fields, strings and arrays of
numbers whose compact length takes one byte, no tags. For all other fields, and for invalid values,
they call the closures of records/codec/primitives.py.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from quorate.records.codec.code_builder import Source
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


def structure_reader(
    shape: type, parts: Sequence[Run | Part], tags: Tags | None, absent: Mapping[str, Any]
) -> Reader:
    """Generate a reader of the parts and then the tags; absent fields get their defaults."""
    source = Source(f"read {shape.__name__}", "buffer", "position")
    values = {name: source.outer(value, name) for name, value in absent.items()}
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


def _name_errors(source: Source, errors: tuple[type[Exception], ...]) -> None:
    refuse = source.outer(SchemaError, "SchemaError")
    with source.block(f"except {source.outer(errors, 'errors')} as error:"):
        source.line(f"raise {refuse}(f'{{name}}: {{error}}') from error")


def _read_run(source: Source, run: Run) -> dict[str, str]:
    layout = struct.Struct(">" + "".join(run.codes))
    found = {name: source.local(name) for name in run.names}
    source.line(f"name = {', '.join(run.names)!r}")
    unpack = source.outer(layout.unpack_from, "unpack")
    source.line(f"{', '.join(found.values())}, = {unpack}(buffer, position)")
    source.line(f"position += {layout.size}")
    return found


def _read_part(source: Source, part: Part) -> str:
    found, count, end = (source.local(hint) for hint in (part.name, "count", "end"))
    at_length = f"{found}, position = {source.outer(part.read, 'read')}(buffer, position)"
    source.line(f"name = {part.name!r}")
    if part.kind is None:
        source.line(at_length)
        return found
    source.line(f"{count} = buffer[position]")
    if part.kind == TEXT:
        source.line(f"{end} = position + {count}")
        with source.block(f"if 0 < {count} < {_TWO_BYTES} and {end} <= size:"):
            source.line(f"{found} = str(buffer[position + 1:{end}], 'utf-8')")
            source.line(f"position = {end}")
    else:
        layouts = _short_layouts(part.kind)
        unpacks = source.outer((None, *(layout.unpack_from for layout in layouts)), "unpacks")
        with source.block(f"if 0 < {count} <= {_SHORT}:"):
            source.line(f"{found} = {unpacks}[{count}](buffer, position + 1)")
            source.line(f"position += 1 + ({count} - 1) * {layouts[1].size}")
    with source.block("else:"):
        source.line(at_length)
    return found


def _short_layouts(code: str) -> list[struct.Struct]:
    return [struct.Struct(f">{count}{code}") for count in range(_SHORT)]


def _read_tags(source: Source, tags: Tags) -> dict[str, str]:
    found = {name: source.local(name) for name in (*tags.defaults, TAGGED)}
    names, defaults = ", ".join(found.values()), source.outer((*tags.defaults.values(), ()), "none")
    with source.block("if position < size and not buffer[position]:"):
        source.line(f"{names}, = {defaults}")
        source.line("position += 1")
    with source.block("else:"):
        source.line(f"values = list({defaults})")
        source.line(f"position = {source.outer(tags.read, 'read_tags')}(buffer, position, values)")
        source.line(f"{names}, = values")
    return found


def structure_writer(
    shape: type,
    parts: Sequence[Run | Part],
    tags: Tags | None,
    guarded: Mapping[str, Any],
    version: int,
) -> Writer:
    """Generate a writer of the parts and then the tags; `guarded` fields must have this value."""
    source = Source(f"write {shape.__name__}", "out", "value")
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
        with source.block(f"if {values[name]} != {source.outer(default, 'default')}:"):
            refuse = source.outer(_refuse_value, "refuse")
            source.line(f"{refuse}({name!r}, {values[name]}, {version})")
    _write_tags(source, tags, [values[name] for name in (*tagged, TAGGED)])
    made: Writer = source.compiled()
    return made


def _write_run(source: Source, run: Run, values: Sequence[str]) -> None:
    pack = source.outer(struct.Struct(">" + "".join(run.codes)).pack, "pack")
    source.line(f"name = {', '.join(run.names)!r}")
    for value, code in zip(values, run.codes, strict=True):
        if code == _UUID:
            with source.block(f"if type({value}) is not bytes or len({value}) != {UUID_BYTES}:"):
                source.line(f"{source.outer(check_uuid, 'check_uuid')}({value})")
    source.line(f"out += {pack}({', '.join(values)})")


def _write_part(source: Source, part: Part, value: str, out: str = "out") -> None:
    count, content = source.local("count"), source.local("content")
    write = f"{source.outer(part.write, 'write')}({out}, {value})"
    source.line(f"name = {part.name!r}")
    if part.kind is None:
        source.line(write)
        return
    with source.block(f"if {value} is None:"):
        source.line(write)
    with source.block("else:"):
        if part.kind == TEXT:
            source.line(f"{content} = {value}.encode()")
            source.line(f"{count} = len({content}) + 1")
            with source.block(f"if {count} < {_TWO_BYTES}:"):
                source.line(f"{out}.append({count})")
                source.line(f"{out} += {content}")
        else:
            packs = source.outer([layout.pack for layout in _short_layouts(part.kind)], "packs")
            source.line(f"{count} = len({value})")
            with source.block(f"if {count} < {_SHORT}:"):
                source.line(f"{out}.append({count} + 1)")
                source.line(f"{out} += {packs}[{count}](*{value})")
        with source.block("else:"):
            source.line(write)


def _write_tags(source: Source, tags: Tags | None, values: Sequence[str]) -> None:
    if tags is None:
        with source.block(f"if {values[-1]}:"):
            source.line(f"{source.outer(_refuse_tags, 'refuse')}()")
        return
    source.line(f"found = list({values[-1]})")
    for each, value in zip(tags.known, values, strict=False):
        with source.block(f"if {value} != {source.outer(each.default, 'default')}:"):
            source.line("content = bytearray()")
            _write_part(source, each.part, value, "content")
            source.line(f"found.append(({each.tag}, content))")
    with source.block("if found:"):
        source.line(f"{source.outer(_write_found, 'write_found')}(out, found)")
    with source.block("else:"):
        source.line("out.append(0)")


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
