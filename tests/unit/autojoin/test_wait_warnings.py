"""Waits that become a Warning, and those that do not."""

from __future__ import annotations

import pytest

from quorate.autojoin.actions import HandOver, StepCause, Wait, WaitReason
from quorate.autojoin.wait_warnings import AT_ONCE, NEVER, PATIENCE_MS, UNREST_MS, Patience
from tests.unit.autojoin.looks import key


def wait(why: WaitReason) -> Wait:
    return Wait(why, "for a reason")


@pytest.mark.parametrize("why", sorted(set(WaitReason) - AT_ONCE - NEVER, key=str))
def test_a_wait_that_lasts_is_worth_one_warning(why: WaitReason) -> None:
    patience = Patience()
    assert not patience.has_run_out(wait(why), 1_000)
    assert not patience.has_run_out(wait(why), 999 + PATIENCE_MS)
    for _until_it_is_given in range(2):
        assert patience.has_run_out(wait(why), 1_000 + PATIENCE_MS)
    patience.has_warned(why)
    assert not patience.has_run_out(wait(why), 1_001 + UNREST_MS)


@pytest.mark.parametrize("why", sorted(AT_ONCE, key=str))
def test_only_a_person_ends_some(why: WaitReason) -> None:
    patience = Patience()
    assert patience.has_run_out(wait(why), 0)
    patience.has_warned(why)
    assert not patience.has_run_out(wait(why), PATIENCE_MS)


@pytest.mark.parametrize("why", sorted(NEVER, key=str))
def test_others_are_as_they_should_be(why: WaitReason) -> None:
    patience = Patience()
    assert not patience.has_run_out(wait(why), 0)
    assert not patience.has_run_out(wait(why), 100 * PATIENCE_MS)


def test_another_wait_starts_over() -> None:
    patience = Patience()
    patience.has_run_out(wait(WaitReason.POD_SILENT), 0)
    patience.has_run_out(wait(WaitReason.OBSERVER_LAGS), PATIENCE_MS)
    patience.has_run_out(None, PATIENCE_MS)
    assert not patience.has_run_out(wait(WaitReason.POD_SILENT), PATIENCE_MS)
    assert patience.has_run_out(wait(WaitReason.POD_SILENT), 2 * PATIENCE_MS)


def test_a_clock_that_goes_back_starts_it_over() -> None:
    patience = Patience()
    patience.has_run_out(wait(WaitReason.POD_SILENT), 10 * PATIENCE_MS)
    assert not patience.has_run_out(wait(WaitReason.POD_SILENT), 0)
    assert patience.has_run_out(wait(WaitReason.POD_SILENT), PATIENCE_MS)


ACTION = HandOver(key(1), StepCause.LEADER_BEFORE_ROLL, "for a reason")


@pytest.mark.parametrize("other", [wait(WaitReason.OBSERVER_LAGS), ACTION])
def test_waits_that_take_turns_are_worth_one_warning(other: Wait | HandOver) -> None:
    patience = Patience()
    given = []
    for turn in range(4 * UNREST_MS // PATIENCE_MS):
        now_ms = turn * PATIENCE_MS // 2
        step = other if turn % 2 else wait(WaitReason.POD_NOT_READY)
        if patience.has_run_out(step, now_ms):
            given.append(now_ms)
            patience.has_warned(WaitReason.POD_NOT_READY)
    assert given == [UNREST_MS]


def test_a_rest_ends_the_time_of_all() -> None:
    patience = Patience()
    for now_ms in (0, UNREST_MS):
        assert not patience.has_run_out(wait(WaitReason.POD_SILENT), now_ms)
        assert not patience.has_run_out(wait(WaitReason.IN_STEP), now_ms + 1)


def test_one_that_only_a_person_ends_is_told_once_though_it_comes_and_goes() -> None:
    patience = Patience()
    assert patience.has_run_out(wait(WaitReason.DISK_RETURNED), 0)
    patience.has_warned(WaitReason.DISK_RETURNED)
    patience.has_run_out(wait(WaitReason.POD_SILENT), 1)
    assert not patience.has_run_out(wait(WaitReason.DISK_RETURNED), 2)
