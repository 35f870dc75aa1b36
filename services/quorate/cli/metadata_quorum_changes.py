"""`quorate metadata-quorum add-controller | remove-controller | transfer-leader`.

The commands ask the controllers directly and follow the leader, as the sidecar does. With
`--dry-run` they print the request and the expected outcome according to the leader's description;
nothing is changed.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from quorate.cli.argument_types import number
from quorate.cli.connection import deadline_of, run_command
from quorate.cli.output import CommandError, admin_error, fail, print_json
from quorate.client.membership_client import MembershipClient
from quorate.raft import messages as m
from quorate.records.ids import (
    ClusterId,
    Millis,
    NodeId,
    ReplicaKey,
    format_uuid,
    parse_directory_id,
)
from quorate.records.voters import Endpoint
from quorate.server.config import load_config
from quorate.settings.properties import NODE_ID_MAX, ConfigError, parse_address
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import META_PROPERTIES
from quorate.storage.meta_properties import read_meta
from quorate.telemetry import tracing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from quorate.api.admin_api import AdminError
    from quorate.client.controller_client import ControllerClient

_ANY_CLUSTER = ClusterId("")
NODE_ID: Final = number(0, NODE_ID_MAX)


def register(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add the three actions; returns their parsers."""
    add = actions.add_parser(
        "add-controller",
        help="make an observer a voter",
        description="Make a controller that follows a voter. Its id, directory id and listeners "
        "come from its own properties and directory, or from the flags; what the leader knows of "
        "the observer fills in the rest.",
    )
    add.add_argument("-c", "--config", metavar="FILE", help="the new controller's properties")
    add.add_argument("--controller-id", type=NODE_ID, metavar="ID", help="its node id")
    add.add_argument("--controller-directory-id", metavar="UUID", help="its directory id")
    add.add_argument(
        "--endpoint",
        action="append",
        default=[],
        metavar="NAME://HOST:PORT",
        help="where the voters reach it; may be repeated",
    )
    remove = actions.add_parser("remove-controller", help="take a voter out of the quorum")
    remove.add_argument("-i", "--controller-id", type=NODE_ID, required=True, metavar="ID")
    remove.add_argument(
        "-d",
        "--controller-directory-id",
        metavar="UUID",
        help="refuse where the voter has another directory id",
    )
    for parser in (add, remove):
        parser.add_argument(
            "--force",
            action="store_true",
            help="override the check that a majority of the voters is alive, and nothing else",
        )
    transfer = actions.add_parser("transfer-leader", help="let another voter lead")
    transfer.add_argument("--to", type=NODE_ID, required=True, metavar="ID", help="its node id")
    parsers = [add, remove, transfer]
    for parser in parsers:
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would be asked, change nothing"
        )
    add.set_defaults(run=lambda arguments: _run(arguments, add_request))
    remove.set_defaults(run=lambda arguments: _run(arguments, remove_request))
    transfer.set_defaults(run=lambda arguments: _run(arguments, transfer_request))
    return parsers


# --- what is asked --------------------------------------------------------------------------------


def add_request(arguments: argparse.Namespace) -> m.AddRaftVoterRequest:
    """Build the request from the new controller's files, or from flags. Raises CommandError."""
    if arguments.config is None:
        if arguments.controller_id is None:
            raise CommandError(
                "add-controller: give --config with the new controller's properties, or "
                "--controller-id"
            )
        voter = _key(arguments.controller_id, arguments.controller_directory_id)
        listeners = tuple(parse_endpoint(text) for text in arguments.endpoint)
        return m.AddRaftVoterRequest(
            cluster_id=_ANY_CLUSTER,
            voter=voter,
            listeners=listeners,
            timeout_ms=Millis(0),
            force=arguments.force,
        )
    if arguments.controller_id is not None or arguments.controller_directory_id is not None:
        raise CommandError(
            "add-controller: --config has the id and the directory id; leave the flags out"
        )
    try:
        config = load_config(arguments.config, os.environ)
        path = f"{config.log.directory}/{META_PROPERTIES}"
        meta = read_meta(OsFileSystem(), path)
    except (ConfigError, StorageError) as error:
        raise CommandError(str(error)) from error
    if meta is None:
        raise CommandError(
            f"{path} is missing: format the directory with --no-initial-controllers first"
        )
    if meta.node_id != config.node_id:
        raise CommandError(
            f"node.id is {config.node_id} in {arguments.config} and {meta.node_id} in {path}"
        )
    listeners = tuple(parse_endpoint(text) for text in arguments.endpoint) or config.endpoints
    return m.AddRaftVoterRequest(
        cluster_id=meta.cluster_id,
        voter=ReplicaKey(meta.node_id, meta.directory_id),
        listeners=listeners,
        timeout_ms=Millis(0),
        force=arguments.force,
    )


