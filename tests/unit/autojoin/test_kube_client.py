"""Kubernetes' objects become the values of a decision, and its refusals become errors."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from kubernetes.aio import client as k8s
from kubernetes.aio.client.exceptions import ApiException

from quorate.autojoin.config import read_config
from quorate.autojoin.kube_client import TEMPLATE, KubeClient, claims_of, desired_of, pods_of, reach
from quorate.autojoin.reconciler import ClusterError, ConflictError

CONFIG = read_config({"autojoin.statefulset": "q"}, {}, namespace="ns")
NO_PROXY: dict[str, Any] = dict.fromkeys(
    ("proxy", "proxy_auth", "proxy_headers_hash"),
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def refused(status: int, reason: str | None, body: bytes | str | None) -> ApiException:
    error = ApiException(status=status, reason=reason)
    error.body = body
    return error


def stateful_set(
    *, strategy: str = "OnDelete", generation: int = 4, observed: int = 4, paused: str = "false"
) -> k8s.V1StatefulSet:
    return k8s.V1StatefulSet(
        metadata=k8s.V1ObjectMeta(
            name="q", generation=generation, annotations={"quorate/paused": paused}
        ),
        spec=k8s.V1StatefulSetSpec(
            replicas=3,
            selector=k8s.V1LabelSelector(match_labels={"a": "b"}),
            service_name="q-headless",
            template=k8s.V1PodTemplateSpec(),
            update_strategy=k8s.V1StatefulSetUpdateStrategy(type=strategy),
        ),
        status=k8s.V1StatefulSetStatus(
            replicas=3, update_revision="q-2", observed_generation=observed
        ),
    )


def pod(name: str, *, owner: str = "set", runs: bool = True, going: bool = False) -> k8s.V1Pod:
    state = k8s.V1ContainerState(
        running=k8s.V1ContainerStateRunning(started_at=NOW) if runs else None,
        waiting=None if runs else k8s.V1ContainerStateWaiting(reason="CrashLoopBackOff"),
    )
    status = k8s.V1ContainerStatus(
        name="controller", image="i", image_id="i", ready=runs, restart_count=0, state=state
    )
    return k8s.V1Pod(
        metadata=k8s.V1ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version="7",
            labels={"controller-revision-hash": "q-1"},
            deletion_timestamp=NOW if going else None,
            owner_references=[
                k8s.V1OwnerReference(api_version="apps/v1", kind="StatefulSet", name="q", uid=owner)
            ],
        ),
        status=k8s.V1PodStatus(
            container_statuses=[status],
            conditions=[k8s.V1PodCondition(type="Ready", status="True" if runs else "False")],
        ),
    )


def test_what_a_stateful_set_asks_for() -> None:
    desired = desired_of(stateful_set(), CONFIG)
    assert (desired.stateful_set, desired.replicas, desired.revision) == ("q", 3, "q-2")
    assert desired.rolls
    assert not desired.is_paused
    assert not desired.is_deleting


def test_who_rolls() -> None:
    assert not desired_of(stateful_set(strategy="RollingUpdate"), CONFIG).rolls
    # Its revision is that of the form before.
    assert not desired_of(stateful_set(generation=5), CONFIG).rolls


def test_a_pause_is_an_annotation() -> None:
    assert desired_of(stateful_set(paused="true"), CONFIG).is_paused


def test_pods_are_those_of_the_set_by_ordinal() -> None:
    found = [pod("q-10"), pod("q-9", runs=False), pod("q-1", owner="other"), pod("q-x")]
    pods = pods_of([*found, pod("q-2", going=True)], "set", "controller")
    assert [(each.ordinal, each.is_running, each.is_ready, each.is_deleting) for each in pods] == [
        (2, True, True, True),
        (9, False, False, False),
        (10, True, True, False),
    ]
    assert (pods[0].uid, pods[0].version, pods[0].revision) == ("uid-q-2", "7", "q-1")
    assert pods[0].key is None


@pytest.mark.parametrize(
    ("error", "kind", "missing"),
    [
        (ApiException(status=404, reason="Not Found"), ClusterError, True),
        (ApiException(status=409, reason="Conflict"), ConflictError, False),
        (ApiException(status=403, reason="Forbidden"), ClusterError, False),
        (aiohttp.ClientConnectionError("refused"), ClusterError, False),
        (TimeoutError(), ClusterError, False),
    ],
)
async def test_refusals(error: Exception, kind: type[ClusterError], missing: bool) -> None:  # noqa: FBT001
    async def call() -> None:
        raise error

    with pytest.raises(ClusterError) as caught:
        await reach(call())
    assert type(caught.value) is kind
    assert caught.value.is_missing is missing


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            refused(409, "Conflict", '{"kind": "Status", "message": "changed\\nmeanwhile"}'),
            "409: changed meanwhile",
        ),
        (refused(502, "Bad\tGateway", "<html>" * 1_000), "502 Bad Gateway"),
        (refused(500, "Oops", b"\xff\xfe"), "500 Oops"),
        (refused(403, None, None), "403 "),
        (TimeoutError(), "the API server has not answered in time"),
        (
            aiohttp.ClientConnectorDNSError(
                ConnectionKey("api.example", 443, is_ssl=True, ssl=True, **NO_PROXY),
                socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            ),
            "the name of the API server, api.example, does not resolve: Name or service not known",
        ),
    ],
)
async def test_a_refusal_is_told_in_words(error: Exception, told: str) -> None:
    async def call() -> None:
        raise error

    with pytest.raises(ClusterError) as caught:
        await reach(call())
    assert str(caught.value) == told


def test_a_form_that_was_not_looked_at_is_not_observed() -> None:
    assert desired_of(stateful_set(), CONFIG).is_observed
    assert not desired_of(stateful_set(generation=5), CONFIG).is_observed


def test_a_form_of_another_release_is_not_observed() -> None:
    properties = {"autojoin.statefulset": "q", "autojoin.template": "b"}
    config = read_config(properties, {}, namespace="ns")
    found = stateful_set()
    assert not desired_of(found, config).is_observed
    found.metadata.annotations[TEMPLATE] = "a"
    assert not desired_of(found, config).is_observed
    # The pods follow the present StatefulSet, no matter what rolls them.
    assert desired_of(found, config).rolls
    assert desired_of(found, config).template == "a"
    found.metadata.annotations[TEMPLATE] = "b"
    assert desired_of(found, config).is_observed


def with_claims(when_scaled: str | None) -> k8s.V1StatefulSet:
    found = stateful_set()
    claim = k8s.V1PersistentVolumeClaim(metadata=k8s.V1ObjectMeta(name="data"))
    found.spec.volume_claim_templates = [claim]
    if when_scaled is not None:
        policy = k8s.V1StatefulSetPersistentVolumeClaimRetentionPolicy(when_scaled=when_scaled)
        found.spec.persistent_volume_claim_retention_policy = policy
    return found


@pytest.mark.parametrize(
    ("found", "are_kept"),
    [
        (with_claims("Retain"), True),
        (with_claims(None), True),
        (with_claims("Delete"), False),
        (stateful_set(), False),
    ],
)
def test_claims_are_kept_unless_told_otherwise(
    found: k8s.V1StatefulSet,
    are_kept: bool,  # noqa: FBT001
) -> None:
    claims = claims_of(found)
    assert claims.are_kept is are_kept
    assert (claims.stateful_set, claims.replicas, claims.selector) == ("q", 3, "a=b")


class Scaled:
    """An API server whose StatefulSet is scaled while its claims are listed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, before: int, after: int) -> None:
        self.replicas, self.after = before, after
        monkeypatch.setattr(k8s, "AppsV1Api", lambda _: self)
        monkeypatch.setattr(k8s, "CoreV1Api", lambda _: self)

    async def read_namespaced_stateful_set(self, *_: object, **__: object) -> k8s.V1StatefulSet:
        found = with_claims("Retain")
        found.spec.replicas = self.replicas
        return found

    async def list_namespaced_pod(self, *_: object, **__: object) -> k8s.V1PodList:
        return k8s.V1PodList(items=[])

    async def read_namespaced_config_map(self, *_: object, **__: object) -> k8s.V1ConfigMap:
        raise ApiException(status=404, reason="Not Found")

    async def list_namespaced_persistent_volume_claim(self, *_: object, **__: object) -> Any:  # noqa: ANN401
        self.replicas = self.after
        names = [f"data-q-{each}" for each in range(6)]
        items = [
            k8s.V1PersistentVolumeClaim(metadata=k8s.V1ObjectMeta(name=name)) for name in names
        ]
        return k8s.V1PersistentVolumeClaimList(items=items)


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (3, 3, ("data-q-3", "data-q-4", "data-q-5")),
        (3, 5, ("data-q-5",)),
        # Those that a scale-down leaves may still vote.
        (5, 3, ("data-q-5",)),
    ],
)
async def test_a_scale_beside_the_list_of_claims(
    monkeypatch: pytest.MonkeyPatch, before: int, after: int, left: tuple[str, ...]
) -> None:
    Scaled(monkeypatch, before, after)
    server = KubeClient(None, CONFIG)
    await server.observe()
    assert await server.left_claims() == left
