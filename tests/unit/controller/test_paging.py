from __future__ import annotations

import pytest

from quorate.controller.errors import RefusedError
from quorate.controller.paging import page_limit, refuse_more


def test_a_page_has_as_many_as_asked_for_and_no_more_than_the_limit() -> None:
    assert [page_limit(asked, 10, field="limit") for asked in (0, 1, 10, 11)] == [10, 1, 10, 10]


def test_less_than_nothing_is_no_page() -> None:
    with pytest.raises(RefusedError, match="limit is -1; give 1 or more"):
        page_limit(-1, 10, field="limit")


def test_whoever_asks_for_no_page_gets_the_whole_or_nothing() -> None:
    refuse_more(1, 10, field="limit")
    with pytest.raises(RefusedError, match="more than one page of 10; set limit"):
        refuse_more(0, 10, field="limit")
