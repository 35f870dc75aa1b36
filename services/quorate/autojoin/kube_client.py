"""Kubernetes API access: StatefulSet, pods, ConfigMap, Events.

Annotations and the ConfigMap are the operator's only storage. Changes name the version of the
object that they were decided on, so that an outdated decision does nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from kubernetes.aio import client as k8s
from kubernetes.aio.client.exceptions import ApiException

from quorate.api.kube_api_errors import message_of, printable
from quorate.autojoin.bootstrap_record import decode_record, encode_record, labels_of, record_name
from quorate.autojoin.reconciler import ClusterError, ConflictError, StatefulSet
from quorate.autojoin.state import Desired, Pod
from quorate.autojoin.volume_claims import Claims

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from quorate.autojoin.bootstrap_record import BootstrapRecord
    from quorate.autojoin.config import AutojoinConfig

PAUSED: Final = "quorate/paused"
MEMORY: Final = "quorate/memory"
CONDITIONS: Final = "quorate/conditions"
CLAIMS: Final = "quorate/claims"
# The pod template of the release that wrote the StatefulSet.
TEMPLATE: Final = "quorate/template"
REVISION: Final = "controller-revision-hash"
COMPONENT: Final = "quorate-autojoin"
REQUEST_TIMEOUT_S: Final = 10.0
TEXT_MAX: Final = 1000
_GONE, _CONFLICT = 404, 409
_ORDINAL: Final = re.compile(r".*-(\d+)")


async def reach(call: Awaitable[Any]) -> Any:  # noqa: ANN401 - the library's objects have no types
    """Await the answer. Raises ConflictError or ClusterError with the API server's message."""
    try:
        return await call
    except ApiException as error:
        kind = ConflictError if error.status == _CONFLICT else ClusterError
        failure = kind(_words_of(error))
        failure.is_missing = error.status == _GONE
        raise failure from error
    except aiohttp.ClientConnectorDNSError as error:
        why = error.os_error.strerror or str(error.os_error)
        text = f"the name of the API server, {error.host}, does not resolve: {why}"
        raise ClusterError(text) from error
    except TimeoutError as error:
        raise ClusterError("the API server has not answered in time") from error
    except (aiohttp.ClientError, OSError) as error:
        text = f"the API server does not answer: {printable(str(error) or type(error).__name__)}"
        raise ClusterError(text) from error


def _words_of(error: ApiException) -> str:
    message = message_of(error.body)
    return f"{error.status}: {message}" if message else f"{error.status} {_phrase(error)}"


def _phrase(error: ApiException) -> str:
    return printable(str(error.reason or ""))


