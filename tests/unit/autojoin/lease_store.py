"""The one Lease of an API server, and operators that share it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kubernetes.aio import client as k8s
from kubernetes.aio.client.exceptions import ApiException

from quorate.autojoin.lease import Lease

if TYPE_CHECKING:
    import pytest


@dataclass
class Store:
    """The one Lease of an API server, with its versions."""

    lease: k8s.V1Lease | None = None
    version: int = 0
    calls: list[str] = field(default_factory=list)

    async def read_namespaced_lease(self, *_: object, **__: object) -> Any:  # noqa: ANN401
        if self.lease is None:
            raise ApiException(status=404, reason="Not Found")
        return copy.deepcopy(self.lease)

    async def create_namespaced_lease(self, _: str, body: k8s.V1Lease, **__: object) -> None:
        if self.lease is not None:
            raise ApiException(status=409, reason="Conflict")
        self._keep(body)

    async def replace_namespaced_lease(
        self, _: str, __: str, body: k8s.V1Lease, **___: object
    ) -> None:
        if body.metadata.resource_version != str(self.version):
            raise ApiException(status=409, reason="Conflict")
        self._keep(body)

    def _keep(self, body: k8s.V1Lease) -> None:
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease.metadata.resource_version = str(self.version)


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def leases(
    monkeypatch: pytest.MonkeyPatch,
    store: Store,
    clock: Clock,
    *,
    templates: tuple[str, ...] = ("t", "t"),
    durations_ms: tuple[int, ...] = (15_000, 15_000, 15_000),
) -> list[Lease]:
    """A Lease for each template, with the identities a, b, and so on."""
    monkeypatch.setattr(k8s, "CoordinationV1Api", lambda _: store)
    return [
        Lease(
            None,
            name="l",
            namespace="ns",
            identity=identity,
            duration_ms=duration_ms,
            template=template,
            clock_s=clock,
        )
        for identity, template, duration_ms in zip("abc", templates, durations_ms, strict=False)
    ]
