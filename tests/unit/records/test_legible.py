"""What nobody sees is written out."""

from __future__ import annotations

from quorate.records.legible import written_out


def test_text_is_one_line_whose_characters_all_show() -> None:
    assert written_out("a\nb\x1b[2J\u202ec\u200b") == r"a\nb\x1b[2J\u202ec\u200b"
    assert written_out("plain, ä and ☃") == "plain, ä and ☃"
