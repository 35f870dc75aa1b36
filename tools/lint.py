"""The house rules that no off-the-shelf linter knows; each rule is a function, each finding a line.

python tools/lint.py            checks every file that git tracks or would track; exit status 1
                                when it finds anything
python tools/lint.py --lower    writes tools/coupling.txt and tools/private_words.txt with the lower
                                numbers of today, raises none, then checks
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

# Started by its path, Python looks for modules in tools/ alone.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from tools import coupling, wording
from tools.source_tree import (
    LINK,
    PACKAGE,
    SOURCE_ROOT,
    TESTS,
    Rule,
    Tree,
    is_generated,
    tracked_tree,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
FILE_BYTES_MAX = 1 << 20
PROTOCOL = PurePosixPath("docs/protocol.md")
UNIT_TESTS = PurePosixPath("tests/unit")
INTEGRATION_TESTS = PurePosixPath("tests/integration")
PIPELINE = PurePosixPath("pipeline")
CHART = PurePosixPath("deploy/helm/quorate")
RUNBOOKS = PurePosixPath("docs/runbooks")
# What goes into the core and comes out of it.
MESSAGES = frozenset({PACKAGE / "raft/api.py", PACKAGE / "raft/messages.py"})

# Where a document may start when it names a path, next to its own folder.
PATH_BASES = (PurePosixPath(), SOURCE_ROOT, PACKAGE, PurePosixPath("tests"))
# A name with one of these endings is a file of ours; others may be data of a running quorum.
OWN_SUFFIXES = frozenset({".ini", ".lock", ".md", ".proto", ".py", ".sh", ".toml"})
EMPTY_NAMES = frozenset({"base", "common", "helpers", "manager", "misc", "utils"})

# The patterns are written so that they do not match their own source.
LEFTOVER = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K]|NotImplemented[E]rror)\b")
STRIPPED_ASSERTIONS = re.compile(r"python[\d.]*\s+-O|PYTHON[O]PTIMIZE")
OF_ONE_MACHINE = re.compile(r"/(?:work|farm)/|/(?:root|home)/[\w.]|/[U]sers/\w|/tmp/bash_[j]obs")
REGISTRY = re.compile(
    r"--(?:extra-)?index-url[ =]|https?://[^\s\"'<>]+/simple\b|\bpypi\.[o]rg|pythonhosted\.[o]rg"
    r"|registry\.npmjs\.[o]rg|proxy\.golang\.[o]rg|repo1?\.maven\.[o]rg|deb\.debian\.[o]rg"
)
# A row of the table of rules: `name` (24), or 24 and `name` in a column each.
PROTOCOL_RULE = re.compile(r"^\| (?:(\d+) \| )?`([a-z]+_\w+)` (?:\((\d+)\) )?\|", re.MULTILINE)
# Such as: rules `leader_discovery`, `input_bounds` and `retry_backoff`.
RULES_CITED = re.compile(r"\b[Rr]ules?\s+(`[a-z]+_\w+`(?:(?:,|\s+and)\s+`[a-z]+_\w+`)*)")
COMMENT_GOES_ON = re.compile(r"\n\s*# ")
INLINE_CODE = re.compile(r"`([^`\n]+)`")
LABELLED_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PATH_SHAPE = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
RUNBOOK_OF_ALERT = re.compile(r"runbook_url: .*/([\w-]+\.md)")


def messages_name_what_is_alike(tree: Tree) -> Iterator[str]:
    """Two offsets that changed places are still offsets: such messages are made by keyword."""
    for path in sorted(MESSAGES & tree.modules.keys()):
        for node in tree.modules[path].body:
            if not isinstance(node, ast.ClassDef) or _takes_keywords_only(node):
                continue
            kinds = [
                ast.unparse(item.annotation).removesuffix(" | None")
                for item in node.body
                if isinstance(item, ast.AnnAssign)
            ]
            for kind in sorted({kind for kind in kinds if kinds.count(kind) > 1}):
                yield (
                    f"{path}:{node.lineno}: {node.name} holds more than one {kind}: make it a "
                    "named_value"
                )


def _takes_keywords_only(node: ast.ClassDef) -> bool:
    made_by = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(text == "named_value" or "kw_only=True" in text for text in made_by)


def modules_say_what_they_are_for(tree: Tree) -> Iterator[str]:
    """The first thing in a module is its docstring; a test file says it with its name."""
    for path, module in tree.modules.items():
        is_test = path.name.startswith("test_")
        if module.body and not is_test and ast.get_docstring(module) is None:
            yield f"{path}: no docstring that says what it is for"


def names_mean_something(tree: Tree) -> Iterator[str]:
    """A module called `misc` is two modules; one called `operator` shadows Python's."""
    for path in tree.modules:
        if path.stem in EMPTY_NAMES or path.parent.name in EMPTY_NAMES:
            yield f"{path}: name it after what it holds"
        if path.parts[:2] == (str(SOURCE_ROOT), "operator"):
            yield f"{path}: a top-level package of this name breaks `import collections`"


