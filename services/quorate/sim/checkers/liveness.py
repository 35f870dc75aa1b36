"""Liveness check after faults stop: leader, replicas caught up, service, equal logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.leader_election import partition_change
from quorate.controller.partitions.leader_isr_sweep import RECORDS_SLICE
from quorate.raft.api import StateMachineProgress
from quorate.raft.messages import LogRange
from quorate.records.ids import Offset
from quorate.sim.checkers.oracle import Violation
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.randomness import RandomSource
from quorate.sim.time_bounds import (
    failover_bound_us,
    slowest_call_us,
    slowest_trip_us,
)

if TYPE_CHECKING:
    from quorate.sim.cluster import Cluster
    from quorate.sim.workload.broker_fleet import BrokerFleet
    from quorate.sim.workload.clients import Clients

TIMEOUTS_TO_HEAL: Final = 60
WRITES_MAX: Final = 3
# The fraction of clusters in which every voter first defers campaigning in the last election.
ALL_BEHIND: Final = 0.3


class LivenessViolation(AssertionError):
    """The quorum did not recover although faults have stopped."""


def check_liveness(cluster: Cluster, clients: Clients, broker_fleet: BrokerFleet) -> None:
    """Wait until the quorum has recovered, send a write and a read, and compare all logs.

    Then its leader vanishes and must get a successor. Raises LivenessViolation or Violation.
    """
    timeouts = cluster.options.timeouts
    patience_ms = TIMEOUTS_TO_HEAL * max(timeouts.fetch_timeout_ms, timeouts.election_timeout_ms)
    if not _settles(cluster, patience_ms):
        why = unsettled_reason(cluster) or ""
        raise LivenessViolation(f"after {patience_ms} ms without faults: {why}{_state(cluster)}")
    # A leader that accepts a write may be about to transfer leadership, and then rejects it.
    tries = (_write(cluster, clients, patience_ms) for _ in range(WRITES_MAX))
    if not any(_commits(cluster, operation, patience_ms) for operation in tries):
        raise LivenessViolation(f"{WRITES_MAX} writes were refused: {_state(cluster)}")
    reads = cluster.oracle.reads
    for leader in clients.believed_leaders():
        clients.read_current(leader)
    if not cluster.run(cluster.now_ms + patience_ms, stop=lambda: cluster.oracle.reads > reads):
        raise LivenessViolation(f"a current read is not answered: {_state(cluster)}")
    if not cluster.run(cluster.now_ms + patience_ms, stop=lambda: is_caught_up(cluster)):
        raise LivenessViolation(f"not everybody has the last write: {_state(cluster)}")
    _settle_brokers(cluster, broker_fleet, patience_ms)
    _compare(cluster)
    _replace_leader(cluster)


def _settles(cluster: Cluster, patience_ms: int) -> bool:
    """True if the quorum settles, and makes progress towards it within each `patience_ms`.

    A replica that starts over with small fetches and a slow disk may take long, but its lag must
    shrink all the time.
    """
    behind = _behind(cluster)
    while not cluster.run(cluster.now_ms + patience_ms, stop=lambda: is_settled(cluster)):
        before, behind = behind, _behind(cluster)
        if behind >= before:
            return False
    return True


def _behind(cluster: Cluster) -> int:
    """The difference in records between the longest log and the shortest one."""
    ends = [node.log.end.offset for node in cluster.nodes.values()]
    return max(ends) - min(ends)


def is_caught_up(cluster: Cluster) -> bool:
    """True if the leader is active and every node has applied its whole log.

    All processes run and none is healing.
    """
    leader = cluster.leader()
    if leader is None or not leader.application.is_active:
        return False
    end = leader.log.end
    for node in cluster.nodes.values():
        if node.status is not Status.RUNNING or node.is_healing:
            return False
        if node.log.end != end or node.application.applied != end.offset:
            return False
    return True


def is_settled(cluster: Cluster) -> bool:
    """True if all nodes are caught up and the voter set has the right voters and endpoints."""
    return is_caught_up(cluster) and unsettled_reason(cluster) is None


def unsettled_reason(cluster: Cluster) -> str | None:
    """The state that the quorum has yet to repair, as text; None if it is as required.

    A leader votes; the voter set has the voters' endpoints; with auto-join every controller is a
    voter, also with a replaced disk, except those that were removed on purpose.
    """
    leader = cluster.leader()
    if leader is None:
        return "there is no leader; "
    voters = leader.log.voters
    if any(voter.key.directory_id is None for voter in voters):
        return None
    for node in cluster.nodes.values():
        voter = voters.by_id(node.node_id)
        is_voter = voter is not None and node.is_voter(voter)
        if node is leader and not is_voter:
            return f"leader {node.node_id} is no voter; "
        if voter is not None and is_voter and voter.endpoints != node.endpoints:
            return f"voter {node.node_id} is not where the set says; "
        is_unwanted = node.key in voters.decommissioned
        if cluster.options.auto_join and not is_voter and not is_unwanted:
            return f"node {node.node_id} has not joined; "
    return None


def _write(cluster: Cluster, clients: Clients, patience_ms: int) -> int:
    operation: int | None = None

    def written() -> bool:
        nonlocal operation
        leaders = clients.believed_leaders()
        operation = clients.write(leaders[-1], 1) if leaders else None
        return operation is not None

    if not written() and not cluster.run(cluster.now_ms + patience_ms, stop=written):
        raise LivenessViolation(f"nobody takes a write: {_state(cluster)}")
    assert operation is not None
    return operation


def _commits(cluster: Cluster, operation: int, patience_ms: int) -> bool:
    """True if the write is acknowledged, False if it is rejected or its outcome is unknown."""
    history = cluster.oracle

    def is_told() -> bool:
        return any(operation in a for a in (history.acknowledged, history.refused, history.unknown))

    if not cluster.run(cluster.now_ms + patience_ms, stop=is_told):
        raise LivenessViolation(f"operation {operation} is not committed: {_state(cluster)}")
    return operation in history.acknowledged


def _replace_leader(cluster: Cluster) -> None:
    """Isolate the leader and require a successor after one election.

    The other voters detect its failure at the same time. The state machine of one of them lags; in
    some clusters the state machines of all others lag. A voter whose state machine lags defers its
    campaign once (rule `unready_voter_waits`).
    """
    leader = cluster.leader()
    assert leader is not None
    voters = leader.log.voters
    # A node whose disk was replaced is not a voter any more.
    left = [voter for voter in voters if cluster.nodes[voter.key.node_id].is_voter(voter)]
    if len(left) - 1 < voters.majority:
        return
    idle = [voter.key.node_id for voter in left if voter.key.node_id != leader.node_id]
    is_all = RandomSource(cluster.seed, "succession").chance(ALL_BEHIND)
    for node_id in idle if is_all else idle[:1]:
        cluster.nodes[node_id].deliver(StateMachineProgress(ready=False))
    cluster.log(f"node {leader.node_id} vanishes")
    cluster.network.isolate(leader.node_id, list(cluster.nodes))
    patience_ms = failover_bound_us(cluster.options, are_all_behind=is_all) // 1000
    if not cluster.run(
        cluster.now_ms + patience_ms, stop=lambda: cluster.leader() not in (None, leader)
    ):
        raise LivenessViolation(
            f"no successor of {leader.node_id} in {patience_ms} ms: {_state(cluster)}"
        )


def _settle_brokers(cluster: Cluster, broker_fleet: BrokerFleet, patience_ms: int) -> None:
    """Wait until exactly the silent brokers are fenced and partitions have followed.

    Raises LivenessViolation.
    """
    options = cluster.options
    if not broker_fleet.brokers:
        return
    round_us = slowest_trip_us(options) + slowest_call_us(options)
    slice_us = options.log.linger_ms * 1000 + 2 * round_us
    slices = options.fleet.topics * options.fleet.partitions // RECORDS_SLICE + len(
        broker_fleet.brokers
    )
    patience_ms += 3 * options.timeouts.session_timeout_ms + 2 * slices * slice_us // 1000
    if not cluster.run(
        cluster.now_ms + patience_ms, stop=lambda: _unsettled(cluster, broker_fleet) is None
    ):
        raise LivenessViolation(
            f"after {patience_ms} ms {_unsettled(cluster, broker_fleet)}: {_state(cluster)}"
        )
    if not cluster.run(cluster.now_ms + patience_ms, stop=lambda: is_caught_up(cluster)):
        raise LivenessViolation(f"not everybody has what was settled: {_state(cluster)}")


def _unsettled(cluster: Cluster, broker_fleet: BrokerFleet) -> str | None:
    """The decision that the active controller has yet to make about its brokers, or None."""
    leader = cluster.leader()
    if leader is None or not leader.application.is_active:
        return "nobody is active"
    image = leader.image
    for broker in broker_fleet.brokers:
        known = image.brokers.by_id.get(broker.broker_id)
        is_fenced = known is None or known.registration.fenced
        if is_fenced is not broker.is_silent:
            return f"broker {broker.broker_id} is {'fenced' if is_fenced else 'not fenced'}"
    acceptor = LeaderAcceptor.of(image.brokers)
    for topic in image.topics.by_id.values():
        for partition_id, _ in image.topics.partitions_of(topic.topic_id):
            if partition_change(image, topic, partition_id, acceptor) is not None:
                return f"partition {partition_id} of {topic.name} is not settled"
    return None


def _compare(cluster: Cluster) -> None:
    """Compare all logs byte for byte, and all state machines with the committed history.

    Every acknowledged write must be in that history. Raises Violation.
    """
    history = cluster.oracle
    expected = history.state_at(history.end)
    reference = _bytes(next(iter(cluster.nodes.values())))
    for node in cluster.nodes.values():
        if node.application.machine != expected:
            raise Violation(f"node {node.node_id} ends in another state than history")
        content = _bytes(node)
        shorter = min(len(content), len(reference))
        if content[len(content) - shorter :] != reference[len(reference) - shorter :]:
            raise Violation(f"the log of node {node.node_id} differs from that of the first")
    for operation, offset in history.acknowledged.items():
        if history.committed_at.get(operation) != offset:
            raise Violation(f"acknowledged operation {operation} is lost")


def _bytes(node: SimulatedNode) -> bytes:
    start, end = node.log.start.offset, node.log.end.offset
    return node.store.read_range(LogRange(start=start, end=Offset(end), bytes_max=1 << 30))


def _state(cluster: Cluster) -> str:
    parts = []
    for node in cluster.nodes.values():
        role = node.progress.role if node.progress is not None else "-"
        epoch = node.progress.epoch if node.progress is not None else "-"
        healing = ", healing" if node.is_healing else ""
        parts.append(
            f"node {node.node_id} {node.status.name.lower()} {role} in epoch {epoch}, "
            f"log {node.log.start}..{node.log.end}, voters "
            f"{[int(v.key.node_id) for v in node.log.voters]}{healing}"
        )
    return "; ".join(parts)
