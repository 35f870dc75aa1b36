"""`quorate autojoin`: run the Kubernetes operator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

_LIBRARIES: Final = ("aiohttp", "kopf", "kubernetes")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "autojoin",
        help="run the Kubernetes operator of one quorum",
        description=(
            "Keep the voters in step with the replicas of a StatefulSet; SIGTERM and Ctrl-C end "
            "it. Settings may also come from the environment: QUORATE_AUTOJOIN_STATEFULSET is the "
            "one that has to be there."
        ),
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="the operator's properties")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Operate; the exit status is 1 if the operator cannot start."""
    try:
        from quorate.autojoin.service import main_autojoin
    except ModuleNotFoundError as error:
        if error.name not in _LIBRARIES:
            raise
        sys.stderr.write(f"quorate autojoin: {error.name} is missing: install quorate[operator]\n")
        return 1
    return main_autojoin(arguments.config)
