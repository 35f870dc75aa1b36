"""`quorate pipeline`: analyse the metadata log with Spark."""

from __future__ import annotations

import argparse

from quorate.pipeline.command import add_jobs, overview


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "pipeline",
        help="ask the log's past with Spark",
        description="Questions about the past of a quorum, answered from its log by Spark: of"
        " directories, Quorate's or Apache Kafka's, or of a running quorum.",
        epilog=overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="quorate pipeline JOB ...",
    )
    add_jobs(parser)
