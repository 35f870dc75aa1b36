"""Reads the StatefulSet to tell a restart from a scale-down or an uninstall.

Kubernetes tells a pod that it stops, but not why. The sidecar may read the StatefulSet and its
namespace. Anything unknown counts as a restart: a voter is never removed on a guess, and one that
will restart waits for its shutdown permit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import urllib.error
from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.admin.kube_api import ANSWER_S, ApiServer, api_server_of_pod
from quorate.records.value_types import keyword_value_type, value_type
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)
# A waiting controller reads again after this many seconds.
LOOK_AGAIN_S: Final = 2.0
GONE: Final = 404
# The pod's account no longer exists: an uninstall deletes it with the StatefulSet. Missing rights
# alone may be a mistake, and then all voters would stop at the same time.
UNKNOWN_ACCOUNT: Final = 401
REFUSED: Final = (UNKNOWN_ACCOUNT, 403)
# Required duration in seconds: an API server that starts knows no account until it has loaded
# them, and all waiting controllers would stop at that moment.
ACCESS_REVOKED_S: Final = 5.0


class StopIntent(Enum):
    """The reason for which a controller is stopped."""

    RETURNS = "comes back"
    SCALED_AWAY = "is scaled away"
    # Only a person requests this: the disk must not return by itself.
    GOES_FOR_GOOD = "goes for good"
    ALL_GO = "goes with all others"


@value_type
class Outlook:
    """The reason for a pod's stop. Ordinals from `end` on are scaled down; None if unknown."""

    stop_intent: StopIntent
    end: int | None = None


@keyword_value_type
class StatefulSetAddress:
    """The address of one StatefulSet, and of its namespace."""

    server: ApiServer
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets/{self.name}"

    def __str__(self) -> str:
        return f"{self.server.url}{self.path}"

    def read(self) -> bytes:
        """The object as JSON. Raises OSError, of which HTTPError is one."""
        return self.server.get(self.path)

    def read_namespace(self) -> bytes:
        """The namespace as JSON. Raises OSError, of which HTTPError is one."""
        return self.server.get(f"/api/v1/namespaces/{self.namespace}")


class StopIntentReader:
    """Reads the stop reason of one pod from its StatefulSet, and times failed reads.

    A rejection that lasts means that the account was deleted with everything else, but only if it
    had rights before. An account that exists and has lost its rights proves nothing: such a pod may
    be needed for the majority.
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
        self._newest: Outlook | None = None
        self._looked_at: float | None = None
        # The first and the last rejection without an answer between them.
        self._refused_at: tuple[float, float] | None = None
        self._unread_since: float | None = clock()
        self.was_read = False

    @property
    def unread_s(self) -> float:
        """Seconds since when the StatefulSet could not be read; 0 after a successful read."""
        since = self._unread_since
        return 0.0 if since is None else self._clock() - since

    async def read(self) -> Outlook | None:
        """Read the stop reason of the pod; None if it cannot be known."""
        name = self._statefulset
        try:
            async with asyncio.timeout(ANSWER_S):
                text = await asyncio.to_thread(self._statefulset.read)
            outlook = outlook_of(json.loads(text), self._ordinal)
        except urllib.error.HTTPError as error:
            if self.was_read and (error.code == GONE or self._is_withdrawn(error.code)):
                self._tell(f"{name} could be read before, and is gone now ({error}): all pods stop")
                return Outlook(StopIntent.ALL_GO)
            self._tell_unknown(error)
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            self._tell_unknown(error)
            return None
        self.was_read = True
        self._unread_since = None
        self._refused_at = None
        if outlook.stop_intent is not StopIntent.ALL_GO and await self._does_namespace_go():
            outlook = Outlook(StopIntent.ALL_GO)
        self._tell(f"{name}: pod {self._ordinal} {outlook.stop_intent.value}", logging.INFO)
        return outlook

    async def _does_namespace_go(self) -> bool:
        """True if the namespace is being deleted, pods before StatefulSets; False if unknown."""
        try:
            async with asyncio.timeout(ANSWER_S):
                text = await asyncio.to_thread(self._statefulset.read_namespace)
            return bool(json.loads(text)["metadata"].get("deletionTimestamp"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return False

    def _is_withdrawn(self, status: int) -> bool:
        """True once the API server has not known the account for WITHDRAWN_S."""
        if status not in REFUSED:
            self._refused_at = None
            return False
        now_s = self._clock()
        first_s, last_s = self._refused_at or (now_s, now_s)
        if now_s - last_s > 2 * ACCESS_REVOKED_S:
            # No read since then: that was another stop, which was cancelled.
            first_s = now_s
        self._refused_at = first_s, now_s
        return status == UNKNOWN_ACCOUNT and now_s - first_s >= ACCESS_REVOKED_S

    async def read_cached(self) -> Outlook | None:
        """The same for frequent callers: a recent result is reused."""
        if self._looked_at is None or self._clock() - self._looked_at >= LOOK_AGAIN_S:
            self._newest = await self.read()
            self._looked_at = self._clock()
        return self._newest

    def _tell_unknown(self, error: Exception) -> None:
        if self._unread_since is None:
            self._unread_since = self._clock()
        self._tell(
            f"{self._statefulset} cannot be read ({str(error) or type(error).__name__}): a "
            "stop is taken for a restart, which removes no voter and waits for its turn; see "
            "that the account of the pod may get this one object, and that its network lets it "
            "reach the API server"
        )

    def _tell(self, words: str, level: int = logging.WARNING) -> None:
        if words != self._told:
            self._told = words
            log.log(level, words)


def statefulset_at(
    named: str, environment: Mapping[str, str], *, key: str = "admin.statefulset"
) -> StatefulSetAddress | None:
    """Parse `NAMESPACE/NAME`, at the API server of this pod; "" is none.

    Raises ConfigError that names the key.
    """
    if not named:
        return None
    namespace, name = parse_statefulset(named, key=key)
    return StatefulSetAddress(
        server=api_server_of_pod(key, environment), namespace=namespace, name=name
    )


def parse_statefulset(named: str, *, key: str) -> tuple[str, str]:
    """Namespace and name in `NAMESPACE/NAME`. Raises ConfigError that names the key."""
    namespace, slash, name = named.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise ConfigError(f"{key} is {named!r}: write NAMESPACE/NAME")
    return namespace, name


def ordinals_of(found: Mapping[str, Mapping[str, object]]) -> range:
    """The ordinals of the pods that a StatefulSet wants.

    Raises KeyError or TypeError if the object is not a StatefulSet.
    """
    spec = found["spec"]
    replicas = spec["replicas"]
    ordinals = spec.get("ordinals") or {}
    start = ordinals.get("start", 0) if isinstance(ordinals, dict) else 0
    if not isinstance(replicas, int) or not isinstance(start, int):
        raise TypeError("spec.replicas is no number")
    return range(start, start + replicas)


def outlook_of(found: Mapping[str, Mapping[str, object]], ordinal: int) -> Outlook:
    """The stop reason of the pod with this ordinal, from a StatefulSet of the API server.

    A StatefulSet that is being deleted, or has no replicas, wants no pods, and its disks may be
    used again: this is not a scale-down, and no other pod is left to wait for. Raises KeyError,
    TypeError or ValueError if the object is not a StatefulSet.
    """
    if found["metadata"].get("deletionTimestamp"):
        return Outlook(StopIntent.ALL_GO)
    wanted = ordinals_of(found)
    if not wanted:
        return Outlook(StopIntent.ALL_GO)
    return Outlook(
        StopIntent.RETURNS if ordinal < wanted.stop else StopIntent.SCALED_AWAY, wanted.stop
    )
