"""Functions from text: what is in them, what they find, and what they are called."""

from __future__ import annotations

import traceback

import pytest

from quorate.records.codec.code_builder import CodeBuilder
from quorate.records.value_types import keyword_value_type


@keyword_value_type
class Pair:
    left: int
    right: int


def test_a_function_is_made_of_lines_and_blocks() -> None:
    source = CodeBuilder("largest", "numbers")
    best, each = source.local("best"), source.local("each")
    source.line(f"{best} = {source.bind(None, 'nothing')}")
    with (
        source.block(f"for {each} in numbers:"),
        source.block(f"if {best} is None or {each} > {best}:"),
    ):
        source.line(f"{best} = {each}")
    source.line(f"return {best}")
    largest = source.compiled()
    assert largest([]) is None
    assert largest([3, 7, 5]) == 7


def test_no_two_names_are_the_same() -> None:
    source = CodeBuilder("names")
    assert len({source.local("a"), source.local("a"), source.bind(1, "a")}) == 3


def test_a_value_is_made_of_its_fields() -> None:
    source = CodeBuilder("pair", "left")
    made = source.instance(Pair, {"left": "left", "right": "left + 1"})
    source.line(f"return {made}")
    assert source.compiled()(1) == Pair(left=1, right=2)


def test_tracebacks_and_profiles_have_its_name() -> None:
    source = CodeBuilder("read Thing", "thing")
    source.line("return 1 // thing")
    read = source.compiled()
    assert read.__name__ == "read Thing"
    with pytest.raises(ZeroDivisionError) as failed:
        read(0)
    assert traceback.extract_tb(failed.tb)[-1].filename == "<read Thing>"
