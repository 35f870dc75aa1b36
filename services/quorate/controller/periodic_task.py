"""What a subject does without being asked: when it wants to, and what it decides then."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from quorate.records.value_types import named_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quorate.controller.decision import (
        Context,
        ControllerSettings,
        Outcome,
        Proposal,
        SoftState,
    )
    from quorate.controller.image import MetadataImage, View


def _nothing(_soft: SoftState, _view: View, _now_ms: int) -> None:
    """A pause makes no difference."""


@named_value
class Timed:
    """One such concern of an active controller, all of whose times are of its monotonic clock.

    `begin` makes the soft state with which a controller becomes active. `wake_at_ms` says when
    `expire` has something to decide next, 0 for at once, None for never. `expire` decides that, or
    answers None; where it does not change what it was woken for it is asked again at once. After a
    pause of the process, in which it heard nobody, `renew` has times begin anew. `counts` has what
    is counted of its decisions, by the name of the metric.
    """

    begin: Callable[[MetadataImage, ControllerSettings, int], object]
    wake_at_ms: Callable[[SoftState, View], int | None]
    expire: Callable[[Context], Outcome | None]
    renew: Callable[[SoftState, View, int], None] = _nothing
    counts: Mapping[str, Callable[[Proposal], int]] = field(default_factory=dict)
