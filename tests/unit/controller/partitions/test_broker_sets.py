from __future__ import annotations

import numpy as np
import pytest

from quorate.controller.partitions.broker_sets import membership_test


@pytest.mark.parametrize("ids", [(), (0,), (3, 5), (5, 1 << 20), (2**31 - 1,)])
def test_ids_are_found_whatever_they_are(ids: tuple[int, ...]) -> None:
    asked = np.array([[-1, 0, 3], [5, 1 << 20, 2**31 - 1]], np.int32)
    expected = [[number in ids for number in row] for row in asked.tolist()]
    assert membership_test(frozenset(ids))(asked).tolist() == expected
