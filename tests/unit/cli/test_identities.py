"""Ids of clusters and directories."""

from __future__ import annotations

import secrets

import pytest

from quorate.cli.identities import draw_uuid, parse_cluster_id
from quorate.cli.output import CommandError


def test_a_drawn_id_is_none_of_kafkas_own_and_never_looks_like_a_flag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draws = iter([bytes(16), bytes(15) + b"\x01", b"\xf8" + bytes(15), b"\x05" * 16])
    monkeypatch.setattr(secrets, "token_bytes", lambda size: next(draws)[:size])
    assert draw_uuid() == b"\x05" * 16


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