def unit_tests_mirror_the_package(tree: Tree) -> Iterator[str]:
    """A reader of a module knows where its tests are, and the reverse.

    A module whose work is sockets or processes may have its tests at the same place below
    tests/integration; those of the pipeline, which need Spark, lie below tests/pipeline. The
    simulator is itself a test: unit tests of it are welcome, not demanded. Tests of a specification
    are named after it.
    """
    tests = {path for path in tree.modules if path.name.startswith("test_")}
    for path in tree.below(PACKAGE):
        mirror = path.relative_to(PACKAGE).with_name(f"test_{path.name}")
        is_exempt = path.stem.startswith("__") or path.is_relative_to(PACKAGE / "sim")
        home = TESTS if mirror.is_relative_to(PIPELINE) else UNIT_TESTS
        if not is_exempt and tests.isdisjoint({home / mirror, INTEGRATION_TESTS / mirror}):
            yield f"{path}: no {home / mirror}"
    for path in sorted(tests):
        if path.is_relative_to(UNIT_TESTS) and not path.name.startswith("test_kip_"):
            mirrored = path.relative_to(UNIT_TESTS)
            source = PACKAGE / mirrored.with_name(mirrored.name.removeprefix("test_"))
            if source not in tree.modules:
                yield f"{path}: no {source} that it would test"


def rules_of_the_protocol_are_numbered(tree: Tree) -> Iterator[str]:
    """The table of rules in docs/protocol.md has a name and a number for each, without a gap."""
    if PROTOCOL not in tree.documents:
        return
    rules = _protocol_rules(tree)
    numbers = [number for _, number in rules]
    if numbers != list(range(1, len(rules) + 1)) or len(dict(rules)) != len(rules):
        yield f"{PROTOCOL}: rules {numbers}: number them from 1, each with a name of its own"
    if not rules:
        yield f"{PROTOCOL}: no table of rules whose rows begin with `name` (number)"


def rules_of_the_protocol_have_tests(tree: Tree) -> Iterator[str]:
    """Each rule that keeps the quorum safe has a test that is marked with its name."""
    rules = dict(_protocol_rules(tree)).keys()
    marked = {name for path in tree.below(TESTS) for name in _rules_marked(tree.nodes[path])}
    for name in sorted(rules - marked):
        yield f'{PROTOCOL}: no test is marked @pytest.mark.rule("{name}")'
    for name in sorted(marked - rules):
        yield f'{TESTS}: @pytest.mark.rule("{name}") names no rule of {PROTOCOL}'


def _protocol_rules(tree: Tree) -> list[tuple[str, int]]:
    """The names and numbers of the table, in its order."""
    rows = PROTOCOL_RULE.findall(tree.documents.get(PROTOCOL, ""))
    return [(name, int(first or last)) for first, name, last in rows if first or last]


def _rules_marked(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="rule"),
                args=[ast.Constant(value=str(name))],
            ):
                yield name


def rules_of_the_protocol_are_named_where_they_are_kept(tree: Tree) -> Iterator[str]:
    """A reader of docs/protocol.md finds the code that keeps a rule by its name, and the reverse.

    The simulator checks the rules; it does not keep them.
    """
    rules = dict(_protocol_rules(tree)).keys()
    kept = set()
    for path in sorted(tree.modules.keys() | tree.documents.keys()):
        text = tree.texts[path]
        cited = set(_rules_cited(text))
        for name in sorted(cited - rules) if rules else ():
            yield f"{path}: rule `{name}` is not in {PROTOCOL}"
        if path.is_relative_to(PACKAGE) and not path.is_relative_to(PACKAGE / "sim"):
            kept |= cited
    for name in sorted(rules - kept):
        yield f"{PROTOCOL}: no module of production says that it keeps rule `{name}`"


