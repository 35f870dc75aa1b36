"""Reaction of a replica to a leader that another one names."""

from __future__ import annotations

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.request_manager import RequestKind
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from tests.unit.raft import cores
from tests.unit.raft.expecting import expect


def named(leader: m.LeaderInfo) -> m.FetchResponse:
    """The response of a replica that does not lead, and names the leader."""
    return m.FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=leader)


def test_a_rival_leader_of_the_same_epoch_is_not_believed() -> None:
    core = cores.follower()
    rival = m.LeaderInfo(NodeId(3), Epoch(1), cores.endpoints(3))
    update = cores.answer(core, cores.under_way(core), named(rival), now_ms=2)
    expect(
        update,
        wake_at_ms=18,
        notes=(
            (TraceEventKind.REFUSED_BY_PEER, "1 answers Fetch with NOT_LEADER_OR_FOLLOWER"),
            (
                TraceEventKind.CONTRADICTED,
                "3 is named as leader of epoch 1, which 1 leads: it is not followed",
            ),
        ),
    )


def test_a_leader_without_an_address_is_not_followed() -> None:
    core = cores.unattached()
    stranger = m.LeaderInfo(NodeId(9), Epoch(2))
    call = cores.under_way(core, RequestKind.DISCOVERY)
    update = cores.answer(core, call, named(stranger), now_ms=2)
    expect(
        update,
        api.SaveElection(m.ElectionState(Epoch(2)), 1, cores.voters(1, 2, 3)),
        cores.progress("unattached", 2),
        wake_at_ms=102,
        notes=(
            (
                TraceEventKind.ROLE_TAKEN,
                "discovery: epoch 2: unattached becomes unattached in epoch 2",
            ),
        ),
    )
