"""`quorate controller`: run one controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "controller",
        help="run one controller",
        description="Run one controller; SIGTERM and Ctrl-C hand over, then stop.",
    )
    parser.add_argument(
        "-c", "--config", required=True, metavar="FILE", help="the controller's properties"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve; the exit status is 1 if the controller cannot start."""
    from quorate.server.service import main_controller

    return main_controller(arguments.config)
