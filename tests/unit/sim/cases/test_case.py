"""Cases as text: what is written down is read again, and anything else is refused by its line."""

from __future__ import annotations

import pytest

from quorate.sim.action_runner import TimedAction
from quorate.sim.actions import KINDS
from quorate.sim.actions.admin_requests import Add
from quorate.sim.actions.network import SplitNetwork
from quorate.sim.actions.processes import CrashAtStep, Kill
from quorate.sim.cases.case import (
    CASE_BYTES_MAX,
    Case,
    CaseError,
    case_from_actions,
    format_case,
    parse_case,
)
from quorate.sim.cases.field_codec import with_fields
from quorate.sim.engine.disk import Survival
from quorate.sim.engine.network import PartitionShape
from quorate.sim.faults.option_mix import draw_mix
from quorate.sim.sim_options import WorldOptions

TEXT = """\
# Oracle: operation 3 is lost
seed 17
bug minority-commits
world voters=2 duration_ms=3000 loss_rate=0.1
0.000 kill who=1 down_us=500000
1203.445 split shape=halves those=1,2 for_us=900000
1300.001 die who=0 step=1 down_us=7 is_dark=yes survival=sectors salt=12
"""


def test_a_case_is_read_as_it_was_written() -> None:
    case = parse_case(TEXT)
    assert (case.seed, case.bug, case.about) == (
        17,
        "minority-commits",
        "Oracle: operation 3 is lost",
    )
    assert case.options.network.loss_rate == 0.1
    assert case.deeds == (
        TimedAction(0, Kill(who=1, down_us=500_000)),
        TimedAction(
            1_203_445, SplitNetwork(shape=PartitionShape.HALVES, those=(1, 2), for_us=900_000)
        ),
        TimedAction(
            1_300_001,
            CrashAtStep(who=0, step=1, down_us=7, is_dark=True, survival=Survival.SECTORS, salt=12),
        ),
    )
    assert format_case(case) == TEXT


def test_deeds_that_somebody_wrote_in_any_order_come_in_the_order_of_their_moments() -> None:
    deeds = parse_case("seed 1\nworld\n20 kill who=1 down_us=1\n\n3.5 kill who=2 down_us=1\n").deeds
    assert deeds is not None
    assert [at_us for at_us, _ in deeds] == [3500, 20_000]


def test_what_was_drawn_is_written_down_without_what_it_was_drawn_from() -> None:
    drawn = Case(5, draw_mix(5))
    case = case_from_actions(drawn, [TimedAction(7, Kill(who=1, down_us=2))], "Oracle: lost")
    assert case.options.network == drawn.options.network
    assert not case.options.processes.crash_every_effects
    assert "every_ms" not in format_case(case)
    assert parse_case(format_case(case)) == case


def test_brokers_go_on_drawing_for_themselves() -> None:
    drawn = Case(5, with_fields(WorldOptions(), brokers=3, silence_every_ms=700, kill_every_ms=900))
    options = case_from_actions(drawn, [], "").options
    assert (options.fleet.silence_every_ms, options.processes.kill_every_ms) == (700, 0)


def test_a_quorum_grows_where_somebody_asks_for_more_voters() -> None:
    assert Case(1, with_fields(WorldOptions(), voters_every_ms=900)).grows
    assert not Case(1, with_fields(WorldOptions(), voters_every_ms=900), deeds=()).grows
    assert Case(1, WorldOptions(), deeds=(TimedAction(1, Add(whom=4)),)).grows


def test_each_deed_has_a_word_of_its_own() -> None:
    assert len(set(KINDS.values())) == len(KINDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a line with the seed and one with the world are needed"),
        ("seed 1", "a line with the seed and one with the world are needed"),
        ("seed x\nworld", "line 1: 'x': a whole number is needed"),
        ("world\nbug none", "line 2: there is no bug 'none', only vote-not-persisted, "),
        ("world voters=0", "line 1: a voter at least and 15 nodes at most are needed"),
        ("world voters=9 observers=9", "line 1: a voter at least and 15 nodes at most are needed"),
        ("world colour=2", "line 1: there is no field colour, only voters, observers, "),
        ("\nsoon kill who=1 down_us=1", "line 2: 'soon': milliseconds since the beginning"),
        ("1 fly who=1", "line 1: there is no deed 'fly', only kill, lose-power, "),
        ("1 kill who=1", "line 1: down_us is needed"),
        ("1", "line 1: '1': seed, bug, world or a moment and a deed are needed"),
        ("1 kill 'who", "line 1: No closing quotation"),
        ("#" * (CASE_BYTES_MAX + 1), "a case is small text"),
    ],
)
def test_what_is_no_case_is_refused_by_its_line(text: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        parse_case(text)
