"""A Lease, so that of several operators one acts.

A holder that does not renew loses it after its time, measured by the others' own clocks from when
they saw it change; the holder itself stops acting after two thirds of that. The Lease is one gate
of several: the leader does one change at a time, and changes of pods name what was seen.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kubernetes.aio import client as k8s

from quorate.autojoin.api_server import REQUEST_TIMEOUT_S, reach
from quorate.autojoin.reconcile import ClusterError, ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)
HOLDER_SHARE: Final = 2 / 3
# Between two renewals, and between two looks at another's.
RENEW_SHARE: Final = 1 / 5
LOOK_SHARE: Final = 1 / 10
# Of what is left of its time, after a renewal that failed: each call, and the wait before the next.
CALL_SHARE: Final = 1 / 2
AGAIN_SHARE: Final = 1 / 10
SOON_S: Final = 0.05


class Lease:
    """`renew` again and again; `is_held` in between."""

    def __init__(
        self,
        api: k8s.ApiClient,
        *,
        name: str,
        namespace: str,
        identity: str,
        duration_ms: int,
        clock_s: Callable[[], float],
    ) -> None:
        """`clock_s` is monotonic."""
        self._api = k8s.CoordinationV1Api(api)
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._duration_s = duration_ms / 1000
        self._clock_s = clock_s
        self._held_until_s = float("-inf")
        # The version that another one wrote last, and when it was seen to be new.
        self._seen: tuple[str, float] = ("", 0.0)
        self._others_until_s = float("-inf")
        self._looked_s = float("-inf")
        self._has_failed = False
        self._turn = 0
        # What a process of the same name has done before this one is another's.
        self._is_turn_due = True

    def is_held(self) -> bool:
        """Whether this operator may act now."""
        return self._clock_s() < self._held_until_s

    def is_held_by_another(self) -> bool:
        """True while this operator has seen another one renew the Lease within its duration.

        The first sight of a Lease does not count: its holder may have exited long ago.
        """
        return not self.is_held() and self._clock_s() < self._others_until_s

    @property
    def turn(self) -> int:
        """Counts how often it was taken from another, or from none: one may have acted before."""
        return self._turn

    @property
    def _timed(self) -> dict[str, float]:
        """A call may not take so long that the time of the lease passes meanwhile."""
        longest_s = min(REQUEST_TIMEOUT_S, self._duration_s / 3)
        if self.is_held():
            left_s = self._held_until_s - self._clock_s()
            longest_s = min(longest_s, max(SOON_S, left_s * CALL_SHARE))
        return {"_request_timeout": longest_s}

    @property
    def wait_s(self) -> float:
        """Seconds until the next `renew`, at most until another operator's Lease expires."""
        if self.is_held():
            if self._has_failed:
                return max(SOON_S, (self._held_until_s - self._clock_s()) * AGAIN_SHARE)
            return self._duration_s * RENEW_SHARE
        look_s = self._duration_s * LOOK_SHARE
        left_s = self._others_until_s - self._clock_s()
        return min(look_s, left_s + SOON_S) if left_s > 0 else look_s

    async def renew(self) -> bool:
        """Take it or keep it; False while another holds it. Raises ClusterError."""
        self._has_failed = True
        is_taken = await self._renew()
        self._has_failed = not is_taken
        return is_taken

    async def _renew(self) -> bool:
        asked_s = self._clock_s()
        try:
            lease = await reach(
                self._api.read_namespaced_lease(self._name, self._namespace, **self._timed)
            )
        except ClusterError as error:
            if not error.is_missing:
                raise
            lease = None
        may_take = lease is None or self._may_take(lease)
        self._looked_s = asked_s
        if not may_take:
            return False
        # Remembered until it is taken: an answer that is lost may have been that it is.
        if lease is None or lease.spec.holder_identity != self._identity:
            self._is_turn_due = True
        try:
            if lease is None:
                metadata = k8s.V1ObjectMeta(name=self._name)
                body = k8s.V1Lease(metadata=metadata, spec=self._spec(self._identity))
                await reach(self._api.create_namespaced_lease(self._namespace, body, **self._timed))
            else:
                lease.spec = self._spec(self._identity)
                await self._replace(lease)
        except ConflictError:
            return False
        if not self.is_held():
            log.info(f"holds the lease {self._name}")
        self._turn += self._is_turn_due
        self._is_turn_due = False
        self._held_until_s = asked_s + self._duration_s * HOLDER_SHARE
        return True

    def _may_take(self, lease: k8s.V1Lease) -> bool:
        holder = lease.spec.holder_identity or ""
        if holder in ("", self._identity):
            self._others_until_s = float("-inf")
            return True
        version, now_s = lease.metadata.resource_version, self._clock_s()
        duration_s = max(self._duration_s, float(lease.spec.lease_duration_seconds or 0))
        before, seen_s = self._seen
        if before != version:
            self._seen = (version, now_s)
            # After a longer time without a look the change may be as old as that.
            if before and now_s - self._looked_s < duration_s:
                self._others_until_s = now_s + duration_s
            return False
        return now_s - seen_s >= duration_s

    async def release(self) -> None:
        """Let the next one begin at once. Raises ClusterError."""
        if not self.is_held():
            return
        self._held_until_s = float("-inf")
        lease = await reach(
            self._api.read_namespaced_lease(self._name, self._namespace, **self._timed)
        )
        if lease.spec.holder_identity == self._identity:
            lease.spec = self._spec("")
            await self._replace(lease)

    async def _replace(self, lease: k8s.V1Lease) -> None:
        await reach(
            self._api.replace_namespaced_lease(self._name, self._namespace, lease, **self._timed)
        )

    def _spec(self, holder: str) -> k8s.V1LeaseSpec:
        return k8s.V1LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=max(1, int(self._duration_s)),
            renew_time=datetime.now(UTC),
        )