class KubeClient:
    """One StatefulSet in one namespace. Implements `reconcile.Cluster`."""

    def __init__(self, api: k8s.ApiClient, config: AutojoinConfig) -> None:
        self._apps = k8s.AppsV1Api(api)
        self._core = k8s.CoreV1Api(api)
        self._config = config
        self._labels: Mapping[str, str] = {}
        self._uid = ""
        self._events = 0
        self._claims = Claims()

    @property
    def _where(self) -> tuple[str, str]:
        return self._config.stateful_set, self._config.namespace

    @property
    def _record_name(self) -> str:
        return record_name(self._config.stateful_set)

    async def observe(self) -> StatefulSet | None:
        """Read the StatefulSet with its pods; None if it does not exist."""
        try:
            found = await reach(self._apps.read_namespaced_stateful_set(*self._where, **_TIMED))
        except ClusterError as error:
            if error.is_missing:
                return None
            raise
        selector = selector_of(found)
        pods = await reach(
            self._core.list_namespaced_pod(
                self._config.namespace, label_selector=selector, **_TIMED
            )
        )
        self._uid, self._labels = found.metadata.uid, found.metadata.labels or {}
        self._claims = claims_of(found)
        notes = found.metadata.annotations or {}
        return StatefulSet(
            desired=desired_of(found, self._config),
            version=found.metadata.resource_version,
            service=found.spec.service_name or "",
            pods=pods_of(pods.items, self._uid, self._config.container),
            record=await self._record(),
            memory=notes.get(MEMORY, ""),
            conditions=notes.get(CONDITIONS, ""),
            claims=notes.get(CLAIMS, ""),
        )

    async def _record(self) -> BootstrapRecord | None:
        name, namespace = self._record_name, self._config.namespace
        try:
            found = await reach(self._core.read_namespaced_config_map(name, namespace, **_TIMED))
        except ClusterError as error:
            if error.is_missing:
                return None
            raise
        try:
            return decode_record(found.data or {}, name)
        except ValueError as error:
            raise ClusterError(str(error)) from error

    async def save_state(self, memory: str, version: str) -> None:
        """Save the memory if the StatefulSet still has that version. Raises ConflictError."""
        await self._annotate({MEMORY: memory}, version)

    async def publish_conditions(self, conditions: str) -> None:
        """Publish the conditions on the StatefulSet."""
        await self._annotate({CONDITIONS: conditions})

    async def left_claims(self) -> tuple[str, ...]:
        """The kept claims of pods beyond the replicas, by ordinal.

        A scale to zero leaves the whole quorum in its claims, so these are not leftovers. A claim
        that a scale-up has created since the observation belongs to a pod that the StatefulSet
        wants, so the StatefulSet is read again.
        """
        if not self._claims.are_kept or self._claims.replicas < 1:
            return ()
        found = await reach(
            self._core.list_namespaced_persistent_volume_claim(
                self._config.namespace, label_selector=self._claims.selector, **_TIMED
            )
        )
        left = self._claims.left([each.metadata.name for each in found.items])
        if not left:
            return ()
        now = claims_of(
            await reach(self._apps.read_namespaced_stateful_set(*self._where, **_TIMED))
        )
        return now.left(left) if now.are_kept else ()

    async def tell_claims(self, text: str) -> None:
        """Publish the claims that were left."""
        await self._annotate({CLAIMS: text or None})

    async def _annotate(
        self, annotations: Mapping[str, str | None], version: str | None = None
    ) -> None:
        """Set annotations; a value of None deletes one."""
        metadata: dict[str, object] = {"annotations": dict(annotations)}
        if version is not None:
            metadata["resourceVersion"] = version
        patch = {"metadata": metadata}
        await reach(
            self._apps.patch_namespaced_stateful_set(
                *self._where, patch, _content_type="application/merge-patch+json", **_TIMED
            )
        )

    async def write_record(self, record: BootstrapRecord) -> None:
        """Create the record: it has no owner, so it outlives StatefulSet and release."""
        body = k8s.V1ConfigMap(
            immutable=True,
            metadata=k8s.V1ObjectMeta(name=self._record_name, labels=labels_of(self._labels)),
            data=encode_record(record),
        )
        await reach(self._core.create_namespaced_config_map(self._config.namespace, body, **_TIMED))

    async def delete_pod(self, name: str, uid: str, version: str) -> None:
        """Delete exactly the pod that was observed. Raises ConflictError."""
        conditions = k8s.V1Preconditions(uid=uid, resource_version=version)
        body = k8s.V1DeleteOptions(preconditions=conditions)
        await reach(
            self._core.delete_namespaced_pod(name, self._config.namespace, body=body, **_TIMED)
        )

    async def post_event(self, reason: str, text: str, *, is_warning: bool) -> None:
        """Post an Event about the StatefulSet; count and time are part of its name."""
        now = datetime.now(UTC)
        self._events += 1
        name, namespace = self._where
        body = k8s.CoreV1Event(
            metadata=k8s.V1ObjectMeta(
                name=f"{name}.{int(now.timestamp() * 1000):x}.{self._events:x}", namespace=namespace
            ),
            involved_object=k8s.V1ObjectReference(
                api_version="apps/v1",
                kind="StatefulSet",
                name=name,
                namespace=namespace,
                uid=self._uid,
            ),
            reason=reason,
            message=text[:TEXT_MAX],
            type="Warning" if is_warning else "Normal",
            first_timestamp=now,
            last_timestamp=now,
            count=1,
            source=k8s.V1EventSource(component=COMPONENT),
            reporting_component=COMPONENT,
            reporting_instance=self._config.identity,
        )
        await reach(self._core.create_namespaced_event(namespace, body, **_TIMED))


