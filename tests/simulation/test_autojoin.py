"""Properties of every world; `World.perform` asserts what may never be done.

Seeds come from the clock. A failure prints its seed and history; SEED repeats one.
"""

from __future__ import annotations

import random
import sys
import time

import pytest

from quorate.autojoin.actions import HandOver, StepCause, Wait, WaitReason
from tests.simulation.autojoin_world import CALM_TICKS, World, drawn
from tests.unit.autojoin.looks import key

SEED: int | None = None
# So many come to rest as they were wanted; the others, two of three, lose a majority permanently.
GOOD = 10
WORLDS_MAX = 30 * GOOD
STORM_TICKS = 60


def seeds() -> range:
    start = time.time_ns() // 1000 if SEED is None else SEED
    return range(start, start + (WORLDS_MAX if SEED is None else 1))


def storm(world: World) -> None:
    """Faults and wishes, while the operator dies at any line."""
    draw = world.random
    world.is_stormy = True
    for _ in range(STORM_TICKS):
        if draw.random() < 0.4:
            world.hurt()
        world.tick()
        for _ in range(draw.randint(1, 3)):
            fate = draw.random()
            world.operate(forgets=fate < 0.1, loses=0.1 <= fate < 0.2)


def calm(world: World) -> Wait:
    """Faults end; what the operator says when nothing has changed for long."""
    world.heal()
    said: list[object] = []
    hand_overs = 0
    for _ in range(CALM_TICKS):
        world.tick()
        step = world.operate().step
        hand_overs += isinstance(step, HandOver) and step.cause is StepCause.LEADER_BEFORE_ROLL
        said.append(step)
    assert hand_overs <= 1, "a roll hands over once"
    last = said[-1]
    assert isinstance(last, Wait), f"it never comes to rest: {said[-5:]}"
    assert said[-20:] == [last] * 20, f"it never comes to rest: {said[-20:]}"
    return last


def at_rest(world: World, last: Wait) -> bool:
    """True if the quorum is as it was wanted; otherwise it has lost its majority permanently."""
    if world.leader is None:
        assert last.why is WaitReason.NO_LEADER
        return False
    wanted = {key(each, world.machines[each].disk) for each in range(world.replicas)}
    assert last.why is WaitReason.IN_STEP, last
    assert world.voters == wanted
    assert all(each.revision == world.revision for each in world.machines.values())
    return True


@pytest.mark.parametrize("has_storm", [False, True], ids=["any state", "after a storm"])
def test_a_quorum_comes_to_rest_as_it_is_wanted(*, has_storm: bool) -> None:
    good = 0
    for seed in seeds():
        world = drawn(random.Random(seed))
        try:
            if has_storm:
                storm(world)
            good += at_rest(world, calm(world))
        except (AssertionError, KeyError):
            sys.stderr.write("\n".join((f"SEED = {seed}", *world.history, str(world), "")))
            raise
        if good == GOOD:
            break
    assert SEED is not None or good == GOOD, f"{good} of {WORLDS_MAX} kept their majority"
