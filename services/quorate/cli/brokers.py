"""`quorate brokers`: register stand-ins for brokers and keep their heartbeats going, and list them.

A registered id carries replicas like a real broker's, so a quorum can be tried without brokers.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.cli.connection import (
    add_connection_arguments,
    ask,
    made_progress,
    run_command,
)
from quorate.cli.output import CommandError, item_error, print_json, print_offset
from quorate.client.calls import OutcomeUnknownError, QuorumUnavailableError
from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    ListBrokers,
    Listener,
    RegisterBroker,
)
from quorate.controller.brokers.registering import BROKERS_MAX
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.process.stop_signals import STOP_SIGNALS
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, ClusterId, Offset, format_uuid
from quorate.records.legible import written_out
from quorate.records.value import value
from quorate.settings.numbers import whole_number
from quorate.settings.properties import NODE_ID_MAX

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from quorate.client.controller_client import ControllerClient
    from quorate.controller.brokers.messages import ListedBroker

# Kafka's broker.heartbeat.interval.ms.
HEARTBEAT_INTERVAL_S: Final = 2.0
_LISTENER: Final = Listener("PLAINTEXT", "127.0.0.1", 9092)


@value
class Registration:
    """A stand-in that the quorum knows; `epoch` is what its heartbeats carry."""

    request: RegisterBroker
    epoch: int


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser("brokers", help="register stand-ins for brokers, list brokers")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    registering = actions.add_parser(
        "register", help="register ids and keep their heartbeats going until stopped"
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
    stopped = asyncio.Event()
    if not arguments.once:
        STOP_SIGNALS.on_stop(asyncio.get_running_loop(), stopped.set)
    identity = await client.api_versions()
    registrations = []
    for broker_id in ids:
        request = RegisterBroker(
            broker_id=broker_id,
            incarnation_id=secrets.token_bytes(UUID_BYTES),
            cluster_id=ClusterId(identity.cluster_id),
            listeners=(replace(_LISTENER, port=_LISTENER.port + broker_id % 1_000),),
            features=SUPPORTED_FEATURES,
            log_dirs=(secrets.token_bytes(UUID_BYTES),),
        )
        registrations.append(await _register_one(client, request))
        made_progress()
    registrations = await _beat(client, registrations)
    _print_registered(registrations, arguments.output)
    while not arguments.once and not stopped.is_set():
        try:
            async with asyncio.timeout(HEARTBEAT_INTERVAL_S):
                await stopped.wait()
        except TimeoutError:
            registrations = await _beat_through(client, registrations)
    return 0


def _print_registered(registrations: Sequence[Registration], output: str) -> None:
    if output == "json":
        brokers = [{"id": r.request.broker_id, "epoch": r.epoch} for r in registrations]
        print_json({"brokers": brokers})
        return
    for registration in registrations:
        # Flushed, because the program that started this one waits for these lines.
        print(
            f"Registered broker {registration.request.broker_id} with epoch {registration.epoch}.",
            flush=True,
        )


async def _register_one(client: ControllerClient, request: RegisterBroker) -> Registration:
    """Register; the same incarnation again is the same registration, so a retry is safe."""
    while True:
        try:
            reply = await client.write(request)
        except OutcomeUnknownError:
            await asyncio.sleep(0.1)
            continue
        if reply.error is not ErrorCode.NONE:
            said = item_error(reply.error, reply.message)
            raise CommandError(f"broker {request.broker_id}: {said}")
        return Registration(request, reply.broker_epoch)


async def _beat_through(
    client: ControllerClient, registrations: list[Registration]
) -> list[Registration]:
    """Heartbeats that outlive an election: what fails now is tried at the next beat."""
    try:
        return await _beat(client, registrations)
    except QuorumUnavailableError:
        return registrations


async def _beat(
    client: ControllerClient, registrations: Sequence[Registration]
) -> list[Registration]:
    return list(await asyncio.gather(*(_beat_one(client, r) for r in registrations)))


async def _beat_one(client: ControllerClient, registration: Registration) -> Registration:
    request = registration.request
    beat = BrokerHeartbeat(
        broker_id=request.broker_id,
        broker_epoch=registration.epoch,
        # A stand-in has nothing to replay: it is caught up with its own registration at once.
        current_metadata_offset=Offset(registration.epoch),
    )
    try:
        reply = await client.write(beat)
    except OutcomeUnknownError:
        return registration
    if reply.error in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
        # As a broker does: a quorum that forgot or replaced this registration gets it anew.
        return await _register_one(client, request)
    if reply.error is not ErrorCode.NONE:
        raise CommandError(f"broker {request.broker_id}: {item_error(reply.error, reply.message)}")
    return registration


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
    """One word for what the quorum makes of a broker."""
    if broker.is_fenced:
        return "fenced"
    return "shutting-down" if broker.in_controlled_shutdown else "active"


def broker_lines(brokers: Sequence[ListedBroker]) -> list[str]:
    """A head and one line for each broker."""
    lines = [f"{'BrokerId':<12}{'Epoch':<12}{'State':<15}{'Rack':<12}Listeners"]
    for broker in brokers:
        listeners = written_out(",".join(f"{x.name}://{x.host}:{x.port}" for x in broker.listeners))
        lines.append(
            f"{broker.broker_id:<12}{broker.broker_epoch:<12}{broker_state(broker):<15}"
            f"{written_out(broker.rack or '-'):<12}{listeners}"
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
