"""DescribeQuorum and the remarks of a replica (KIP-836)."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.raft.describe import describe, remarks
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis, Offset
from tests.unit.raft import cores


def test_the_leader_tells_what_every_replica_has_and_when_it_fetched() -> None:
    core = cores.leader()
    cores.ask(core, cores.fetch(2, 3, 1), now_ms=2001)
    cores.ask(core, cores.fetch(7, 0, 0), now_ms=2002, token=2)
    answer = describe(core.replica)
    assert answer.error is ErrorCode.NONE
    assert [(v.key.node_id, v.log_end_offset, v.last_fetch_ms) for v in answer.voters] == [
        (1, Offset(3), Millis(2002)),
        (2, Offset(3), Millis(2001)),
        (3, None, None),
    ]
    (observer,) = answer.observers
    assert observer == m.ReplicaState(
        cores.key(7), Offset(0), Millis(2002), observer.last_caught_up_ms, cores.endpoints(7)
    )


def test_healing_and_refused_votes_are_remarked() -> None:
    state = cores.recovered(1, 2, 3, remembered_end=cores.end(9, 2))
    core = cores.started(1, state)
    cores.ask(core, cores.vote(2, 1, 3, cores.end(1, 1)), now_ms=1)
    healing, refused = remarks(core.replica)
    assert "once ended at 9@2" in healing
    assert refused.startswith("refused 1 vote(s) to 2: ")


def test_a_replica_that_loads_or_abstains_says_so() -> None:
    core = cores.started(1, cores.recovered(1, 2, 3, abstains=True))
    core.replica.is_ready = False
    assert len(remarks(core.replica)) == 2
