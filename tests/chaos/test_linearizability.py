"""The checker itself: what it must refuse and what not, and small histories by brute force."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from tests.chaos.history import ABSENT, Kind, Operation, Outcome
from tests.chaos.linearizability import apply, check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.chaos.linearizability import State


def op(
    kind: Kind,
    begin: int,
    end: int | None,
    value: int | None = None,
    *,
    outcome: Outcome = Outcome.OK,
) -> Operation:
    return Operation(
        client=begin, key="k", kind=kind, begin=begin, end=end, outcome=outcome, value=value
    )


CREATED = op(Kind.CREATE, 0, 1, 10)


def test_operations_in_turn_are_accepted() -> None:
    history = [CREATED, op(Kind.SET, 2, 3, 11), op(Kind.READ, 4, 5, 11), op(Kind.DELETE, 6, 7)]
    assert check([*history, op(Kind.READ, 8, 9, ABSENT)]).is_linearizable


def test_a_stale_read_is_refused() -> None:
    stale = op(Kind.READ, 4, 5, 10)
    verdict = check([CREATED, op(Kind.SET, 2, 3, 11), stale, op(Kind.READ, 6, 7, 11)])
    assert (verdict.is_linearizable, verdict.stuck) == (False, stale)


def test_a_lost_write_is_refused() -> None:
    lost = op(Kind.SET, 2, 3, 11)
    after = op(Kind.READ, 4, 5, 10)
    verdict = check([CREATED, lost, after, op(Kind.READ, 6, 7, 10)])
    assert (verdict.is_linearizable, verdict.stuck) == (False, after)


def test_a_lost_create_and_a_lost_delete_are_refused() -> None:
    assert not check([CREATED, op(Kind.READ, 2, 3, ABSENT)]).is_linearizable
    assert not check([CREATED, op(Kind.DELETE, 2, 3), op(Kind.READ, 4, 5, 10)]).is_linearizable


def test_a_reordered_pair_is_refused() -> None:
    writes = [op(Kind.SET, 2, 3, 11), op(Kind.SET, 4, 5, 12)]
    assert not check([CREATED, *writes, op(Kind.READ, 6, 7, 11)]).is_linearizable
    overlapping = [op(Kind.SET, 2, 5, 11), op(Kind.SET, 3, 6, 12)]
    assert check([CREATED, *overlapping, op(Kind.READ, 7, 8, 11)]).is_linearizable
    turned = [op(Kind.READ, 7, 8, 11), op(Kind.READ, 9, 10, 12)]
    assert not check([CREATED, *overlapping, *turned, op(Kind.READ, 11, 12, 11)]).is_linearizable


def test_two_readers_see_a_pair_in_one_order() -> None:
    writes = [op(Kind.SET, 2, 20, 11), op(Kind.SET, 3, 21, 12)]
    one = [op(Kind.READ, 4, 5, 11), op(Kind.READ, 6, 7, 12)]
    assert check([CREATED, *writes, *one]).is_linearizable
    assert not check([CREATED, *writes, *one, op(Kind.READ, 8, 9, 11)]).is_linearizable


def test_an_unknown_write_takes_effect_late_or_never_but_not_twice() -> None:
    unknown = op(Kind.SET, 2, None, 11, outcome=Outcome.UNKNOWN)
    old, new = op(Kind.READ, 3, 4, 10), op(Kind.READ, 5, 6, 11)
    assert check([CREATED, unknown, old]).is_linearizable
    assert check([CREATED, unknown, old, new]).is_linearizable
    assert not check([CREATED, unknown, old, new, op(Kind.READ, 7, 8, 10)]).is_linearizable


def test_an_unknown_delete_explains_a_refusal() -> None:
    unknown = op(Kind.DELETE, 2, None, outcome=Outcome.UNKNOWN)
    refused = op(Kind.SET, 3, 4, 11, outcome=Outcome.REFUSED)
    assert check([CREATED, unknown, refused]).is_linearizable
    assert not check([CREATED, refused]).is_linearizable
    exists = op(Kind.CREATE, 5, 6, 12, outcome=Outcome.REFUSED)
    assert not check([CREATED, unknown, refused, exists]).is_linearizable


def test_a_long_history_with_many_unknowns_is_decided() -> None:
    history = [CREATED]
    for i in range(2, 4000, 4):
        history.append(op(Kind.SET, i, i + 1, i))
        if i % 20 == 2:
            history.append(op(Kind.SET, i, None, 100_000 + i, outcome=Outcome.UNKNOWN))
            history.append(op(Kind.CREATE, i, None, 200_000 + i, outcome=Outcome.UNKNOWN))
        history.append(op(Kind.READ, i + 2, i + 3, i))
    assert check(history).is_linearizable
    assert not check([*history, op(Kind.READ, 9000, 9001, 1998)]).is_linearizable


# --- against brute force --------------------------------------------------------------------------


def _orders(operations: Sequence[Operation]) -> Iterator[tuple[Operation, ...]]:
    """Every order of all that ended and some of what did not that time allows."""
    ended = [o for o in operations if o.end is not None]
    unknown = [o for o in operations if o.end is None]
    for chosen in range(1 << len(unknown)):
        present = ended + [o for bit, o in enumerate(unknown) if chosen >> bit & 1]
        for order in permutations(present):
            pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
            if all(b.end is None or b.end >= a.begin for a, b in pairs):
                yield order


def _explains(order: Sequence[Operation]) -> bool:
    state: State = ABSENT
    for operation in order:
        fits, state = apply(state, operation)
        if not fits:
            return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to six operations; each value is written once, reads see any of them or nothing."""
    count = draw(st.integers(1, 6))
    operations = []
    for number in range(count):
        kind = draw(st.sampled_from(Kind))
        begin = draw(st.integers(0, 12))
        outcomes = [Outcome.OK] if kind is Kind.READ else list(Outcome)
        outcome = draw(st.sampled_from(outcomes))
        end = None if outcome is Outcome.UNKNOWN else begin + draw(st.integers(0, 6))
        value: int | None = number
        if kind is Kind.READ:
            value = draw(st.sampled_from([None, *range(count)]))
        elif kind is Kind.DELETE:
            value = None
        operations.append(op(kind, begin, end, value, outcome=outcome))
    return sorted(operations, key=lambda o: o.begin)


@given(histories())
@example([op(Kind.CREATE, 0, None, 1, outcome=Outcome.UNKNOWN), op(Kind.READ, 0, 0, 1)])
def test_the_search_agrees_with_brute_force(history: list[Operation]) -> None:
    expected = any(_explains(order) for order in _orders(history))
    assert check(history).is_linearizable == expected