def _rules_cited(text: str) -> Iterator[str]:
    for match in RULES_CITED.finditer(COMMENT_GOES_ON.sub(" ", text)):
        yield from INLINE_CODE.findall(match[1])


def no_module_is_dead(tree: Tree) -> Iterator[str]:
    """Every module is imported by production code, started by name, or an entry point."""
    used = _entry_points(tree)
    for path in (*tree.below(SOURCE_ROOT), *tree.below(PurePosixPath("tools"))):
        used |= _modules_named(tree.nodes[path])
    for path in tree.below(PACKAGE):
        name = _module_name(path)
        if not path.stem.startswith("__") and name not in used:
            yield f"{path}: no production code imports it"


def _entry_points(tree: Tree) -> set[str]:
    project = tomllib.loads(tree.texts.get(PurePosixPath("pyproject.toml"), ""))
    scripts = project.get("project", {}).get("scripts", {})
    return {target.partition(":")[0] for target in scripts.values()}


def _modules_named(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that a module imports, lazily too, or loads by a string."""
    names = set()
    for node in nodes:
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(package)):
                names |= {package, *(f"{package}.{alias.name}" for alias in node.names)}
            case ast.Constant(value=str(text)) if text.startswith("quorate."):
                names.add(text.partition(":")[0])
    return names


def imports_run_in_no_circle(tree: Tree) -> Iterator[str]:
    """Modules of a circle are one module; an import for types alone or within a function counts."""
    paths = {_module_name(path): path for path in tree.below(PACKAGE)}
    graph = {
        name: set(_imports(tree.nodes[path], paths.keys())) - {name} for name, path in paths.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # It lists each module before the one that imports it.
        yield f"{PACKAGE}: imports in a circle: {' -> '.join(reversed(error.args[1]))}"


def _module_name(path: PurePosixPath) -> str:
    parts = path.relative_to(SOURCE_ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imports(nodes: Iterable[ast.AST], known: Collection[str]) -> Iterator[str]:
    """Those that a module imports; a package only where no module of it is meant."""
    for node in nodes:
        found: list[str] = []
        match node:
            case ast.Import():
                found = [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(package)):
                inner = [f"{package}.{alias.name}" for alias in node.names]
                found = [name if name in known else package for name in inner]
        yield from (name for name in found if name in known)


def nothing_is_left_to_do(tree: Tree) -> Iterator[str]:
    """Work that is left is an issue, not a comment."""
    yield from _matches(tree, LEFTOVER, "finish it or file it")


def assertions_stay_on(tree: Tree) -> Iterator[str]:
    """They state the invariants of the core: nothing may start Python without them."""
    for line in _matches(tree, STRIPPED_ASSERTIONS, "assertions state invariants and stay on"):
        if ".md:" not in line:
            yield line


def no_file_knows_this_machine(tree: Tree) -> Iterator[str]:
    """A checkout works anywhere and installs from whatever registry its user has set up."""
    yield from _matches(tree, OF_ONE_MACHINE, "a path of one machine")
    yield from _matches(tree, REGISTRY, "the address of a registry")


def _matches(tree: Tree, pattern: re.Pattern[str], reason: str) -> Iterator[str]:
    for path, text in tree.texts.items():
        if is_generated(path):
            continue
        for match in pattern.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{number}: {match.group().strip()!r}: {reason}"


def files_are_small(tree: Tree) -> Iterator[str]:
    """Large files make every clone slow for ever."""
    for path in tree.paths:
        size = (tree.root / path).stat().st_size
        if size > FILE_BYTES_MAX:
            yield f"{path}: {size} bytes, {FILE_BYTES_MAX} are the limit"


def documents_have_one_title(tree: Tree) -> Iterator[str]:
    """A document with two titles is two documents, one without has no subject."""
    for path, text in tree.documents.items():
        titles = sum(line.startswith("# ") for line in text.splitlines())
        if titles != 1:
            yield f"{path}: {titles} titles instead of one"


def documents_name_paths_that_exist(tree: Tree) -> Iterator[str]:
    """Links lead somewhere, and `paths` in code spans are those of today's tree."""
    known = set(tree.paths) | {parent for path in tree.paths for parent in path.parents}
    for path, text in tree.documents.items():
        for target in LINK.findall(text):
            if "://" not in target and not (tree.root / path.parent / target).exists():
                yield f"{path}: links to {target}, which does not exist"
        for span in INLINE_CODE.findall(text):
            if PATH_SHAPE.fullmatch(span) and _is_gone(PurePosixPath(span), path.parent, known):
                yield f"{path}: names {span}, which does not exist"


def _is_gone(named: PurePosixPath, folder: PurePosixPath, known: set[PurePosixPath]) -> bool:
    bases = (folder, *PATH_BASES)
    if any(base / named in known for base in bases):
        return False
    starts_in_the_tree = len(named.parts) > 1 and any(
        base / named.parts[0] in known for base in bases
    )
    return starts_in_the_tree or (named.suffix in OWN_SUFFIXES and named.stem != "")


def documents_are_linked(tree: Tree) -> Iterator[str]:
    """A reader who starts at README.md, or at the runbook of an alert, finds every document."""
    waiting = {PurePosixPath("README.md")}
    for path, text in tree.texts.items():
        if path.is_relative_to(CHART):
            waiting |= {RUNBOOKS / name for name in RUNBOOK_OF_ALERT.findall(text)}
    found: set[PurePosixPath] = set()
    while waiting:
        path = waiting.pop()
        found.add(path)
        targets = LINK.findall(tree.documents.get(path, ""))
        linked = {PurePosixPath(os.path.normpath(path.parent / target)) for target in targets}
        waiting |= (linked & tree.documents.keys()) - found
    for path in sorted(tree.documents.keys() - found):
        yield f"{path}: no document that a reader of README.md reaches links to it: link it"


def links_lead_where_they_say(tree: Tree) -> Iterator[str]:
    """A link that shows a path leads to that path, and one to a part of a document finds it."""
    for path, text in tree.documents.items():
        for label, target, anchor in LABELLED_LINK.findall(text):
            if "://" in target:
                continue
            shown = label.strip("`")
            is_path = label != shown and PATH_SHAPE.fullmatch(shown)
            if is_path and not f"/{target}".endswith(f"/{shown}"):
                yield f"{path}: shows {shown} and links to {target}"
            document = PurePosixPath(os.path.normpath(path.parent / target)) if target else path
            if anchor and anchor not in _anchors(tree.documents.get(document, "")):
                yield f"{path}: links to {target}#{anchor}, which does not exist"


def _anchors(text: str) -> set[str]:
    """The names that GitHub gives the headings of a document."""
    headings = (LABELLED_LINK.sub(r"\1", heading) for heading in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


RULES: tuple[Rule, ...] = (
    coupling.coupling_goes_down,
    messages_name_what_is_alike,
    modules_say_what_they_are_for,
    names_mean_something,
    unit_tests_mirror_the_package,
    rules_of_the_protocol_are_numbered,
    rules_of_the_protocol_have_tests,
    rules_of_the_protocol_are_named_where_they_are_kept,
    no_module_is_dead,
    imports_run_in_no_circle,
    nothing_is_left_to_do,
    assertions_stay_on,
    no_file_knows_this_machine,
    files_are_small,
    documents_have_one_title,
    documents_name_paths_that_exist,
    documents_are_linked,
    links_lead_where_they_say,
    wording.words_are_of_the_field,
)


def lower(root: Path) -> None:
    """Write the tables of ceilings and of words that are left, with numbers that only go down."""
    tree = tracked_tree(root)
    tables = {
        coupling.CEILINGS: coupling.lowered_ceilings(tree),
        wording.ALLOWED: wording.lowered_allowances(tree),
    }
    for path, text in tables.items():
        (root / path).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Print every finding; the exit status is 1 when there is one."""
    parser = argparse.ArgumentParser(description="check the house rules")
    parser.add_argument(
        "--lower",
        action="store_true",
        help="first lower the committed ceilings and counts to the numbers of today",
    )
    if parser.parse_args(arguments).lower:
        lower(ROOT)
    tree = tracked_tree(ROOT)
    findings = [line for rule in RULES for line in rule(tree)]
    for line in findings:
        print(line, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
