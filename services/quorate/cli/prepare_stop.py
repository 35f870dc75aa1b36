"""`quorate prepare-stop`: the preStop hook of a controller.

It calls the sidecar of the controller and waits until the controller may stop; docs/admin.md has
the steps. Exit status 0 means that it may be stopped.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Final

from quorate.api.admin_api import AdminError
from quorate.cli.argument_types import number
from quorate.cli.connection import TIMEOUT_MS_DEFAULT, channel_kind
from quorate.cli.output import CommandError, admin_error, fail, print_json
from quorate.client.admin_client import AdminClient
from quorate.client.server_addresses import parse_server
from quorate.raft.messages import NOTHING_KNOWN
from quorate.settings.integers import INT32_MAX

if TYPE_CHECKING:
    from quorate.api.admin_api import PrepareStopResult
    from quorate.client.controller_calls import Address

SIDECAR: Final = "127.0.0.1:9095"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "prepare-stop",
        help="make it safe to stop a controller",
        description="Ask the sidecar of a controller to hand its leadership over and to wait until "
        "its voter can be spared or, with --leave, to remove it; returns when the controller may "
        "be stopped.",
    )
    parser.add_argument(
        "--admin",
        type=_server,
        default=SIDECAR,
        metavar="HOST:PORT",
        help=f"the sidecar beside the controller (default: {SIDECAR})",
    )
    parser.add_argument(
        "--leave", action="store_true", help="the controller goes for good: remove its voter"
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="properties of the connection: security.protocol, ssl.*, grpc.transport",
    )
    parser.add_argument(
        "--timeout-ms",
        type=number(1, INT32_MAX),
        default=TIMEOUT_MS_DEFAULT,
        help=f"how long the command may take (default: {TIMEOUT_MS_DEFAULT})",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="the format"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    try:
        prepared = asyncio.run(_prepare(arguments))
    except AdminError as error:
        return fail(admin_error(error))
    except CommandError as error:
        return fail(str(error))
    if arguments.output == "json":
        print_json(
            {
                "handedOver": prepared.handed_over,
                "removed": prepared.removed,
                "isVoter": prepared.is_voter,
                "leaderId": prepared.leader.leader_id,
                "leaderEpoch": prepared.leader.epoch,
                "hasLeave": prepared.has_leave,
                "withoutLeave": prepared.without_leave,
            }
        )
    else:
        print(describe_result(prepared))
    return 0


async def _prepare(arguments: argparse.Namespace) -> PrepareStopResult:
    timeout_s = arguments.timeout_ms / 1000
    kind = channel_kind(arguments)
    async with AdminClient(
        [arguments.admin], timeout_s=timeout_s, tls=kind.tls, transport=kind.transport
    ) as client:
        return await client.prepare_stop(leave=arguments.leave)


def describe_result(prepare_stop_result: PrepareStopResult) -> str:
    """Describe the actions taken, the current leader, and a stop without a permit."""
    done = []
    if prepare_stop_result.has_leave:
        done.append("leave taken")
    if prepare_stop_result.handed_over:
        done.append("leadership handed over")
    if prepare_stop_result.removed:
        done.append("voter removed")
    leader, epoch = prepare_stop_result.leader.leader_id, prepare_stop_result.leader.epoch
    who = "nobody leads" if leader is None else f"node {leader} leads"
    words = f"Ready to stop: {', '.join(done) or 'nothing had to be done'}"
    if prepare_stop_result.leader != NOTHING_KNOWN:
        words += f"; {who} (epoch {epoch})"
    return (
        f"{words}; without leave: {without}"
        if (without := prepare_stop_result.without_leave)
        else words
    )


def _server(text: str) -> Address:
    try:
        return parse_server(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
