"""Bans of words: private words of the project, and docstrings that open with a question word.

Judged are docstrings and comments of Python, messages (string literals with a blank in services,
tools and deploy), documents without their code, and the comments and texts of the chart. Names in
backticks stay as they are: they are those of the wire, of files and of commands.

`tools/private_words.txt` lists what is left in the tree: path, word and count. Counts only go down:
more is a finding, and so is less until `python tools/lint.py --lower` has written the lower number.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from tools.source_tree import FENCE, TESTS, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALLOWED = PurePosixPath("tools/private_words.txt")
HEADER = """\
# Words of tools/wording.py that are left. Counts only go down: python tools/lint.py --lower
# path, word, count
"""
CHART = PurePosixPath("deploy/helm/quorate")
# The arguments of these name a random stream of the simulator: another name changes every run.
STREAMS = frozenset({"RandomSource", "chance", "stream"})
# This module and its tests hold the words as patterns and examples.
WORD_LISTS = frozenset({PurePosixPath("tools/wording.py"), TESTS / "tools/test_wording.py"})

# A text to judge and the line that it starts in.
Passage: TypeAlias = tuple[int, str]
Place: TypeAlias = tuple[PurePosixPath, str]


@dataclass(frozen=True, slots=True)
class Ban:
    """A word that is not to be used, why, and what to write instead."""

    word: str
    # Blanks stand for any white space, since a sentence may go on in the next line.
    pattern: str
    instead: str

    @property
    def regex(self) -> str:
        """The pattern as a regular expression between word boundaries."""
        return rf"\b(?:{self.pattern})\b".replace(" ", r"\s+")


_ACTOR = "it hides the actor: name the replica, client or operator"
_OWN_WORD = "a word that only this project uses so"
_SPOKEN = "it can mean several things"
_IDIOM = "an idiom that readers have to translate"

BANS: tuple[Ban, ...] = (
    Ban("anew", "anew", f'{_IDIOM}: say "again" or what restarts'),
    Ban("at once", "at once", f'{_SPOKEN}: say "immediately" or "at the same time"'),
    Ban("befall", "befalls?|befell|befallen", f'{_IDIOM}: say "happens to"'),
    Ban("beside", "beside", f'{_SPOKEN}: say "next to" or "in parallel with"'),
    Ban("dawdle", "dawdl(?:es?|ed|ing)", f'{_OWN_WORD}: say "is slow"'),
    Ban("deed", "deeds?", f'{_OWN_WORD}: say "action"'),
    Ban("everybody", "everybody", _ACTOR),
    Ban("anybody", "anybody", _ACTOR),
    Ban("nobody", "nobody", _ACTOR),
    Ban("somebody", "somebody", _ACTOR),
    Ban("whichever", "whichever", _ACTOR),
    Ban("whoever", "whoever|whomever|whosever", _ACTOR),
    Ban("for good", "for good(?! reasons?)", f'{_IDIOM}: say "permanently"'),
    Ban("garbled", "garbl(?:es?|ed|ing)", f'{_OWN_WORD}: say "corrupt" or "mutated"'),
    Ban(
        "go on", "go on|goes on|went on|going on|gone on", f'{_SPOKEN}: say "continue" or "resume"'
    ),
    Ban("hand over", "hand(?:s|ed|ing)?[ -]overs?", f'{_OWN_WORD}: say "transfer leadership"'),
    Ban("hears", "hears", f'{_OWN_WORD}: say "is in contact with" or "receives"'),
    Ban("in force", "in force", f'{_IDIOM}: say "in effect"'),
    Ban("in vain", "in vain", f'{_IDIOM}: say "without success" or "invalid"'),
    Ban("in words", "in words", f'{_OWN_WORD}: say "in plain text" or "with the reason"'),
    Ban(
        "is no",
        "(?:is|are|was|were) no(?! (?:longer|more|less|greater|later|earlier|lower|higher))",
        'an inverted negation: say "is not a" or "does not"',
    ),
    Ban(
        "is told",
        "(?:is|are|was|were|be|been|being) told",
        'it hides the actor: say who "reports" or "returns" it',
    ),
    Ban("told of", "told of|tells of|tell of", f'{_OWN_WORD}: say "reported" or "notified"'),
    Ban("judge", "judg(?:es?|ed|ing|e?ments?)", f'{_OWN_WORD}: say "check" or "decide"'),
    Ban("let go", "lets? (?-i:go)|letting go", f'{_SPOKEN}: say "release" or "free"'),
    Ban("liar", "liars?", f'{_OWN_WORD}: say "a faulty peer"'),
    Ban("meanwhile", "meanwhile", f"{_SPOKEN}: name the activity that takes the time"),
    Ban("mend", "mend(?:s|ed|ing)?", f'{_IDIOM}: say "fix" or "repair"'),
    Ban(
        "misses the leader",
        "miss(?:es|ed|ing)? (?:its|the|their) leader",
        f'{_OWN_WORD}: say "times out on the leader"',
    ),
    Ban("nonsense", "nonsense", f'{_OWN_WORD}: say "corrupt" or "invalid"'),
    Ban("obstacle", "obstacles?", f'{_OWN_WORD}: say "reason for rejection"'),
    Ban("of before", "of before", f'{_IDIOM}: say "previous" or "earlier"'),
    Ban("planted bug", "planted (?:bugs?|mutants?)|bugs? on purpose", f'{_OWN_WORD}: say "mutant"'),
    Ban("put off", "put(?:s|ting)? off", f'{_IDIOM}: say "defer"'),
    Ban("quorum of one", "quorums? of one", f'{_OWN_WORD}: say "single-voter quorum"'),
    Ban("rotten", "rots|rotted|rotten", f'{_OWN_WORD}: say "corrupt" or "bit rot"'),
    Ban(
        "rule number",
        r"rules? \d+",
        'readers cannot know it by heart: cite the name, as in "rule `leader_discovery`"',
    ),
    Ban("scaled away", "scale[sd]? away|scaling away", f'{_OWN_WORD}: say "scaled down"'),
    Ban("set aside", "sets? aside|setting aside", f'{_OWN_WORD}: say "quarantine"'),
    Ban("spoilt", "spoils?|spoilt|spoiled|spoiling", f'{_OWN_WORD}: say "corrupt" or "corrupted"'),
    Ban(
        "stand still",
        "(?:stands?|stood|standing) still",
        f'{_OWN_WORD}: say "hangs" or "is suspended"',
    ),
    Ban("stranger", "strangers?", f'{_OWN_WORD}: say "a foreign cluster" or "a new reader"'),
    Ban(
        "there is no",
        "there (?:is|are|was|were) no",
        'an empty subject: say "X does not exist" or "without X"',
    ),
    Ban("under way", "under way", f'{_SPOKEN}: say "in progress" or "in flight"'),
)
QUESTION = "question word"
_INSTEAD = {ban.word: ban.instead for ban in BANS} | {
    QUESTION: (
        "a docstring is a statement: a noun phrase for a value, an imperative for a function "
        '("Whether" may open one that returns bool)'
    )
}
_WORDS = re.compile(
    "|".join(f"(?P<b{at}>{ban.regex})" for at, ban in enumerate(BANS)), re.IGNORECASE
)
_QUESTION_WORDS = re.compile(
    r"\s*(Whether|Whatever|What|Which|Whenever|When|Wherever|Where|How|Whoever|Whose|Who|Why|If"
    r"|Up to where|From which)\b"
)
_CODE_SPAN = re.compile(r"``[^`]+``|`[^`\n]+`")
_COMMENT = re.compile(r"#.*")
_TEMPLATE_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
_URL = re.compile(r"\]\([^)\s]*\)|https?://\S+")


def words_are_of_the_field(tree: Tree) -> Iterator[str]:
    """A file has as many private words and question words as the allow-list says, and no others."""
    allowed = read_allowed(tree)
    found = find_words(tree)
    for path, word in sorted(found.keys() | allowed.keys()):
        lines, limit = found.get((path, word), []), allowed.get((path, word), 0)
        if len(lines) > limit:
            where = ", ".join(map(str, lines))
            but = f"; allowed are {limit}" if limit else ""
            yield f'{path}:{lines[0]}: "{word}" (lines {where}{but}): {_INSTEAD[word]}'
        elif len(lines) < limit:
            yield (
                f'{ALLOWED}: allows {limit} "{word}" in {path}, which has {len(lines)}: lower it '
                "(python tools/lint.py --lower)"
            )


def lowered_allowances(tree: Tree) -> str:
    """The text of `tools/private_words.txt` with each count at what is left, if that is lower."""
    found = find_words(tree)
    lowered = {
        place: min(limit, len(found.get(place, []))) for place, limit in read_allowed(tree).items()
    }
    return HEADER + "".join(
        f"{path}, {word}, {count}\n" for (path, word), count in sorted(lowered.items()) if count
    )


def read_allowed(tree: Tree) -> dict[Place, int]:
    """The number of times that each file may still use each word."""
    allowed: Counter[Place] = Counter()
    for line in tree.texts.get(ALLOWED, "").splitlines():
        if not line.startswith("#"):
            path, word, count = line.rsplit(", ", 2)
            allowed[PurePosixPath(path), word] += int(count)
    return allowed


def find_words(tree: Tree) -> dict[Place, list[int]]:
    """The lines of every banned word, by file and word."""
    found: dict[Place, list[int]] = {}
    for path in tree.texts:
        for start, text in () if path in WORD_LISTS else _passages(tree, path):
            prose = _CODE_SPAN.sub(_blank, text)
            for match in _WORDS.finditer(prose):
                assert match.lastgroup is not None
                word = BANS[int(match.lastgroup[1:])].word
                line = start + prose.count("\n", 0, match.start())
                found.setdefault((path, word), []).append(line)
        for line in _questions(tree.nodes.get(path, [])):
            found.setdefault((path, QUESTION), []).append(line)
    return {place: sorted(lines) for place, lines in found.items()}


def _blank(match: re.Match[str]) -> str:
    """As many lines as the match, without its words and without a blank at its ends."""
    return "\0" + "\n" * match[0].count("\n")


def _passages(tree: Tree, path: PurePosixPath) -> Iterator[Passage]:
    """The prose of one file."""
    text = tree.texts[path]
    if path in tree.modules:
        yield from _python_passages(tree, path)
    elif path.suffix == ".md":
        yield 1, _URL.sub(_blank, FENCE.sub(_blank, text))
    elif path == CHART / "templates/NOTES.txt":
        yield 1, text
    elif path.is_relative_to(CHART) and path.suffix in {".yaml", ".tpl"}:
        for match in _TEMPLATE_COMMENT.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, match[0]
        is_prose = path.name == "alerts.yaml"
        yield from [(1, text)] if is_prose else _comments(_TEMPLATE_COMMENT.sub(_blank, text))


def _comments(text: str) -> Iterator[Passage]:
    """Blocks of comments: lines that follow each other belong to one sentence."""
    block: list[str] = []
    number = 0
    for number, line in enumerate(text.splitlines(), start=1):
        match = _COMMENT.search(line)
        if match:
            block.append(match[0].lstrip("# "))
        elif block:
            yield number - len(block), "\n".join(block)
            block = []
    if block:
        yield number - len(block) + 1, "\n".join(block)


def _python_passages(tree: Tree, path: PurePosixPath) -> Iterator[Passage]:
    """Comments, docstrings, and the literals that users may read."""
    text = tree.texts[path]
    nodes = tree.nodes[path]
    docstrings = set(_docstrings(nodes))
    strings = [node for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant)]
    inner = {
        id(part) for node in strings if isinstance(node, ast.JoinedStr) for part in node.values
    }
    streams = {id(name) for node in nodes for name in _stream_names(node)}
    has_messages = not path.is_relative_to(TESTS)
    for node in strings:
        match node:
            case ast.JoinedStr(values=parts):
                prose = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts
                )
            case ast.Constant(value=str(prose)) if id(node) not in inner:
                pass
            case _:
                continue
        if id(node) in docstrings or (has_messages and " " in prose and id(node) not in streams):
            yield node.lineno, prose
    if "#" in text:
        yield from _comments(_without_strings(text, strings))


def _stream_names(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in STREAMS:
            return node.args
    return []


def _without_strings(text: str, strings: Sequence[ast.expr]) -> str:
    """The source without the content of its literals, in which `#` starts no comment."""
    lines = [line.encode() for line in text.split("\n")]
    for node in strings:
        last = node.end_lineno or node.lineno
        for number in range(node.lineno, last + 1):
            line = lines[number - 1]
            start = node.col_offset if number == node.lineno else 0
            end = (node.end_col_offset or 0) if number == last else len(line)
            lines[number - 1] = line[:start] + b" " * (end - start) + line[end:]
    return "\n".join(line.decode() for line in lines)


def _docstrings(nodes: list[ast.AST]) -> Iterator[int]:
    """The identity of each docstring's literal."""
    for node in nodes:
        match node:
            case (
                ast.Module(body=[ast.Expr(value=ast.Constant(value=str()) as literal), *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str()) as literal), *_])
                | ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str()) as literal), *_])
                | ast.AsyncFunctionDef(
                    body=[ast.Expr(value=ast.Constant(value=str()) as literal), *_]
                )
            ):
                yield id(literal)


def _questions(nodes: list[ast.AST]) -> Iterator[int]:
    """The lines of docstrings that open with a question word."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match = _QUESTION_WORDS.match(ast.get_docstring(node, clean=False) or "")
            if match and not (match[1] == "Whether" and _returns_bool(node)):
                yield node.body[0].lineno


def _returns_bool(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns) == "bool"
    )
