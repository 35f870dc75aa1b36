"""UpdateFeatures (KIP-853): kraft.version 0 to 1, in one batch with the voters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.identity.second_quorum import PROOFS
from quorate.raft.roles import Leader
from quorate.records.control import KRaftVersion, KRaftVoters
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from tests.unit.raft import cores
from tests.unit.raft.expecting import appended_voters, log_end, told

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore

UPGRADE = m.UpdateFeaturesRequest(1, validate_only=False)


def static_leader(*, told: tuple[int, ...] = (2, 3)) -> RaftCore:
    """A leader at kraft.version 0; the voters `told` it their directory ids."""
    static = VoterSet.of(
        Voter(ReplicaKey(NodeId(node_id)), cores.endpoints(node_id)) for node_id in (1, 2, 3)
    )
    state = replace(
        cores.recovered(1, 2, 3), voters=(m.VotersAt(Offset(-1), static),), kraft_versions=()
    )
    core = cores.started(1, state)
    update = core.step(api.TimerFired(), Millis(2000))
    for epoch in (0, 1):
        call = cores.calls(update)[2][0]
        update = cores.answer(core, call, cores.granted(epoch), now_ms=2000)
    cores.flush(core, now_ms=2000)
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 1, 1), now_ms=4400, token=100 + node_id)
    for node_id in told:
        entry = m.UpdateRaftVoterRequest(
            cluster_id=cores.CLUSTER,
            current_leader_epoch=Epoch(1),
            voter=cores.key(node_id),
            listeners=cores.endpoints(node_id),
            kraft_version_min=0,
            kraft_version_max=1,
        )
        cores.ask(core, entry, now_ms=4450, token=200 + node_id)
    return core


def test_version_and_voters_are_one_batch_and_in_force_at_once() -> None:
    core = static_leader()
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 1, 1), now_ms=4496, token=300 + node_id)
    update = cores.ask(core, UPGRADE, now_ms=4500, token=7)
    (appended,) = [e for e in update.effects if isinstance(e, api.AppendToLog)]
    assert appended.payload == api.ControlBatch(
        (KRaftVersion(1), KRaftVoters(cores.voters(1, 2, 3)))
    )
    assert cores.described(core, now_ms=4500).kraft_version == 1
    assert appended_voters(core) == cores.voters(1, 2, 3)
    # The fetches that were parked under a bare node id are those of voters still.
    fetched = [r for r in cores.replies(update) if isinstance(r, m.FetchResponse)]
    assert [answer.records for answer in fetched] == [
        m.LogRange(start=Offset(1), end=Offset(3), bytes_max=1024)
    ] * 2
    update = cores.ask(core, cores.fetch(2, 3, 1), now_ms=4501, token=8)
    cores.flush(core, now_ms=4501)
    update = cores.ask(core, cores.fetch(3, 3, 1), now_ms=4502, token=9)
    assert told(core).high_watermark == 3


@pytest.mark.rule("one_process_per_voter")
def test_a_second_process_is_refused_under_the_new_keys_as_well() -> None:
    core = static_leader()

    def fetched(process: int, *, offset: int, now_ms: int) -> ErrorCode | None:
        """The error in the answer to that process of voter 2; None while it is parked."""
        role = core.replica.role
        assert isinstance(role, Leader)
        asked = cores.fetch(2, offset, 1, read_round=role.read_round)
        asked = replace(asked, incarnation=process)
        update = cores.ask(core, asked, now_ms=now_ms, token=now_ms)
        answers = [e for e in update.effects if isinstance(e, api.SendReply)]
        told = [e.response for e in answers if e.token == now_ms]
        return told[0].error if told and isinstance(told[0], m.FetchResponse) else None

    for now_ms, process in ((4460, 11), (4470, 22), (4480, 11)):
        assert fetched(process, offset=1, now_ms=now_ms) is None
    assert fetched(22, offset=1, now_ms=4490) is ErrorCode.DUPLICATE_VOTER
    cores.ask(core, UPGRADE, now_ms=4500, token=7)
    cores.flush(core, now_ms=4501)
    assert fetched(22, offset=3, now_ms=4510) is ErrorCode.DUPLICATE_VOTER
    assert (told(core).high_watermark or 0) < 3
    assert fetched(11, offset=3, now_ms=4520) in (None, ErrorCode.NONE)
    assert told(core).high_watermark == 3


def test_who_asks_again_meanwhile_is_not_told_that_it_is_done() -> None:
    core = static_leader()
    cores.ask(core, UPGRADE, now_ms=4500, token=7)
    answer = cores.membership(cores.ask(core, UPGRADE, now_ms=4501, token=8))
    assert (answer.error, answer.reason) == (
        ErrorCode.REQUEST_TIMED_OUT,
        m.Reason.PENDING_VOTER_CHANGE,
    )


def test_validation_changes_nothing() -> None:
    core = static_leader()
    answer = cores.membership(cores.ask(core, replace(UPGRADE, validate_only=True), now_ms=4500))
    assert answer.error is ErrorCode.NONE
    assert cores.described(core, now_ms=4501).kraft_version == 0


def test_a_voter_whose_directory_is_unknown_keeps_the_version_as_it_is() -> None:
    core = static_leader(told=(2,))
    answer = cores.membership(cores.ask(core, UPGRADE, now_ms=4500))
    assert (answer.error, answer.reason) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        m.Reason.DIRECTORY_ID_UNKNOWN,
    )
    assert "[3]" in answer.message


def test_a_broker_that_cannot_read_the_new_version_keeps_it_as_it_is() -> None:
    core = static_leader()
    core.step(api.BrokerKRaftVersions(0), Millis(4450))
    answer = cores.membership(cores.ask(core, UPGRADE, now_ms=4500))
    assert (answer.error, answer.reason) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        m.Reason.VOTER_UNSUPPORTED,
    )


def test_there_is_no_way_back_and_none_beyond() -> None:
    core = cores.grown_up_leader()
    for target in (0, 2):
        asked = m.UpdateFeaturesRequest(target, validate_only=False)
        answer = cores.membership(cores.ask(core, asked, now_ms=4500))
        assert (answer.error, answer.reason) == (
            ErrorCode.INVALID_UPDATE_VERSION,
            m.Reason.INVALID_UPDATE_VERSION,
        )
    assert cores.membership(cores.ask(core, UPGRADE, now_ms=4500)).error is ErrorCode.NONE
    assert log_end(core).offset == 3


@pytest.mark.rule("sole_voter_conflict")
def test_nothing_is_upgraded_while_another_quorum_is_met() -> None:
    core = static_leader()
    for node_id in (2, 3):
        cores.ask(core, cores.fetch(node_id, 1, 1), now_ms=4496, token=300 + node_id)
    for _ in range(PROOFS):
        core.replica.second_quorum.prove(NodeId(2), Epoch(1), "why")
    answer = cores.membership(cores.ask(core, UPGRADE, now_ms=4500, token=7))
    assert answer.reason is m.Reason.HIGH_WATERMARK_UNKNOWN
    assert "leads another quorum" in answer.message
    assert core.replica.log.kraft_version == 0
