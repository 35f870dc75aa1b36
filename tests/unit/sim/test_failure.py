"""A failure has the name of what was violated."""

from __future__ import annotations

from quorate.sim.checkers.liveness import LivenessViolation
from quorate.sim.checkers.oracle import Oracle, Violation
from quorate.sim.failure import Failure


class Monotonic:
    """It has the name of an invariant."""

    def published(self) -> None:
        self.ask()

    @staticmethod
    def ask() -> None:
        Oracle().was_acknowledged(3)


def test_a_violation_has_the_name_of_the_invariant_that_saw_it() -> None:
    try:
        Monotonic().published()
    except Violation as violation:
        failure = Failure.of(violation)
    assert failure.name == "Monotonic"
    assert str(failure).startswith("Monotonic: operation 3 was acknowledged, but")


def test_what_clients_saw_has_the_name_of_the_oracle() -> None:
    try:
        Oracle().was_acknowledged(3)
    except Violation as violation:
        failure = Failure.of(violation)
    assert failure.name == "Oracle"


def test_a_quorum_that_does_not_heal_is_named_so() -> None:
    assert Failure.of(LivenessViolation("nobody leads")) == Failure(
        "LivenessViolation", "nobody leads"
    )


def test_any_other_error_is_told_with_its_place() -> None:
    try:
        int("no number")
    except ValueError as error:
        failure = Failure.of(error)
    assert failure.name == "ValueError"
    assert "test_failure.py:" in failure.words


def test_failures_of_one_invariant_are_alike_whatever_they_name() -> None:
    assert Failure("Monotonic", "node 3").kind == Failure("Monotonic", "epoch 2 of node 1").kind


def test_other_failures_are_alike_that_say_the_same_of_others() -> None:
    words = "after 36000 ms without faults: there is no leader; node 1 running, voters [1, 2, 3]"
    failure = Failure("LivenessViolation", words)
    shorter = "after 12 ms without faults: there is no leader; node 2 stopped"
    assert failure.kind == Failure("LivenessViolation", shorter).kind
    other = "after 36000 ms without faults: node 7 has not joined; node 1 running"
    assert failure.kind != Failure("LivenessViolation", other).kind
