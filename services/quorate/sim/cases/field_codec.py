"""Encodes dataclass fields as name=value words, `who=1 down_us=500`, and back.

Supported are non-negative integers and rates, `yes` and `no`, text, members of an Enum by name,
tuples of these separated by commas, and nested values, whose fields are listed with the others.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from quorate.settings.integers import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

_RATE: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,20})?(e-[0-9]{1,2})?", re.ASCII)
_TRUTHS: Final = {"yes": True, "no": False}
# The text of an empty tuple.
_NOTHING: Final = "-"


def flat(value: object) -> Iterator[tuple[str, Any]]:
    """Yield name and content of each field, including the fields of nested values."""
    for field in fields(value):  # type: ignore[arg-type]
        item = getattr(value, field.name)
        if is_dataclass(item):
            yield from flat(item)
        else:
            yield field.name, item


def with_fields(value: T, **given: Any) -> T:  # noqa: ANN401 - as many types as fields
    """Replace these fields, nested ones included. Raises TypeError for unknown fields."""
    changed = _replace_taken(value, given)
    if given:
        raise TypeError(f"{type(value).__name__} has no field {', '.join(given)}")
    return changed


def _replace_taken(value: T, given: dict[str, Any]) -> T:
    """Replace the fields of this value and remove them from `given`."""
    taken: dict[str, Any] = {}
    for field in fields(value):  # type: ignore[arg-type]
        item = getattr(value, field.name)
        if field.name in given:
            taken[field.name] = given.pop(field.name)
        elif is_dataclass(item):
            taken[field.name] = _replace_taken(item, given)
    return replace(value, **taken)  # type: ignore[type-var]


def write_value(value: object, default: object = None) -> Iterator[str]:
    """Yield a word for each field that differs from `default`, or else from its own default."""
    for field in fields(value):  # type: ignore[arg-type]
        item = getattr(value, field.name)
        if default is not None:
            usual = getattr(default, field.name)
        elif field.default_factory is not MISSING:
            usual = field.default_factory()
        else:
            usual = field.default
        if is_dataclass(item):
            yield from write_value(item, usual)
        elif item != usual:
            yield f"{field.name}={shlex.quote(_written(item))}"


def _written(item: object) -> str:
    match item:
        case bool():
            return "yes" if item else "no"
        case Enum():
            return item.name.lower()
        case tuple():
            return ",".join(map(_written, item)) or _NOTHING
    return str(item)


def read_value(kind: type[T], words: Iterable[str]) -> T:
    """Parse a value of type `kind`. Raises ValueError, which names the field and its format."""
    given: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name in given:
            raise ValueError(f"{word!r}: each field is needed once, as name=value")
        given[name] = text
    value = _take(kind, given)
    if given:
        names = ", ".join(_names(kind))
        raise ValueError(f"there is no field {', '.join(given)}, only {names}")
    return value


def _names(kind: type) -> Iterator[str]:
    hints = get_type_hints(kind)
    for field in fields(kind):
        hint = hints[field.name]
        if is_dataclass(hint):
            yield from _names(hint)  # type: ignore[arg-type]
        else:
            yield field.name


def _take(kind: type[T], given: dict[str, str]) -> T:
    """Build a value of type `kind` and remove its fields from `given`. Raises ValueError."""
    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for field in fields(kind):  # type: ignore[arg-type]
        hint = hints[field.name]
        if is_dataclass(hint):
            values[field.name] = _take(hint, given)  # type: ignore[arg-type]
        elif field.name in given:
            try:
                values[field.name] = _read(hint, given.pop(field.name))
            except ValueError as error:
                raise ValueError(f"{field.name}: {error}") from None
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{field.name} is needed")
    return kind(**values)


def _read(hint: Any, text: str) -> object:  # noqa: ANN401 - a type, or what stands for some
    if get_origin(hint) is tuple:
        parts = [] if text == _NOTHING else text.split(",")
        return tuple(_read(get_args(hint)[0], part) for part in parts)
    if hint is bool:
        return _one_of(_TRUTHS, text)
    if hint is int:
        return whole_number(text, minimum=-1)
    if hint is float:
        if _RATE.fullmatch(text) is None or not math.isfinite(float(text)):
            raise ValueError(f"{text!r}: a rate such as 0.05 is needed")
        return float(text)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _one_of({member.name.lower(): member for member in hint}, text)
    return text


def _one_of(choices: dict[str, T], text: str) -> T:
    if text not in choices:
        raise ValueError(f"{text!r}: one of {', '.join(choices)} is needed")
    return choices[text]
