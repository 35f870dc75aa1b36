from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from tests.tools.planted_tree import PACKAGE, check, plant
from tools import coupling, lint, source_tree, wording

DOCUMENTED = '"""What it is for."""\n'


def joined(text: str) -> str:
    """`text` without its tildes, which keep the rules from finding it in this file."""
    return text.replace("~", "")


def test_each_finding_is_a_line_and_sets_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make verify` checks this repository itself."""
    faulty = plant(tmp_path, {"a.py": "a = 1\n", "README.md": "No title.\n"})
    monkeypatch.setattr(lint, "tracked_tree", lambda _root: faulty)
    assert lint.main([]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "a.py: no docstring that says what it is for",
        "README.md: 0 titles instead of one",
    ]
    sound = plant(tmp_path, {"a.py": '"""A module."""\n'})
    monkeypatch.setattr(lint, "tracked_tree", lambda _root: sound)
    assert lint.main([]) == 0


def test_lower_writes_both_tables_and_raises_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        str(coupling.CEILINGS): "gone: 1, 0, 0\nraft: 0, 5, 1\n",
        str(wording.ALLOWED): "gone.py, anew, 1\na.py, anew, 3\nb.py, anew, 1\n",
        "a.py": '"""Starts anew."""\n',
        "b.py": '"""Starts anew, and anew."""\n',
        f"{PACKAGE}/raft/__init__.py": (
            '"""The core."""\n\n\ndef end(log, state):\n    state.end = log.tail.end, log.a.b\n'
        ),
    }
    plant(tmp_path, files)
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    monkeypatch.setattr(lint, "tracked_tree", lambda root: plant(root, read(root, files)))
    assert lint.main(["--lower"]) == 1
    assert (tmp_path / coupling.CEILINGS).read_text() == f"{coupling.HEADER}raft: 0, 0, 1\n"
    assert (tmp_path / wording.ALLOWED).read_text() == (
        f"{wording.HEADER}a.py, anew, 1\nb.py, anew, 1\n"
    )
    found = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in found] == [f"{PACKAGE}/raft"] * 2 + ["b.py"]


def read(root: Path, files: dict[str, str]) -> dict[str, str]:
    """The same files with what they hold now."""
    return {name: (root / name).read_text(encoding="utf-8") for name in files}


def test_ignored_files_are_not_judged() -> None:
    paths = source_tree.tracked_tree(lint.ROOT).paths
    assert PurePosixPath("tools/lint.py") in paths
    assert not [path for path in paths if "__pycache__" in path.parts]


def test_messages_of_the_core_with_two_fields_of_one_type_are_made_by_keyword(
    tmp_path: Path,
) -> None:
    alike = "    start: Offset\n    end: Offset | None = None\n"
    files = {
        f"{PACKAGE}/raft/api.py": f"@value\nclass Alike:\n{alike}"
        f"@named_value\nclass Named:\n{alike}"
        "@value\nclass Unlike:\n    start: Offset\n    epoch: Epoch\n",
        f"{PACKAGE}/raft/messages.py": f"@dataclass(frozen=True, kw_only=True)\nclass A:\n{alike}"
        f"@dataclass(frozen=True)\nclass B:\n{alike}",
        f"{PACKAGE}/raft/other.py": f"@value\nclass Other:\n{alike}",
    }
    assert check(tmp_path, lint.messages_name_what_is_alike, files) == [
        f"{PACKAGE}/raft/api.py:2: Alike holds more than one Offset: make it a named_value",
        f"{PACKAGE}/raft/messages.py:6: B holds more than one Offset: make it a named_value",
    ]


def test_a_module_opens_with_a_docstring_unless_it_is_empty_or_a_test(tmp_path: Path) -> None:
    files = {"a.py": DOCUMENTED, "b.py": "b = 1\n", "__init__.py": "", "test_c.py": "c = 1\n"}
    assert check(tmp_path, lint.modules_say_what_they_are_for, files) == [
        "b.py: no docstring that says what it is for"
    ]


def test_names_that_say_nothing_are_refused(tmp_path: Path) -> None:
    files = {f"{PACKAGE}/utils.py": "", "services/operator/a.py": "", f"{PACKAGE}/common/a.py": ""}
    assert check(tmp_path, lint.names_mean_something, files) == [
        "services/operator/a.py: a top-level package of this name breaks `import collections`",
        f"{PACKAGE}/common/a.py: name it after what it holds",
        f"{PACKAGE}/utils.py: name it after what it holds",
    ]


def test_modules_and_unit_tests_mirror_each_other(tmp_path: Path) -> None:
    files = {
        f"{PACKAGE}/raft/__init__.py": "",
        f"{PACKAGE}/raft/core.py": "",
        f"{PACKAGE}/raft/roles.py": "",
        f"{PACKAGE}/rpc/server.py": "",
        f"{PACKAGE}/rpc/gen/raft_pb2.py": "",
        f"{PACKAGE}/sim/cluster.py": "",
        f"{PACKAGE}/pipeline/session.py": "",
        f"{PACKAGE}/pipeline/jobs/acls.py": "",
        "tests/pipeline/test_session.py": "",
        "tests/integration/rpc/test_server.py": "",
        "tests/integration/test_kill.py": "",
        "tests/unit/raft/conftest.py": "",
        "tests/unit/raft/test_core.py": "",
        "tests/unit/raft/test_gone.py": "",
        "tests/unit/raft/test_kip_595.py": "",
    }
    assert check(tmp_path, lint.unit_tests_mirror_the_package, files) == [
        f"{PACKAGE}/pipeline/jobs/acls.py: no tests/pipeline/jobs/test_acls.py",
        f"{PACKAGE}/raft/roles.py: no tests/unit/raft/test_roles.py",
        f"tests/unit/raft/test_gone.py: no {PACKAGE}/raft/gone.py that it would test",
    ]


PROTOCOL = """# Protocol

## Rules

| rule | what holds |
|---|---|
| `leader_discovery` (1) | A |
| `input_bounds` (2) | B |
| `retry_backoff` (3) | C |
"""


@pytest.mark.parametrize("row", ["2", "`input_bounds` (1)", "`leader_discovery` (2)"])
def test_rules_of_the_protocol_have_a_number_and_a_name_each(tmp_path: Path, row: str) -> None:
    for table in (PROTOCOL, PROTOCOL.replace("`input_bounds` (2)", "2 | `input_bounds`")):
        files = {"docs/protocol.md": table}
        assert check(tmp_path, lint.rules_of_the_protocol_are_numbered, files) == []
    files = {"docs/protocol.md": PROTOCOL.replace("`input_bounds` (2)", row)}
    (found,) = check(tmp_path, lint.rules_of_the_protocol_are_numbered, files)
    assert found.endswith("number them from 1, each with a name of its own")


def test_a_protocol_without_a_table_of_rules_is_found(tmp_path: Path) -> None:
    files = {"docs/protocol.md": PROTOCOL.replace("_", " ")}
    assert check(tmp_path, lint.rules_of_the_protocol_are_numbered, files) == [
        "docs/protocol.md: no table of rules whose rows begin with `name` (number)"
    ]
    assert check(tmp_path, lint.rules_of_the_protocol_are_numbered, {"a.md": ""}) == []


def test_a_rule_of_the_protocol_without_a_test_is_missed(tmp_path: Path) -> None:
    files = {
        "docs/protocol.md": PROTOCOL,
        "tests/unit/raft/test_core.py": (
            "import pytest\n\n"
            '@pytest.mark.rule("input_bounds")\n'
            "async def test_waits() -> None: ...\n"
            '# @pytest.mark.rule("leader_discovery")\n'
            "def test_leader_discovery_asks() -> None: ...\n"
            '@pytest.mark.rule("gone_rule")\n'
            "def test_gone() -> None: ...\n"
        ),
        f"{PACKAGE}/raft/core.py": 'mark = pytest.mark.rule("leader_discovery")\n',
    }
    assert check(tmp_path, lint.rules_of_the_protocol_have_tests, files) == [
        'docs/protocol.md: no test is marked @pytest.mark.rule("leader_discovery")',
        'docs/protocol.md: no test is marked @pytest.mark.rule("retry_backoff")',
        'tests: @pytest.mark.rule("gone_rule") names no rule of docs/protocol.md',
    ]
    files["tests/unit/test_all.py"] = (
        'pytestmark = [pytest.mark.rule("leader_discovery"), pytest.mark.rule("retry_backoff")]\n'
    )
    assert check(tmp_path, lint.rules_of_the_protocol_have_tests, files) == [
        'tests: @pytest.mark.rule("gone_rule") names no rule of docs/protocol.md'
    ]


def test_a_rule_of_the_protocol_that_no_code_names_is_missed(tmp_path: Path) -> None:
    files = {
        "docs/protocol.md": PROTOCOL,
        f"{PACKAGE}/raft/core.py": "from quorate import leader_discovery  # `leader_discovery`\n",
        f"{PACKAGE}/sim/cluster.py": "# Rule `input_bounds` is checked here.\n",
        "tests/unit/raft/test_core.py": "# Rule `retry_backoff`\n",
    }
    missing = [
        f"docs/protocol.md: no module of production says that it keeps rule `{name}`"
        for name in ("input_bounds", "leader_discovery", "retry_backoff")
    ]
    kept = lint.rules_of_the_protocol_are_named_where_they_are_kept
    assert check(tmp_path, kept, files) == missing
    files[f"{PACKAGE}/raft/core.py"] = (
        "# Rules `leader_discovery`,\n# `retry_backoff` and\n# `a`.\n"
    )
    assert check(tmp_path, kept, files) == missing[:1]
    files[f"{PACKAGE}/raft/core.py"] = (
        '"""(rules `leader_discovery`,\n`input_bounds`\nand `retry_backoff`)."""\n'
    )
    assert check(tmp_path, kept, files) == []


def test_a_citation_of_a_rule_that_the_protocol_does_not_have_is_found(tmp_path: Path) -> None:
    # This file is checked, too.
    gone, other = "gone_rule", "other_rule"
    files = {
        "docs/protocol.md": PROTOCOL,
        "docs/a.md": f"# A\n\nSee rules `input_bounds` and `{gone}`, and the rule `ALLOW`.\n",
        "tests/unit/a.py": f"# (rule\n# `{other}`)\n",
    }
    found = check(tmp_path, lint.rules_of_the_protocol_are_named_where_they_are_kept, files)
    assert found[:2] == [
        f"docs/a.md: rule `{gone}` is not in docs/protocol.md",
        f"tests/unit/a.py: rule `{other}` is not in docs/protocol.md",
    ]


def test_a_module_that_only_tests_import_is_dead(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project.scripts]\nquorate = "quorate.cli.main:main"\n',
        f"{PACKAGE}/cli/main.py": (
            "def main():\n"
            "    from quorate.cli import lazy\n"
            '    return load("quorate.cli.named:run")\n'
        ),
        f"{PACKAGE}/cli/lazy.py": "import quorate.cli.imported\n",
        f"{PACKAGE}/cli/imported.py": "",
        f"{PACKAGE}/cli/named.py": "",
        f"{PACKAGE}/cli/dead.py": "",
        f"{PACKAGE}/cli/__main__.py": "",
        "tests/unit/cli/test_dead.py": "import quorate.cli.dead\n",
    }
    assert check(tmp_path, lint.no_module_is_dead, files) == [
        f"{PACKAGE}/cli/dead.py: no production code imports it"
    ]


@pytest.mark.parametrize(
    "back",
    [
        "import quorate.raft.core\n",
        "from quorate.raft import core\n",
        "from quorate.raft.core import RaftCore\n",
        "def late():\n    from quorate.raft import core\n",
        "if TYPE_CHECKING:\n    from quorate.raft.core import RaftCore\n",
    ],
)
def test_modules_that_import_each_other_are_a_circle(tmp_path: Path, back: str) -> None:
    files = {
        f"{PACKAGE}/raft/__init__.py": "from quorate.raft import core\n",
        f"{PACKAGE}/raft/core.py": "from quorate.raft.roles import Role\nimport asyncio\n",
        f"{PACKAGE}/raft/roles.py": "from quorate.raft import votes\n",
        f"{PACKAGE}/raft/votes.py": "",
    }
    assert check(tmp_path, lint.imports_run_in_no_circle, files) == []
    (found,) = check(
        tmp_path, lint.imports_run_in_no_circle, files | {f"{PACKAGE}/raft/votes.py": back}
    )
    prefix = f"{PACKAGE}: imports in a circle: "
    assert found.startswith(prefix)
    first, *others = found.removeprefix(prefix).split(" -> ")
    modules = ["core", "roles", "votes"]
    assert sorted(others) == [f"quorate.raft.{module}" for module in modules]
    at = modules.index(first.rpartition(".")[2])
    assert [name.rpartition(".")[2] for name in others] == [
        modules[(at + step) % 3] for step in (1, 2, 3)
    ]


@pytest.mark.parametrize("broken", ["TO~DO", "FIX~ME", "XX~X", "HA~CK", "NotImplemented~Error"])
def test_nothing_is_left_to_do(tmp_path: Path, broken: str) -> None:
    word = joined(broken)
    files = {"a.py": f"a = 1\n# {word}: more\n", "b.py": f"b = 'x{word}x'\n"}
    assert check(tmp_path, lint.nothing_is_left_to_do, files) == [
        f"a.py:2: {word!r}: finish it or file it"
    ]


def test_assertions_are_never_stripped(tmp_path: Path) -> None:
    command = " ".join(["python3.11", "-O"])
    files = {"run.sh": f"{command} -m a\n", "a.md": f"Never `{command}`.\n", "b.sh": "python -m o"}
    assert check(tmp_path, lint.assertions_stay_on, files) == [
        f"run.sh:1: {command!r}: assertions state invariants and stay on"
    ]


@pytest.mark.parametrize(
    ("line", "found", "reason"),
    [
        ("cd /wor~k/main", "/wor~k/", "a path of one machine"),
        ("/hom~e/someone/x", "/hom~e/s", "a path of one machine"),
        ("pip --index-~url=https://x", "--index-~url=", "the address of a registry"),
        ("get http://mirror/x/sim~ple/a", "http://mirror/x/sim~ple", "the address of a registry"),
        ("https://pypi.o~rg", "pypi.o~rg", "the address of a registry"),
    ],
)
def test_no_file_knows_the_machine_that_it_was_written_on(
    tmp_path: Path, line: str, found: str, reason: str
) -> None:
    files = {
        "a.txt": f"first\n{joined(line)}\n",
        "b.md": joined("uv pip compile --no-emit-index-~url"),
    }
    assert check(tmp_path, lint.no_file_knows_this_machine, files) == [
        f"a.txt:2: {joined(found)!r}: {reason}"
    ]


def test_a_file_over_a_mebibyte_is_refused(tmp_path: Path) -> None:
    files = {"a.bin": "a" * (1 << 20), "b.bin": "b" * ((1 << 20) + 1)}
    assert check(tmp_path, lint.files_are_small, files) == [
        "b.bin: 1048577 bytes, 1048576 are the limit"
    ]


def test_a_document_has_one_title(tmp_path: Path) -> None:
    files = {
        "a.md": "# One\n\n```sh\n# a comment in a shell\n```\n\n## A part\n",
        "b.md": "# One\n# Two\n",
        "c.md": "No title.\n",
    }
    assert check(tmp_path, lint.documents_have_one_title, files) == [
        "b.md: 2 titles instead of one",
        "c.md: 0 titles instead of one",
    ]


