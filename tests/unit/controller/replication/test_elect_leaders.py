from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigChange,
    ConfigResource,
    ResourceType,
)
from quorate.controller.partitions import leader_isr_sweep
from quorate.controller.partitions.partition import NO_LEADER, RECOVERING
from quorate.controller.replication import elect_leaders
from quorate.controller.replication.messages import (
    ElectedLeader,
    ElectionType,
    ElectLeaders,
    ElectLeadersReply,
    LeaderElection,
)
from quorate.records.errors import ErrorCode
from tests.unit.controller.configs.conftest import alter, put
from tests.unit.controller.conftest import uuid
from tests.unit.controller.replication.test_alter_partition import alteration, asks

if TYPE_CHECKING:
    from quorate.controller.configs.messages import IncrementalAlterConfigs
    from tests.unit.controller.conftest import Cluster

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
PARTITION = LeaderElection("t", 0)


def elect(
    cluster: Cluster, kind: ElectionType, *partitions: LeaderElection
) -> tuple[ElectedLeader, ...]:
    reply = cluster.ask(ElectLeaders(kind, partitions))
    assert isinstance(reply, ElectLeadersReply)
    assert reply.error is ErrorCode.NONE
    return reply.partitions


def errors(results: tuple[ElectedLeader, ...]) -> list[tuple[str, int, ErrorCode, int]]:
    for result in results:
        assert bool(result.message) is (result.error is not ErrorCode.NONE)
    return [(each.topic, each.partition, each.error, each.leader_id) for each in results]


