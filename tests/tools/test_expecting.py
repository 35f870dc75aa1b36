"""The helper that holds Updates whole, held itself."""

from __future__ import annotations

import re

import pytest

from quorate.raft import api
from quorate.raft.trace_events import TraceEventKind
from quorate.records.ids import CallId, Millis
from tests.unit.raft import cores
from tests.unit.raft.expecting import appended_voters, expect, log_end, now_ms, saved, told

ASKED: tuple[api.Effect, ...] = (
    *(
        api.SendRequest(
            CallId(node), cores.peer(node), cores.vote(1, node, 0, cores.end(0, 0), pre_vote=True)
        )
        for node in (2, 3)
    ),
    cores.progress("prospective", 0),
)
WAKE_MS = 1750
NOTES = (
    (TraceEventKind.ROLE_TAKEN, "no leader was found: unattached becomes prospective in epoch 0"),
)


def update() -> api.Update:
    return cores.unattached().step(api.TimerFired(), Millis(1500))


def test_an_update_that_is_all_as_expected_passes() -> None:
    expect(update(), *ASKED, wake_at_ms=WAKE_MS, notes=NOTES)


def test_a_difference_is_told_field_by_field() -> None:
    request = cores.vote(1, 2, 0, cores.end(0, 0), pre_vote=True)
    wrong = api.SendRequest(CallId(2), cores.peer(4), request)
    with pytest.raises(AssertionError) as raised:
        expect(update(), wrong, *ASKED[1:], wake_at_ms=WAKE_MS, notes=NOTES)
    differing = [line for line in str(raised.value).splitlines()[1:] if re.match("[-+]", line)]
    assert differing == [
        "-     node_id: 4",
        "+     node_id: 2",
        "-     host: 'node-4'",
        "+     host: 'node-2'",
    ]


@pytest.mark.parametrize(
    ("effects", "wake_at_ms", "notes"),
    [
        (ASKED[:-1], WAKE_MS, NOTES),
        ((*ASKED, ASKED[0]), WAKE_MS, NOTES),
        ((ASKED[1], ASKED[0], ASKED[2]), WAKE_MS, NOTES),
        (ASKED, WAKE_MS + 1, NOTES),
        (ASKED, None, NOTES),
        (ASKED, WAKE_MS, ()),
        (ASKED, WAKE_MS, ((TraceEventKind.STARTED, NOTES[0][1]),)),
    ],
    ids=["one more", "one less", "order", "wake-up", "no wake-up", "a note more", "kind of note"],
)
def test_whatever_else_an_update_holds_is_a_difference(
    effects: tuple[api.Effect, ...],
    wake_at_ms: int | None,
    notes: tuple[tuple[TraceEventKind, str], ...],
) -> None:
    with pytest.raises(AssertionError, match="is expected"):
        expect(update(), *effects, wake_at_ms=wake_at_ms, notes=notes)


def test_what_a_core_tells_is_what_it_is() -> None:
    core = cores.leader()
    cores.propose(core)
    replica = core.replica
    assert (told(core).role, told(core).epoch) == ("leader", replica.epoch)
    assert told(core).high_watermark == replica.high_watermark
    assert saved(core) == replica.election
    assert log_end(core) == replica.log.end
    assert appended_voters(core) == replica.voters
    assert now_ms(core) == replica.timers.now
