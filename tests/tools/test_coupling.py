from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tools.planted_tree import PACKAGE, check, plant
from tools import coupling

if TYPE_CHECKING:
    from pathlib import Path

CEILINGS = str(coupling.CEILINGS)


def numbers(root: Path, text: str, **others: str) -> tuple[int, ...]:
    """The numbers of a package with this module, and with others of these names."""
    files = {f"{PACKAGE}/raft/{name}.py": other for name, other in others.items()}
    tree = plant(root, files | {f"{PACKAGE}/raft/core.py": text})
    return coupling.measure(tree)["raft"]


def function(*lines: str) -> str:
    return "\n".join(["def run(other, self):", *(f"    {line}" for line in lines), ""])


# --- the ceilings ---------------------------------------------------------------------------------


def test_a_number_above_or_below_its_ceiling_is_found(tmp_path: Path) -> None:
    files = {
        CEILINGS: f"{coupling.HEADER}raft: 0, 2, 2\n",
        f"{PACKAGE}/raft/core.py": function("other.end = other.a.b, other.c.d"),
        f"{PACKAGE}/main.py": function("other.end = 1"),
    }
    assert check(tmp_path, coupling.coupling_goes_down, files) == [
        f"{PACKAGE}: 1 modules with outside writes, the ceiling is 0: take out what was added "
        "(tools/coupling.py says what counts)",
        f"{PACKAGE}/raft: 1 modules with outside writes, the ceiling is 0: take out what was "
        "added (tools/coupling.py says what counts)",
        f"{PACKAGE}/raft: 0 callable parameters, the ceiling is 2: lower the ceiling to 0 "
        "(python tools/lint.py --lower)",
    ]


def test_a_package_that_is_gone_keeps_no_ceiling(tmp_path: Path) -> None:
    files = {CEILINGS: "gone: 0, 0, 3\n", f"{PACKAGE}/raft/core.py": ""}
    assert check(tmp_path, coupling.coupling_goes_down, files) == [
        f"{PACKAGE}/gone: 0 long chains, the ceiling is 3: lower the ceiling to 0 "
        "(python tools/lint.py --lower)"
    ]


def test_ceilings_are_lowered_and_never_raised(tmp_path: Path) -> None:
    files = {
        CEILINGS: "gone: 1, 1, 1\nraft: 0, 7, 1\n",
        f"{PACKAGE}/raft/core.py": function("other.end = 1", "return other.a.b"),
        f"{PACKAGE}/new/core.py": function("return other.a.b"),
    }
    assert coupling.lowered_ceilings(plant(tmp_path, files)) == f"{coupling.HEADER}raft: 0, 0, 1\n"


def test_tests_and_tools_have_no_ceilings(tmp_path: Path) -> None:
    files = {
        "tests/unit/test_core.py": function("other.end = 1"),
        "tools/core.py": function("other.end = 1"),
        f"{PACKAGE}/rpc/gen/core_pb2.py": function("other.end = 1"),
    }
    assert check(tmp_path, coupling.coupling_goes_down, files) == []


# --- outside writes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        "other.end = 1",
        "other.end: int = 1",
        "other.end += 1",
        "del other.end",
        "self.log.end = 1",
        "a, other.end = 1, 2",
        "other.log[0].end = 1",
        "for other.end in range(3): pass",
        "setattr(other, 'end', 1)",
        "setattr(other, end, 1)",
        "delattr(other, 'end')",
        "object.__setattr__(other, 'end', 1)",
        "log = Log(); log = other; log.end = 1",
        "log = make(); log.end = 1",
    ],
)
def test_a_field_that_is_written_from_outside_counts_its_module(tmp_path: Path, write: str) -> None:
    assert numbers(tmp_path, function(write, write)) == (1, 0, 0)


@pytest.mark.parametrize(
    "write",
    [
        "self.end = 1",
        "cls.end = 1",
        "self.ends[0] = 1",
        "other['end'] = 1",
        "log = Log(); log.end = 1",
        "log: Log = files.Log(); log.end = 1",
        "log = cls(); log.end = 1",
        "log = object.__new__(Log); log.end = 1",
        "setattr(self, 'end', 1)",
        "object.__setattr__(self, 'end', 1)",
        "end = other.end",
    ],
)
def test_own_fields_and_those_of_new_objects_are_not_outside(tmp_path: Path, write: str) -> None:
    assert numbers(tmp_path, function(write)) == (0, 0, 0)


