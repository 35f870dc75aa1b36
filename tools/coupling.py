"""Measures of coupling in services/quorate, counted by package and compared with ceilings.

Three numbers per package, each read from the syntax trees alone:

*Outside writes*: the modules that write a field of an object from outside its class. A write is an
attribute that is assigned, augmented, annotated with a value, deleted or bound by a loop, or one
that `setattr` or `delattr` names. It is from outside unless

- its object is `self` or `cls`;
- its object is a local name that the same function binds to new objects only: to calls of a
  capitalised name, of `cls`, or of `__new__`;
- a class of the same module declares a field of that name: a module may fill its own records.

*Callable parameters*: the parameters of constructors that take something to call. The annotation
contains `Callable`, a protocol with `__call__`, or an alias of either; imports are followed. The
parameters of a class are those of its `__init__`; a decorated class or a named tuple without one
takes its annotated fields.

*Long chains*: the accesses to a part of another object's part, such as `self.a.b.c` or `other.b.c`.
The first object is what `self` or `cls` holds, or else the name that the chain starts with; from
there a chain has two dots or more. A call or a subscript starts a new chain. A chain is not counted
if it starts with an imported name or with a class of the module, or leads through a capitalised
name: these are modules, classes and enums.

`tools/coupling.txt` holds the ceilings, which only go down. A number above its ceiling is a
finding. So is a number below it, so that what was gained is kept: `python tools/lint.py --lower`
writes the lower number.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from tools.source_tree import PACKAGE, SOURCE_ROOT, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CEILINGS = PurePosixPath("tools/coupling.txt")
MEASURES = ("modules with outside writes", "callable parameters", "long chains")
# The modules of services/quorate that lie in no package.
TOP = "."
HEADER = """\
# Ceilings of tools/coupling.py. They only go down: python tools/lint.py --lower
# package: modules with outside writes, callable parameters, long chains
"""

# The numbers of one package, in the order of `MEASURES`.
Numbers: TypeAlias = tuple[int, ...]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def coupling_goes_down(tree: Tree) -> Iterator[str]:
    """No package couples more than its ceilings allow, and no ceiling is higher than needed."""
    ceilings = read_ceilings(tree)
    counts = measure(tree)
    none = (0,) * len(MEASURES)
    for package in sorted(ceilings.keys() | counts.keys()):
        allowed = ceilings.get(package, none)
        for name, number, ceiling in zip(MEASURES, counts.get(package, none), allowed, strict=True):
            if number > ceiling:
                yield (
                    f"{_folder(package)}: {number} {name}, the ceiling is {ceiling}: take out what "
                    f"was added (tools/coupling.py says what counts)"
                )
            elif number < ceiling:
                yield (
                    f"{_folder(package)}: {number} {name}, the ceiling is {ceiling}: lower the "
                    f"ceiling to {number} (python tools/lint.py --lower)"
                )


def lowered_ceilings(tree: Tree) -> str:
    """The text of `tools/coupling.txt` with each ceiling at its number, if that is lower."""
    counts = measure(tree)
    none = (0,) * len(MEASURES)
    lowered = {
        package: tuple(map(min, ceilings, counts.get(package, none)))
        for package, ceilings in read_ceilings(tree).items()
    }
    return HEADER + "".join(
        f"{package}: {', '.join(map(str, numbers))}\n"
        for package, numbers in sorted(lowered.items())
        if any(numbers)
    )


def read_ceilings(tree: Tree) -> dict[str, Numbers]:
    """The committed ceilings by package; a package that is not listed has zeros."""
    ceilings = {}
    for line in tree.texts.get(CEILINGS, "").splitlines():
        if not line.startswith("#"):
            package, _, numbers = line.partition(": ")
            ceilings[package] = tuple(map(int, numbers.split(", ")))
    return ceilings


def measure(tree: Tree) -> dict[str, Numbers]:
    """The numbers of today by package."""
    modules = {
        _dotted(path): _Module(tree.modules[path], tree.nodes[path]) for path in tree.below(PACKAGE)
    }
    totals: dict[str, Counter[str]] = {}
    for path in tree.below(PACKAGE):
        name = _dotted(path)
        module = modules[name]
        parts = path.relative_to(PACKAGE).parts
        total = totals.setdefault(parts[0] if len(parts) > 1 else TOP, Counter())
        total["modules with outside writes"] += _writes_outside(module)
        total["callable parameters"] += sum(
            _takes_callable(modules, name, annotation)
            for annotation in _constructor_annotations(module)
        )
        total["long chains"] += _long_chains(module)
    return {
        package: tuple(total[measure] for measure in MEASURES) for package, total in totals.items()
    }


def _folder(package: str) -> str:
    return str(PACKAGE if package == TOP else PACKAGE / package)


def _dotted(path: PurePosixPath) -> str:
    return ".".join(path.relative_to(SOURCE_ROOT).with_suffix("").parts).removesuffix(".__init__")


@dataclass
class _Module:
    """The parts of one module that the measures read."""

    tree: ast.Module
    nodes: list[ast.AST]
    # Imported names: the module, and the name in it unless the module itself is meant.
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Names that the module assigns, which may be aliases of types.
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    classes: list[ast.ClassDef] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in self.nodes:
            match node:
                case ast.Import():
                    for alias in node.names:
                        module = alias.name if alias.asname else alias.name.partition(".")[0]
                        self.imports[alias.asname or module] = (module, "")
                case ast.ImportFrom(module=str(module)):
                    for alias in node.names:
                        self.imports[alias.asname or alias.name] = (module, alias.name)
                case ast.ClassDef():
                    self.classes.append(node)
        for statement in self.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.aliases[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.aliases[name] = value


# --- outside writes ------------------------------------------------------------------------------


def _writes_outside(module: _Module) -> bool:
    own = {name for node in module.classes for name in _fields(node)}
    return any(
        field_name not in own
        for scope in _scopes(module)
        for field_name in _written(scope, _new_objects(scope))
    )


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """The fields that a class declares in its body or sets on `self`."""
    for item in node.body:
        match item:
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def _scopes(module: _Module) -> Iterator[list[ast.AST]]:
    """The nodes of each function, and of the module, without those of functions in it."""
    functions = [node for node in module.nodes if isinstance(node, Function)]
    for start in (module.tree, *functions):
        nodes: list[ast.AST] = []
        waiting = list(ast.iter_child_nodes(start))
        while waiting:
            node = waiting.pop()
            nodes.append(node)
            if not isinstance(node, Function):
                waiting.extend(ast.iter_child_nodes(node))
        yield nodes


def _new_objects(scope: Iterable[ast.AST]) -> set[str]:
    """The names that are bound to new objects only."""
    new = {"self", "cls"}
    old: set[str] = set()
    for node in scope:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                (new if _makes_object(value) else old).add(name)
    return new - old


def _makes_object(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in {"cls", "__new__"} or name.lstrip("_")[:1].isupper()
    return False


def _written(scope: Iterable[ast.AST], own: set[str]) -> Iterator[str]:
    """The names of the fields that are written on objects other than those called `own`."""
    for node in scope:
        match node:
            case ast.Attribute(value=value, attr=name, ctx=ast.Store() | ast.Del()):
                pass
            case ast.Call(
                func=ast.Name(id="setattr" | "delattr")
                | ast.Attribute(attr="__setattr__" | "__delattr__"),
                args=[value, ast.Constant(value=str(name)), *_],
            ):
                pass
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[value, _, *_]):
                name = ""
            case _:
                continue
        if not (isinstance(value, ast.Name) and value.id in own):
            yield name


# --- callable parameters -------------------------------------------------------------------------


def _constructor_annotations(module: _Module) -> Iterator[ast.expr]:
    for node in module.classes:
        made = [
            item
            for item in node.body
            if isinstance(item, ast.FunctionDef) and item.name == "__init__"
        ]
        if made:
            arguments = made[0].args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            for argument in (*every, arguments.vararg, arguments.kwarg):
                if argument is not None and argument.annotation is not None:
                    yield argument.annotation
        elif _has_base(node, "NamedTuple") or (
            node.decorator_list and not _has_base(node, "Protocol")
        ):
            yield from (
                item.annotation
                for item in node.body
                if isinstance(item, ast.AnnAssign) and _is_parameter(item)
            )


def _has_base(node: ast.ClassDef, wanted: str) -> bool:
    for base in node.bases:
        match base:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.Subscript(value=ast.Name(id=name))
            ) if name == wanted:
                return True
    return False


def _is_parameter(item: ast.AnnAssign) -> bool:
    """False for a class variable, and for a field that the constructor does not take."""
    if any(isinstance(node, ast.Name) and node.id == "ClassVar" for node in ast.walk(item)):
        return False
    return not (
        isinstance(item.value, ast.Call)
        and any(
            keyword.arg == "init"
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value is False
            for keyword in item.value.keywords
        )
    )


def _takes_callable(
    modules: dict[str, _Module], name: str, annotation: ast.expr, depth: int = 8
) -> bool:
    """True if the annotation, read in the module `name`, contains a callable type."""
    for node in ast.walk(annotation):
        match node:
            case ast.Name(id="Callable") | ast.Attribute(attr="Callable"):
                return True
            case ast.Name(id=word):
                found = _is_callable_name(modules, name, word, depth)
            case ast.Attribute(value=ast.Name(id=word), attr=attribute):
                package, imported = modules[name].imports.get(word, ("", ""))
                home = f"{package}.{imported}".rstrip(".")
                found = _is_callable_name(modules, home, attribute, depth)
            case ast.Constant(value=str(text)):
                found = _quotes_callable(modules, name, text, depth)
            case _:
                found = False
        if found:
            return True
    return False


def _quotes_callable(modules: dict[str, _Module], name: str, text: str, depth: int) -> bool:
    """True if `text` is a quoted annotation that contains a callable type."""
    try:
        quoted = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    return depth > 0 and _takes_callable(modules, name, quoted, depth - 1)


def _is_callable_name(modules: dict[str, _Module], name: str, word: str, depth: int) -> bool:
    """True if `word` of the module `name` is a protocol with `__call__`, or an alias of one."""
    module = modules.get(name)
    if module is None or depth == 0:
        return False
    for node in module.classes:
        if node.name == word:
            return _has_base(node, "Protocol") and any(
                isinstance(item, ast.FunctionDef) and item.name == "__call__" for item in node.body
            )
    if word in module.aliases:
        return _takes_callable(modules, name, module.aliases[word], depth - 1)
    if word in module.imports:
        home, imported = module.imports[word]
        return _is_callable_name(modules, home, imported, depth - 1)
    return False


# --- long chains ---------------------------------------------------------------------------------


def _long_chains(module: _Module) -> int:
    excluded = module.imports.keys() | {node.name for node in module.classes}
    attributes = [node for node in module.nodes if isinstance(node, ast.Attribute)]
    inner = {id(node.value) for node in attributes}
    return sum(_is_long(node, excluded) for node in attributes if id(node) not in inner)


def _is_long(node: ast.Attribute, excluded: set[str]) -> bool:
    names = []
    start: ast.expr = node
    while isinstance(start, ast.Attribute):
        names.append(start.attr)
        start = start.value
    if not isinstance(start, ast.Name) or start.id in excluded:
        return False
    dots = len(names) - (start.id in {"self", "cls"})
    return dots > 1 and not any(name.lstrip("_")[:1].isupper() for name in names)
