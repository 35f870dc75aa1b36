"""Runs many seeds in worker processes and yields results in seed order.

There are `jobs` processes, and they run only a few seeds ahead of the reader of the results. If a
process is killed, the run ends immediately with BrokenProcessPool.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from quorate.sim.runner import LINES, run_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Future

    from quorate.sim.runner import SeedResult

# Allocations minus deallocations before the garbage collector looks for cycles.
COLLECTED_AFTER: Final = 100_000
_SAFE_PATH: Final = "PYTHONSAFEPATH"
# The number of seeds per process that may be submitted and not yet yielded.
AHEAD: Final = 4


def run_seeds(
    seeds: Iterable[int],
    *,
    jobs: int = 1,
    bug: str | None = None,
    digest: bool = False,
    lines: int = LINES,
) -> Generator[SeedResult]:
    """Run seeds in `jobs` processes and yield their results in the order of `seeds`.

    Seeds are taken from `seeds` lazily. Closing the iterator ends all processes.
    """
    run = partial(run_seed, bug=bug, digest=digest, lines=lines)
    if jobs <= 1:
        with _collected_rarely():
            yield from map(run, seeds)
        return
    with _safe_path():
        # This starts the process that tracks its semaphores.
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), begin_worker)
    others = set(multiprocessing.active_children())
    try:
        yield from _in_order(pool, run, iter(seeds), jobs * AHEAD)
    except BaseException:
        # The results of the seeds in progress are not needed.
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ProcessPoolExecutor,
    run: Callable[[int], SeedResult],
    seeds: Iterator[int],
    ahead: int,
) -> Iterator[SeedResult]:
    waiting: deque[Future[SeedResult]] = deque()
    while True:
        with _unheard(signal.SIGINT), _safe_path():
            waiting.extend(pool.submit(run, seed) for seed in islice(seeds, ahead - len(waiting)))
        if not waiting:
            return
        yield waiting.popleft().result()


@contextmanager
def _unheard(number: signal.Signals) -> Iterator[None]:
    """Block the signal in threads and processes that start in this block, which inherit the mask.

    Ctrl-C reaches all processes of a terminal. The first process prints the results and ends the
    others. If these ended on their own, it might notice that before its own signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep processes that start in this block from importing modules of the working directory.

    A spawned process has that directory first on `sys.path` until it has received the path of
    this process.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _collect_rarely() -> None:
    """Run the garbage collector seldom: a cluster's objects live until its seed has ended."""
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)


@contextmanager
def _collected_rarely() -> Iterator[None]:
    """Do the same within the block, for a process that does other work afterwards."""
    thresholds = gc.get_threshold()
    _collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def begin_worker() -> None:
    """Initialize a process that only runs seeds.

    It exits when the first process has ended: a process that is killed cannot end the others.
    """
    _collect_rarely()
    threading.Thread(target=_end_with_the_first, name="first process", daemon=True).start()


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(1)
