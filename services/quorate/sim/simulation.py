"""Runs a seed: first faults, then healing; says what broke and how to see it again.

A seed fails when an invariant is violated, when the core or the storage code raises what it should
not, or when the quorum does not heal once faults have stopped.
"""

from __future__ import annotations

import logging
import random
import traceback
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from quorate.sim.chaos import Chaos
from quorate.sim.faults import Options, draw_options
from quorate.sim.healing import check_healed
from quorate.sim.planted import BUGS, plant
from quorate.sim.quorum import build
from quorate.sim.workload import Workload
from quorate.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

TAIL_LINES: Final = 40
ALL_LINES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What became of one seed; `failure` is None when nothing broke."""

    seed: int
    options: str
    failure: str | None
    tail: str
    digest: str
    steps: int
    acknowledged: int
    epochs: int
    bug: str | None = None

    @property
    def _command(self) -> str:
        if self.bug is None:
            return f"make sim SEED={self.seed}"
        return f"quorate simulate --seeds {self.seed} --bug {self.bug}"

    def report(self) -> str:
        """Everything that a reader of a failure needs: options, last lines, reason, command."""
        if self.failure is None:
            return (
                f"seed {self.seed}: clean; {self.steps} steps, "
                f"{self.acknowledged} writes acknowledged, {self.epochs} epochs"
            )
        return (
            f"seed {self.seed}: {self.options}\n{self.tail}\n"
            f"seed {self.seed} FAILED: {self.failure}\nrepeat: {self._command}"
        )


def run_seed(
    seed: int,
    *,
    digest: bool = False,
    bug: str | None = None,
    world_of: str | None = None,
    lines: int = TAIL_LINES,
) -> SeedResult:
    """One world, from its fault mix to its healed end.

    `bug` names a planted bug to run with, in its world; `world_of` one whose world to run without
    the bug.
    """
    # The mix has a generator of its own, so that a new option leaves the events of others alone.
    options = draw_options(random.Random(seed * 2 + 1))
    if (name := bug or world_of) is not None:
        options = replace(options, **BUGS[name].world)
    world = World(seed, options, keep=lines, digest=digest)
    world.remark(str(options))
    failure = None
    planted: AbstractContextManager[None] = plant(bug) if bug else nullcontext()
    try:
        with planted, _silence():
            _run(world, options)
    except Exception as error:  # whatever is raised is the seed's result
        failure = _describe(error)
    world.end()
    return SeedResult(
        seed,
        str(options),
        failure,
        world.transcript.tail(),
        world.transcript.hexdigest(),
        world.steps,
        len(world.oracle.acknowledged),
        max((node.led_epoch or 0 for node in world.nodes.values()), default=0),
        bug,
    )


@contextmanager
def _silence() -> Iterator[None]:
    """What production's code logs is in the transcript, as notes of the core or as faults."""
    log = logging.getLogger("quorate")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


def _run(world: World, options: Options) -> None:
    build(world)
    workload = Workload(world)
    chaos = Chaos(world)
    workload.begin()
    chaos.begin()
    world.run(options.duration_ms)
    workload.is_stopped = True
    chaos.end()
    check_healed(world, workload)


def _describe(error: Exception) -> str:
    """The violation in its own words; anything else with the place where it was raised."""
    if type(error) is AssertionError or not isinstance(error, AssertionError):
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        places = " < ".join(
            f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in frames[::-1]
        )
        return f"{type(error).__name__}: {error} ({places})"
    return f"{type(error).__name__}: {error}"
