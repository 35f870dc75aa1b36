"""Runs many seeds in worker processes and yields results in seed order.

There are as many processes as cores, and only a few seeds are ahead of the reader of the results. A
process that is killed ends the run with BrokenProcessPool; no result of it is waited for.
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

# Objects made, over those gone, before the collector looks for cycles among them.
COLLECTED_AFTER: Final = 100_000
_SAFE_PATH: Final = "PYTHONSAFEPATH"
# So many seeds of each process may be ahead of the first one that is not done.
AHEAD: Final = 4


def run_seeds(
    seeds: Iterable[int],
    *,
    jobs: int = 1,
    bug: str | None = None,
    digest: bool = False,
    lines: int = LINES,
) -> Generator[SeedResult]:
    """The results of these seeds, in their order, on that many processes.

    A seed is taken from `seeds` when there is somebody to run it. Once the iterator is closed
    nothing runs any more.
    """
    run = partial(run_seed, bug=bug, digest=digest, lines=lines)
    if jobs <= 1:
        with _collected_rarely():
            yield from map(run, seeds)
        return
    with _safe_path():
        # It begins a process that keeps its semaphores.
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), begin_worker)
    others = set(multiprocessing.active_children())
    try:
        yield from _in_order(pool, run, iter(seeds), jobs * AHEAD)
    except BaseException:
        # Nobody waits for the seeds that run now.
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

    Ctrl-C reaches all processes of a terminal. The first one prints the results and ends the
    others; if these ended by themselves, it might notice that before its own signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep processes that begin meanwhile from importing modules of the working directory.

    One that is spawned has that in front of Python's own until it has the path of this one.
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
    """A world lives as long as its seed: hardly any of what the collector looks at could go."""
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)


@contextmanager
def _collected_rarely() -> Iterator[None]:
    """The same for a process that does something else afterwards."""
    thresholds = gc.get_threshold()
    _collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def begin_worker() -> None:
    """For processes that only run seeds.

    They end with the first process, however that ended: it may have had no time to end them.
    """
    _collect_rarely()
    threading.Thread(target=_end_with_the_first, name="first process", daemon=True).start()


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(1)
