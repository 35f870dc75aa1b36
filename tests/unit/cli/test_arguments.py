"""Types of flags: what is wrong is said in the words that argparse puts behind the flag."""

from __future__ import annotations

import argparse

import pytest

from quorate.cli.arguments import number


def test_a_number_is_parsed_within_its_bounds() -> None:
    assert number(1, 5)("5") == 5
    assert number()("0") == 0


@pytest.mark.parametrize("text", ["0", "6", "five", "1_0"])
def test_what_does_not_fit_is_an_error_of_the_argument(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=text):
        number(1, 5)(text)
