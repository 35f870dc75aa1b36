"""One client that puts more load on one controller than its fair share, for a number of seconds.

    python -m tests.bench.attacker LOAD HOST PORT [--connections N] [--seconds S] [--source ADDRESS]
                                   [--answers N] [--waits]

At the end it writes one line of JSON: what it sent and got. With `--waits` it writes "ready" first,
and begins when a line comes on stdin. If it takes longer than it should, SIGALRM ends it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from tests.bench import client_loads, floods

if TYPE_CHECKING:
    from collections.abc import Sequence

LOADS: Final = (*floods.FLOODS, *client_loads.CLIENT_LOADS)
HEALTH_LOADS: Final = frozenset({"health-port"})
CONNECTIONS_MAX: Final = 1_000
SECONDS_MAX: Final = 120.0
# Seconds after the end of the load within which the process must have exited.
LATE_S: Final = 30
_START_S: Final = 60


def main(words: Sequence[str] | None = None) -> int:
    """Run the load, print its result, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.attacker", description=__doc__)
    parser.add_argument("load", choices=LOADS)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--connections", type=int, default=1, help="at most 1,000 (default 1)")
    parser.add_argument("--seconds", type=float, default=6.0, help="at most 120 (default 6)")
    parser.add_argument("--answers", type=int, default=sys.maxsize, help="end after so many")
    parser.add_argument("--source", help="the client's own address")
    parser.add_argument("--waits", action="store_true", help="begin when a line comes on stdin")
    arguments = parser.parse_args(words)
    connections = max(1, min(arguments.connections, CONNECTIONS_MAX))
    seconds = min(arguments.seconds, SECONDS_MAX)
    if arguments.waits:
        signal.alarm(_START_S)
        print("ready", flush=True)
        sys.stdin.readline()
    signal.alarm(int(seconds) + LATE_S)
    address = arguments.host, arguments.port
    begun_s = time.monotonic()
    if arguments.load in floods.FLOODS:
        flooder = floods.Flooder(
            floods.FLOODS[arguments.load],
            address,
            connections=connections,
            source=arguments.source,
        )
        counts = flooder.run(seconds, arguments.answers)
    else:
        counts = client_loads.run_load(
            arguments.load,
            address,
            channels=connections,
            seconds=seconds,
            answers_max=arguments.answers,
            source=arguments.source,
        )
    took_s = time.monotonic() - begun_s
    print(json.dumps({"took_s": took_s, **dataclasses.asdict(counts)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
