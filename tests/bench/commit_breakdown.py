"""Measure the time of a single commit, step by step.

    python -m tests.bench.commit_breakdown [--seconds N]

One append at a time on a stream; each commit is followed from the leader to the follower whose
acknowledgement commits it, and back. Medians in microseconds, and the limits of the same run.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from bisect import bisect_left
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import hardware_limits
from tests.bench.commit_load import Point, RawSubject
from tests.bench.processes import READY_S
from tests.bench.quorate_cluster import QuorateMembers

# Place, who passes it, and what has happened since the place before.
STEPS: Final = (
    ("proposed", "leader", "the append is gathered and proposed"),
    ("written", "leader", "the core decides, the batch is written"),
    ("answered", "leader", "the waiting fetch is answered"),
    ("received", "follower", "the answer reaches the follower (gRPC)"),
    ("written", "follower", "it is checked, the core decides, the batch is written"),
    ("flushed", "follower", "fdatasync"),
    ("asked", "follower", "the core decides, the next fetch is made"),
    ("heard", "leader", "it reaches the leader (gRPC)"),
    ("committed", "leader", "the core counts it"),
)


class TracedMembers(QuorateMembers):
    """Members that note when they come by the places of a commit."""

    def command(self, member: int) -> list[str]:
        command = super().command(member)
        command[command.index("-m") + 1] = "tests.bench.instrumented_controller"
        return ["env", f"QUORATE_TRACE={self.trace(member)}", *command]

    def trace(self, member: int) -> Path:
        return self.root / f"trace-{member}"

    def notes(self, member: int) -> dict[str, list[int]]:
        """The times at which a member passed each place, in order."""
        path = self.trace(member)
        path.unlink(missing_ok=True)
        os.kill(self.pid(member), signal.SIGUSR1)
        deadline = time.monotonic() + READY_S
        while not path.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} was not written")
            time.sleep(0.01)
        places: dict[str, list[int]] = {}
        for line in path.read_text(encoding="ascii").splitlines():
            at, place = line.split()
            places.setdefault(place, []).append(int(at))
        return places


def durations(leader: dict[str, list[int]], follower: dict[str, list[int]]) -> list[list[float]]:
    """Of each commit that this follower took part in the steps in microseconds."""
    commits = []
    for begin, end in zip(leader["taken"], leader["taken"][1:], strict=False):
        at, steps = begin, []
        for place, who, _ in STEPS:
            notes = (leader if who == "leader" else follower)[place]
            index = bisect_left(notes, at)
            if index == len(notes) or notes[index] >= end:
                break
            steps.append((notes[index] - at) / 1000)
            at = notes[index]
        if len(steps) == len(STEPS):
            commits.append(steps)
    return commits


def main() -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.commit_breakdown", description=__doc__
    )
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quorate-steps-") as folder:
        root = Path(folder)
        with TracedMembers(root, is_raw=True) as members:
            leader = members.leader()
            load = RawSubject(members).open(Point(1), leader)
            load.run(0.5)
            load.run(arguments.seconds)
            whole = median(load.latencies_ns) / 1000
            load.finish()
            notes = [members.notes(member) for member in range(members.count)]
        # With three members the faster follower commits: its steps are the shorter sum.
        paths = [
            durations(notes[leader], notes[member])
            for member in range(members.count)
            if member != leader
        ]
        commits = min(paths, key=lambda path: median(map(sum, path)))
        flush_us, (echo_us, python_us) = hardware_limits.flush_us(root), hardware_limits.echo_us()
    medians = [median(column) for column in zip(*commits, strict=True)]
    print(f"{len(commits)} commits, {whole:.0f} us each as the client sees them\n")
    for (_, who, what), step in zip(STEPS, medians, strict=True):
        print(f"{step:8.0f}  {who:<8}  {what}")
    print(f"{whole - sum(medians):8.0f}  client    from the client to the leader and back (gRPC)")
    print(
        f"\nlimits: a flush {flush_us:.0f} with three at once, a message there and back"
        f" {echo_us:.0f} from the generator, {python_us:.0f} between two Python processes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
