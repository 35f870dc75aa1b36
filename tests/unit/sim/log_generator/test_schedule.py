from __future__ import annotations

from quorate.sim.log_generator.schedule import Schedule


def test_what_is_due_first_comes_first_and_of_one_time_what_was_noted_first() -> None:
    seen: list[str] = []
    agenda = Schedule(lambda: 100)
    agenda.at(30, lambda: seen.append("c"))
    agenda.at(10, lambda: seen.append("a"))
    agenda.at(10, lambda: seen.append("b"))
    agenda.after(5, lambda: seen.append("d"))
    times = []
    while (due := agenda.next_before(1000)) is not None:
        times.append(due[0])
        due[1]()
    assert seen == ["a", "b", "c", "d"]
    assert times == [10, 10, 30, 105]


def test_what_is_due_at_the_end_or_later_stays() -> None:
    agenda = Schedule(lambda: 0)
    agenda.at(10, lambda: None)
    assert agenda.next_before(10) is None
    assert agenda.next_before(11) is not None
