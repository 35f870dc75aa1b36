"""Sets of brokers, for membership tests of many rows together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.partitions.rows import Bits, Rows

# Ids of brokers below this are looked up in a table, larger ones by binary search.
_TABLE_MAX: Final = 1 << 16


def membership_test(ids: frozenset[int]) -> Callable[[Rows], Bits]:
    """A vectorized test for these broker ids; it returns False for -1."""
    last = max(ids, default=0)
    if last < _TABLE_MAX:
        # With an entry for -1 before the ids, and one for all larger numbers after them.
        table = np.zeros(last + 3, np.bool_)
        table[1 : last + 2][list(ids)] = True
        return lambda brokers: table.take(brokers + 1, mode="clip")
    # A last entry that is not an id keeps every position that is looked up inside the array.
    known = np.array([*sorted(ids), np.iinfo(np.int64).max])
    return lambda brokers: np.equal(np.take(known, np.searchsorted(known, brokers)), brokers)
