"""PeriodicTask: work that the active controller does without a request."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quorate.controller.decision import (
        Context,
        ControllerSettings,
        Outcome,
        Proposal,
        VolatileState,
    )
    from quorate.controller.image import MetadataImage, View


def _nothing(_soft: VolatileState, _view: View, _now_ms: int) -> None:
    """Do nothing after a pause."""


@keyword_value_type
class PeriodicTask:
    """A periodic task of an active controller; all times are of its monotonic clock.

    `begin` makes the volatile state of a controller that becomes active. `wake_at_ms` returns the
    time of the next decision by `expire`, 0 for immediately, None for never. `expire` decides, or
    returns None; it is called again immediately if the wake-up time does not change. `renew`
    restarts the timers after a pause of the process during which it received nothing. `counts` maps
    the name of a metric to a function that counts in a decision.
    """

    begin: Callable[[MetadataImage, ControllerSettings, int], object]
    wake_at_ms: Callable[[VolatileState, View], int | None]
    expire: Callable[[Context], Outcome | None]
    renew: Callable[[VolatileState, View, int], None] = _nothing
    counts: Mapping[str, Callable[[Proposal], int]] = field(default_factory=dict)
