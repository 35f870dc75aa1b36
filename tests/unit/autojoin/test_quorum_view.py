"""Voters, pods and what the leader knows of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.autojoin.quorum_view import View, majority
from tests.unit.autojoin.looks import LONG_AGO, dead, desired, key, look, pod, pods, quorum, state


def view_of(*voters: object, **how: object) -> View:
    asked = quorum(*voters, **how)  # type: ignore[arg-type]
    return View(desired(3), look(pods(3), asked), asked)


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_majorities(voters: int, needed: int) -> None:
    assert majority(voters) == needed


def test_a_pod_is_believed_before_a_listener() -> None:
    asked = quorum(state(7, host="q-1.q.default.svc"))
    seen = look((replace(pod(2), key=key(7)),), asked)
    assert View(desired(3), seen, asked).ordinal_of(asked.voters[0]) == 2


@pytest.mark.parametrize(
    ("host", "ordinal"),
    [
        ("q-12.q-headless.ns.svc.cluster.local", 12),
        ("q-12", 12),
        ("qq-1.q", None),
        ("10.1.2.3", None),
    ],
)
def test_a_listener_names_a_pod(host: str, ordinal: int | None) -> None:
    view = view_of(state(9, host=host))
    assert view.ordinal_of(view.quorum.voters[0]) == ordinal


def test_who_lives_and_who_has_caught_up() -> None:
    view = view_of(dead(0), 1, dead(2), state(3, caught_up=LONG_AGO))
    leader, follower, gone, late = view.quorum.voters
    assert view.is_live(leader)
    assert view.is_caught_up(leader)
    assert view.is_live(follower)
    assert not view.is_live(gone)
    assert view.is_live(late)
    assert not view.is_caught_up(late)
    assert view.count_live(view.without(key(1))) == 2


def test_an_observer_is_known_by_its_disk() -> None:
    view = view_of(0, observers=(state(1, 1),))
    assert view.observer(key(1, 1)) is not None
    assert view.observer(key(1, 0)) is None


def test_a_silent_pod_is_the_voter_that_names_it() -> None:
    asked = quorum(0, 1)
    view = View(desired(2), look(pods(2, pod(1, disk=None)), asked), asked)
    silent = view.pod_at(1)
    assert silent is not None
    assert view.voter_in(silent) == asked.voters[1]
    assert view.pod_at(7) is None