def stop(cluster: Cluster, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        cluster.ask(cluster.heartbeat(broker_id, want_fence=True))
    cluster.settle()


def start(cluster: Cluster, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        assert not cluster.ask(cluster.heartbeat(broker_id)).is_fenced
    cluster.settle()


def join(cluster: Cluster, *isr: int) -> None:
    """Have the leader of partition 0 take these into its ISR."""
    leader = cluster.partition("t").leader
    reply = cluster.ask(asks(cluster, alteration(cluster, *isr), sender=leader))
    assert reply.topics[0].partitions[0].error is ErrorCode.NONE


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Replicas of partition 0 on 1, 2 and 3, of which 2 leads and all are in sync."""
    cluster.create("t", (1, 2, 3))
    stop(cluster, 1)
    start(cluster, 1)
    join(cluster, 2, 3, 1)
    assert cluster.leading("t") == [(2, (2, 3, 1))]
    return cluster


def test_the_first_replica_leads_again(cluster: Cluster) -> None:
    before = cluster.partition("t")
    assert errors(elect(cluster, PREFERRED, PARTITION)) == [("t", 0, ErrorCode.NONE, 1)]
    after = cluster.partition("t")
    assert (after.leader, after.isr) == (1, before.isr)
    assert (after.leader_epoch, after.partition_epoch) == (
        before.leader_epoch + 1,
        before.partition_epoch + 1,
    )
    expected = [("t", 0, ErrorCode.ELECTION_NOT_NEEDED, 1)]
    assert errors(elect(cluster, PREFERRED, PARTITION)) == expected


@pytest.mark.parametrize("is_active", [True, False])
def test_a_first_replica_that_may_not_lead(cluster: Cluster, *, is_active: bool) -> None:
    if is_active:
        join(cluster, 2, 3)
    else:
        stop(cluster, 1)
    decision = cluster.decide(ElectLeaders(PREFERRED, (PARTITION,)))
    assert decision.values == ()
    assert isinstance(decision.reply, ElectLeadersReply)
    (result,) = decision.reply.partitions
    assert (result.error, result.leader_id) == (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 2)
    assert ("not in sync" if is_active else "not active") in result.message


def register(cluster: Cluster, broker_id: int, disk: int) -> None:
    """The same process tells other disks; what follows of that is not decided yet."""
    reply = cluster.ask(cluster.registration(broker_id, log_dirs=(uuid(disk),)))
    assert reply.error is ErrorCode.NONE


@pytest.mark.parametrize("is_every", [False, True])
def test_a_first_replica_whose_directory_is_offline(cluster: Cluster, *, is_every: bool) -> None:
    register(cluster, 1, 777)
    cluster.settle()
    if is_every:
        reply = cluster.ask(ElectLeaders(PREFERRED, every_partition=True))
        assert errors(reply.partitions) == []
    else:
        (result,) = elect(cluster, PREFERRED, PARTITION)
        assert (result.error, result.leader_id) == (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, 2)
        assert "log directory" in result.message
    assert cluster.leading("t") == [(2, (2, 3, 1))]
    register(cluster, 1, 501)
    assert errors(elect(cluster, PREFERRED, PARTITION)) == [("t", 0, ErrorCode.NONE, 1)]


def test_an_unclean_leader_is_one_whose_directory_is_online(cluster: Cluster) -> None:
    join(cluster, 2)
    stop(cluster, 2)
    register(cluster, 1, 777)
    register(cluster, 3, 778)
    cluster.settle()
    expected = [("t", 0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, NO_LEADER)]
    assert errors(elect(cluster, UNCLEAN, PARTITION)) == expected
    reply = cluster.ask(ElectLeaders(UNCLEAN, every_partition=True))
    assert errors(reply.partitions) == []
    register(cluster, 3, 503)
    assert errors(elect(cluster, UNCLEAN, PARTITION)) == [("t", 0, ErrorCode.NONE, 3)]


def test_a_preferred_election_is_never_unclean(cluster: Cluster) -> None:
    cluster.create("lossy", (1, 2), configs=(("unclean.leader.election.enable", "true"),))
    join(cluster, 2)
    stop(cluster, 2)
    assert cluster.leading("t") == [(NO_LEADER, (2,))]
    expected = [("t", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, NO_LEADER)]
    assert errors(elect(cluster, PREFERRED, PARTITION)) == expected


def test_an_unclean_leader(cluster: Cluster) -> None:
    expected = [("t", 0, ErrorCode.ELECTION_NOT_NEEDED, 2)]
    assert errors(elect(cluster, UNCLEAN, PARTITION)) == expected
    join(cluster, 2)
    stop(cluster, 2)
    assert errors(elect(cluster, UNCLEAN, PARTITION)) == [("t", 0, ErrorCode.NONE, 1)]
    after = cluster.partition("t")
    assert (after.leader, after.isr, after.leader_recovery_state) == (1, (1,), RECOVERING)


TOPIC_T = ConfigResource(ResourceType.TOPIC, "t")
OF_ALL = ConfigResource(ResourceType.BROKER, "")
ALLOW = put("unclean.leader.election.enable", "true")
FORBID = put("unclean.leader.election.enable", "false")
REMOVE = ConfigChange("unclean.leader.election.enable", AlterOperation.DELETE)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (None, alter(ALLOW, resource=TOPIC_T)),
        (None, alter(ALLOW, resource=OF_ALL)),
        # The topic's own value hides that of all brokers.
        ((alter(FORBID, resource=TOPIC_T), alter(ALLOW, resource=OF_ALL)), REMOVE),
    ],
)
def test_a_leaderless_partition_gets_an_unclean_leader_once_that_is_allowed(
    cluster: Cluster,
    first: tuple[IncrementalAlterConfigs, ...] | None,
    last: IncrementalAlterConfigs | ConfigChange,
) -> None:
    join(cluster, 2)
    stop(cluster, 2)
    for request in first or ():
        cluster.ask(request)
        cluster.settle()
    assert cluster.leading("t") == [(NO_LEADER, (2,))]
    cluster.ask(alter(last, resource=TOPIC_T) if isinstance(last, ConfigChange) else last)
    assert cluster.controller.wake_at_ms == 0
    cluster.settle()
    after = cluster.partition("t")
    assert (after.leader, after.isr, after.leader_recovery_state) == (1, (1,), RECOVERING)


def test_a_change_that_is_only_validated_elects_no_leader(cluster: Cluster) -> None:
    join(cluster, 2)
    stop(cluster, 2)
    cluster.ask(replace(alter(ALLOW, resource=TOPIC_T), validate_only=True))
    assert cluster.settle() == []
    assert cluster.leading("t") == [(NO_LEADER, (2,))]


def test_no_partition_is_looked_at_while_each_has_a_leader(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_isr_sweep, "_compare", None)
    cluster.ask(alter(ALLOW, resource=OF_ALL))
    assert cluster.settle() == []
    assert cluster.controller.wake_at_ms != 0


def test_nobody_is_left(cluster: Cluster) -> None:
    stop(cluster, 1, 2, 3)
    expected = [("t", 0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, NO_LEADER)]
    assert errors(elect(cluster, UNCLEAN, PARTITION)) == expected


@pytest.mark.parametrize(
    ("topic", "partition"), [("u", 0), ("t", 1), ("t", -1), ("t", 2**31 - 1), ("", 0)]
)
@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_unknown_partitions(
    cluster: Cluster, topic: str, partition: int, kind: ElectionType
) -> None:
    results = elect(cluster, kind, LeaderElection(topic, partition))
    expected = [(topic, partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_LEADER)]
    assert errors(results) == expected


def test_a_partition_that_is_named_twice_has_two_results(cluster: Cluster) -> None:
    decision = cluster.decide(ElectLeaders(PREFERRED, (PARTITION, PARTITION)))
    assert len(decision.values) == 1
    assert isinstance(decision.reply, ElectLeadersReply)
    assert errors(decision.reply.partitions) == [("t", 0, ErrorCode.NONE, 1)] * 2


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_no_partitions_are_no_election(cluster: Cluster, kind: ElectionType) -> None:
    assert elect(cluster, kind) == ()
    assert cluster.leading("t")[0][0] == 2


def test_every_partition(cluster: Cluster) -> None:
    cluster.create("u", (2, 1), (3, 1))
    expected = [("t", 0, ErrorCode.NONE, 1)]
    reply = cluster.ask(ElectLeaders(PREFERRED, every_partition=True))
    assert errors(reply.partitions) == expected
    stop(cluster, 3)
    reply = cluster.ask(ElectLeaders(PREFERRED, every_partition=True))
    # Those that cannot change are left out: a broker that is down has very many of them.
    assert errors(reply.partitions) == []
    reply = cluster.ask(ElectLeaders(UNCLEAN, every_partition=True))
    assert reply.partitions == ()


def test_every_partition_and_some_is_no_request(cluster: Cluster) -> None:
    reply = cluster.ask(ElectLeaders(PREFERRED, (PARTITION,), every_partition=True))
    assert (reply.error, reply.partitions) == (ErrorCode.INVALID_REQUEST, ())
    assert cluster.leading("t")[0][0] == 2


def test_too_many_at_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elect_leaders, "PARTITIONS_MAX", 0)
    decision = cluster.decide(ElectLeaders(PREFERRED, every_partition=True))
    assert decision.values == ()
    assert isinstance(decision.reply, ElectLeadersReply)
    assert decision.reply.error is ErrorCode.POLICY_VIOLATION
    assert "name some" in decision.reply.message
