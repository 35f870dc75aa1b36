from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.controller import controller as module
from quorate.controller.controller import Controller
from quorate.controller.decision import Outcome, Proposal, VolatileState
from quorate.controller.periodic_task import PeriodicTask
from quorate.records.ids import Epoch
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    import pytest

    from quorate.controller.decision import Context
    from quorate.controller.image import View
    from tests.unit.controller.conftest import Cluster


@value_type
class Alarm:
    """It is due at one time, and then no more."""

    at_ms: int | None

    def apply(self, soft: VolatileState) -> None:
        soft.put(self)


def rings(context: Context) -> Outcome | None:
    at_ms = context.soft.of(Alarm).at_ms
    if at_ms is None or context.now_ms < at_ms:
        return None
    return Outcome(Proposal(30), None, (Alarm(None),))


def wake_at_ms(soft: VolatileState, _view: View) -> int | None:
    return soft.of(Alarm).at_ms


def renew(soft: VolatileState, _view: View, now_ms: int) -> None:
    soft.put(Alarm(now_ms + 50))


def timed(at_ms: int) -> PeriodicTask:
    return PeriodicTask(
        begin=lambda _image, _settings, now_ms: Alarm(now_ms + at_ms),
        wake_at_ms=wake_at_ms,
        expire=rings,
        renew=renew,
    )


def test_the_first_that_is_due_wakes_and_a_pause_puts_it_off(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    controller = cluster.controller
    sessions_end_ms = controller.wake_at_ms
    assert sessions_end_ms is not None
    controller.deactivate()
    monkeypatch.setattr(module, "_TIMED", (*module._TIMED, timed(100)))
    controller.activate(Epoch(2), cluster.image.position.end_offset, 0)
    assert controller.wake_at_ms == 100
    assert controller.expire(99) is None
    controller.reset_timers(99)
    assert controller.wake_at_ms == 149
    assert controller.expire(149) is None
    assert controller.wake_at_ms == sessions_end_ms + 99


def test_what_is_counted_of_its_decisions_is_kept_beyond_a_leadership(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    cluster.controller.deactivate()
    alarm = replace(timed(100), counts={"rings": lambda _: 3})
    monkeypatch.setattr(module, "_TIMED", (alarm,))
    controller = Controller(cluster.controller._settings, image=cluster.image)
    assert controller.counted == {"rings": 0}
    for epoch, rings_before in ((2, 0), (3, 3)):
        controller.activate(Epoch(epoch), cluster.image.position.end_offset, 0)
        assert controller.counted == {"rings": rings_before}
        controller.expire(100)
        controller.deactivate()
    assert controller.counted == {"rings": 6}


def test_without_a_word_on_pauses_they_make_no_difference(cluster: Cluster) -> None:
    silent = PeriodicTask(begin=lambda *_: Alarm(7), wake_at_ms=wake_at_ms, expire=rings)
    soft = VolatileState((Alarm(7),))
    silent.renew(soft, cluster.image, 99)
    assert soft.of(Alarm) == Alarm(7)
