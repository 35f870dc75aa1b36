"""Vote rejections are reported for a while."""

from __future__ import annotations

from quorate.raft import api
from quorate.raft.election.vote_rejections import REFUSALS_MAX, REJECTIONS_REPORTED_MS
from quorate.records.ids import Millis
from tests.unit.raft import cores


def test_refused_votes_are_told_for_some_minutes_and_then_forgotten() -> None:
    core = cores.started(1, cores.recovered(1, 2, 3, remembered_end=cores.end(9, 2)))

    def refuse(epoch: int, now_ms: int) -> list[str]:
        cores.ask(core, cores.vote(2, 1, epoch, cores.end(8, 2)), now_ms=now_ms)
        return [line for line in core.status_warnings() if line.startswith("refused")]

    assert [line.split(" to ")[0] for line in refuse(3, 1501)] == ["refused 1 vote(s)"]
    assert [line.split(" to ")[0] for line in refuse(4, 1502)] == ["refused 2 vote(s)"]
    core.step(api.TimerFired(), Millis(1502 + REJECTIONS_REPORTED_MS))
    assert any(line.startswith("refused") for line in core.status_warnings())
    core.step(api.TimerFired(), Millis(1503 + REJECTIONS_REPORTED_MS))
    assert not any(line.startswith("refused") for line in core.status_warnings())
    again = refuse(50, 1504 + REJECTIONS_REPORTED_MS)
    assert [line.split(" to ")[0] for line in again] == ["refused 1 vote(s)"]


def test_refusals_of_invented_nominees_are_not_remembered_for_ever() -> None:
    core = cores.follower()
    for invented in range(100, 100 + 3 * REFUSALS_MAX):
        request = cores.vote(invented, 2, 1, cores.end(0, 0), pre_vote=True)
        cores.ask(core, request, now_ms=5)
    told = [line.split(" to ")[1].split(":")[0] for line in core.status_warnings()]
    assert told == [str(99 + 2 * REFUSALS_MAX + n) for n in range(1, REFUSALS_MAX + 1)]
