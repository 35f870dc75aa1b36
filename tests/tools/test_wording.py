from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tools.planted_tree import check, plant
from tools import wording

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = str(wording.ALLOWED)
AGAIN = 'an idiom that readers have to translate: say "again" or what restarts'


def found(root: Path, name: str, text: str) -> list[tuple[str, int]]:
    """Each word that is found in a file, with its line."""
    places = wording.find_words(plant(root, {name: text}))
    return sorted((word, line) for (_, word), lines in places.items() for line in lines)


# --- the allow-list -------------------------------------------------------------------------------


def test_a_private_word_is_found_with_its_reason_and_a_better_word(tmp_path: Path) -> None:
    files = {"a.md": "# A\n\nIt starts anew.\n\nAnd anew.\n"}
    assert check(tmp_path, wording.words_are_of_the_field, files) == [
        f'a.md:3: "anew" (lines 3, 5): {AGAIN}'
    ]


def test_a_count_above_or_below_the_allowed_one_is_found(tmp_path: Path) -> None:
    files = {
        ALLOWED: f"{wording.HEADER}a.md, anew, 1\nb.md, anew, 1\nc.md, anew, 2\ngone.md, anew, 1\n",
        "a.md": "anew, anew\n",
        "b.md": "anew\n",
        "c.md": "anew\n",
    }
    assert check(tmp_path, wording.words_are_of_the_field, files) == [
        f'a.md:1: "anew" (lines 1, 1; allowed are 1): {AGAIN}',
        f'{ALLOWED}: allows 2 "anew" in c.md, which has 1: lower it (python tools/lint.py --lower)',
        f'{ALLOWED}: allows 1 "anew" in gone.md, which has 0: lower it '
        "(python tools/lint.py --lower)",
    ]


def test_allowed_counts_are_lowered_and_never_raised(tmp_path: Path) -> None:
    files = {
        ALLOWED: "a.md, anew, 1\na.md, in vain, 2\nb.md, anew, 3\ngone.md, anew, 1\n",
        "a.md": "anew, anew\n",
        "b.md": "anew, at once\n",
    }
    assert wording.lowered_allowances(plant(tmp_path, files)) == (
        f"{wording.HEADER}a.md, anew, 1\nb.md, anew, 1\n"
    )


# --- private words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Nobody answers", "nobody"),
        ("whoever asks", "whoever"),
        ("the leader is told", "is told"),
        ("this is no leader", "is no"),
        ("there is no leader", "there is no"),
        ("it goes on", "go on"),
        ("in\n    vain", "in vain"),
        ("the disk of before", "of before"),
        ("a quorum of one", "quorum of one"),
    ],
)
def test_private_words_of_any_form_are_found(tmp_path: Path, text: str, word: str) -> None:
    assert found(tmp_path, "a.md", text) == [(word, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "it is no longer the leader",
        "for good reasons",
        "renewed",
        "besides",
        "`anew` is a name",
        "```\nanew\n```",
        "[again](docs/anew.md)",
        "indeed",
    ],
)
def test_other_words_names_and_code_are_not_found(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, "a.md", text) == []


def test_what_stands_between_links_and_names_is_read(tmp_path: Path) -> None:
    text = "[a](b.md) anew [c](d.md), `e` anew `f`; is `g` no\n```\nh\n```\nanew `i`\n"
    assert found(tmp_path, "a.md", text) == [("anew", 1), ("anew", 1), ("anew", 5)]


def test_every_ban_finds_its_own_word(tmp_path: Path) -> None:
    for ban in wording.BANS:
        words = {"is no": "is no leader", "rule number": "rule 24"}.get(ban.word, ban.word)
        assert (ban.word, 1) in found(tmp_path, "a.md", words)


PYTHON = '''"""Starts anew."""

WORD = "anew"
MESSAGE = "# starts anew"
LONG = f"""starts {WORD}
anew"""


class Log:
    """A log.

    It starts anew.
    """

    # Starts in
    # vain.
    end = 0  # anew

    def anew(self):
        """Truncate `anew`."""
        return "not anew" "# in vain"
'''


def test_docstrings_comments_and_messages_of_python_are_read(tmp_path: Path) -> None:
    lines = [1, 4, 6, 12, 17, 21]
    assert found(tmp_path, "services/a.py", PYTHON) == [
        *(("anew", line) for line in lines),
        ("in vain", 15),
        ("in vain", 21),
    ]


def test_literals_of_tests_are_no_messages(tmp_path: Path) -> None:
    assert found(tmp_path, "tests/unit/a.py", PYTHON) == [
        ("anew", 1),
        ("anew", 12),
        ("anew", 17),
        ("in vain", 15),
    ]


def test_names_of_random_streams_are_no_messages(tmp_path: Path) -> None:
    text = (
        'a = streams.stream("garbled a"), streams.chance(1, "garbled b")\n'
        'b = RandomSource(1, "garbled c")\n'
    )
    assert found(tmp_path, "services/a.py", text) == []
    assert found(tmp_path, "services/a.py", 'say("garbled a")\n') == [("garbled", 1)]


def test_comments_and_texts_of_the_chart_are_read(tmp_path: Path) -> None:
    chart = "deploy/helm/quorate"
    assert found(tmp_path, f"{chart}/values.yaml", "a: anew\n# -- Starts\n# anew\n") == [
        ("anew", 3)
    ]
    assert found(tmp_path, f"{chart}/templates/NOTES.txt", "a\nanew\n") == [("anew", 2)]
    assert found(tmp_path, f"{chart}/files/alerts.yaml", "summary: anew\n") == [("anew", 1)]
    template = "{{- /* It starts\nanew. */ -}}\na: anew\nb: 1 # anew\n"
    assert found(tmp_path, f"{chart}/templates/a.yaml", template) == [("anew", 2), ("anew", 4)]
    assert found(tmp_path, "other/a.yaml", "# anew\n") == []


# --- question words -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    ["Whether", "What", "Which", "When", "Where", "How", "Who", "Whose", "Why", "If", "Whatever"],
)
def test_a_docstring_that_opens_with_a_question_word_is_found(tmp_path: Path, word: str) -> None:
    text = (
        f'"""{word} a."""\n\n\nclass A:\n    """{word} b."""\n\n'
        f'    async def c(self) -> int:\n        """{word} c."""\n'
    )
    assert found(tmp_path, "tests/a.py", text) == [("question word", line) for line in (1, 5, 8)]


def test_a_list_of_words_may_hold_them_and_asks_nothing(tmp_path: Path) -> None:
    text = '"""What starts anew."""\n'
    assert found(tmp_path, "tools/wording.py", text) == [("question word", 1)]


def test_whether_may_open_what_returns_bool(tmp_path: Path) -> None:
    text = (
        'def a() -> bool:\n    """Whether a."""\n\n\ndef b() -> bool:\n    """If b."""\n\n\n'
        'def c() -> str:\n    """Whichever c: what it says, and when."""\n\n\n'
        'def d() -> str:\n    """Whether d."""\n'
    )
    assert [at for at in found(tmp_path, "a.py", text) if at[0] == "question word"] == [
        ("question word", 6),
        ("question word", 14),
    ]
