"""Invisible characters are written out."""

from __future__ import annotations

from quorate.records.escaping import SHOWN_MAX, escape_unprintable, shown


def test_text_is_one_line_whose_characters_all_show() -> None:
    assert escape_unprintable("a\nb\x1b[2J\u202ec\u200b") == r"a\nb\x1b[2J\u202ec\u200b"
    assert escape_unprintable("plain, ä and ☃") == "plain, ä and ☃"


def test_a_peers_text_is_shown_up_to_a_bound() -> None:
    assert shown("few words") == "few words"
    assert shown("x" * 100_000) == "x" * SHOWN_MAX + "..."
    written = shown("\x9b" * 100_000)
    assert written.isprintable()
    assert len(written) == SHOWN_MAX + 3
