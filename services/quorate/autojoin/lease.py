"""A Lease, so that of several operators one acts.

A holder that does not renew loses it after its time, measured by the others' own clocks from when
they saw it change; the holder itself stops acting after two thirds of that. The Lease is one gate
of several: the leader does one change at a time, and changes of pods name what was seen.

Annotations of the Lease name the pod template that the holder's release has, and the one of a
standby that differs from it. A holder whose StatefulSet has the template of that standby gives way.
"""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kubernetes.aio import client as k8s

from quorate.autojoin.api_server import REQUEST_TIMEOUT_S, TEMPLATE, reach
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
# After it has given way: time for several looks of others.
BACK_SHARE: Final = 1 / 3
# The template of an operator that stands by and differs from the holder's.
STANDBY: Final = "quorate/standby"


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
        template: str,
        clock_s: Callable[[], float],
    ) -> None:
        """`clock_s` is monotonic; `template` is the checksum that the operator's release has."""
        self._api = k8s.CoordinationV1Api(api)
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._duration_s = duration_ms / 1000
        self._template = template
        self._clock_s = clock_s
        self._held_until_s = float("-inf")
        # What another one wrote last, and when it was seen to be new.
        self._seen: tuple[object, float] = (None, 0.0)
        self._others_until_s = float("-inf")
        self._is_holder_alike = False
        self._standby_template: str | None = None
        self._gives_way = False
        self._back_until_s = float("-inf")
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

        The first sight of a Lease does not count: its holder may have exited long ago. Neither does
        a holder whose release has another template.
        """
        is_alive = self._clock_s() < self._others_until_s
        return is_alive and self._is_holder_alike and not self.is_held()

    def is_awaited_by(self, template: str) -> bool:
        """True if an operator with this template, which is not the holder's own, stands by."""
        return template != self._template and template == self._standby_template

    def give_way(self) -> None:
        """Act no longer; the next `renew` frees the Lease, and leaves others time to take it."""
        log.info(f"gives the lease {self._name} to the operator of the StatefulSet's release")
        self._held_until_s = float("-inf")
        self._gives_way = True

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
        if self._gives_way:
            await self._free(lease)
            return False
        may_take = lease is None or self._may_take(lease)
        self._looked_s = asked_s
        if not may_take:
            if lease is not None:
                await self._stand_by(lease)
            return False
        # Remembered until it is taken: an answer that is lost may have been that it is.
        if lease is None or lease.spec.holder_identity != self._identity:
            self._is_turn_due = True
        try:
            if lease is None:
                notes = {TEMPLATE: self._template}
                metadata = k8s.V1ObjectMeta(name=self._name, annotations=notes)
                body = k8s.V1Lease(metadata=metadata, spec=self._spec(self._identity))
                await reach(self._api.create_namespaced_lease(self._namespace, body, **self._timed))
            else:
                self._standby_template = self._note(lease)
                lease.spec = self._spec(self._identity)
                await self._replace(lease)
        except ConflictError:
            return False
        if self._gives_way:
            # It was told to while the call was on its way.
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
            return bool(holder) or self._clock_s() >= self._back_until_s
        # The version of the Lease changes also where a standby writes its template down.
        renewed, now_s = (holder, lease.spec.renew_time), self._clock_s()
        duration_s = max(self._duration_s, float(lease.spec.lease_duration_seconds or 0))
        before, seen_s = self._seen
        if before != renewed:
            self._seen = (renewed, now_s)
            # After a longer time without a look the change may be as old as that.
            if before is not None and now_s - self._looked_s < duration_s:
                self._others_until_s = now_s + duration_s
            return False
        return now_s - seen_s >= duration_s

    async def _stand_by(self, lease: k8s.V1Lease) -> None:
        """Compare templates with the holder, and write the own one down where it is another."""
        notes = lease.metadata.annotations or {}
        # An operator that writes no template down gives way to none.
        self._is_holder_alike = notes.get(TEMPLATE, self._template) == self._template
        if not self._is_holder_alike and notes.get(STANDBY) != self._template:
            lease.metadata.annotations = {**notes, STANDBY: self._template}
            with contextlib.suppress(ConflictError):
                await self._replace(lease)

    def _note(self, lease: k8s.V1Lease) -> str | None:
        """Write the own template down; the template of an operator that stands by."""
        notes = {**(lease.metadata.annotations or {}), TEMPLATE: self._template}
        if lease.spec.holder_identity != self._identity:
            # It was meant for the holder before, and its operator may have ended.
            notes.pop(STANDBY, None)
        lease.metadata.annotations = notes
        return notes.get(STANDBY)

    async def _free(self, lease: k8s.V1Lease | None) -> None:
        try:
            if lease is not None and lease.spec.holder_identity == self._identity:
                lease.spec = self._spec("")
                await self._replace(lease)
        except ConflictError:
            # A standby has written its template down: look again.
            return
        self._gives_way = False
        self._back_until_s = self._clock_s() + self._duration_s * BACK_SHARE

    async def release(self) -> None:
        """Let the next one begin at once. Raises ClusterError."""
        if not (self.is_held() or self._gives_way):
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
