"""Whole numbers as people write them, and nothing that Python would take for one besides."""

from __future__ import annotations

import pytest

from quorate.settings.integers import INT32_MAX, is_whole_number, whole_number


def test_digits_are_a_number() -> None:
    assert whole_number("0") == 0
    assert whole_number("-1", minimum=-1) == -1
    assert whole_number("0042", maximum=INT32_MAX) == 42


@pytest.mark.parametrize(
    "text",
    ["", "x", "9_000", "1e3", "٣", " 7", "7\n", "+7", "--7", "1.0", "0x10", "9" * 5_000],
)
def test_what_is_not_written_in_digits_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match=r": a whole number is needed, in digits$"):
        whole_number(text)
    assert not is_whole_number(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-1", "-1: it must be 0 to 2147483647"),
        ("2147483648", "2147483648: it must be 0 to 2147483647"),
    ],
)
def test_a_number_out_of_range_names_the_range(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        whole_number(text, maximum=INT32_MAX)
    assert not is_whole_number(text, maximum=INT32_MAX)
    with pytest.raises(ValueError, match="-1: it must be 0 or more"):
        whole_number("-1")
    with pytest.raises(ValueError, match=f"it must be 0 to {2**63 - 1}"):
        whole_number(str(2**63))
