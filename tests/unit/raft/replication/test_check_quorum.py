"""Check-quorum: a leader without a majority of fetches resigns in time, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.election.epoch_announcements import REPEAT_SHARE
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis, Offset
from tests.unit.raft import cores, traffic
from tests.unit.raft.expecting import expect, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore


def leads_until(core: RaftCore, deadline: int) -> bool:
    """True if the leader resigns just then, since no majority has fetched."""
    core.step(api.TimerFired(), Millis(deadline - 1))
    before = told(core).role
    core.step(api.TimerFired(), Millis(deadline))
    return (before, told(core).role) == ("leader", "resigned")


def test_only_replicas_with_a_fitting_log_count() -> None:
    """A replica that has to truncate, or to fetch a snapshot, could commit nothing yet."""
    core = cores.leader()
    update = cores.ask(core, cores.fetch(2, 9, 1), now_ms=2500)
    assert cores.fetched(update).diverging == cores.end(3, 1)
    assert leads_until(core, 2000 + 3000)
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 9, 1), now_ms=2500)
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2501, token=2)
    assert leads_until(core, 2501 + 3000)


def test_a_replica_that_has_to_fetch_a_snapshot_does_not_count() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    info = m.SnapshotInfo(cores.end(3, 1), 100)
    core.step(api.SnapshotStored(info), Millis(2002))
    core.step(api.LogCleaned(Offset(3), (info,)), Millis(2003))
    assert cores.fetched(cores.ask(core, cores.fetch(3, 0, 0), now_ms=2004, token=3)).snapshot_id
    assert leads_until(core, 2001 + 3000)


@pytest.mark.rule("check_quorum_restart")
def test_a_new_set_gets_a_whole_interval_before_its_quorum_is_checked() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1, wait_ms=0), now_ms=2001)
    cores.append(core, cores.voters(1, 2, 3, 4), now_ms=4900)
    cores.flush(core, now_ms=4900)
    core.step(api.TimerFired(), Millis(4900 + 3000 - 1))
    assert told(core).role == "leader"
    core.step(api.TimerFired(), Millis(4900 + 3000))
    assert told(core).role == "resigned"


def test_a_leader_without_a_majority_of_fetches_resigns_before_it_answers() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    update = cores.ask(core, cores.fetch(3, 3, 1), now_ms=2001 + 3000, token=3)
    expect(
        update,
        traffic.fetch_given_up(1),
        traffic.fetch_refusal(3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        traffic.end_sent(8, 2, 2, 3),
        traffic.end_sent(9, 3, 2, 3),
        cores.progress("resigned", 1, leader_id=1, high_watermark=3),
        wake_at_ms=5001 + cores.part_of_election_timeout(REPEAT_SHARE),
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "no majority of the voters has fetched within the check-quorum interval: "
                "leader becomes resigned in epoch 1",
            ),
        ),
    )
