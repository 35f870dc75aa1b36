"""Claims of pods that were scaled down, among others."""

from __future__ import annotations

from quorate.autojoin.volume_claims import Claims

KEPT = Claims(
    stateful_set="q.x", replicas=3, templates=("data", "d+"), selector="a=b", are_kept=True
)


def test_claims_beyond_the_replicas_are_left_by_ordinal() -> None:
    names = ("data-q.x-10", "data-q.x-3", "data-q.x-2", "d+-q.x-4")
    assert KEPT.left(names) == ("data-q.x-3", "d+-q.x-4", "data-q.x-10")


def test_claims_of_others_are_not_named() -> None:
    names = ("data-q-x-3", "logs-q.x-3", "data-q.x-3-old", "data-q.x-x", "data-other-q.x-3")
    assert KEPT.left(names) == ()
