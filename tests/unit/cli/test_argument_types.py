"""Types of flags: what is wrong is said in the words that argparse puts behind the flag."""

from __future__ import annotations

import argparse

import pytest

from quorate.cli.argument_types import duration_s, number


def test_a_number_is_parsed_within_its_bounds() -> None:
    assert number(1, 5)("5") == 5
    assert number()("0") == 0


@pytest.mark.parametrize("text", ["0", "6", "five", "1_0"])
def test_what_does_not_fit_is_an_error_of_the_argument(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=text):
        number(1, 5)(text)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200)])
def test_a_time_has_a_unit(text: str, seconds: int) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["10", "m", "0s", "1.5h", "-1m", "10 m", "1d", "\u0661m"])
def test_a_time_without_one_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="90s, 10m or 2h is needed"):
        duration_s(text)
