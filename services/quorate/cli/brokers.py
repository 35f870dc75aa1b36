"""`quorate brokers`: register stand-in brokers and list brokers.

A registered id carries replicas like a real broker's, so a quorum can be tried without brokers.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from quorate.cli.connection import (
    add_connection_arguments,
    ask,
    extend_deadline,
    run_command,
)
from quorate.cli.isr_requests import IsrRequests
from quorate.cli.output import CommandError, print_json, print_offset, warn
from quorate.cli.simulated_brokers import StandIns, StopRequests, run_stand_ins
from quorate.client.log_reader import LogReader
from quorate.client.metadata_follower import MetadataFollower
from quorate.controller.brokers.messages import (
    ListBrokers,
    Listener,
    RegisterBroker,
)
from quorate.controller.brokers.registration import BROKERS_MAX
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.process.stop_signals import STOP_SIGNALS
from quorate.records.escaping import escape_unprintable
from quorate.records.ids import UUID_BYTES, ClusterId, format_uuid
from quorate.settings.integers import whole_number
from quorate.settings.properties import NODE_ID_MAX

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from quorate.cli.simulated_brokers import StandIn
    from quorate.client.controller_client import ControllerClient
    from quorate.controller.brokers.messages import ListedBroker

# Limit of each Fetch in ms, including its wait at the leader: a hanging leader is abandoned.
_FETCH_TIMEOUT_MS: Final = 5_000
_LISTENER: Final = Listener("PLAINTEXT", "127.0.0.1", 9092)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("brokers", help="register stand-ins for brokers, list brokers")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    registering = actions.add_parser(
        "register", help="register ids and stand in for their brokers until stopped"
    )
    registering.add_argument("--ids", required=True, metavar="1-6[,9]", help="the broker ids")
    registering.add_argument(
        "--once", action="store_true", help="one heartbeat only; the quorum fences them later"
    )
    listing = actions.add_parser("list", help="all registered brokers")
    add_connection_arguments(parser, [registering, listing], has_pin=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    if arguments.action == "list":
        return run_command(_list, arguments)
    return run_command(_register, arguments, is_endless=not arguments.once)


def parse_ids(text: str) -> tuple[int, ...]:
    """`1-6,9` as ids in order, each once. Raises CommandError."""
    ids: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            lowest = whole_number(first, maximum=NODE_ID_MAX)
            highest = whole_number(last, maximum=NODE_ID_MAX) if dash else lowest
        except ValueError as error:
            raise CommandError(
                f"--ids: {part!r} is no id and no range such as 1-6: {error}"
            ) from None
        numbers = range(lowest, highest + 1)
        if not numbers or len(numbers) + len(ids) > BROKERS_MAX:
            raise CommandError(f"--ids: {part!r} holds no id, or more than {BROKERS_MAX}")
        ids.update(numbers)
    return tuple(sorted(ids))


# --- register -------------------------------------------------------------------------------------


async def _register(client: ControllerClient, arguments: argparse.Namespace) -> int:
    ids = parse_ids(arguments.ids)
    cluster_id = ClusterId((await client.api_versions()).cluster_id)
    requests = [_request(broker_id, cluster_id) for broker_id in ids]
    if arguments.once:
        stand_ins = StandIns(client, requests, warn)
        await stand_ins.register(extend_deadline)
        await stand_ins.beat_until_caught_up()
        _print_registered(stand_ins, arguments.output)
        return 0
    stop = StopRequests()
    STOP_SIGNALS.on_stop(asyncio.get_running_loop(), stop.on_signal)
    follower = MetadataFollower(LogReader(client=client, timeout_ms=_FETCH_TIMEOUT_MS), warn)
    stand_ins = StandIns(client, requests, warn, follower)
    await run_stand_ins(
        stand_ins,
        follower,
        IsrRequests(client, follower, stand_ins.epochs, warn),
        stop,
        lambda: _print_registered(stand_ins, arguments.output),
        patience_s=arguments.timeout_ms / 1000,
    )
    _warn_of_remaining(stand_ins.all, is_hurried=stop.second.is_set())
    return 0


def _request(broker_id: int, cluster_id: ClusterId) -> RegisterBroker:
    """The registration: a new incarnation at each start, with the same disk."""
    return RegisterBroker(
        broker_id=broker_id,
        incarnation_id=secrets.token_bytes(UUID_BYTES),
        cluster_id=cluster_id,
        listeners=(replace(_LISTENER, port=_LISTENER.port + broker_id % 1_000),),
        features=SUPPORTED_FEATURES,
        log_dirs=(sha256(f"{cluster_id} {broker_id}".encode()).digest()[:UUID_BYTES],),
    )


def _print_registered(stand_ins: StandIns, output: str) -> None:
    if output == "json":
        brokers = [{"id": each.broker_id, "epoch": each.epoch} for each in stand_ins.all]
        print_json({"brokers": brokers})
    else:
        for each in stand_ins.all:
            # Flushed, because the program that started this one waits for these lines.
            print(f"Registered broker {each.broker_id} with epoch {each.epoch}.", flush=True)
    behind = ",".join(str(each.broker_id) for each in stand_ins.all if not each.is_caught_up)
    if behind:
        warn(f"not caught up with the log yet, and fenced until then: {behind}")


def _warn_of_remaining(stand_ins: Sequence[StandIn], *, is_hurried: bool) -> None:
    """List the brokers that stopped without the quorum's permission, with the first reason."""
    left = [each for each in stand_ins if each.epoch >= 0 and not each.may_stop]
    if left:
        ids = ",".join(str(each.broker_id) for each in left)
        unanswered = (
            "a second stop signal came before the quorum's answer"
            if is_hurried
            else "the quorum gave no answer in time"
        )
        why = left[0].obstacle or unanswered
        warn(f"stopped without a shutdown permit: {ids}: {why}; their sessions end by themselves")


# --- list -----------------------------------------------------------------------------------------


async def _list(client: ControllerClient, arguments: argparse.Namespace) -> int:
    reply = await ask(client, arguments, ListBrokers())
    if arguments.output == "json":
        brokers = [broker_json(broker) for broker in reply.brokers]
        print_json({"offset": reply.offset, "brokers": brokers})
        return 0
    print("\n".join(broker_lines(reply.brokers)))
    print_offset(reply.offset)
    return 0


def broker_state(broker: ListedBroker) -> str:
    """The broker's state in one word, according to the quorum."""
    if broker.is_fenced:
        return "fenced"
    return "shutting-down" if broker.in_controlled_shutdown else "active"


def broker_lines(brokers: Sequence[ListedBroker]) -> list[str]:
    """A header and one line for each broker."""
    lines = [f"{'BrokerId':<12}{'Epoch':<12}{'State':<15}{'Rack':<12}Listeners"]
    for broker in brokers:
        listeners = escape_unprintable(
            ",".join(f"{x.name}://{x.host}:{x.port}" for x in broker.listeners)
        )
        lines.append(
            f"{broker.broker_id:<12}{broker.broker_epoch:<12}{broker_state(broker):<15}"
            f"{escape_unprintable(broker.rack or '-'):<12}{listeners}"
        )
    return lines


def broker_json(broker: ListedBroker) -> dict[str, object]:
    """One broker as `list -o json` shows it."""
    return {
        "id": broker.broker_id,
        "epoch": broker.broker_epoch,
        "incarnationId": format_uuid(broker.incarnation_id),
        "state": broker_state(broker),
        "rack": broker.rack,
        "listeners": [f"{x.name}://{x.host}:{x.port}" for x in broker.listeners],
    }
