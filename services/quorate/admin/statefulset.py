"""Whether a controller is scaled away: what the StatefulSet of its pod says when it stops.

Kubernetes tells a pod that it stops, and not why. The sidecar may read that one object and nothing
else. Whatever cannot be known is a restart: a voter is never removed for a guess.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)
# Kubernetes mounts them there; the token is renewed while the pod runs, so it is read each time.
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
LOOK_UP_S: Final = 3.0
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulSet:
    """Where to read one StatefulSet."""

    url: str
    account: str = ACCOUNT

    async def has(self, ordinal: int) -> bool:
        """Whether a pod with this ordinal is wanted; also where that cannot be known."""
        try:
            async with asyncio.timeout(LOOK_UP_S):
                text = await asyncio.to_thread(self._read)
            is_wanted = wants(json.loads(text), ordinal)
        except (OSError, ValueError, TypeError, KeyError) as error:
            log.warning(f"{self.url} cannot be read ({error}): this stop is taken for a restart")
            return True
        log.info(f"{self.url}: pod {ordinal} is {'wanted' if is_wanted else 'scaled away'}")
        return is_wanted

    def _read(self) -> bytes:
        token = (Path(self.account) / "token").read_text().strip()
        request = urllib.request.Request(self.url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - the address is that of the API server
        tls = None
        if self.url.startswith("https:"):
            tls = ssl.create_default_context(cafile=str(Path(self.account) / "ca.crt"))
        with urllib.request.urlopen(request, timeout=LOOK_UP_S, context=tls) as answer:  # noqa: S310
            text: bytes = answer.read(ANSWER_BYTES_MAX)
            return text


def statefulset_at(named: str, environment: Mapping[str, str]) -> StatefulSet | None:
    """`NAMESPACE/NAME` at the API server of this pod; "" is none. Raises ConfigError."""
    if not named:
        return None
    namespace, slash, name = named.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise ConfigError(f"admin.statefulset is {named!r}: write NAMESPACE/NAME")
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("admin.statefulset is for pods: KUBERNETES_SERVICE_HOST is missing")
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return StatefulSet(
        url=f"https://{server}/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"
    )


def wants(found: Mapping[str, Mapping[str, object]], ordinal: int) -> bool:
    """Whether a StatefulSet, as the API server shows it, wants a pod with this ordinal.

    One that is being deleted wants nothing, and its disks may be used again: that is no scaling.
    Raises KeyError, TypeError or ValueError for what is no StatefulSet.
    """
    if found["metadata"].get("deletionTimestamp"):
        return True
    spec = found["spec"]
    replicas = spec["replicas"]
    ordinals = spec.get("ordinals") or {}
    start = ordinals.get("start", 0) if isinstance(ordinals, dict) else 0
    if not isinstance(replicas, int) or not isinstance(start, int):
        raise TypeError("spec.replicas is no number")
    return ordinal < start + replicas
