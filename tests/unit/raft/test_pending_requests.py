"""Requests that wait for a leader are answered when leadership ends."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from tests.unit.raft import cores


def test_parked_fetches_name_the_new_leader() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001, token=2)
    update = cores.begin(core, 3, 7, now_ms=2002)
    (answer,) = [r for r in cores.replies(update) if isinstance(r, m.FetchResponse)]
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.leader.leader_id == 3


def test_a_resigned_leader_does_not_name_itself() -> None:
    core = cores.grown_up_leader()
    update = cores.hand_over(core, 2, now_ms=4500)
    assert cores.membership(update).leader.leader_id is None