def remove_request(arguments: argparse.Namespace) -> m.RemoveRaftVoterRequest:
    """Build the request from the flags. Raises CommandError."""
    voter = _key(arguments.controller_id, arguments.controller_directory_id)
    return m.RemoveRaftVoterRequest(
        cluster_id=_ANY_CLUSTER, voter=voter, timeout_ms=Millis(0), force=arguments.force
    )


def transfer_request(arguments: argparse.Namespace) -> m.TransferLeadershipRequest:
    """Build the request from the flags. Raises CommandError."""
    return m.TransferLeadershipRequest(_ANY_CLUSTER, _key(arguments.to, None))


def _key(node_id: int, directory: str | None) -> ReplicaKey:
    try:
        directory_id = None if directory is None else parse_directory_id(directory)
    except ValueError as error:
        raise CommandError(f"--controller-directory-id: {error}") from error
    return ReplicaKey(NodeId(node_id), directory_id)


def parse_endpoint(text: str) -> Endpoint:
    """Parse `NAME://HOST:PORT`. Raises CommandError."""
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise CommandError(f"--endpoint: {text!r} is no NAME://HOST:PORT")
    try:
        return Endpoint(name, *parse_address("--endpoint", address))
    except ConfigError as error:
        raise CommandError(str(error)) from error


# --- asking, and what is said ---------------------------------------------------------------------


def _run(
    arguments: argparse.Namespace,
    make_request: Callable[[argparse.Namespace], m.MembershipRequest],
) -> int:
    async def command(client: ControllerClient, arguments: argparse.Namespace) -> int:
        request = make_request(arguments)
        membership = MembershipClient(client)
        deadline = deadline_of(arguments)
        if arguments.dry_run:
            return _tell_foreseen(*await membership.predict(request, deadline), arguments)
        _tell_trace(request)
        done = await membership.change(request, deadline)
        if arguments.output == "json":
            leader = {"leaderId": done.leader.leader_id, "leaderEpoch": done.leader.epoch}
            print_json(fields(done.request) | leader)
        else:
            verb, _, what = in_words(done.request)
            print(f"{verb} {what}")
        return 0

    return run_command(command, arguments)


def _tell_trace(request: m.MembershipRequest) -> None:
    """Print the trace id of the change, if it is traced: on stderr, next to the result."""
    ids = tracing.ids()
    if ids is not None:
        told = fields(request)
        tracing.annotate({"kraft.voter.id": int(str(told["id"]))})
        print(f"trace: {ids[0]}", file=sys.stderr)


def _tell_foreseen(
    request: m.MembershipRequest, refusal: AdminError | None, arguments: argparse.Namespace
) -> int:
    """Print the result of a dry run; returns the exit status."""
    if arguments.output == "json":
        verdict = {
            "dryRun": True,
            "reason": None if refusal is None else refusal.reason,
            "message": None if refusal is None else refusal.message,
        }
        print_json(fields(request) | verdict)
        return 0 if refusal is None else 1
    _, verb, what = in_words(request)
    print(f"DRY RUN of {verb} {what}")
    if refusal is None:
        print("Nothing stands against it in what the leader says of the quorum.")
        return 0
    return fail(f"it would be refused: {admin_error(refusal)}")


def in_words(request: m.MembershipRequest) -> tuple[str, str, str]:
    """The action in past and present tense and its object, in the wording of Kafka's tool."""
    match request:
        case m.AddRaftVoterRequest(voter=key, listeners=listeners):
            ways = ", ".join(str(endpoint) for endpoint in listeners)
            return "Added", "adding", f"controller {_who(key)} and endpoints: {ways}"
        case m.RemoveRaftVoterRequest(voter=key):
            return "Removed", "removing", f"KRaft controller {_who(key)}"
        case m.TransferLeadershipRequest(voter=key):
            what = f"leadership to controller {key.node_id}"
            return "Transferred", "transferring", what
        case _:
            raise AssertionError(request)


def _who(key: ReplicaKey) -> str:
    if key.directory_id is None:
        return f"{key.node_id} without a directory id"
    return f"{key.node_id} with directory id {format_uuid(key.directory_id)}"


def fields(request: m.MembershipRequest) -> dict[str, object]:
    """The request as JSON fields."""
    assert not isinstance(request, m.UpdateFeaturesRequest)
    key = request.voter
    shown: dict[str, object] = {"id": key.node_id}
    if key.directory_id is not None:
        shown["directoryId"] = format_uuid(key.directory_id)
    if isinstance(request, m.AddRaftVoterRequest):
        shown["endpoints"] = [str(endpoint) for endpoint in request.listeners]
    return shown
