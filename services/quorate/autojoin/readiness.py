"""The readiness of an operator's pod: whether the quorum is in step with its StatefulSet.

The active operator is ready while all is in step. A standby is ready while the active one reports
so in the Lease. Kubernetes shows this condition as the Deployment's availability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.autojoin.lease import Lease


class Readiness:
    """The result of the last pass, for as long as it is fresh."""

    def __init__(self, lease: Lease, *, fresh_s: float, clock_s: Callable[[], float]) -> None:
        """A result older than `fresh_s` is ignored; `clock_s` is monotonic."""
        self._lease = lease
        self._fresh_s = fresh_s
        self._clock_s = clock_s
        self._in_step_until_s = float("-inf")

    def judge(self, *, is_in_step: bool) -> None:
        """Record the result of a pass; a failed pass counts as not in step."""
        now_s = self._clock_s()
        self._in_step_until_s = now_s + self._fresh_s if is_in_step else float("-inf")

    def is_ready(self) -> bool:
        """True while all is in step, according to its own pass or to the holder's."""
        if self._lease.is_held():
            return self._clock_s() < self._in_step_until_s
        return self._lease.is_in_step_by_another()
