"""Kubernetes watches that trigger a reconciliation early.

kopf keeps the watches alive. Its handlers here only watch. None needs a finalizer or writes into an
object, because a StatefulSet must be deletable also while no operator runs.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import kopf

from quorate.autojoin.kube_client import PAUSED, TEMPLATE
from quorate.process.stop_signals import STOP_SIGNALS

if TYPE_CHECKING:
    from collections.abc import Callable

SERVER_TIMEOUT_S: Final = 300
CLIENT_TIMEOUT_S: Final = 330
_LIBRARY: Final = ("kopf", "aiohttp")


def digest(body: Any) -> tuple[object, ...]:  # noqa: ANN401 - whatever the API server has
    """The parts of a StatefulSet that count as news, without the operator's own annotations."""
    metadata, status = body.get("metadata", {}), body.get("status", {})
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("annotations", {}).get(PAUSED),
        metadata.get("annotations", {}).get(TEMPLATE),
        status.get("observedGeneration"),
        status.get("updateRevision"),
    )


def registry_of(stateful_set: str, wake: Callable[[], None]) -> kopf.OperatorRegistry:
    """Build handlers that call `wake` when the StatefulSet or one of its pods has changed."""
    registry = kopf.OperatorRegistry()
    seen: list[tuple[object, ...]] = []

    def is_ours(name: str | None, **_: object) -> bool:
        return name == stateful_set

    def is_pod(name: str | None, **_: object) -> bool:
        return (name or "").rpartition("-")[0] == stateful_set

    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:  # noqa: ANN401
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    async def on_stateful_set(body: kopf.Body, **_: object) -> None:
        news = digest(body)
        if seen != [news]:
            seen[:] = [news]
            wake()

    async def on_pod(**_: object) -> None:
        wake()

    kopf.on.login(registry=registry)(login)
    kopf.on.event("apps", "v1", "statefulsets", registry=registry, when=is_ours)(on_stateful_set)
    kopf.on.event("v1", "pods", registry=registry, when=is_pod)(on_pod)
    return registry


def settings_of() -> kopf.OperatorSettings:
    """Settings for kopf: no events, no rights beyond the namespace, renewed watches."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.watching.server_timeout = SERVER_TIMEOUT_S
    settings.watching.client_timeout = CLIENT_TIMEOUT_S
    return settings


async def watch(
    stateful_set: str, namespace: str, wake: Callable[[], None], stop: asyncio.Event
) -> None:
    """Watch until `stop`; if it fails, passes still run on their timer."""
    for name in _LIBRARY:
        logging.getLogger(name).setLevel(logging.WARNING)
    ready = asyncio.Event()
    taking_back = asyncio.create_task(_take_back_signals(ready, stop))
    try:
        await kopf.operator(
            registry=registry_of(stateful_set, wake),
            settings=settings_of(),
            namespaces=[namespace],
            # kopf's default needs an entry in /etc/passwd.
            identity=stateful_set,
            standalone=True,
            stop_flag=stop,
            ready_flag=ready,
        )
    finally:
        taking_back.cancel()


async def _take_back_signals(ready: asyncio.Event, stop: asyncio.Event) -> None:
    """Reinstall the stop signals after kopf has: otherwise a stop looks like a broken watch."""
    await ready.wait()
    STOP_SIGNALS.on_stop(asyncio.get_running_loop(), stop.set)
