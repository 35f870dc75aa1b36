"""A controller that records when each step of a commit happens (tests.bench.commit_breakdown).

    python -m tests.bench.instrumented_controller --config FILE

SIGUSR1 writes what was noted to the file that QUORATE_TRACE names: a time in nanoseconds, which all
processes of a machine share, and a place. The notes cost a few microseconds a commit.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.rpc.convert import raft as convert_raft
from quorate.server.__main__ import main
from quorate.server.metadata.proposer import Proposer
from quorate.storage.log.metadata_log import FlushTicket
from quorate.storage.log_store import LogStore
from tests.bench import raw_servicer
from tests.bench.raw_controller import host_records
from tests.bench.raw_state_machine import RawApplication

if TYPE_CHECKING:
    from collections.abc import Callable

NOTES_MAX: Final = 200_000
# Of every place: its owner, its name there, and whether it is noted when it is left.
PLACES: Final[dict[str, tuple[Any, str, bool]]] = {
    "taken": (RawApplication, "append", False),
    "proposed": (Proposer, "drain", False),
    "written": (LogStore, "append", True),
    "answered": (convert_raft, "pb_fetch_response", False),
    "received": (convert_raft, "fetch_response", False),
    "flushed": (FlushTicket, "run", True),
    "asked": (convert_raft, "pb_fetch_request", False),
    "heard": (convert_raft, "fetch_request", False),
    "committed": (raw_servicer._Stream, "committed", False),
}
_notes: deque[tuple[int, str]] = deque(maxlen=NOTES_MAX)


def _noting(place: str, function: Callable[..., Any], *, is_left: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def noted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever it wraps
        if not is_left:
            _notes.append((time.perf_counter_ns(), place))
        result = function(*arguments, **named)
        if is_left:
            _notes.append((time.perf_counter_ns(), place))
        return result

    return noted


def _write(*_: object) -> None:
    path = Path(os.environ["QUORATE_TRACE"])
    part = path.with_suffix(".part")
    part.write_text("".join(f"{at} {place}\n" for at, place in _notes), encoding="ascii")
    part.rename(path)


if __name__ == "__main__":
    for place_, (owner, name, is_left_) in PLACES.items():
        setattr(owner, name, _noting(place_, getattr(owner, name), is_left=is_left_))
    signal.signal(signal.SIGUSR1, _write)
    sys.exit(main(host_records))
