"""Connected majorities, and the times that they were without commits."""

from __future__ import annotations

from tests.chaos.liveness import CHECK_QUORUM_NS, Gap, Health, gaps, has_majority


def test_a_majority_has_to_be_up_and_connected_each_with_each() -> None:
    assert has_majority(3, {1, 2}, ())
    assert not has_majority(3, {1}, ())
    assert not has_majority(3, {1, 2}, {(2, 1)})
    assert has_majority(3, {1, 2, 3}, {(2, 1)})
    assert not has_majority(3, {1, 2, 3}, {(2, 1), (1, 3), (3, 2)})
    assert has_majority(5, {1, 2, 3}, {(4, 1), (5, 2)})
    assert not has_majority(5, {1, 2, 3, 4}, {(1, 2), (3, 4)})


def test_a_gap_runs_between_commits_or_from_when_a_majority_came_to_be() -> None:
    found = gaps([(0, 10), (20, 30)], [1, 3, 12, 28], ())
    assert found[:2] == [Gap(20, 28), Gap(3, 10)]


def test_time_that_was_stolen_from_this_process_does_not_count() -> None:
    assert gaps([(0, 10)], [], [(2, 4), (9, 14)]) == [Gap(0, 10, stolen=3)]


def test_health_changes_only_with_the_majority() -> None:
    health = Health(3, {1, 2, 3})
    health.note(0)
    health.up.discard(1)
    health.note(5)
    health.up.discard(2)
    health.note(7)
    health.up.add(1)
    health.note(9)
    assert health.intervals(20) == [(0, 7), (9, 20)]


def test_a_second_loss_before_there_is_a_leader_begins_the_wait_again() -> None:
    health = Health(5, {1, 2, 3, 4, 5}, leader=1)
    health.note(0)
    health.up.discard(1)
    health.note(10)
    health.up.discard(2)
    health.note(20)
    assert health.intervals(40) == [(0, 20), (20, 40)]


def test_the_loss_of_a_leader_or_beside_a_leader_begins_no_wait_again() -> None:
    health = Health(5, {1, 2, 3, 4, 5}, leader=1)
    health.note(0)
    health.up.discard(2)
    health.note(10)
    health.up.discard(1)
    health.note(20)
    # A node that comes back, and one that leads, do not count as a loss.
    health.up.add(2)
    health.note(25)
    health.leader = 3
    health.note(30)
    health.up.discard(4)
    health.note(35)
    assert health.intervals(40) == [(0, 40)]


def test_a_leader_whose_disk_hangs_finds_that_out_where_too_few_others_reach_it() -> None:
    health = Health(3, {2, 3})
    health.hanging = 1, 30
    health.note(0)
    # Two others of three commit without it; one does not.
    health.blocked.add((2, 1))
    health.note(10)
    health.blocked.clear()
    health.note(20)
    health.blocked.add((1, 3))
    health.note(25)
    # From its deadline on another node may be expected to lead.
    health.note(30)
    assert health.intervals(40) == [(0, 10), (20, 25), (30, 40)]


def bridged(leader: int) -> Health:
    """1 and 5 are in contact with 4, which alone is in contact with 2; 3 is down."""
    health = Health(5, {1, 2, 4, 5}, leader=leader)
    health.blocked = {(a, b) for a, b in [(2, 1), (1, 2), (2, 5), (5, 2)]}
    health.note(10)
    return health


def test_a_leader_that_cannot_commit_but_is_heard_has_the_check_quorum_interval() -> None:
    over = 10 + CHECK_QUORUM_NS
    assert bridged(leader=2).intervals(over + 5) == [(over, over + 5)]
    assert bridged(leader=2).intervals(over - 1) == []
    # The next leader ends it, as does a restored link.
    health = bridged(leader=2)
    health.leader = 4
    health.note(20)
    assert health.intervals(over) == [(20, over)]


def test_a_leader_that_nobody_hears_or_that_commits_has_no_such_time() -> None:
    assert bridged(leader=4).intervals(30) == [(10, 30)]
    assert bridged(leader=3).intervals(30) == [(10, 30)]
    health = bridged(leader=2)
    health.blocked |= {(2, 4), (4, 2)}
    health.note(20)
    assert health.intervals(30) == [(20, 30)]


def test_what_is_mended_after_the_check_quorum_interval_was_not_there_before() -> None:
    over = 10 + CHECK_QUORUM_NS
    health = Health(3, {1, 2, 3}, leader=1)
    health.note(0)
    # Each name leads to the next member: none finds another one.
    health.blocked = {(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b}
    health.note(10)
    health.blocked = set()
    health.note(over + 5)
    assert health.intervals(over + 9) == [(0, 10), (over + 5, over + 9)]