def test_documents_name_paths_that_exist(tmp_path: Path) -> None:
    text = """# Paths

    Fine: `raft/core.py`, `services/quorate/`, `unit/raft`, `beside.md`, `quorum-state`,
    `read/write`, `meta.properties`, `__cluster_metadata-0/`, `make test`,
    [beside](beside.md#part), [away](https://x).
    Gone: `raft/gone.py`, `services/gone`, `gone.md`, [lost](lost.md).
    """
    files = {
        "docs/a.md": text,
        "docs/beside.md": "# Beside\n",
        f"{PACKAGE}/raft/core.py": "",
        "tests/unit/raft/test_core.py": "",
    }
    assert check(tmp_path, lint.documents_name_paths_that_exist, files) == [
        "docs/a.md: links to lost.md, which does not exist",
        "docs/a.md: names raft/gone.py, which does not exist",
        "docs/a.md: names services/gone, which does not exist",
        "docs/a.md: names gone.md, which does not exist",
    ]


def test_a_document_that_no_link_leads_to_is_found(tmp_path: Path) -> None:
    files = {
        "README.md": "# A\n\n[b](docs/b.md#part) and `docs/lost.md`\n\n```\n[x](fenced.md)\n```\n",
        "docs/b.md": "# B\n\n[c](../tests/c.md) [self](b.md) [away](https://x/docs/away.md)\n",
        "docs/away.md": "# Away\n",
        "docs/lost.md": "# Lost\n\n[island](island.md)\n",
        "docs/island.md": "# Island\n\n[lost](lost.md)\n",
        "docs/runbooks/Full.md": "# Full\n\n[more](more.md)\n",
        "docs/runbooks/Unused.md": "# Unused\n",
        "docs/runbooks/more.md": "# More\n",
        "fenced.md": "# Fenced\n",
        "tests/c.md": "# C\n",
        "deploy/helm/quorate/files/alerts.yaml": "runbook_url: {{ $url }}/Full.md\n# Unused.md\n",
    }
    assert check(tmp_path, lint.documents_are_linked, files) == [
        f"{path}: no document that a reader of README.md reaches links to it: link it"
        for path in (
            "docs/away.md",
            "docs/island.md",
            "docs/lost.md",
            "docs/runbooks/Unused.md",
            "fenced.md",
        )
    ]


def test_links_lead_where_they_say(tmp_path: Path) -> None:
    text = """# Links

    Fine: [`raft/core.py`](../services/raft/core.py), [a part](beside.md#two-s-of-1),
    [here](#links), [`away.py`](https://x/y.py#z), [words](../services/raft/core.py).
    Wrong: [`raft/core.py`](../services/raft/roles.py), [a part](beside.md#three), [here](#gone).
    """
    files = {
        "docs/a.md": text,
        "docs/beside.md": "# Beside\n\n## Two-s [of](a.md) `1`\n",
        "services/raft/core.py": "",
        "services/raft/roles.py": "",
    }
    assert check(tmp_path, lint.links_lead_where_they_say, files) == [
        "docs/a.md: shows raft/core.py and links to ../services/raft/roles.py",
        "docs/a.md: links to beside.md#three, which does not exist",
        "docs/a.md: links to #gone, which does not exist",
    ]
