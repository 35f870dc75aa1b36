"""Schemas as data: the fields of a message, with the versions and the encoding of each.

The model is that of Kafka's message definitions: ranges of versions for presence, nullability,
tagging and the flexible encoding; defaults for fields that a version lacks. A dataclass with `Wire`
annotations declares its own schema (`schema_of`). Encoders and decoders are derived from schemas in
records/codec/compiler.py.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Final,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from quorate.records.ids import ZERO_UUID
from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

# Tagged fields that a schema does not know, by ascending tag: kept, and written back unchanged.
Tagged: TypeAlias = tuple[tuple[int, bytes], ...]
TAGGED: Final = "tagged"

_NEWEST: Final = 32767
_ZEROES: Final[Mapping[str, object]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": b"",
}


class SchemaError(ValueError):
    """Bytes or values that violate their schema; the message names the field."""


@value_type
class Versions:
    """A range of versions, both ends included; empty if `first` is above `last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse Kafka's notation: `3`, `1-4`, `2+` or `none`."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), _NEWEST)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


@keyword_value_type
class Field:
    """One field of a message.

    `type` is Kafka's name: `int32`, `string`, `[]uuid`, or the name of a structure, whose fields
    are then in `struct`. In the versions `tagged` it is encoded under `tag`; `flexible` overrides
    the message's flexible versions. A field that is not `ignorable` may not be dropped: a version
    without it rejects every value but the default.
    """

    name: str
    type: str
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: object
    ignorable: bool
    flexible: Versions | None
    struct: Struct | None

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def element(self) -> str:
        """The type without the array prefix."""
        return self.type.removeprefix("[]")


@value_type
class Struct:
    """A named list of fields: a message's body, or a structure inside one."""

    name: str
    fields: tuple[Field, ...]


@value_type
class Schema:
    """A message: its key if it has one, its versions and its fields."""

    api_key: int | None
    versions: Versions
    flexible: Versions
    body: Struct

    @property
    def name(self) -> str:
        return self.body.name


# The default of a structure that may not be null: all its fields at their defaults.
OWN_DEFAULTS: Final = object()


def zero_of(type_name: str) -> object:
    """The default of a field without one of its own: zero, empty, or a structure of defaults."""
    return () if type_name.startswith("[]") else _ZEROES.get(type_name, OWN_DEFAULTS)


_UNSET: Final = object()


@value_type
class Wire:
    """Wire encoding of a dataclass's field; the arguments are Kafka's, `versions` as its text.

    `default` is Kafka's default if it is not the dataclass's own.
    """

    type: str
    versions: str = "0+"
    nullable: str = "none"
    tag: int | None = None
    ignorable: bool = False
    flexible: str | None = None
    default: object = _UNSET


@value_type
class _Message:
    api_key: int | None
    versions: str
    flexible: str


_MESSAGES: dict[type, _Message] = {}
_SCHEMAS: dict[type, Schema] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
def structure(cls: type[T]) -> type[T]:
    """Make a value type of a class with `Wire` annotations."""
    return keyword_value_type(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(
    *, api_key: int | None, versions: str = "0", flexible: str = "0+"
) -> Callable[[type[T]], type[T]]:
    """Make a `structure` that is a message."""

    def declare(cls: type[T]) -> type[T]:
        made = structure(cls)
        _MESSAGES[made] = _Message(api_key, versions, flexible)
        return made

    return declare


def schema_of(cls: type) -> Schema:
    """The schema that a class made by `message` declares."""
    found = _SCHEMAS.get(cls)
    if found is None:
        about = _MESSAGES[cls]
        found = _SCHEMAS[cls] = Schema(
            about.api_key,
            Versions.parse(about.versions),
            Versions.parse(about.flexible),
            Struct(cls.__name__, _fields_of(cls)),
        )
    return found


def shapes_of(cls: type) -> dict[str, type]:
    """The classes of a message and of the structures inside it, by the structures' names."""
    shapes = {cls.__name__: cls}
    for hint in get_type_hints(cls, include_extras=True).values():
        inner = _structure_in(hint)
        if inner is not None:
            shapes |= shapes_of(inner)
    return shapes


def _fields_of(cls: type) -> tuple[Field, ...]:
    hints = get_type_hints(cls, include_extras=True)
    assert is_dataclass(cls)
    return tuple(
        _field(item.name, hints[item.name], item.default)
        for item in fields(cls)
        if item.name != TAGGED
    )


def _field(name: str, hint: object, default: object) -> Field:
    wire: Wire = next(extra for extra in get_args(hint)[1:] if isinstance(extra, Wire))
    inner = _structure_in(hint)
    versions = Versions.parse(wire.versions)
    if wire.default is not _UNSET:
        default = wire.default
    return Field(
        name=name,
        type=wire.type,
        versions=versions,
        nullable=Versions.parse(wire.nullable),
        tag=wire.tag,
        tagged=Versions.parse("none") if wire.tag is None else versions,
        default=zero_of(wire.type) if default is MISSING else default,
        ignorable=wire.ignorable,
        flexible=None if wire.flexible is None else Versions.parse(wire.flexible),
        struct=None if inner is None else Struct(inner.__name__, _fields_of(inner)),
    )


def _structure_in(hint: object) -> type | None:
    """The dataclass in a type hint: `C`, `C | None`, `tuple[C, ...]`, annotated or not."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    for part in (hint, *(inner for arg in get_args(hint) for inner in (arg, *get_args(arg)))):
        if isinstance(part, type) and is_dataclass(part):
            return part
    return None
