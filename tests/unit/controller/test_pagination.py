from __future__ import annotations

import pytest

from quorate.controller import pagination
from quorate.controller.errors import RefusedError
from quorate.controller.pagination import page_limit, reject_multiple_pages, take_in_slices
from quorate.controller.slices import run_to_end


def test_a_page_has_as_many_as_asked_for_and_no_more_than_the_limit() -> None:
    assert [page_limit(asked, 10, field="limit") for asked in (0, 1, 10, 11)] == [10, 1, 10, 10]


def test_less_than_nothing_is_no_page() -> None:
    with pytest.raises(RefusedError, match="limit is -1; give 1 or more"):
        page_limit(-1, 10, field="limit")


def test_whoever_asks_for_no_page_gets_the_whole_or_nothing() -> None:
    reject_multiple_pages(1, 10, field="limit")
    with pytest.raises(RefusedError, match="more than one page of 10; set limit"):
        reject_multiple_pages(0, 10, field="limit")


def test_the_first_are_found_with_pauses_and_without_sorting_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pagination, "SCANNED_MAX", 3)
    items = [5, 1, 4, 2, 8, 7, 3]
    slices = take_in_slices(items, 2, 3)
    assert sum(1 for _ in slices) == 2
    assert run_to_end(take_in_slices(items, 2, 3)) == [2, 3, 4]
    assert run_to_end(take_in_slices(items, 8, 3)) == [8]
    assert run_to_end(take_in_slices([], 8, 3)) == []
    odd = take_in_slices(items, 2, 3, lambda item: item % 2 == 1)
    assert run_to_end(odd) == [3, 5, 7]


def test_where_each_is_judged_a_turn_is_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "JUDGED_MAX", 2)
    assert sum(1 for _ in take_in_slices(range(7), 0, 7, lambda _: True)) == 3