@pytest.mark.parametrize(
    "body", ["end: int", "end = 0", "def reset(self):\n        self.end = 0"], ids=str
)
def test_a_module_may_fill_its_own_records(tmp_path: Path, body: str) -> None:
    record = f"class Log:\n    {body}\n"
    assert numbers(tmp_path, record + function("other.end = 1")) == (0, 0, 0)
    assert numbers(tmp_path, function("other.end = 1"), log=record) == (1, 0, 0)


def test_a_new_object_of_another_function_is_not_new_here(tmp_path: Path) -> None:
    text = function("log = Log()", "def inner(log):", "    log.end = 1")
    assert numbers(tmp_path, text) == (1, 0, 0)


# --- callable parameters --------------------------------------------------------------------------

TYPES = """
from typing import Protocol, TypeAlias
from collections.abc import Callable

Alias: TypeAlias = "Callable[[], None] | None"

class Handler(Protocol):
    def __call__(self) -> None: ...

class Closer(Protocol):
    def close(self) -> None: ...

Many = dict[str, Handler]
"""


@pytest.mark.parametrize(
    ("annotation", "count"),
    [
        ("Callable[[], None]", 1),
        ("abc.Callable[[], None] | None", 1),
        ("Sequence[Callable[[], None]]", 1),
        ("Alias", 1),
        ("'Alias'", 1),
        ("Handler", 1),
        ("Own", 1),
        ("Renamed | None", 1),
        ("types.Many", 1),
        ("Closer", 0),
        ("int", 0),
        ("Alien", 0),
    ],
)
def test_a_parameter_of_a_constructor_that_takes_a_callable_counts(
    tmp_path: Path, annotation: str, count: int
) -> None:
    imports = (
        "from quorate.raft import types\n"
        "from quorate.raft.types import Alias, Closer, Handler, Handler as Renamed\n"
        "from elsewhere import Alien\n"
        "Own = types.Alias\n"
    )
    made = f"class A:\n    def __init__(self, first: {annotation}, *, last: int): ...\n"
    assert numbers(tmp_path, imports + made, types=TYPES) == (0, count, 0)
    called = f"class A:\n    def call(self, first: {annotation}): ...\n"
    assert numbers(tmp_path, imports + called, types=TYPES) == (0, 0, 0)


@pytest.mark.parametrize(
    ("head", "body", "count"),
    [
        ("@dataclass\nclass A:", "do: Callable[[], None]", 1),
        ("class A(NamedTuple):", "do: Callable[[], None]", 1),
        ("@dataclass\nclass A:", "do: ClassVar[Callable[[], None]] = print", 0),
        ("@dataclass\nclass A:", "do: Callable[[], None] = field(init=False)", 0),
        ("@dataclass\nclass A:", "do: Callable[[], None] = field(repr=False)", 1),
        ("@runtime_checkable\nclass A(Protocol):", "do: Callable[[], None]", 0),
        ("class A:", "do: Callable[[], None]", 0),
    ],
)
def test_fields_are_parameters_where_the_constructor_is_generated(
    tmp_path: Path, head: str, body: str, count: int
) -> None:
    assert numbers(tmp_path, f"{head}\n    {body}\n") == (0, count, 0)


# --- long chains ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("self.a.b.c", 1),
        ("self.a.b.c.d.e", 1),
        ("self.a.b.call()", 1),
        ("self.a.b", 0),
        ("other.b.c", 1),
        ("other.b.c, other.b.c", 2),
        ("other.b", 0),
        ("other.b().c", 0),
        ("other.b[0].c", 0),
        ("other.b.c[0].d", 1),
        ("other.Kind.A", 0),
        ("os.path.sep", 0),
        ("Kind.A.value", 0),
        ("Own.A.value", 0),
    ],
)
def test_an_access_to_a_part_of_a_part_counts(tmp_path: Path, expression: str, count: int) -> None:
    text = "import os\nfrom kinds import Kind\nclass Own: ...\n"
    assert numbers(tmp_path, text + function(f"return {expression}")) == (0, 0, count)
