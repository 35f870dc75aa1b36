from __future__ import annotations

import pytest

from quorate.controller.topics.topic_names import (
    has_similar_form,
    name_problem,
    similar_form,
    similar_problem,
)


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 249, "...", "__consumer_offsets"])
def test_a_good_name_has_no_problem(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "The topic name is empty; give it at least one character."),
        (".", "The topic name may not be '.'; choose another."),
        ("..", "The topic name may not be '..'; choose another."),
        (
            "x" * 250,
            "The topic name has 250 characters; at most 249 are allowed, shorten it.",
        ),
        (
            "a b",
            "The topic name 'a b' contains characters other than letters, digits, '.', '_' and '-';"
            " leave them out.",
        ),
        (
            "__cluster_metadata",
            "The topic name '__cluster_metadata' belongs to the metadata log; choose another.",
        ),
    ],
)
def test_a_bad_name_is_told_with_the_remedy(name: str, problem: str) -> None:
    assert name_problem(name) == problem


@pytest.mark.parametrize("name", ["a\n", "é", "a/b", "٣"])
def test_only_ascii_letters_and_digits_are_letters_and_digits(name: str) -> None:
    assert name_problem(name) is not None


def test_names_that_metrics_do_not_tell_apart_collide() -> None:
    assert similar_form("a.b_c") == similar_form("a_b.c")
    assert [has_similar_form(name) for name in ("ab", "a.b", "a_b")] == [False, True, True]
    assert similar_problem("a.b", ["a_b"], lambda _: True) == (
        "The topic name 'a.b' differs from the existing 'a_b' only in '.' and '_', which metrics do"
        " not tell apart; choose another."
    )
    assert similar_problem("a.b", ["a_b"], lambda _: False) == (
        "The topic name 'a.b' differs from an existing one only in '.' and '_', which metrics do"
        " not tell apart; choose another."
    )
    assert similar_problem("a.b", ["a.b"], lambda _: True) is None
    assert similar_problem("a.b", [], lambda _: True) is None
