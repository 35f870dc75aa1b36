"""The ends of the log, as each reader may see them."""

from __future__ import annotations

import pytest

from quorate.raft.replication.high_watermark import CommitState
from quorate.raft.replication.log_state import LogState
from quorate.records.ids import Offset
from tests.unit.raft import cores
from tests.unit.raft.expecting import expect, told


def test_the_epoch_start_rule_commits_nothing_before_a_record_of_the_own_epoch() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 0, 0), now_ms=2001)
    assert told(core).high_watermark == 0
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2002, token=2)
    assert told(core).high_watermark == 3


def test_the_leader_counts_itself_only_up_to_what_is_flushed() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    cores.propose(core)
    cores.ask(core, cores.fetch(2, 5, 1), now_ms=2002, token=3)
    assert told(core).high_watermark == 3
    expect(
        cores.flush(core, now_ms=2003),
        cores.progress("leader", 1, leader_id=1, epoch_start=0, high_watermark=5),
        wake_at_ms=2002 + cores.config().high_watermark_linger_ms,
    )


def test_the_high_watermark_never_goes_back_and_never_leaves_the_log() -> None:
    log = LogState(cores.recovered(1, 2, 3, log_end=cores.end(3, 1)))
    ends = CommitState(log, cores.key(1))
    assert ends.advance(Offset(2))
    assert not ends.advance(Offset(1))
    with pytest.raises(AssertionError):
        ends.advance(Offset(4))
    assert ends.high_watermark == 2
