"""Effects and events of a step, in order."""

from __future__ import annotations

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.outbox import Outbox
from quorate.raft.replication.check_quorum import CheckQuorum
from quorate.raft.roles import Leader, Unattached
from quorate.raft.trace_events import TraceEvent, TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplyToken
from tests.unit.raft import cores

NOBODY = m.ElectionState(Epoch(3))
NONE_LEADS = api.PublishProgress(
    role="unattached",
    epoch=Epoch(3),
    leader_id=None,
    is_leader=False,
    epoch_start=None,
    high_watermark=Offset(7),
)


def saved(epoch: int) -> api.SaveElection:
    return api.SaveElection(m.ElectionState(Epoch(epoch)), 1, cores.voters(1))


def reply(token: int) -> api.SendReply:
    return api.SendReply(ReplyToken(token), m.ReadResponse(ErrorCode.NONE, m.NOTHING_KNOWN))


def test_effects_and_notes_come_in_the_order_in_which_they_were_asked_for_and_once() -> None:
    out = Outbox()
    out.emit(saved(1))
    out.reply(reply(1).token, reply(1).response)
    out.note(TraceEventKind.STARTED, "one")
    out.note(TraceEventKind.STARTED, "two", epoch=1)
    notes = (
        TraceEvent(TraceEventKind.STARTED, "one"),
        TraceEvent(TraceEventKind.STARTED, "two", {"epoch": 1}),
    )
    assert out.take() == ((saved(1), reply(1)), notes)
    assert out.take() == ((), ())


def test_of_two_writes_with_nothing_between_only_the_last_is_done() -> None:
    out = Outbox()
    for epoch in (1, 2):
        out.save(saved(epoch))
    assert out.take() == ((saved(2),), ())


def test_what_rests_on_a_write_keeps_it() -> None:
    out = Outbox()
    out.save(saved(1))
    out.emit(reply(1))
    out.save(saved(2))
    assert out.take() == ((saved(1), reply(1), saved(2)), ())


def test_only_news_is_published() -> None:
    out = Outbox()
    for _ in range(2):
        out.publish(Unattached(Millis(0)), NOBODY, Offset(7))
    assert out.take() == ((NONE_LEADS,), ())
    out.publish(Unattached(Millis(9)), NOBODY, Offset(7))
    assert out.take() == ((), ())


def test_a_leader_is_published_with_the_beginning_of_its_epoch() -> None:
    out = Outbox()
    leader = Leader(Offset(5), Millis(0), CheckQuorum(Millis(0)), Millis(0))
    out.publish(leader, m.ElectionState(Epoch(3), NodeId(1)), Offset(7))
    (progress,), _ = out.take()
    assert progress == api.PublishProgress(
        role="leader",
        epoch=Epoch(3),
        leader_id=NodeId(1),
        is_leader=True,
        epoch_start=Offset(5),
        high_watermark=Offset(7),
    )
