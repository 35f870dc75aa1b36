"""The error of a controller that meets another quorum of its cluster."""

from __future__ import annotations

from quorate.raft.identity.second_quorum import PROOFS
from quorate.records.ids import Epoch, Millis, NodeId
from quorate.server.second_quorum_alarm import EVERY_S, SecondQuorumAlarm
from tests.unit.raft import cores

TICKS = 130


def test_it_is_told_at_once_and_once_a_minute_while_it_lasts() -> None:
    core = cores.fed()
    second_quorum, now_s = core.replica.second_quorum, 100.0
    alarm = SecondQuorumAlarm(core, lambda: now_s)
    assert alarm.look() is None

    told_at = []
    for tick in range(TICKS):
        for _ in range(PROOFS):
            second_quorum.prove(NodeId(1), Epoch(1), "why")
        now_s = 100.0 + tick
        line = alarm.look()
        if line is not None:
            assert "leads another quorum" in line
            told_at.append(tick)
    assert told_at == [0, EVERY_S, 2 * EVERY_S]

    core.replica.timers.now = Millis(10**9)
    now_s += 2 * EVERY_S
    assert alarm.look() is None
