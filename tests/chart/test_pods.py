"""The rendered chart as real processes: a trio with mutual TLS on every port."""

from __future__ import annotations

import base64
import itertools
import json
import socket
import ssl
import subprocess
import sys
import tarfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.chaos import network as net
from tests.chart.api_server import ApiServer
from tests.chart.pods import COMMAND_S, DOMAIN, NAMESPACE, RELEASE, Pods, await_true, place
from tests.chart.rendering import CHART, Helm, one
from tests.lacking import lack

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDINALS: Final = (0, 1, 2)
PORTS: Final = (9094, 9095)
CLIENT: Final = ("--command-config", "/etc/quorate/config/client.properties")
# The operator's settings suffice to ask every pod, and through any sidecar the leader.
OPERATOR: Final = """
import asyncio, json, os
from quorate.autojoin.config import read_config
from quorate.autojoin.quorum_client import PodQuorum
from quorate.autojoin.state import Pod
from quorate.rpc.channels import open_tls
config = read_config({}, os.environ)
async def main():
    quorum = PodQuorum(
        config.namespace, controller_port=config.controller_port, admin_port=config.admin_port,
        timeout_s=10, tls=open_tls(config.tls),
    )
    pods = [
        Pod(name=f"{config.stateful_set}-{i}", ordinal=i, uid=str(i), version="", revision="",
            is_running=True, is_ready=True, is_deleting=False)
        for i in range(3)
    ]
    service = f"{config.stateful_set}-headless"
    asked = await quorum.identify_pods(pods, service)
    described, why = await quorum.describe(pods, service)
    await quorum.close()
    assert described is not None, why
    leader = described.leader
    print(json.dumps([sorted(pod.key.node_id for pod in asked), leader.leader_id, leader.epoch]))
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def rendered(helm: Helm) -> list[dict[str, Any]]:
    """Controllers that join by themselves: no operator of this StatefulSet runs."""
    values = CHART / "ci" / "tls-values.yaml"
    return helm.objects("--values", values, "--set", "operator.enabled=false")


@pytest.fixture(scope="module")
def network() -> Iterator[net.Network]:
    problem = net.missing()
    if problem is not None:
        lack(problem)
    network = net.Network([place(ordinal) for ordinal in ORDINALS])
    yield network
    network.close()


@pytest.fixture(scope="module")
def api_servers(
    network: net.Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, ApiServer]]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("api")
        config_maps: dict[str, dict[str, Any]] = {}
        yield {
            ordinal: stack.enter_context(
                ApiServer(
                    folder / str(ordinal),
                    net.NAMESPACES / network.namespace(place(ordinal)),
                    config_maps,
                )
            )
            for ordinal in ORDINALS
        }


@pytest.fixture(scope="module")
def certificates(
    rendered: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The certificates that the issuer's Job makes."""
    pod = one(rendered, "Job", f"{RELEASE}-issuer")["spec"]["template"]["spec"]
    told = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    with ApiServer(tmp_path_factory.mktemp("issuer")) as server:
        subprocess.run(
            [sys.executable, CHART / "files" / "issue.py"],
            env={**told, **server.environment, "ACCOUNT": str(server.account)},
            check=True,
            capture_output=True,
        )
        data = server.secrets[f"{RELEASE}-tls"]["data"]
    return {name: base64.b64decode(text) for name, text in data.items()}


@pytest.fixture(scope="module")
def pods(
    rendered: list[dict[str, Any]],
    network: net.Network,
    api_servers: dict[int, ApiServer],
    certificates: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pods]:
    """The trio, once all three vote."""
    folder = tmp_path_factory.mktemp("pods")
    with Pods(folder, rendered, network, api_servers, certificates) as pods:
        for ordinal in ORDINALS:
            said = pods.begin(ordinal)
            assert ("this one is founded here" if ordinal == 0 else "this disk joins") in said
        await_trio(pods, network)
        yield pods


def await_trio(pods: Pods, network: net.Network) -> None:
    """Wait until all three vote, and all their ports are listened on."""

    def look() -> bool | str:
        for ordinal, port in itertools.product(ORDINALS, PORTS):
            try:
                socket.create_connection((network.address(place(ordinal)), port), COMMAND_S).close()
            except OSError as error:
                return f"port {port} of {ordinal}: {error}"
        return voters(pods) == [0, 1, 2] or str(voters(pods))

    await_true("three voters", look)


def status(pods: Pods, ordinal: int = 0) -> dict[str, Any]:
    """The leader's description of the quorum, asked as NOTES.txt says; {} where there is none."""
    server = f"{RELEASE}.{DOMAIN}:9094"
    words = ("quorate", "metadata-quorum", "--bootstrap-controller", server, *CLIENT)
    done = pods.run(ordinal, [*words, "--output", "json", "describe", "--status"])
    found: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return found


def voters(pods: Pods) -> list[int]:
    return sorted(voter["id"] for voter in status(pods).get("CurrentVoters", []))


def described(pods: Pods) -> dict[str, Any]:
    """The same, once there is a leader."""
    found: list[dict[str, Any]] = []

    def look() -> bool | str:
        found[:] = [status(pods)]
        return bool(found[0]) or "nobody leads"

    await_true("a leader", look)
    return found[0]


