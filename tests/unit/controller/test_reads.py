from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.authorization.authorizer import UNLIMITED
from quorate.controller.reads import answer_in_slices
from quorate.controller.topics.describe_topics import SLICE_ITEMS
from quorate.controller.topics.messages import (
    DescribeTopics,
)

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_a_long_answer_lets_others_run_after_so_many_items(cluster: Cluster) -> None:
    cluster.create("a", *[(1,)] * (SLICE_ITEMS * 3))
    slices = answer_in_slices(cluster.image, DescribeTopics(), UNLIMITED)
    assert sum(1 for _ in slices) == 3
