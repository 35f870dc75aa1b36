"""Which waits are worth a warning, and when."""

from __future__ import annotations

import pytest

from quorate.autojoin.patience import AT_ONCE, NEVER, PATIENCE_MS, Patience
from quorate.autojoin.steps import Wait, Waiting


def wait(why: Waiting) -> Wait:
    return Wait(why, "for a reason")


@pytest.mark.parametrize("why", sorted(set(Waiting) - AT_ONCE - NEVER, key=str))
def test_a_wait_that_lasts_is_worth_one_warning(why: Waiting) -> None:
    patience = Patience()
    assert not patience.has_run_out(wait(why), 1_000)
    assert not patience.has_run_out(wait(why), 999 + PATIENCE_MS)
    assert patience.has_run_out(wait(why), 1_000 + PATIENCE_MS)
    assert not patience.has_run_out(wait(why), 1_001 + PATIENCE_MS)


@pytest.mark.parametrize("why", sorted(AT_ONCE, key=str))
def test_only_a_person_ends_some(why: Waiting) -> None:
    patience = Patience()
    assert patience.has_run_out(wait(why), 0)
    assert not patience.has_run_out(wait(why), PATIENCE_MS)


@pytest.mark.parametrize("why", sorted(NEVER, key=str))
def test_others_are_as_they_should_be(why: Waiting) -> None:
    patience = Patience()
    assert not patience.has_run_out(wait(why), 0)
    assert not patience.has_run_out(wait(why), 100 * PATIENCE_MS)


def test_another_wait_begins_anew() -> None:
    patience = Patience()
    patience.has_run_out(wait(Waiting.POD_SILENT), 0)
    patience.has_run_out(wait(Waiting.OBSERVER_LAGS), PATIENCE_MS)
    patience.has_run_out(None, PATIENCE_MS)
    assert not patience.has_run_out(wait(Waiting.POD_SILENT), PATIENCE_MS)
    assert patience.has_run_out(wait(Waiting.POD_SILENT), 2 * PATIENCE_MS)


def test_a_clock_that_goes_back_begins_it_anew() -> None:
    patience = Patience()
    patience.has_run_out(wait(Waiting.POD_SILENT), 10 * PATIENCE_MS)
    assert not patience.has_run_out(wait(Waiting.POD_SILENT), 0)
    assert patience.has_run_out(wait(Waiting.POD_SILENT), PATIENCE_MS)
