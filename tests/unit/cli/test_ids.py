"""Ids of clusters."""

from __future__ import annotations

import pytest

from quorate.cli.ids import parse_cluster_id
from quorate.cli.output import CommandError


def test_a_cluster_id_is_a_word_that_every_tool_takes() -> None:
    for word in ("my-cluster_1.eu", "5L6g3nShT-eMCtK--X86sw"):
        assert parse_cluster_id("--cluster-id", word) == word
    for text in ("", " x", "x\n", "my cluster!", "a=b", "ключ", "x" * 65):
        with pytest.raises(CommandError, match=r"^--new-cluster-id: "):
            parse_cluster_id("--new-cluster-id", text)


@pytest.mark.parametrize("text", ["A" * 22, "A" * 21 + "Q"])
def test_no_cluster_has_an_id_that_kafka_keeps_to_itself(text: str) -> None:
    with pytest.raises(CommandError, match=f"^--cluster-id: Kafka keeps {text} to itself: take "):
        parse_cluster_id("--cluster-id", text)
