"""The warning of a controller without a leader."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import messages as m
from quorate.raft.identity.rival_leader import Rival
from quorate.raft.identity.second_quorum import PROOFS
from quorate.records.ids import Epoch, Millis, NodeId
from quorate.records.voters import VoterSet
from quorate.server.no_leader_warning import EVERY_S, FIRST_AFTER_S, SERVERS_MAX, LeaderSearch
from tests.unit.raft import cores
from tests.unit.raft.expecting import WatchedCore

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig


@dataclass
class Outcomes:
    by_address: dict[tuple[str, int], str] = field(default_factory=dict)

    def last(self, host: str, port: int) -> str | None:
        return self.by_address.get((host, port))


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def search_of(
    *node_ids: int, config: RaftConfig | None = None, leader_id: int | None = None
) -> tuple[LeaderSearch, Outcomes, Clock]:
    """The search of node 1 in epoch 3."""
    election = m.ElectionState(Epoch(3), None if leader_id is None else NodeId(leader_id))
    state = cores.recovered(*node_ids, election=election)
    if not node_ids:
        state = replace(state, voters=(m.VotersAt(state.voters[0].offset, VoterSet(())),))
    core = WatchedCore(config or cores.config(1), state, cores.Midway())
    core.start(Millis(0))
    outcomes, clock = Outcomes(), Clock()
    return LeaderSearch(core, outcomes, clock), outcomes, clock


def test_a_controller_without_a_leader_says_why_once_a_minute() -> None:
    config = replace(cores.config(1), bootstrap_servers=(("boot", 9094), ("node-2", 9094)))
    search, outcomes, clock = search_of(1, 2, 3, config=config)
    outcomes.by_address["node-2", 9094] = "connection refused"
    outcomes.by_address["boot", 9094] = "boot cannot be resolved: Name or service not known"
    lines = []
    for _ in range(200):
        lines.append((clock.now_s - 100.0, search.look()))
        clock.now_s += 1
    told = [(at_s, line) for at_s, line in lines if line is not None]
    assert [at_s for at_s, _ in told] == [FIRST_AFTER_S + EVERY_S * count for count in range(4)]
    assert told[0][1] == (
        "no leader is known in epoch 3, for 15 s: node-2:9094 (voter 2): connection refused; "
        "node-3:9094 (voter 3): not asked yet; boot:9094 (bootstrap server): boot cannot be "
        "resolved: Name or service not known"
    )


def test_a_leader_that_does_not_answer_is_named() -> None:
    search, _, clock = search_of(1, 2, 3, leader_id=2)
    clock.now_s += FIRST_AFTER_S
    assert (search.look() or "").startswith("leader 2 does not answer in epoch 3, for 15 s: node-2")


def test_a_controller_that_leads_warns_of_nothing() -> None:
    search, _, clock = search_of(1)
    for _ in range(100):
        assert search.look() is None
        clock.now_s += 1


@pytest.mark.rule("sole_voter_conflict")
def test_a_controller_that_stands_down_looks_for_no_leader() -> None:
    rival = Rival(leader_id=NodeId(4), epoch=Epoch(3), host="node-4", port=9094)
    core = cores.started(1, cores.recovered(1, rival=rival))
    clock = Clock()
    search = LeaderSearch(core, Outcomes(), clock)
    for _ in range(100):
        assert search.look() is None
        clock.now_s += 1


def test_a_controller_that_knows_no_server_says_so() -> None:
    search, _, clock = search_of()
    clock.now_s += FIRST_AFTER_S
    assert (search.look() or "").endswith(
        "there is no other voter and no server in controller.quorum.bootstrap.servers"
    )


def test_one_line_names_a_bounded_number_of_servers() -> None:
    servers = tuple((f"boot-{number}", 9094) for number in range(SERVERS_MAX + 3))
    search, _, clock = search_of(config=replace(cores.config(1), bootstrap_servers=servers))
    clock.now_s += FIRST_AFTER_S
    line = search.look() or ""
    assert line.count("not asked yet") == SERVERS_MAX
    assert line.endswith("; and 3 more")


def test_while_another_quorum_is_met_that_is_told_instead() -> None:
    search, _, clock = search_of(1, 2, 3)
    second_quorum = search._core.replica.second_quorum
    for _ in range(PROOFS):
        second_quorum.prove(NodeId(7), Epoch(5), "why")
    for _ in range(100):
        assert search.look() is None
        clock.now_s += 1