_TIMED: Final[dict[str, Any]] = {"_request_timeout": REQUEST_TIMEOUT_S}


def selector_of(found: Any) -> str:  # noqa: ANN401 - the library's objects have no types
    """The label selector for lists of the StatefulSet's pods and claims."""
    labels = found.spec.selector.match_labels or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def claims_of(found: Any) -> Claims:  # noqa: ANN401
    """The volume claims of a StatefulSet's pods. Kubernetes keeps them by default."""
    spec = found.spec
    policy = spec.persistent_volume_claim_retention_policy
    when_scaled = None if policy is None else policy.when_scaled
    return Claims(
        stateful_set=found.metadata.name,
        replicas=1 if spec.replicas is None else spec.replicas,
        templates=tuple(each.metadata.name for each in spec.volume_claim_templates or ()),
        selector=selector_of(found),
        are_kept=when_scaled in (None, "Retain") and bool(spec.volume_claim_templates),
    )


def desired_of(found: Any, config: AutojoinConfig) -> Desired:  # noqa: ANN401
    """The desired state according to a StatefulSet.

    While Kubernetes has not observed the latest generation, `updateRevision` belongs to the
    previous one, so no pod is rolled to it.
    """
    spec, status, metadata = found.spec, found.status, found.metadata
    strategy = spec.update_strategy.type if spec.update_strategy is not None else None
    is_current = (status.observed_generation or 0) >= (metadata.generation or 0)
    notes = metadata.annotations or {}
    template = notes.get(TEMPLATE, "")
    is_of_release = config.template in ("", template)
    return Desired(
        stateful_set=metadata.name,
        replicas=1 if spec.replicas is None else spec.replicas,
        revision=status.update_revision or "",
        rolls=strategy == "OnDelete" and is_current and bool(status.update_revision),
        is_observed=is_current and is_of_release and bool(status.update_revision),
        is_paused=notes.get(PAUSED, "").lower() == "true",
        is_deleting=metadata.deletion_timestamp is not None,
        fetch_timeout_ms=config.fetch_timeout_ms,
        ghost_delay_ms=config.ghost_delay_ms,
        template=template,
    )


def pods_of(items: list[Any], owner: str, container: str) -> tuple[Pod, ...]:
    """The pods that belong to the StatefulSet, by ordinal."""
    pods = []
    for each in items:
        match = _ORDINAL.fullmatch(each.metadata.name)
        owners = {owner.uid for owner in each.metadata.owner_references or ()}
        if match is not None and owner in owners:
            pods.append(_pod(each, int(match[1]), container))
    return tuple(sorted(pods, key=lambda pod: pod.ordinal))


def _pod(found: Any, ordinal: int, container: str) -> Pod:  # noqa: ANN401
    metadata, status = found.metadata, found.status
    states = {each.name: each.state for each in status.container_statuses or ()}
    state = states.get(container)
    conditions = {each.type: each.status for each in status.conditions or ()}
    return Pod(
        name=metadata.name,
        ordinal=ordinal,
        uid=metadata.uid,
        version=metadata.resource_version,
        revision=(metadata.labels or {}).get(REVISION, ""),
        is_running=state is not None and state.running is not None,
        is_ready=conditions.get("Ready") == "True",
        is_deleting=metadata.deletion_timestamp is not None,
    )


async def connect() -> k8s.ApiClient:
    """Connect as the pod's service account, or with kubectl's context outside of a pod.

    Raises ClusterError.
    """
    from kubernetes.aio import config

    configuration = k8s.Configuration()
    try:
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            await config.load_kube_config(client_configuration=configuration)
    except (config.ConfigException, OSError) as error:
        raise ClusterError(f"neither a service account nor a kubeconfig to use: {error}") from error
    return k8s.ApiClient(configuration)
