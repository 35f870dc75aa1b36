"""`quorate admin`: run the admin sidecar of one controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "admin",
        help="run the admin sidecar of one controller",
        description="Serve the admin API beside one controller; SIGTERM and Ctrl-C end it.",
    )
    parser.add_argument(
        "-c", "--config", required=True, metavar="FILE", help="the sidecar's properties"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve; the exit status is 1 if the sidecar cannot start."""
    from quorate.admin.service import main_admin

    return main_admin(arguments.config)
