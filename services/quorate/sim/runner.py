"""Runs one seed or case: fault phase, recovery phase, result with the command that repeats it.

A seed fails if an invariant is violated, if the core or the storage code raises an unexpected
error, or if the quorum does not recover once faults have stopped.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.process.silenced_logger import silenced
from quorate.records.value_types import value_type
from quorate.sim.action_runner import ActionRunner
from quorate.sim.cases.case import Case
from quorate.sim.cases.field_codec import with_fields
from quorate.sim.checkers.liveness import check_liveness
from quorate.sim.cluster import Cluster
from quorate.sim.engine.process_supervisor import ProcessSupervisor
from quorate.sim.engine.quorum_setup import build
from quorate.sim.failure import Failure
from quorate.sim.faults.option_mix import draw_mix
from quorate.sim.faults.scheduler import FaultScheduler
from quorate.sim.mutants.registry import MUTANTS, apply_mutant
from quorate.sim.transcript import INDENT
from quorate.sim.transcript_filter import MentionedIds, TranscriptFilter
from quorate.sim.workload.broker_fleet import BrokerFleet
from quorate.sim.workload.client_load import Workload

if TYPE_CHECKING:
    from quorate.sim.action_runner import TimedAction

LINES: Final = 40
ALL_LINES: Final = 1 << 30


@value_type
class SeedResult:
    """The result of one seed or case; `failure` is None if it passed.

    `told` is the complete transcript if requested, or the relevant steps of a failure.
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
    file: str | None = None

    @property
    def command(self) -> str:
        """The command that runs it again."""
        if self.file is not None:
            return f"quorate simulate --case {self.file}"
        if self.bug is None:
            return f"make sim SEED={self.seed}"
        return f"quorate simulate --seeds {self.seed} --bug {self.bug}"

    def report(self) -> str:
        """Everything needed to analyse a failure: options, steps, reason, command."""
        name = f"seed {self.seed}" if self.file is None else f"case {self.file}"
        if self.failure is None:
            return (
                f"{name}: clean; {self.steps} steps, "
                f"{self.acknowledged} writes acknowledged, {self.epochs} epochs"
            )
        return (
            f"{name}: {self.options}\n{self.told}\n"
            f"{name} FAILED: {self.failure}\nrepeat: {self.command}"
        )


class Ran(NamedTuple):
    """The outcome of a run: the failure, the end time, and the actions executed."""

    failure: Failure | None
    at_us: int
    done: list[TimedAction]


def run_seed(
    seed: int,
    *,
    digest: bool = False,
    bug: str | None = None,
    world_of: str | None = None,
    in_its_world: bool = True,
    lines: int = LINES,
) -> SeedResult:
    """Run a seed from its fault mix to recovery; run a failure twice, to find the relevant steps.

    `bug` names a mutant to apply. Its cluster options are used as well, unless `in_its_world` is
    False. `world_of` names a mutant whose cluster options are used without the mutant. At most
    `lines` steps of a failure are kept; with 0 a failure is not run again.
    """
    world_of = (bug or world_of) if in_its_world else None
    return run_case(drawn_case(seed, bug=bug, world_of=world_of), digest=digest, lines=lines)


def drawn_case(seed: int, *, bug: str | None = None, world_of: str | None = None) -> Case:
    """The case of a seed, with random options or with those that a mutant sets."""
    options = draw_mix(seed)
    if world_of is not None:
        options = with_fields(options, **MUTANTS[world_of].world)
    return Case(seed, options, bug)


def run_case(
    case: Case, *, digest: bool = False, lines: int = LINES, file: str | None = None
) -> SeedResult:
    """Do the same for a case, which may have been read from `file`."""
    keep = lines if lines == ALL_LINES else 0
    world = Cluster(case.seed, case.options, keep=keep, digest=digest)
    failure = play(case, world).failure
    told = world.transcript.tail()
    if failure is not None and lines and not keep:
        told = _tell(case, failure, lines)
    return SeedResult(
        case.seed,
        str(case.options),
        failure,
        told,
        world.transcript.hexdigest(),
        world.event_queue.steps,
        len(world.oracle.acknowledged),
        max((node.led_epoch or 0 for node in world.nodes.values()), default=0),
        case.bug,
        file,
    )


def play(case: Case, cluster: Cluster) -> Ran:
    """Run the case in its new cluster, from the first start to recovery."""
    failure = None
    planted: AbstractContextManager[None] = apply_mutant(case.bug) if case.bug else nullcontext()
    cluster.log(str(cluster.options))
    stage = ActionRunner(cluster, grows=case.grows)
    try:
        # What production code logs is in the transcript already, as trace events or faults.
        with planted, silenced("quorate"):
            _play(case, stage)
    except Exception as error:  # whatever is raised is the seed's result
        failure = Failure.of(error)
    cluster.end()
    return Ran(failure, cluster.now_us, stage.done)


def _tell(case: Case, failure: Failure, lines: int) -> str:
    """Run the same case again, now that the failure tells which steps are relevant."""
    world = Cluster(case.seed, case.options, keep=0)
    world.transcript.reader = telling = TranscriptFilter(MentionedIds.of(str(failure)), lines)
    again = play(case, world).failure
    told = "\n".join(
        f"{INDENT}... {line} more" if isinstance(line, int) else str(line)
        for line in telling.lines()
    )
    if again != failure:
        return f"{told}\nA second run of it ended with {again}: the same seed must be the same run."
    return told


def _play(case: Case, action_runner: ActionRunner) -> None:
    world = action_runner.cluster
    build(world)
    fleet, keeper = BrokerFleet(world), ProcessSupervisor(action_runner)
    fleet.begin()
    if case.deeds is None:
        Workload(action_runner).begin()
        FaultScheduler(action_runner).begin()
    else:
        case.play(action_runner)
    keeper.begin()
    world.run_checks()
    world.run(world.options.duration_ms)
    fleet.end()
    action_runner.end()
    check_liveness(world, action_runner.clients, fleet)
