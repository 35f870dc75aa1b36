"""`make bench`: ours beside etcd and PySyncObj, then beside stock Kafka, in tables of ratios.

    python -m tests.bench [--rounds N] [--failovers N] [--only etcd|kafka] [--data-dir DIR]

Whatever is not on the machine is left out, and said so. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import beside_etcd, beside_kafka
from tools.fetch_kafka import jars_folder

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of every load (default 5)")
    parser.add_argument("--failovers", type=int, default=20, help="beside etcd (default 20)")
    parser.add_argument("--only", choices=("etcd", "kafka"), help="one of the tables")
    parser.add_argument("--data-dir", type=Path, help="on the disk to measure; else a new folder")
    arguments = parser.parse_args(words)
    jars = jars_folder(os.environ)
    with tempfile.TemporaryDirectory(prefix="quorate-bench-", dir=arguments.data_dir) as folder:
        root = Path(folder)
        if arguments.only != "kafka":
            beside_etcd.run(root, rounds=arguments.rounds, failovers=arguments.failovers)
        if arguments.only != "etcd":
            failovers = max(1, arguments.failovers // 2)
            beside_kafka.run(root, jars, rounds=arguments.rounds, failovers=failovers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
