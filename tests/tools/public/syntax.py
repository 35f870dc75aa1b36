"""The syntax trees of `quorate`, to find names that are strings in calls."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import quorate

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGE: Final = Path(quorate.__file__).parent
# What stands for a part of a text or a purpose that is not written down.
PART: Final = "{}"


class Module(NamedTuple):
    """All nodes of one module."""

    nodes: tuple[ast.AST, ...]

    def of(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of some kinds."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def keywords(self, name: str) -> Iterator[ast.AST]:
        """The arguments of this name, of every call."""
        for node in self.of(ast.keyword):
            assert isinstance(node, ast.keyword)
            if node.arg == name:
                yield node.value


@cache
def modules() -> tuple[Module, ...]:
    """Every module but those that protoc wrote."""
    paths = (path for path in sorted(PACKAGE.rglob("*.py")) if "gen" not in path.parts)
    return tuple(Module(tuple(ast.walk(ast.parse(path.read_bytes())))) for path in paths)


def calls(*names: str) -> Iterator[tuple[Module, ast.Call]]:
    """Every call of a function or a method with one of these names."""
    for module in modules():
        for node in module.of(ast.Call):
            assert isinstance(node, ast.Call)
            if called(node) in names:
                yield module, node


def called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def text_of(node: ast.AST) -> str | None:
    """The text of a string, `{}` for each part of an f-string that is computed; None otherwise."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(text_of(part) or PART for part in values)
    return None


def texts(pattern: str) -> set[str]:
    """Every string of the package that fits as a whole."""
    found = set()
    for module in modules():
        for node in module.of(ast.Constant, ast.JoinedStr):
            text = text_of(node)
            if text is not None and re.fullmatch(pattern, text):
                found.add(text)
    return found


def keys_of(module: Module, node: ast.AST) -> Iterator[str]:
    """The keys of a dict that is written at a place, or under the name that stands there."""
    match node:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if key is None:
                    # `**value`
                    yield from keys_of(module, value)
                elif text := text_of(key):
                    yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from keys_of(module, body)
            yield from keys_of(module, orelse)
        case ast.Name(id=name):
            for place in module.of(ast.Assign, ast.AnnAssign):
                assert isinstance(place, ast.Assign | ast.AnnAssign)
                targets = place.targets if isinstance(place, ast.Assign) else [place.target]
                is_meant = any(isinstance(t, ast.Name) and t.id == name for t in targets)
                if is_meant and isinstance(place.value, ast.Dict | ast.IfExp):
                    yield from keys_of(module, place.value)


def forwarded(name: str, position: int) -> Iterator[str]:
    """The strings at that position of calls of `name`, and of functions that pass theirs on.

    A method that is handed what it gives to `name` is looked through: its callers write the string.
    """
    for _, call in calls(name):
        if len(call.args) > position and (text := text_of(call.args[position])) is not None:
            yield text
    for wrapper, place in sorted(set(_wrappers(name, position))):
        for _, call in calls(wrapper):
            if len(call.args) > place and (text := text_of(call.args[place])) is not None:
                yield text


def _wrappers(name: str, position: int) -> Iterator[tuple[str, int]]:
    for module in modules():
        for node in module.of(ast.FunctionDef, ast.AsyncFunctionDef):
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            parameters = [each.arg for each in node.args.args if each.arg != "self"]
            for call in ast.walk(node):
                if not isinstance(call, ast.Call) or called(call) != name:
                    continue
                match call.args[position : position + 1]:
                    case [ast.Name(id=passed)] if passed in parameters:
                        yield node.name, parameters.index(passed)
