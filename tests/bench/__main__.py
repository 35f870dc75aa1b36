"""`make bench`: ours next to etcd, PySyncObj and stock Kafka; many topics; the pipeline.

    python -m tests.bench [--rounds N] [--failovers N] [--records N] [--data-dir DIR]
                          [--only etcd|kafka|topics|bulk|transports|fairness|pipeline]

Fairness takes a quarter of an hour and runs only when it is asked for.
Whatever is not on the machine is left out, and said so. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import (
    bulk_creation,
    fairness,
    many_topics,
    pipeline,
    transports,
    vs_etcd,
    vs_kafka,
)
from tools.fetch_kafka import jars_folder

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of every load (default 5)")
    parser.add_argument("--failovers", type=int, default=20, help="beside etcd (default 20)")
    parts = ("etcd", "kafka", "topics", "bulk", "transports", "fairness", "pipeline")
    parser.add_argument("--only", choices=parts, help="one part")
    parser.add_argument(
        "--records", type=int, default=pipeline.RECORDS, help="of the pipeline's log (10 million)"
    )
    parser.add_argument(
        "--measure", action="append", default=[], help="of the pipeline: count, typed, image, ..."
    )
    parser.add_argument("--data-dir", type=Path, help="on the disk to measure; else a new folder")
    arguments = parser.parse_args(words)
    jars = jars_folder(os.environ)
    with tempfile.TemporaryDirectory(prefix="quorate-bench-", dir=arguments.data_dir) as folder:
        root = Path(folder)
        failovers = max(1, arguments.failovers // 2)
        if arguments.only in (None, "etcd"):
            vs_etcd.run(root, rounds=arguments.rounds, failovers=arguments.failovers)
        if arguments.only in (None, "kafka"):
            vs_kafka.run(root, jars, rounds=arguments.rounds, failovers=failovers)
        if arguments.only in (None, "topics"):
            many_topics.run(root, failovers=failovers)
        if arguments.only in (None, "bulk"):
            bulk_creation.run(root)
        if arguments.only in (None, "transports"):
            transports.run(root, jars, rounds=arguments.rounds)
        if arguments.only == "fairness":
            fairness.run(root)
    if arguments.only in (None, "pipeline"):
        pipeline.run(jars, records=arguments.records, only=arguments.measure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
