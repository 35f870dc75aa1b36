"""Measure a commit in the core alone, with more and more observers that fetch it.

    python -m tests.bench.observers [--commits N] [--reads N]

A leader of three voters without disk or network takes a proposal, its flush and a voter's Fetch.
"busy" is a commit every millisecond, with the Fetches of those observers that were answered in it:
what a writer pays. "idle" is what one commit costs until every observer has it and has asked again.
Processor time of one thread; compare the ratios, for the times are this machine's.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Final

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplyToken
from tests.unit.raft import cores

OBSERVERS: Final = (0, 200, 1000)
VOTER: Final = 2
_TOKEN_OF_PROPOSAL: Final = ReplyToken(1)


@dataclass(slots=True)
class Costs:
    """Medians in microseconds: of a commit in either way, and of a burst of current reads."""

    busy: float
    idle: float
    reads: float


class Quorum:
    """A leader that is asked by one voter and by observers with ids from 100 on."""

    def __init__(self, observers: int) -> None:
        self.core = cores.leader()
        self.now_ms = 2001
        self.token = 10
        self.round = 0
        self.waiting: dict[int, int] = {}
        self.offset = 3
        self.observers = observers
        self.fetch(VOTER)
        for index in range(observers):
            self.fetch(100 + index)

    def step(self, event: api.Event) -> api.Update:
        return self.core.step(event, Millis(self.now_ms))

    def fetch(self, node_id: int) -> api.Update:
        """A Fetch of everything up to here; parked until there is more."""
        self.token += 1
        self.waiting[self.token] = node_id
        key = cores.key(node_id % 250)
        request = m.FetchRequest(
            cluster_id=cores.CLUSTER,
            replica=type(key)(NodeId(node_id), key.directory_id),
            current_leader_epoch=Epoch(1),
            fetch_offset=Offset(self.offset),
            last_fetched_epoch=Epoch(1),
            max_wait_ms=Millis(500),
            max_bytes=1024,
            high_watermark=Offset(self.offset),
            read_round=self.round,
        )
        return self.step(api.RequestReceived(ReplyToken(self.token), request))

    def answered(self, update: api.Update) -> list[int]:
        """The observers that were answered with a Fetch response, and will fetch again."""
        nodes = []
        for effect in update.effects:
            if isinstance(effect, api.SendReply) and isinstance(effect.response, m.FetchResponse):
                nodes.append(self.waiting.pop(effect.token))
                self.round = max(self.round, effect.response.read_round)
        return nodes

    def commit(self) -> list[int]:
        """One record, committed; the observers that were answered with it."""
        self.now_ms += 1
        batch = api.ProposedBatch(b"x" * 70, 1)
        proposed = self.step(api.RecordsProposed(_TOKEN_OF_PROPOSAL, Epoch(1), batch))
        self.offset += 1
        log = self.core.replica.log
        flushed = self.step(api.LogFlushed(log.end, log.generation))
        updates = (proposed, flushed, self.fetch(VOTER))
        nodes = [node for update in updates for node in self.answered(update)]
        return [node for node in nodes if node != VOTER]

    def busy(self) -> int:
        """Nanoseconds of a commit, with the Fetches of whom it answered."""
        begin = time.thread_time_ns()
        for node in self.commit():
            self.fetch(node)
        return time.thread_time_ns() - begin

    def idle(self) -> int:
        """Nanoseconds of a commit until all observers have it and have asked again."""
        begin = time.thread_time_ns()
        left = self.observers
        nodes = self.commit()
        while True:
            for node in nodes:
                self.fetch(node)
            left -= len(nodes)
            if left <= 0:
                return time.thread_time_ns() - begin
            self.now_ms += 1
            nodes = [node for node in self.answered(self.step(api.TimerFired())) if node != VOTER]

    def read(self, count: int) -> int:
        """Nanoseconds of so many parallel current reads, and of the Fetches that confirm them."""
        self.now_ms += 1
        begin = time.thread_time_ns()
        updates = [
            self.step(api.ReadRequested(ReplyToken(1_000_000_000 + index)))
            for index in range(count)
        ]
        for update in updates:
            self.answered(update)
        # One Fetch is answered immediately and carries the newest round; the next one echoes it.
        for _ in range(2):
            self.answered(self.fetch(VOTER))
        return time.thread_time_ns() - begin


def measure(observers: int, commits: int, reads: int) -> Costs:
    quorum = Quorum(observers)
    quorum.idle()
    idle = [quorum.idle() for _ in range(commits)]
    busy = [quorum.busy() for _ in range(commits)]
    burst = [quorum.read(reads) for _ in range(max(3, commits // 10))]
    return Costs(median(busy) / 1000, median(idle) / 1000, median(burst) / 1000)


def main() -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.observers", description=__doc__)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--reads", type=int, default=1000)
    arguments = parser.parse_args()
    costs = {n: measure(n, arguments.commits, arguments.reads) for n in OBSERVERS}
    first = costs[OBSERVERS[0]]
    print("observers        busy   ratio          idle   ratio   reads at once")
    for count, cost in costs.items():
        print(
            f"{count:9}  {cost.busy:7.0f} us  {cost.busy / first.busy:6.1f}"
            f"  {cost.idle:9.0f} us  {cost.idle / first.idle:6.1f}  {cost.reads:11.0f} us"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
