"""What becomes of a controller that stops: what the StatefulSet of its pod says of it.

Kubernetes tells a pod that it stops, and not why. The sidecar may read that one object and nothing
else. Whatever cannot be known is a restart: a voter is never removed for a guess, and one that
comes back waits for its turn.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
import urllib.error
import urllib.request
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.records.value import named_value
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)
# Kubernetes mounts them there; the token is renewed while the pod runs, so it is read each time.
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
LOOK_UP_S: Final = 3.0
# A controller that waits looks again after that.
LOOK_AGAIN_S: Final = 2.0
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
GONE: Final = 404
# The account of the pod or its right is gone: in an uninstall they go with the StatefulSet.
WITHDRAWN: Final = (401, 403)
# For that long, though: an API server that starts knows nobody until it has read who there is, and
# all controllers that wait for their turn would stop at that moment.
WITHDRAWN_S: Final = 5.0


class Fate(Enum):
    """What becomes of a controller that is stopped."""

    RETURNS = "comes back"
    SCALED_AWAY = "is scaled away"
    # Nobody but a human says so: its disk is not to come back by itself.
    GOES_FOR_GOOD = "goes for good"
    ALL_GO = "goes with all others"


@named_value
class StatefulSetAddress:
    """Where to read one StatefulSet."""

    url: str
    account: str = ACCOUNT

    def read(self) -> bytes:
        """The object as JSON. Raises OSError, of which HTTPError is one."""
        token = (Path(self.account) / "token").read_text().strip()
        request = urllib.request.Request(self.url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - the address is that of the API server
        tls = None
        if self.url.startswith("https:"):
            tls = ssl.create_default_context(cafile=str(Path(self.account) / "ca.crt"))
            tls.hostname_checks_common_name = False
        with urllib.request.urlopen(request, timeout=LOOK_UP_S, context=tls) as answer:  # noqa: S310
            text: bytes = answer.read(ANSWER_BYTES_MAX)
            return text


class FateOfPod:
    """What one StatefulSet says of one of its pods, and whether it could ever be read.

    A refusal that lasts means that the rights are gone with everything else, and only where there
    were rights.
    """

    def __init__(
        self,
        statefulset: StatefulSetAddress,
        ordinal: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._statefulset = statefulset
        self._clock = clock
        self._ordinal = ordinal
        self._told = ""
        self._newest: Fate | None = None
        self._looked_at: float | None = None
        # The first and the last refusal without an answer between them.
        self._refused_at: tuple[float, float] | None = None
        self.was_read = False

    async def learn(self) -> None:
        """Find out whether it may be read, long before that counts; to be repeated until it was."""
        if not self.was_read:
            await self.look()

    async def look(self) -> Fate | None:
        """What becomes of the pod, None where that cannot be known."""
        name = self._statefulset.url
        try:
            async with asyncio.timeout(LOOK_UP_S):
                text = await asyncio.to_thread(self._statefulset.read)
            fate = fate_of(json.loads(text), self._ordinal)
        except urllib.error.HTTPError as error:
            if self.was_read and (error.code == GONE or self._is_withdrawn(error.code)):
                self._tell(f"{name} could be read before, and is gone now ({error}): all pods stop")
                return Fate.ALL_GO
            self._tell_unknown(error)
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            self._tell_unknown(error)
            return None
        self.was_read = True
        self._refused_at = None
        self._tell(f"{name}: pod {self._ordinal} {fate.value}", logging.INFO)
        return fate

    def _is_withdrawn(self, status: int) -> bool:
        """Whether the rights have been refused for so long that they are gone."""
        if status not in WITHDRAWN:
            self._refused_at = None
            return False
        now_s = self._clock()
        first_s, last_s = self._refused_at or (now_s, now_s)
        if now_s - last_s > 2 * WITHDRAWN_S:
            # Nobody has looked since: that was another stop, which was taken back.
            first_s = now_s
        self._refused_at = first_s, now_s
        return now_s - first_s >= WITHDRAWN_S

    async def look_again(self) -> Fate | None:
        """The same for callers that ask all the time: what was said a moment ago still holds."""
        if self._looked_at is None or self._clock() - self._looked_at >= LOOK_AGAIN_S:
            self._newest = await self.look()
            self._looked_at = self._clock()
        return self._newest

    def _tell_unknown(self, error: Exception) -> None:
        self._tell(
            f"{self._statefulset.url} cannot be read ({str(error) or type(error).__name__}): a "
            "stop is taken for a restart, which removes no voter and waits for its turn; see "
            "that the account of the pod may get this one object"
        )

    def _tell(self, words: str, level: int = logging.WARNING) -> None:
        if words != self._told:
            self._told = words
            log.log(level, words)


def statefulset_at(named: str, environment: Mapping[str, str]) -> StatefulSetAddress | None:
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
    return StatefulSetAddress(
        url=f"https://{server}/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"
    )


def fate_of(found: Mapping[str, Mapping[str, object]], ordinal: int) -> Fate:
    """What a StatefulSet, as the API server shows it, has become of the pod with this ordinal.

    One that is being deleted, or has no replicas, wants nobody, and its disks may be used again:
    that is no scaling, and nobody is left to wait for. Raises KeyError, TypeError or ValueError for
    what is no StatefulSet.
    """
    if found["metadata"].get("deletionTimestamp"):
        return Fate.ALL_GO
    spec = found["spec"]
    replicas = spec["replicas"]
    ordinals = spec.get("ordinals") or {}
    start = ordinals.get("start", 0) if isinstance(ordinals, dict) else 0
    if not isinstance(replicas, int) or not isinstance(start, int):
        raise TypeError("spec.replicas is no number")
    if replicas == 0:
        return Fate.ALL_GO
    return Fate.RETURNS if ordinal < start + replicas else Fate.SCALED_AWAY
