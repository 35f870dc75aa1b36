"""A single-voter quorum from one directory: its choice, its content, a crash at every step."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.api import AppendToLog, ControlBatch, SaveElection
from quorate.raft.identity.rival_leader import Rival
from quorate.raft.messages import ElectionState, KRaftVersionAt, VotersAt
from quorate.records.batch import iter_batches
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange, control_records
from quorate.records.ids import ClusterId, DirectoryId, Epoch, NodeId, Offset, ReplicaKey
from quorate.records.voters import VoterSet
from quorate.sim.engine.disk import Survival
from quorate.storage.disaster_recovery.quorum_recovery import (
    execute_plan,
    inspect_directory,
    longest_log,
    new_epoch,
)
from quorate.storage.disaster_recovery.recovery_plan import (
    RecoveryKind,
    RecoveryPlan,
    read_plan,
    write_plan,
)
from quorate.storage.errors import StorageError
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.pod_domain import PodDomain, read_pod_domain, write_pod_domain
from quorate.storage.rival_file import RememberedRival, write_rival
from quorate.storage.storage_config import StorageConfig
from tests.unit.storage.conftest import (
    ALONE,
    DIRECTORY,
    LOG_DIR,
    THREE,
    Crashed,
    Replica,
    at,
    voter,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.storage.disaster_recovery.quorum_recovery import SurvivingDirectory
    from quorate.storage.recovery.recovery import Recovered

END = at(18, 4)
NEW_END = at(21, 1004)
NEW_ID = DirectoryId(b"\x09" * 16)


def survivor_of(replica: Replica) -> SurvivingDirectory:
    return inspect_directory(replica.disk, DIRECTORY, replica.config)


def plan_for(replica: Replica, cluster_id: str | None = None) -> RecoveryPlan:
    survivor = survivor_of(replica)
    meta = survivor.meta
    after = MetaProperties(meta.node_id, ClusterId(cluster_id or meta.cluster_id), NEW_ID)
    return RecoveryPlan(
        kind=RecoveryKind.RECOVER,
        started_ms=5,
        before=meta,
        after=after,
        end=survivor.end,
        epoch=new_epoch([survivor.epoch]),
        endpoints=survivor.endpoints,
        voters_before=survivor.voters,
        witnesses=(survivor.witness,),
    )


def rescue(replica: Replica, plan: RecoveryPlan) -> object:
    write_plan(replica.disk, DIRECTORY, plan)
    return execute_plan(replica.disk, DIRECTORY, plan, timestamp_ms=500)


def settled(voters: VoterSet = THREE) -> Replica:
    replica = Replica(voters)
    replica.write_history()
    replica.disk.settle()
    return replica


# --- looking --------------------------------------------------------------------------------------


def test_a_survey_changes_nothing_and_tells_end_epoch_and_voters() -> None:
    replica = settled()
    replica.snapshot(at(12, 2))
    replica.save(9)
    before = replica.everything()
    survivor = survivor_of(replica)
    assert replica.everything() == before
    assert (survivor.end, survivor.highest_end, survivor.epoch) == (END, END, 9)
    assert (survivor.voters, survivor.committed) == (THREE, 12)
    assert survivor.endpoints == voter(1).endpoints


def test_a_damaged_log_counts_for_what_is_sound_and_tells_what_it_had() -> None:
    replica = settled()
    replica.flip(f"{LOG_DIR}/{replica.logs()[-1]}", 100)
    survivor = survivor_of(replica)
    assert survivor.end < END
    assert survivor.highest_end == END


def test_an_empty_log_is_refused() -> None:
    replica = Replica()
    replica.open()
    with pytest.raises(StorageError, match="its log is empty"):
        survivor_of(replica)


def test_a_directory_that_was_never_started_is_refused() -> None:
    with pytest.raises(StorageError, match="its log is empty"):
        survivor_of(Replica())


@pytest.mark.rule("quorum_loss_recovery")
def test_the_longest_log_is_that_of_the_latest_epoch_then_the_furthest_end() -> None:
    older = Replica()
    older.open()
    older.begin_epoch(1)
    older.append(*(b"%d" % number for number in range(40)))
    older.flush()
    shorter, longer = settled(), settled()
    longer.append(b"more")
    longer.flush()
    found = [survivor_of(replica) for replica in (older, shorter, longer, shorter)]
    assert [survivor.end for survivor in found] == [at(43, 1), END, at(19, 4), END]
    assert longest_log(found) is found[2]
    assert longest_log([found[1], found[3]]) is found[1]


@pytest.mark.rule("quorum_loss_recovery")
def test_the_new_epoch_is_a_thousand_above_every_epoch_that_is_known() -> None:
    assert new_epoch([Epoch(3), Epoch(17), Epoch(5)]) == 1017
    with pytest.raises(StorageError, match="leaves no room"):
        new_epoch([Epoch(2**31 - 2)])


def test_an_epoch_that_no_election_came_to_does_not_count() -> None:
    """Such a file stops the controller; the rescue is the way out, so it must not stop it, too."""
    replica = settled()
    replica.save(2**31 - 1)
    with pytest.raises(StorageError, match="2147483647, which no quorum comes near"):
        replica.open()
    survivor = survivor_of(replica)
    assert (survivor.end, survivor.epoch) == (END, END.epoch)
    assert any("does not count" in finding for finding in survivor.examined.findings)
    assert rescue(replica, plan_for(replica)) == NEW_END
    election = open_rescued(replica).state.election
    assert election is not None
    assert election.epoch == NEW_END.epoch


# --- doing ----------------------------------------------------------------------------------------


def open_rescued(replica: Replica) -> Recovered:
    """As a controller does, under whatever identity the directory has."""
    replica.config = StorageConfig(node_id=NodeId(1), segment_bytes=300)
    return replica.open()


def test_the_rescued_log_is_the_old_one_and_the_new_set_in_the_new_epoch() -> None:
    replica = settled()
    content = replica.content()
    plan = plan_for(replica)
    assert rescue(replica, plan) == NEW_END
    recovered = open_rescued(replica)
    state = recovered.state
    assert (state.end, state.remembered_end, recovered.findings) == (NEW_END, None, ())
    assert state.voters[-1] == VotersAt(Offset(20), plan.voters)
    assert state.election == ElectionState(Epoch(1004), NodeId(1), plan.key)
    assert recovered.meta == plan.after
    assert replica.content()[: len(content)] == content
    new = replica.content(18)
    ((position, header),) = iter_batches(new)
    alone = (NodeId(1),)
    assert control_records(new, position, header) == (
        LeaderChange(NodeId(1), alone, alone),
        KRaftVersion(1),
        KRaftVoters(plan.voters),
    )


def test_the_record_stays_and_the_first_voters_and_the_plan_go() -> None:
    replica = settled()
    plan = plan_for(replica)
    rescue(replica, plan)
    assert "rescue-1004.json" in replica.disk.files(DIRECTORY)
    assert read_plan(replica.disk, DIRECTORY) is None
    assert "00000000000000000000-0000000000.checkpoint" not in replica.files()


@pytest.mark.rule("sole_voter_conflict")
def test_a_quorum_that_is_recovered_has_no_rival_any_more() -> None:
    replica = settled()
    rival = Rival(leader_id=NodeId(4), epoch=Epoch(7), host="node-4", port=9094)
    write_rival(replica.disk, f"{DIRECTORY}/rival", RememberedRival(replica.meta, rival))
    rescue(replica, plan_for(replica))
    assert not replica.disk.exists(f"{DIRECTORY}/rival")
    assert open_rescued(replica).state.rival is None


def test_a_quorum_that_is_recovered_is_on_no_copy_of_a_disk_any_more() -> None:
    replica = settled()
    domain = PodDomain(pod="q-1", service="s", namespace="prod")
    write_pod_domain(replica.disk, DIRECTORY, domain)
    rescue(replica, plan_for(replica))
    assert read_pod_domain(replica.disk, DIRECTORY) is None


def test_another_cluster_id_is_taken_on_everywhere() -> None:
    replica = settled()
    rescue(replica, plan_for(replica, "another"))
    assert open_rescued(replica).meta.cluster_id == "another"


def test_an_only_voter_with_a_damaged_log_goes_on_without_what_it_lost() -> None:
    replica = settled(ALONE)
    flip_middle(replica)
    with pytest.raises(StorageError, match="this is the only voter"):
        replica.open()
    plan = plan_for(replica)
    assert plan.end < END
    rescue(replica, plan)
    state = open_rescued(replica).state
    assert state.remembered_end is None
    assert state.end == at(plan.end.offset + 3, 1004)
    assert any(name.endswith(".damaged") for name in replica.files())


def test_a_second_rescue_follows_the_first() -> None:
    replica = settled()
    rescue(replica, plan_for(replica))
    replica.config = StorageConfig(node_id=NodeId(1), segment_bytes=300)
    survivor = survivor_of(replica)
    assert (survivor.end, survivor.epoch, len(survivor.voters)) == (NEW_END, 1004, 1)


# --- crashes --------------------------------------------------------------------------------------


def whole(replica: Replica) -> None:
    """Nothing is wrong."""


def flip_middle(replica: Replica) -> None:
    replica.flip(f"{LOG_DIR}/{replica.logs()[1]}", 100)


def snapshot(replica: Replica) -> None:
    replica.snapshot(at(12, 2), b"state")
    replica.disk.settle()


def healing(replica: Replica) -> None:
    """Damaged, and started since: it remembers its end."""
    flip_middle(replica)
    replica.open()
    replica.disk.settle()


@pytest.mark.parametrize("survival", [None, *Survival])
@pytest.mark.parametrize("spoil", [whole, flip_middle, snapshot, healing])
def test_a_rescue_that_dies_anywhere_is_gone_on_with_to_the_same_end(
    spoil: Callable[[Replica], None], survival: Survival | None
) -> None:
    lost = settled()
    spoil(lost)
    lost.disk.settle()
    plan = plan_for(lost, "another")
    kept = survivor_of(lost).end
    expected = at(kept.offset + 3, plan.epoch)
    for calls in range(1000):
        replica = copy.deepcopy(lost)
        replica.crash_after(calls)
        try:
            rescue(replica, plan)
        except Crashed:
            replica.revive()
        else:
            break
        if survival is not None:
            replica.lose_power(survival, seed=calls)
        if read_plan(replica.disk, DIRECTORY) is None and survivor_of(replica).end == kept:
            # It died before the plan was on the disk: nothing has been changed.
            assert open_rescued(replica).meta == plan.before
            continue
        if read_plan(replica.disk, DIRECTORY) is not None:
            with pytest.raises(StorageError, match="was interrupted here"):
                replica.open()
            assert execute_plan(replica.disk, DIRECTORY, plan, timestamp_ms=500) == expected
            replica.lose_power(Survival.NOTHING)
        recovered = open_rescued(replica)
        state = recovered.state
        assert (state.end, state.remembered_end, recovered.meta) == (expected, None, plan.after)
        assert state.voters[-1].voters == plan.voters
    assert calls > 60


def test_static_voters_become_a_set_in_the_log() -> None:
    """At kraft.version 0 no directory id tells a new disk from an old one: the version rises."""
    replica = Replica(None)
    static = VoterSet.of(replace(v, key=ReplicaKey(v.key.node_id)) for v in THREE)
    replica.config = StorageConfig(node_id=NodeId(1), static_voters=static, segment_bytes=300)
    replica.open()
    state = ElectionState(Epoch(3), NodeId(1), ReplicaKey(NodeId(1)))
    replica.store.save_election(SaveElection(state, 0, static))
    change = ControlBatch((LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),)),))
    replica.store.append(AppendToLog(Offset(0), at(1, 3), change), timestamp_ms=100)
    replica.flush()
    survivor = survivor_of(replica)
    assert (survivor.voters, survivor.endpoints) == (static, voter(1).endpoints)
    plan = plan_for(replica)
    assert rescue(replica, plan) == at(4, 1003)
    recovered = replica.open().state
    assert recovered.voters[-1] == VotersAt(Offset(3), plan.voters)
    assert recovered.kraft_versions[-1] == KRaftVersionAt(Offset(2), 1)
    assert (recovered.abstains, recovered.remembered_end) == (False, None)
