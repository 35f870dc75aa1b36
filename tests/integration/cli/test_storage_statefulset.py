"""Real processes format the disks of pods: with an API server, real peers, and DNS as it may be."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.api_server import ApiServer
from tests.integration.cli.pod_process import STEPS
from tests.integration.client.scripted import ScriptedQuorum
from tests.ports import HOST, free_ports
from tests.unit.raft.cores import CLUSTER

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Iterator
    from pathlib import Path

OTHER = "Cluster-of-another-Own"
DOMAIN = "q-quorate-headless.default.svc.cluster.local"
RECORD = "q-quorate-bootstrap"
ABSENT = "EAI_NONAME"
INTERRUPTED = 130
# No process listens there, whatever the port.
NO_PROCESS = "127.0.0.77"


class Init:
    """The init container of pod 0. All pods listen on one port, each at an address of its own."""

    def __init__(self, root: Path, api: ApiServer) -> None:
        self.api = api
        self.directory = root / "metadata"
        self.port = free_ports(1)[0]
        self.names = {1: ABSENT, 2: ABSENT}
        # What DNS says of the service of the pods: it has the address of this pod.
        self.service = NO_PROCESS
        self.settings: list[str] = []
        # However busy the machine is.
        self.patience_s = 60.0
        self._properties = root / "c.properties"

    @property
    def record(self) -> dict[str, str] | None:
        found = self.api.config_maps.get(RECORD)
        return None if found is None else found["data"]

    @record.setter
    def record(self, data: dict[str, str]) -> None:
        self.api.config_maps[RECORD] = {"metadata": {"name": RECORD}, "data": data}

    async def run(self, *, dies_at: str = "", cluster_id: str = CLUSTER) -> tuple[int, str]:
        """Its exit status, and what it said."""
        process = await self.start(dies_at=dies_at, cluster_id=cluster_id)
        said, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, said.decode()

    async def start(self, *, dies_at: str = "", cluster_id: str = CLUSTER) -> Process:
        """Its process."""
        lines = (
            "node.id=0",
            "process.roles=controller",
            f"listeners=GRPC://:{self.port}",
            f"advertised.listeners=GRPC://q-quorate-0.{DOMAIN}:{self.port}",
            f"controller.quorum.bootstrap.servers=q-quorate-1.{DOMAIN}:{self.port}",
            f"metadata.log.dir={self.directory}",
            *self.settings,
        )
        self._properties.write_text("\n".join(lines))
        names = {f"q-quorate-{pod}.{DOMAIN}": said for pod, said in self.names.items()}
        names[DOMAIN] = self.service
        told = {
            "POD_ACCOUNT": str(self.api.account),
            "POD_NAMES": json.dumps(names),
            "POD_PATIENCE_S": str(self.patience_s),
            "POD_DIES": dies_at,
        }
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.integration.cli.pod_process", "storage", "format"),
            *("-c", str(self._properties), "-t", cluster_id),
            *("--statefulset", "default/q-quorate"),
            env={**os.environ, **self.api.environment, **told},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    @property
    def meta(self) -> dict[str, str]:
        path = self.directory / "meta.properties"
        lines = path.read_text().splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def assert_founded(self) -> None:
        assert self.record == {
            "clusterId": CLUSTER,
            "nodeId": "0",
            "directoryId": self.meta["directory.id"],
        }
        assert not (self.directory / "founding").exists()

    def assert_nothing_is_formatted(self) -> None:
        assert self.meta == {}


@pytest.fixture
def init(tmp_path: Path) -> Iterator[Init]:
    with ApiServer(tmp_path / "api") as api:
        yield Init(tmp_path, api)


async def test_names_that_do_not_exist_and_ports_that_refuse_are_proof(init: Init) -> None:
    init.names = {1: NO_PROCESS, 2: ABSENT}
    status, said = await init.run()
    assert status == 0, said
    assert "this one is founded here" in said
    init.assert_founded()
    created: dict[str, Any] = init.api.config_maps[RECORD]
    assert created["immutable"] is True
    assert created["metadata"]["labels"] == {"app": "quorate"}

    status, said = await init.run()
    assert status == 0
    assert "is formatted already" in said
    init.assert_founded()


@pytest.mark.parametrize("failure", ["EAI_AGAIN", "EAI_FAIL"])
async def test_a_dns_failure_founds_nothing(init: Init, failure: str) -> None:
    init.names = {1: ABSENT, 2: failure}
    status, said = await init.run()
    assert status == 1
    assert f"q-quorate-2.{DOMAIN}:{init.port} cannot be reached" in said
    assert "See to DNS" in said
    init.assert_nothing_is_formatted()
    assert init.record is None


@pytest.mark.parametrize("service", [ABSENT, "EAI_AGAIN"])
async def test_a_cluster_domain_that_is_wrong_founds_nothing(init: Init, service: str) -> None:
    init.service = service
    status, said = await init.run()
    assert status == 1
    assert f"{DOMAIN}:{init.port} must have an address" in said
    init.assert_nothing_is_formatted()
    assert init.record is None


async def test_a_pod_that_takes_no_connection_in_time_founds_nothing(init: Init) -> None:
    init.patience_s = 0.2
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind((HOST, init.port))
        full.listen(0)
        for _ in range(4):
            caller = waiting.enter_context(socket.socket())
            caller.settimeout(0)
            caller.connect_ex((HOST, init.port))
        init.names = {1: HOST, 2: ABSENT}
        status, said = await init.run()
    assert status == 1
    assert "cannot be reached within" in said
    init.assert_nothing_is_formatted()


async def test_a_process_that_hangs_up_founds_nothing(init: Init) -> None:
    """As the proxy of a service mesh does for a pod that is not there."""

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, HOST, init.port)
    async with server:
        init.names = {1: HOST, 2: ABSENT}
        status, said = await init.run()
    assert status == 1
    assert "accepts connections, but" in said
    init.assert_nothing_is_formatted()


async def test_a_pod_that_is_deleted_meanwhile_ends_at_once(init: Init) -> None:
    """The first process of a container gets no signal that it has no handler for."""
    held: list[asyncio.StreamWriter] = []
    asked = asyncio.Event()

    def keep_silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        # The first connection is a look at the port.
        if len(held) > 1:
            asked.set()

    server = await asyncio.start_server(keep_silent, HOST, init.port)
    async with server:
        init.names = {1: HOST, 2: ABSENT}
        process = await init.start()
        await asked.wait()
        process.terminate()
        await process.communicate()
        for writer in held:
            writer.close()
    assert process.returncode == INTERRUPTED
    init.assert_nothing_is_formatted()


async def test_what_the_other_pods_know_decides(init: Init) -> None:
    async with ScriptedQuorum(1) as quorum:
        init.port = quorum.addresses[1][1]
        init.names = {1: HOST, 2: NO_PROCESS}

        status, said = await init.run(cluster_id=OTHER)
        assert status == 1
        assert f"is of another cluster, {CLUSTER}" in said
        init.assert_nothing_is_formatted()

        status, said = await init.run()
        assert status == 0, said
        assert "which leads in epoch 5: this disk joins it" in said
        assert init.record == {"clusterId": CLUSTER}
        assert init.meta["cluster.id"] == CLUSTER


async def test_pods_in_epoch_0_wait_for_the_one_that_founds(init: Init) -> None:
    async with ScriptedQuorum(1) as quorum:
        quorum.leader, quorum.epoch = None, 0
        init.port = quorum.addresses[1][1]
        init.names = {1: HOST, 2: ABSENT}
        status, said = await init.run()
    assert status == 0, said
    assert "which has never known a leader" in said
    init.assert_founded()


async def test_a_secret_without_the_ca_founds_nothing(init: Init, tmp_path: Path) -> None:
    init.settings = [
        "listener.security.protocol.map=GRPC:GRPC_SSL",
        f"ssl.keystore.certificate.chain.location={tmp_path}/tls.crt",
        f"ssl.keystore.key.location={tmp_path}/tls.key",
        f"ssl.truststore.location={tmp_path}/ca.crt",
    ]
    status, said = await init.run()
    assert status == 1
    assert f"{tmp_path}/" in said
    init.assert_nothing_is_formatted()
    assert init.record is None


@pytest.mark.parametrize(
    ("refused", "code"),
    [("GET /apis", 403), ("GET /api/", 403), ("POST ", 403), ("GET /api/", 500)],
)
async def test_an_api_server_that_refuses_is_named_with_the_remedy(
    init: Init, refused: str, code: int
) -> None:
    init.api.refused = {refused: code}
    status, said = await init.run()
    assert status == 1
    assert f"({code}" in said
    assert "it is refused by the test" in said
    assert ("Give the pod's account the rights" in said) is (code == 403)
    init.assert_nothing_is_formatted()
    init.api.refused = {}
    assert (await init.run())[0] == 0
    init.assert_founded()


async def test_an_api_server_that_is_not_there_founds_nothing(init: Init, tmp_path: Path) -> None:
    (tmp_path / "api" / "account" / "token").unlink()
    status, said = await init.run()
    assert status == 1
    assert "may reach the API server" in said
    init.assert_nothing_is_formatted()


async def test_an_empty_disk_joins_the_quorum_of_the_record(init: Init) -> None:
    init.record = {"clusterId": OTHER}
    init.names = {1: "EAI_AGAIN", 2: "EAI_AGAIN"}
    status, said = await init.run()
    assert status == 0, said
    assert f"the quorum is known by ConfigMap {RECORD}: this disk joins it" in said
    assert init.meta["cluster.id"] == OTHER
    assert init.record == {"clusterId": OTHER}


async def test_a_record_whose_disks_are_all_gone_is_named_with_the_remedy(init: Init) -> None:
    init.record = {"clusterId": CLUSTER, "nodeId": "0", "directoryId": "AAAAAAAAAAAAAAAAAAAAZA"}
    status, said = await init.run()
    assert status == 1
    assert "See that the other pods run, and whether their claims are there" in said
    init.assert_nothing_is_formatted()


async def test_a_record_that_is_none_is_named(init: Init) -> None:
    init.record = {"cluster": CLUSTER}
    status, said = await init.run()
    assert status == 1
    assert f"ConfigMap {RECORD} is no bootstrap record" in said
    init.assert_nothing_is_formatted()


@pytest.mark.parametrize("step", STEPS)
async def test_a_process_that_is_killed_founds_once(init: Init, step: str) -> None:
    status, said = await init.run(dies_at=step)
    assert status == -signal.SIGKILL, said
    recorded = init.record
    if recorded is not None:
        # What was begun is finished without another look.
        init.names = {1: "EAI_AGAIN", 2: "EAI_AGAIN"}

    status, said = await init.run()

    assert status == 0, said
    init.assert_founded()
    assert recorded in (None, init.record)


async def test_a_disk_that_lost_what_it_had_begun_does_not_found(init: Init) -> None:
    status, _ = await init.run(dies_at="write_plan")
    assert status == -signal.SIGKILL
    (init.directory / "founding").unlink()
    status, said = await init.run()
    assert status == 1
    assert "this disk is empty and no pod knows it" in said
    init.assert_nothing_is_formatted()
