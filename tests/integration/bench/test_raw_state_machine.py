"""Opaque records: offsets given out, commits told, leadership lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from quorate.raft import api
from quorate.raft.messages import LeaderInfo, ProposalResponse
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, Offset, ReplyToken
from tests.bench.raw_servicer import RawLogError
from tests.bench.raw_state_machine import APPEND_BYTES_MAX, RawApplication
from tests.unit.server.metadata.test_proposer import Recorder

if TYPE_CHECKING:
    from quorate.server.driver.raft_driver import RaftDriver

LEADER = LeaderInfo(NodeId(1), Epoch(3))


class Listening:
    def __init__(self) -> None:
        self.heard: list[int | str] = []

    def committed(self, high_watermark: int) -> None:
        self.heard.append(high_watermark)

    def lost(self) -> None:
        self.heard.append("lost")


class Events(Recorder):
    """Takes events of every kind."""

    def deliver(self, event: api.Event) -> None:
        self.events = [*getattr(self, "events", []), event]


def progress(high_watermark: int, *, leads: bool = True) -> api.PublishProgress:
    return api.PublishProgress(
        role="leader" if leads else "follower",
        epoch=Epoch(3),
        leader_id=NodeId(1),
        is_leader=leads,
        epoch_start=Offset(9) if leads else None,
        high_watermark=Offset(high_watermark),
    )


def application(driver: Recorder) -> RawApplication:
    return RawApplication(cast("RaftDriver", driver))


async def test_records_are_taken_once_the_epoch_has_begun() -> None:
    raw = application(Recorder(end=10))
    raw.on_progress(progress(9))
    with pytest.raises(RawLogError, match="does not lead") as refused:
        raw.append((b"a",))
    assert not refused.value.is_here
    raw.on_progress(progress(10))
    assert raw.append((b"a", b"b")) == 12
    assert raw.append((b"c",)) == 13
    assert raw.metrics() == {"active_controller": 1.0}


async def test_who_is_to_stop_takes_no_records() -> None:
    raw = application(Recorder(end=10))
    raw.on_progress(progress(10))
    stopping = application(Recorder(end=10, is_stopping=True))
    stopping.on_progress(progress(10))
    assert raw.append((b"a",)) == 11
    with pytest.raises(RawLogError, match="does not lead"):
        stopping.append((b"a",))


async def test_too_little_and_too_much_is_refused() -> None:
    raw = application(Recorder(end=10))
    raw.on_progress(progress(10))
    for values in ((), (bytes(APPEND_BYTES_MAX + 1),)):
        with pytest.raises(RawLogError, match="records: send 1 or more"):
            raw.append(values)


async def test_who_watches_hears_of_commits_and_of_the_end() -> None:
    raw, watching, gone = application(Recorder(end=10)), Listening(), Listening()
    raw.watch(watching)
    raw.watch(gone)
    raw.unwatch(gone)
    raw.on_progress(progress(10))
    raw.on_progress(progress(11))
    raw.on_progress(progress(11, leads=False))
    assert watching.heard == [10, 11, "lost"]
    assert gone.heard == []


async def test_control_records_take_offsets_too() -> None:
    raw = application(Recorder(end=10))
    raw.on_progress(progress(10))
    end = SimpleNamespace(offset=Offset(12))
    raw.on_appended(api.AppendToLog(Offset(10), end, api.ControlBatch(())), 0)  # type: ignore[arg-type]
    assert raw.append((b"a",)) == 13


@pytest.mark.parametrize(("lies_at", "resigns"), [(10, False), (11, True), (None, False)])
async def test_a_batch_that_lies_elsewhere_ends_the_leadership(
    lies_at: int | None, *, resigns: bool
) -> None:
    driver, watching = Events(end=10), Listening()
    raw = application(driver)
    raw.on_progress(progress(10))
    raw.watch(watching)
    raw.append((b"a",))
    raw.drain()
    base = None if lies_at is None else Offset(lies_at)
    raw.on_response(
        ReplyToken(1),
        ProposalResponse(error=ErrorCode.NONE, leader=LEADER, base_offset=base, last_offset=base),
    )
    resignations = [e for e in driver.events if isinstance(e, api.ResignRequested)]
    assert bool(resignations) == resigns
    assert ("lost" in watching.heard) == (lies_at != 10)
