"""Runs a seed: first faults, then healing; says what broke and how to see it again.

A seed fails when an invariant is violated, when the core or the storage code raises what it should
not, or when the quorum does not heal once faults have stopped.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from quorate.sim.chaos import Chaos
from quorate.sim.failures import Failure
from quorate.sim.fleet import Fleet
from quorate.sim.healing import check_healed
from quorate.sim.keeping import Keeper
from quorate.sim.mix import draw_mix
from quorate.sim.planted import BUGS, plant
from quorate.sim.quorum import build
from quorate.sim.stage import Stage
from quorate.sim.telling import Named, Telling
from quorate.sim.transcript import INDENT
from quorate.sim.workload import Workload
from quorate.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.sim.faults import Options

LINES: Final = 40
ALL_LINES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What became of one seed; `failure` is None when nothing broke.

    `told` is the whole transcript, where that was asked for, or of a failure the steps that matter.
    """

    seed: int
    options: str
    failure: Failure | None
    told: str
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
        """Everything that a reader of a failure needs: options, steps, reason, command."""
        if self.failure is None:
            return (
                f"seed {self.seed}: clean; {self.steps} steps, "
                f"{self.acknowledged} writes acknowledged, {self.epochs} epochs"
            )
        return (
            f"seed {self.seed}: {self.options}\n{self.told}\n"
            f"seed {self.seed} FAILED: {self.failure}\nrepeat: {self._command}"
        )


def run_seed(
    seed: int,
    *,
    digest: bool = False,
    bug: str | None = None,
    world_of: str | None = None,
    in_its_world: bool = True,
    lines: int = LINES,
) -> SeedResult:
    """One world, from its fault mix to its healed end; a second time for the steps of a failure.

    `bug` names a planted bug to run with, in its world unless that is to be drawn as any other;
    `world_of` one whose world to run without the bug. No more than `lines` steps of a failure are
    told, without a second run where it is 0.
    """
    options = draw_mix(seed)
    if (name := bug or world_of) is not None and in_its_world:
        options = replace(options, **BUGS[name].world)
    keep = lines if lines == ALL_LINES else 0
    world = World(seed, options, keep=keep, digest=digest)
    failure = run_world(world, bug)
    told = world.transcript.tail()
    if failure is not None and lines and not keep:
        told = _tell(seed, options, bug, failure, lines)
    return SeedResult(
        seed,
        str(options),
        failure,
        told,
        world.transcript.hexdigest(),
        world.steps,
        len(world.oracle.acknowledged),
        max((node.led_epoch or 0 for node in world.nodes.values()), default=0),
        bug,
    )


def run_world(world: World, bug: str | None = None) -> Failure | None:
    """From the first start to the healed end, with a planted bug or without; what broke."""
    failure = None
    planted: AbstractContextManager[None] = plant(bug) if bug else nullcontext()
    world.remark(str(world.options))
    try:
        with planted, _silence():
            _run(world)
    except Exception as error:  # whatever is raised is the seed's result
        failure = Failure.of(error)
    world.end()
    return failure


def _tell(seed: int, options: Options, bug: str | None, failure: Failure, lines: int) -> str:
    """The same world again, now that it is known what matters in it."""
    world = World(seed, options, keep=0)
    world.transcript.reader = telling = Telling(Named.of(str(failure)), lines)
    again = run_world(world, bug)
    told = "\n".join(
        f"{INDENT}... {line} more" if isinstance(line, int) else str(line)
        for line in telling.lines()
    )
    if again != failure:
        return f"{told}\nA second run of it ended with {again}: the same seed must be the same run."
    return told


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


def _run(world: World) -> None:
    build(world)
    stage, fleet = Stage(world, grows=world.options.voters_every_ms > 0), Fleet(world)
    keeper = Keeper(stage)
    Workload(stage).begin()
    fleet.begin()
    Chaos(stage).begin()
    keeper.begin()
    world.look()
    world.run(world.options.duration_ms)
    fleet.end()
    stage.end()
    check_healed(world, stage.clients, fleet)
