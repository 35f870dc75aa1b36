"""The readiness of an operator's pod, which is the condition that Kubernetes keeps true by itself.

The one that acts is ready while all is in step, a standby while the one that acts says so in the
Lease. So the Deployment is available exactly while the StatefulSet is as it is to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.autojoin.lease import Lease


class Readiness:
    """The verdict of the last pass, for as long as it may be believed."""

    def __init__(self, lease: Lease, *, fresh_s: float, clock_s: Callable[[], float]) -> None:
        """A verdict that is older than `fresh_s` counts no more; `clock_s` is monotonic."""
        self._lease = lease
        self._fresh_s = fresh_s
        self._clock_s = clock_s
        self._in_step_until_s = float("-inf")

    def judge(self, *, is_in_step: bool) -> None:
        """Take in the end of a pass; one that could not be made is none that is in step."""
        now_s = self._clock_s()
        self._in_step_until_s = now_s + self._fresh_s if is_in_step else float("-inf")

    def is_ready(self) -> bool:
        """True while all is in step, as its own pass or that of the holder has found it."""
        if self._lease.is_held():
            return self._clock_s() < self._in_step_until_s
        return self._lease.is_in_step_by_another()
