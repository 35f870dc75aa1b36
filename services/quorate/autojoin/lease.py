"""Leader election among operators by a Kubernetes Lease.

A holder that does not renew loses the Lease after its duration. Other operators measure it on their
own clocks, from when they saw the Lease change. The holder itself stops acting after two thirds of
it. The Lease is one gate of several: the leader does one change at a time, and changes of pods name
the version that was observed.

The holder notes in the Lease the pod template of its release and the result of its last pass. A
standby with another template adds that template. A holder whose StatefulSet has the standby's
template gives way (docs/decisions/0016-operators-readiness.md).
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kubernetes.aio import client as k8s

from quorate.autojoin.kube_client import REQUEST_TIMEOUT_S, reach
from quorate.autojoin.reconciler import ClusterError, ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)
HOLDER_SHARE: Final = 2 / 3
# Fraction of the duration between two renewals, and between two reads of another's Lease.
RENEW_SHARE: Final = 1 / 5
LOOK_SHARE: Final = 1 / 10
# Fraction of the time left after a failed renewal, for each call and each wait before the next.
CALL_SHARE: Final = 1 / 2
AGAIN_SHARE: Final = 1 / 10
SOON_S: Final = 0.05
# Annotation with the holder's state.
HOLDER: Final = "quorate/holder"
# Annotation with the template of a standby whose template differs from the holder's.
STANDBY: Final = "quorate/standby"
RELEASES_MAX: Final = 3


class Lease:
    """Call `renew` repeatedly, and check `is_held` before acting."""

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
        """`clock_s` is monotonic; `template` is the template checksum of the operator's release."""
        self._api = k8s.CoordinationV1Api(api)
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._duration_s = duration_ms / 1000
        self._template = template
        self._clock_s = clock_s
        self._held_until_s = float("-inf")
        # The last change by another operator, and when this one first saw it.
        self._seen: tuple[object, float] = (None, 0.0)
        self._others_until_s = float("-inf")
        self._is_others_verdict_good = False
        self._is_in_step = False
        # The template of a standby, and until when it is valid.
        self._standby: tuple[str, float] = ("", float("-inf"))
        self._gives_way_to: str | None = None
        self._looked_s = float("-inf")
        self._has_failed = False
        self._turn = 0
        # Another process of the same name may have acted before this process took the Lease.
        self._is_turn_due = True

    def is_held(self) -> bool:
        """True if this operator may act now."""
        return self._clock_s() < self._held_until_s

    def is_in_step_by_another(self) -> bool:
        """True while another operator renews the Lease and reports in it that all is in step.

        The first sight of a Lease does not count: its holder may have exited long ago. The report
        of a holder whose release has another template does not count either.
        """
        is_alive = self._clock_s() < self._others_until_s
        return is_alive and self._is_others_verdict_good and not self.is_held()

    def note(self, *, is_in_step: bool) -> bool:
        """Report to standbys with the next `renew`; True if the value has changed."""
        was_in_step, self._is_in_step = self._is_in_step, is_in_step
        return was_in_step != is_in_step

    def standby_template(self) -> str:
        """The template of a standby that differs from the holder's; "" for none."""
        template, until_s = self._standby
        return template if self._clock_s() < until_s else ""

    def give_way(self, template: str) -> None:
        """Stop acting; the next `renew` frees the Lease for an operator with that template."""
        log.info(f"gives the lease {self._name} to an operator of another release")
        self._held_until_s = float("-inf")
        self._gives_way_to = template

    @property
    def turn(self) -> int:
        """Count of takeovers from another holder or none: another may have acted before."""
        return self._turn

    @property
    def _timed(self) -> dict[str, float]:
        """The timeout of a call, so short that the Lease does not expire during it."""
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
        """Acquire or renew the Lease; False while another one holds it. Raises ClusterError."""
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
        if self._gives_way_to is not None:
            await self._free(lease, self._gives_way_to)
            return False
        may_take = lease is None or self._may_take(lease)
        self._looked_s = asked_s
        if not may_take:
            if lease is not None:
                await self._stand_by(lease)
            return False
        # Kept until the Lease is acquired: a lost answer may have been a success.
        if lease is None or lease.spec.holder_identity != self._identity:
            self._is_turn_due = True
        try:
            if lease is None:
                notes = {HOLDER: self._own_words()}
                metadata = k8s.V1ObjectMeta(name=self._name, annotations=notes)
                body = k8s.V1Lease(metadata=metadata, spec=self._spec(self._identity))
                await reach(self._api.create_namespaced_lease(self._namespace, body, **self._timed))
            else:
                self._take_in_standby(lease)
                lease.spec = self._spec(self._identity)
                await self._replace(lease)
        except ConflictError:
            return False
        if self._gives_way_to is not None:
            # `give_way` was called while the call was in flight.
            return False
        if not self.is_held():
            log.info(f"holds the lease {self._name}")
        self._turn += self._is_turn_due
        self._is_turn_due = False
        self._held_until_s = asked_s + self._duration_s * HOLDER_SHARE
        return True

    def _may_take(self, lease: k8s.V1Lease) -> bool:
        holder = lease.spec.holder_identity or ""
        wanted = (lease.metadata.annotations or {}).get(STANDBY, self._template)
        is_free = not holder and wanted == self._template
        if is_free or holder == self._identity:
            self._others_until_s = float("-inf")
            return True
        # A Lease freed for another template is treated as held by such an operator. The version of
        # the Lease also changes when a standby writes its template.
        renewed, now_s = (holder, lease.spec.renew_time), self._clock_s()
        if not holder:
            self._others_until_s = float("-inf")
        duration_s = max(self._duration_s, float(lease.spec.lease_duration_seconds or 0))
        before, seen_s = self._seen
        if before != renewed:
            self._seen = (renewed, now_s)
            # After a longer time without a read, the change may be that old.
            is_renewal = bool(holder) and before is not None
            if is_renewal and now_s - self._looked_s < duration_s:
                self._others_until_s = now_s + duration_s
            return False
        return now_s - seen_s >= duration_s

    async def _stand_by(self, lease: k8s.V1Lease) -> None:
        """Read the holder's report, and add this operator's template if it differs."""
        holder, notes = lease.spec.holder_identity, lease.metadata.annotations or {}
        template, is_in_step = _read_words(notes.get(HOLDER, ""), holder)
        is_alike = not self._template or template in (None, "", self._template)
        self._is_others_verdict_good = is_alike and is_in_step
        # The holder removes it with each renewal, so that a standby that has exited is forgotten.
        if holder and not is_alike and STANDBY not in notes:
            lease.metadata.annotations = {**notes, STANDBY: self._template}
            with contextlib.suppress(ConflictError):
                await self._replace(lease)

    def _own_words(self) -> str:
        words = {"identity": self._identity, "template": self._template}
        return json.dumps({**words, "isInStep": self._is_in_step})

    def _take_in_standby(self, lease: k8s.V1Lease) -> None:
        notes = dict(lease.metadata.annotations or {})
        standby = notes.pop(STANDBY, "")
        if standby and lease.spec.holder_identity == self._identity:
            self._standby = (standby, self._clock_s() + self._duration_s)
        lease.metadata.annotations = {**notes, HOLDER: self._own_words()}

    async def _free(self, lease: k8s.V1Lease | None, template: str) -> None:
        if lease is not None and lease.spec.holder_identity == self._identity:
            lease.metadata.annotations = {**(lease.metadata.annotations or {}), STANDBY: template}
            lease.spec = self._spec("")
            try:
                await self._replace(lease)
            except ConflictError:
                # A standby has written its template: read again.
                return
        self._gives_way_to = None
        self._standby = ("", float("-inf"))

    async def release(self) -> None:
        """Release the Lease so that the next operator starts immediately. Raises ClusterError."""
        if not self.is_held() and self._gives_way_to is None:
            return
        self._held_until_s = float("-inf")
        # A standby may write its template at the same time.
        for left in reversed(range(RELEASES_MAX)):
            lease = await reach(
                self._api.read_namespaced_lease(self._name, self._namespace, **self._timed)
            )
            if lease.spec.holder_identity != self._identity:
                return
            notes = lease.metadata.annotations or {}
            lease.metadata.annotations = {k: v for k, v in notes.items() if k != STANDBY}
            lease.spec = self._spec("")
            try:
                await self._replace(lease)
            except ConflictError:
                if not left:
                    raise
            else:
                return

    async def _replace(self, lease: k8s.V1Lease) -> None:
        await reach(
            self._api.replace_namespaced_lease(self._name, self._namespace, lease, **self._timed)
        )

    def _spec(self, holder: str) -> k8s.V1LeaseSpec:
        return k8s.V1LeaseSpec(
            holder_identity=holder,
            # Operators with a shorter duration use this value, which is in whole seconds.
            lease_duration_seconds=math.ceil(self._duration_s),
            renew_time=datetime.now(UTC),
        )


def _read_words(text: str, holder: str | None) -> tuple[str | None, bool]:
    """The template of this holder, and the result of its last pass.

    An older release writes neither and leaves the annotation of another holder: (None, True).
    """
    try:
        words = json.loads(text)
        if words["identity"] == holder:
            return str(words["template"]), words["isInStep"] is True
    except (KeyError, TypeError, ValueError):
        pass
    return None, True
