"""The sidecar's process next to real controllers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from quorate.admin.config import read_config
from quorate.admin.service import _serve
from quorate.records.errors import ErrorCode
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.gen.raft.v1 import raft_pb2
from tests.integration.admin.sidecars import sidecar_of, spawn
from tests.integration.admin.test_errors import refused
from tests.integration.lookups import hanging_lookups
from tests.integration.quorum import DEADLINE_S, OBSERVER_ID, STEADY, Quorum
from tests.ports import HOST, free_ports
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DESCRIBE = raft_pb2.DescribeQuorumRequest()
FETCH_TIMEOUT_MS = int(STEADY["controller.quorum.fetch.timeout.ms"])


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Quorum]:
    """Three controllers with a leader."""
    async with Quorum(tmp_path / "quorum", STEADY) as quorum:
        yield quorum


async def test_a_sidecar_serves_beside_its_controller_and_outlives_it(
    running: Quorum, tmp_path: Path
) -> None:
    async with sidecar_of(running, 1, tmp_path) as sidecar:
        for service in ("liveness", "readiness", "startup"):
            assert await sidecar.health(service) == health_pb2.HealthCheckResponse.SERVING
        assert len((await sidecar.stub.DescribeQuorum(DESCRIBE)).current_voters) == 3
        await running.stop(1)
        await running.leader()
        assert len((await sidecar.stub.DescribeQuorum(DESCRIBE)).current_voters) == 3
        labels = 'method="DescribeQuorum",node_id="1",outcome="OK"'
        assert f"quorate_admin_calls_total{{{labels}}} 2.0" in await sidecar.metrics()
        assert await sidecar.health("readiness") == health_pb2.HealthCheckResponse.SERVING


async def test_a_port_that_is_taken_ends_the_process(tmp_path: Path) -> None:
    server = await asyncio.start_server(lambda *_: None, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    path = tmp_path / "admin.properties"
    path.write_text(
        f"node.id=1\nadmin.listener={HOST}:{port}\nhealth.port=-1\nmetrics.port=-1\n",
        encoding="utf-8",
    )
    process = await spawn(path)
    async with asyncio.timeout(DEADLINE_S):
        _, stderr = await process.communicate()
    server.close()
    assert process.returncode == 1
    said = stderr.decode()
    assert f"quorate admin: admin.listener: {HOST}:{port} cannot be listened on: " in said


async def test_health_and_metrics_are_on_both_families_where_no_host_is_given() -> None:
    """The kubelet asks the first address of a pod, which may be one of IPv6."""
    port, health_port, metrics_port = free_ports(3)
    properties = {"node.id": "1", "admin.listener": f":{port}"}
    ports = {"health.port": str(health_port), "metrics.port": str(metrics_port)}
    serving = asyncio.ensure_future(_serve(read_config(properties | ports, {}), None))
    try:
        async with asyncio.timeout(DEADLINE_S):
            await eventually(partial(can_connect, port))
        for host in (HOST, "::1"):
            for asked in (health_port, metrics_port):
                assert can_connect(asked, host)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(serving, DEADLINE_S) == 0


def can_connect(port: int, host: str = HOST) -> bool:
    with suppress(ConnectionRefusedError):
        socket.create_connection((host, port)).close()
        return True
    return False


async def test_a_stop_does_not_wait_for_the_lookup_of_its_host(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    properties = {"node.id": "1", "admin.listener": "dead.example:9095"}
    config = read_config(properties | {"health.port": "-1", "metrics.port": "-1"}, {})
    with hanging_lookups(monkeypatch) as has_begun:
        serving = asyncio.ensure_future(_serve(config, None))
        await asyncio.to_thread(has_begun.wait, DEADLINE_S)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(serving, DEADLINE_S) == 0
    assert caplog.records[-1].getMessage() == "stopped"


async def test_a_controller_joins_leads_and_leaves_for_good(
    running: Quorum, tmp_path: Path
) -> None:
    await running.add_observer()
    leader_id = await running.leader_id()
    async with (
        sidecar_of(running, OBSERVER_ID, tmp_path) as own,
        sidecar_of(running, leader_id, tmp_path) as leaders,
    ):

        async def may_be_added() -> bool:
            observers = (await own.stub.DescribeQuorum(DESCRIBE)).observers
            return [(one.replica_id, one.obstacle) for one in observers] == [(OBSERVER_ID, "")]

        await running.eventually("the observer may be added", may_be_added)
        await own.stub.AddRaftVoter(pb.AddRaftVoterRequest(voter_id=OBSERVER_ID))
        described = await own.stub.DescribeQuorum(DESCRIBE)
        assert OBSERVER_ID in [voter.replica_id for voter in described.current_voters]
        assert not described.HasField("uncommitted_voter_change")

        to_new = pb.TransferLeadershipRequest(voter_id=OBSERVER_ID)
        moved = await leaders.stub.TransferLeadership(to_new)
        assert moved.current_leader.leader_id == OBSERVER_ID

        leave = pb.PrepareStopRequest(leave=True)
        first = await own.stub.PrepareStop(leave)
        assert (first.handed_over, first.removed, first.is_voter) == (True, True, False)
        second = await own.stub.PrepareStop(leave)
        assert (second.handed_over, second.removed, second.is_voter) == (False, False, False)
        voters = (await leaders.stub.DescribeQuorum(DESCRIBE)).current_voters
        assert [voter.replica_id for voter in voters] == [1, 2, 3]


async def test_a_leader_stops_after_it_has_handed_over(running: Quorum, tmp_path: Path) -> None:
    leader_id = await running.leader_id()
    async with sidecar_of(running, leader_id, tmp_path) as sidecar:
        first = await sidecar.stub.PrepareStop(pb.PrepareStopRequest())
        assert (first.handed_over, first.removed, first.is_voter) == (True, False, True)
        assert first.current_leader.leader_id != leader_id
        second = await sidecar.stub.PrepareStop(pb.PrepareStopRequest())
        assert (second.handed_over, second.is_voter) == (False, True)


async def test_a_voter_that_stands_still_is_refused_leadership_with_its_lag(
    running: Quorum, tmp_path: Path
) -> None:
    leader_id = await running.leader_id()
    lagging = next(node_id for node_id in running.nodes if node_id != leader_id)
    async with sidecar_of(running, leader_id, tmp_path) as sidecar:
        running.signal(lagging, signal.SIGSTOP)
        await running.register_brokers()

        async def is_behind() -> bool:
            described = await sidecar.stub.DescribeQuorum(DESCRIBE)
            state = next(s for s in described.current_voters if s.replica_id == lagging)
            return described.now_ms - state.last_fetch_ms > FETCH_TIMEOUT_MS

        await running.eventually(f"node {lagging} is late", is_behind)
        transfer = pb.TransferLeadershipRequest(voter_id=lagging)
        code, error = await refused(sidecar.stub.TransferLeadership(transfer))
        running.signal(lagging, signal.SIGCONT)
    assert (code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "VOTER_LAGGING")
    assert int(error.metadata["lag"]) > 0
    assert f"node {lagging} is {error.metadata['lag']} records behind" in error.message


async def test_without_a_majority_it_is_told_who_led_and_who_was_heard(
    running: Quorum, tmp_path: Path
) -> None:
    leader = (await running.leader()).leader
    left, other = (node_id for node_id in running.nodes if node_id != leader.leader_id)
    # Only the sidecar's time is short: its answer may take as long as it likes.
    short = {"admin.request.timeout.ms": "6000"}
    async with sidecar_of(running, left, tmp_path, short) as sidecar:
        await sidecar.stub.DescribeQuorum(DESCRIBE)
        await running.kill(int(leader.leader_id or 0), other)
        code, error = await refused(sidecar.stub.DescribeQuorum(DESCRIBE))
    assert (code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "NO_LEADER")
    assert error.error is ErrorCode.LEADER_NOT_AVAILABLE
    assert error.metadata["last_leader_id"] == str(leader.leader_id)
    assert error.metadata["last_leader_epoch"] == str(leader.epoch)
    assert f"heard_{leader.leader_id}_ms_ago" in error.metadata


async def test_a_call_in_the_middle_of_a_failover_is_done_by_the_next_leader(
    running: Quorum, tmp_path: Path
) -> None:
    old = (await running.leader()).leader
    beside, other = (node_id for node_id in running.nodes if node_id != old.leader_id)
    async with sidecar_of(running, beside, tmp_path) as sidecar:
        await sidecar.stub.DescribeQuorum(DESCRIBE)
        await running.kill(int(old.leader_id or 0))
        removed = await sidecar.stub.RemoveRaftVoter(
            pb.RemoveRaftVoterRequest(voter_id=int(old.leader_id or 0))
        )
        assert removed.current_leader.leader_epoch > old.epoch
        voters = (await sidecar.stub.DescribeQuorum(DESCRIBE)).current_voters
        assert {voter.replica_id for voter in voters} == {beside, other}


async def test_a_voter_gets_a_further_listener(running: Quorum, tmp_path: Path) -> None:
    async with sidecar_of(running, 1, tmp_path) as sidecar:
        (voter, *_) = (await sidecar.stub.DescribeQuorum(DESCRIBE)).current_voters
        further = raft_pb2.Endpoint(name="CONTROLLER", host=HOST, port=9093)
        await sidecar.stub.UpdateRaftVoter(
            pb.UpdateRaftVoterRequest(
                voter_id=voter.replica_id,
                listeners=[*voter.endpoints, further],
                k_raft_version_feature=raft_pb2.KRaftVersionFeature(max_supported_version=1),
            )
        )
        described = await sidecar.stub.DescribeQuorum(DESCRIBE)
        names = [endpoint.name for endpoint in described.current_voters[0].endpoints]
        assert sorted(names) == ["CONTROLLER", "GRPC"]
        assert not described.HasField("uncommitted_voter_change")