def prepare_stop(pods: Pods, ordinal: int) -> str:
    """The output of the hook, run as the kubelet would; it has to succeed."""
    hook = pods.container("controller")["lifecycle"]["preStop"]["exec"]["command"]
    done = pods.run(ordinal, hook)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_of_helm_test_commits_and_reads_back(
    pods: Pods, rendered: list[dict[str, Any]]
) -> None:
    container = one(rendered, "Pod")["spec"]["containers"][0]

    done = pods.run_container(1, container)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "helm.test=" in done.stdout


def test_every_port_wants_a_certificate_and_shows_one_for_its_names(
    pods: Pods, network: net.Network, certificates: dict[str, bytes]
) -> None:
    folder = pods.folder(0) / "etc" / "tls"
    for ordinal in ORDINALS:
        name = f"{RELEASE}-{ordinal}.{RELEASE}-headless.{NAMESPACE}.svc"
        for port in PORTS:
            address = (network.address(place(ordinal)), port)
            context = ssl.create_default_context(cadata=certificates["ca.crt"].decode())
            context.set_alpn_protocols(["h2"])
            for host in (name, f"{name}.cluster.local", f"{RELEASE}.{DOMAIN}", "localhost"):
                assert handshake(context, address, host) == "refused"
            context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
            for host in (name, f"{name}.cluster.local", f"{RELEASE}.{DOMAIN}", "localhost"):
                assert handshake(context, address, host) == "accepted"


def handshake(context: ssl.SSLContext, address: tuple[str, int], host: str) -> str:
    """The result of a connection; with TLS 1.3 a server refuses after the client's handshake."""
    with (
        socket.create_connection(address, timeout=COMMAND_S) as raw,
        context.wrap_socket(raw, server_hostname=host) as connection,
    ):
        # HTTP/2 begins with these words, and a server with its settings.
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
        try:
            return "accepted" if connection.recv(9) else "refused"
        except (ssl.SSLError, ConnectionResetError):
            return "refused"


def test_the_operator_asks_every_pod_and_finds_the_leader(
    pods: Pods, helm: Helm, rendered: list[dict[str, Any]]
) -> None:
    del rendered
    values = CHART / "ci" / "tls-values.yaml"
    objects = helm.objects("--values", values)
    deployment = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    told = pods.environment(0, deployment["env"])

    def look() -> bool | str:
        done = pods.run(0, [sys.executable, "-c", OPERATOR], told)
        assert done.returncode == 0, done.stderr
        asked, leader, epoch = json.loads(done.stdout)
        assert asked == [0, 1, 2]
        after = described(pods)
        if epoch != after["LeaderEpoch"]:
            return f"another election came in between: epoch {epoch}, then {after['LeaderEpoch']}"
        assert leader == after["LeaderId"]
        return True

    await_true("the operator finds the leader", look)


def test_the_backup_job_keeps_as_many_as_it_is_told(pods: Pods, helm: Helm) -> None:
    values = ("--set", "backup.enabled=true", "--set", "backup.keep=1")
    objects = helm.objects("--values", CHART / "ci" / "tls-values.yaml", *values)
    job = one(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    folder = pods.folder(0) / "backup"
    older = folder / "20200101T000000Z.backup"
    older.touch()

    done = pods.run_container(0, job["containers"][0])

    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.iterdir()
    assert made.suffix == ".backup"
    assert made != older
    with tarfile.open(made) as archive:
        assert "manifest.json" in archive.getnames()


def test_the_hook_before_a_restart_hands_over_and_removes_nobody(pods: Pods) -> None:
    def look() -> bool | str:
        before = described(pods)
        said = prepare_stop(pods, before["LeaderId"])
        after = described(pods)
        assert "voter removed" not in said
        assert sorted(voter["id"] for voter in after["CurrentVoters"]) == [0, 1, 2]
        epochs = after["LeaderEpoch"] - before["LeaderEpoch"]
        if "leadership handed over" not in said:
            # Another election came before, and whom the hook was for led no more.
            assert epochs > 0, said
            return said
        # A leader that leads again was elected again.
        assert epochs > (after["LeaderId"] == before["LeaderId"])
        return True

    await_true("the leader hands over", look)


def test_the_hook_removes_the_voter_of_a_pod_that_is_scaled_away(
    pods: Pods, network: net.Network, api_servers: dict[int, ApiServer]
) -> None:
    def scale(replicas: int) -> None:
        for server in api_servers.values():
            server.replicas = replicas

    scale(2)
    said = prepare_stop(pods, 2)

    assert "voter removed" in said
    assert sorted(voter["id"] for voter in described(pods)["CurrentVoters"]) == [0, 1]
    assert any("/statefulsets/" in call for call in api_servers[2].calls)
    assert pods.stop(2, "controller") == 0
    assert pods.stop(2, "admin") == 0

    # Its claim goes with it, and a pod that is scaled up again has an empty disk.
    scale(3)
    pods.wipe(2)
    pods.begin(2)
    await_trio(pods, network)
