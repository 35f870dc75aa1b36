"""`quorate trace-id`: print the trace id of an epoch's election.

The id follows from the cluster's id and the epoch (telemetry/trace_ids.py), so no server is called
if both are given; the cluster's id alone is requested from any controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from quorate.cli.argument_types import number
from quorate.cli.connection import add_connection_arguments, run_command
from quorate.cli.output import CommandError, fail, non_utf8_argument, print_json
from quorate.settings.integers import INT32_MAX
from quorate.telemetry.trace_ids import trace_id_of, trace_id_text

if TYPE_CHECKING:
    import argparse

    from quorate.client.controller_client import ControllerClient

_SCHEMES: Final = ("http", "https")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "trace-id",
        help="the id of the trace in which an epoch was sought",
        description="Print the id of the trace that has the election of an epoch in it, whoever "
        "sought it and whoever won. Give the cluster's id, or a controller that is asked for it.",
    )
    parser.add_argument(
        "--epoch", type=number(0, INT32_MAX), required=True, metavar="N", help="the epoch"
    )
    parser.add_argument("--cluster-id", metavar="ID", help="the cluster's id; nobody is asked then")
    parser.add_argument(
        "--jaeger", metavar="URL", help="print the trace's page in this Jaeger, too"
    )
    add_connection_arguments(parser, [])
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    try:
        page = None if arguments.jaeger is None else page_of(arguments.jaeger)
    except CommandError as error:
        return fail(str(error))
    if arguments.cluster_id is not None:
        if not arguments.cluster_id:
            return fail("--cluster-id: it is empty")
        try:
            return _tell(arguments.cluster_id, arguments, page)
        except UnicodeEncodeError as error:
            return fail(f"--cluster-id: {non_utf8_argument(error)}")

    async def ask(client: ControllerClient, arguments: argparse.Namespace) -> int:
        return _tell((await client.api_versions()).cluster_id, arguments, page)

    if arguments.bootstrap_controller is None:
        return fail("give --cluster-id ID, or --bootstrap-controller HOST:PORT to ask for it")
    return run_command(ask, arguments)


def page_of(url: str) -> str:
    """The URL of a trace in Jaeger without the id. Raises CommandError."""
    try:
        parts = urlsplit(url)
        # Read for its error: an invalid port.
        is_page = parts.scheme in _SCHEMES and bool(parts.netloc) and parts.port != 0
    except ValueError:
        is_page = False
    if not is_page or parts.query or parts.fragment:
        raise CommandError(f"--jaeger: {url!r} is no URL such as http://localhost:16686")
    return f"{url.rstrip('/')}/trace/"


def _tell(cluster_id: str, arguments: argparse.Namespace, page: str | None) -> int:
    trace_id = trace_id_text(trace_id_of(cluster_id, arguments.epoch))
    link = None if page is None else page + trace_id
    if arguments.output == "json":
        told = {"clusterId": cluster_id, "epoch": arguments.epoch, "traceId": trace_id}
        print_json(told if link is None else told | {"url": link})
        return 0
    print(trace_id)
    if link is not None:
        print(link)
    return 0
