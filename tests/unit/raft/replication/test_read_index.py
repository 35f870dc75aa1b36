"""Current reads are confirmed by rounds (rule `linearizable_reads`)."""

from __future__ import annotations

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis, Offset, ReplyToken
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, told


def read(core: object, token: int, now_ms: int) -> api.Update:
    return core.step(api.ReadRequested(ReplyToken(token)), Millis(now_ms))  # type: ignore[attr-defined, no-any-return]


def served(update: api.Update) -> list[m.ReadResponse]:
    return [r for r in cores.replies(update) if isinstance(r, m.ReadResponse)]


@pytest.mark.rule("linearizable_reads")
def test_a_read_waits_for_a_fetch_that_echoes_its_round() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001, token=2)
    # The Fetch that is parked gives way to the answer that carries the round.
    update = read(core, 30, 2002)
    expect(update, traffic.fetch_reply(2, high_watermark=3, read_round=1), wake_at_ms=3000)
    stale = cores.ask(core, cores.fetch(2, 3, 1), now_ms=2003, token=3)
    expect(stale, traffic.fetch_reply(3, high_watermark=3, read_round=1), wake_at_ms=3000)
    fresh = cores.ask(core, cores.fetch(2, 3, 1, read_round=1), now_ms=2004, token=4)
    expect(
        fresh,
        api.SendReply(
            ReplyToken(30), m.ReadResponse(ErrorCode.NONE, cores.LEADER, offset=Offset(3))
        ),
        wake_at_ms=2004 + cores.config().high_watermark_linger_ms,
    )


def test_the_only_voter_answers_at_once() -> None:
    core = cores.unattached(1, 1)
    cores.flush(core, now_ms=1)
    (answer,) = served(read(core, 30, 2))
    assert answer.offset == told(core).high_watermark


@pytest.mark.rule("linearizable_reads")
def test_a_read_at_a_new_leader_waits_for_its_epoch_to_be_committed() -> None:
    core = cores.leader()
    assert served(read(core, 30, 2001)) == []
    confirmed = cores.ask(core, cores.fetch(2, 0, 0, read_round=1), now_ms=2002)
    assert served(confirmed) == []
    (answer,) = served(cores.ask(core, cores.fetch(2, 3, 1, read_round=1), now_ms=2003, token=3))
    assert answer.offset == 3


def test_a_replica_that_does_not_lead_refuses() -> None:
    (answer,) = served(read(cores.follower(), 30, 2))
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_lost_leadership_fails_what_waits_and_a_caller_that_is_gone_is_dropped() -> None:
    core = cores.leader()
    read(core, 30, 2001)
    read(core, 31, 2001)
    core.step(api.CallerDisconnected(ReplyToken(30)), Millis(2002))
    update = core.step(api.ResignRequested("test"), Millis(2003))
    replies = [e for e in update.effects if isinstance(e, api.SendReply)]
    assert [reply.token for reply in replies] == [31]
