"""The bytes of a peer in few printable words, and a cause in the same ones."""

from __future__ import annotations

import pytest

from quorate.h2.peer_text import cause_of, quoted


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", '""'),
        (b":path /x", '":path /x"'),
        (b'a"b\n\x1b\xff', '"a?b???"'),
        (b"x" * 100, '"' + "x" * 100 + '"'),
        (b"x" * 101, '"' + "x" * 97 + '..."'),
    ],
)
def test_bytes_are_quoted_short_and_printable(data: bytes, text: str) -> None:
    assert quoted(data) == text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("WINDOW_UPDATE by 0", "WINDOW_UPDATE by 2147483647"),
        (f"{quoted(b':a')} is unknown", f"{quoted(bytes(range(256)))} is unknown"),
    ],
)
def test_a_cause_is_the_same_whatever_a_peer_has_sent(first: str, second: str) -> None:
    assert cause_of(first) == cause_of(second) != cause_of("DATA before a response")
