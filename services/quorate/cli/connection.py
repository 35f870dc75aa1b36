"""Shared flags, deadline and error reporting of commands that talk to a quorum.

A command is an async function of a client and its arguments. Every failure ends as one line on
stderr that lists the servers tried and the answer of each, and as exit status 1.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.api.admin_api import AdminError
from quorate.cli.argument_types import number
from quorate.cli.output import CommandError, admin_error, fail, non_utf8_argument, warn
from quorate.client.controller_calls import (
    OutcomeUnknownError,
    QuorumUnavailableError,
    RequestRefusedError,
)
from quorate.client.controller_client import ControllerClient
from quorate.client.fan_out import ask_all
from quorate.client.server_addresses import format_server, parse_server, parse_servers
from quorate.rpc.channels import ChannelKind, open_tls
from quorate.settings.integers import INT32_MAX
from quorate.settings.properties import ConfigError, Settings
from quorate.settings.property_files import read_properties
from quorate.settings.tls import TlsError, read_client_tls
from quorate.settings.tracing import read_command_tracing
from quorate.settings.transport import read_transport
from quorate.telemetry import tracing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from quorate.client.controller_calls import Address
    from quorate.controller.request_types import ReadReply, ReadRequestOf

R = TypeVar("R", bound="ReadReply")
TIMEOUT_MS_DEFAULT: Final = 30_000
REPORT_MS_MAX: Final = 1_000
# Seconds that a command waits at its end for the collector of its trace.
TRACE_S: Final = 0.2
_on_progress: ContextVar[Callable[[], None] | None] = ContextVar("on_progress", default=None)


def add_connection_arguments(
    parser: argparse.ArgumentParser,
    actions: Iterable[argparse.ArgumentParser],
    *,
    has_pin: bool = False,
) -> None:
    """The flags of every command that talks to a quorum, before its action or after it.

    `has_pin` adds the flags of commands whose reads any controller can answer.
    """
    _add_arguments(parser, has_pin=has_pin, has_defaults=True)
    for action in actions:
        # Flags that the action does not get keep the values given before it.
        _add_arguments(action, has_pin=has_pin, has_defaults=False)


def _add_arguments(parser: argparse.ArgumentParser, *, has_pin: bool, has_defaults: bool) -> None:
    def default(value: object) -> object:
        return value if has_defaults else argparse.SUPPRESS

    parser.add_argument(
        "--bootstrap-controller",
        "--bootstrap-server",
        metavar="HOST:PORT[,HOST:PORT]",
        default=default(None),
        help="controllers to ask first; the leader is found through them",
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        default=default(None),
        help="properties of the connection: security.protocol, ssl.*, grpc.transport; - for"
        " standard input",
    )
    parser.add_argument(
        "--timeout-ms",
        type=number(1, INT32_MAX),
        default=default(TIMEOUT_MS_DEFAULT),
        help="how long the command may take; one that works through a list, without getting any"
        f" further (default: {TIMEOUT_MS_DEFAULT})",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default=default("text"), help="the format"
    )
    if has_pin:
        parser.add_argument(
            "--controller",
            metavar="HOST:PORT",
            default=default(None),
            help="let this controller and no other answer a read",
        )
        parser.add_argument(
            "--min-offset",
            type=number(),
            default=default(0),
            help="a read waits until it reflects everything below this offset",
        )
        parser.add_argument(
            "--even-if-behind",
            action="store_true",
            default=default(value=False),
            help="read also from a controller that has not caught up since its start",
        )


def run_command(
    command: Callable[[ControllerClient, argparse.Namespace], Awaitable[int]],
    arguments: argparse.Namespace,
    *,
    is_endless: bool = False,
) -> int:
    """Run a command against the quorum and return its exit status.

    Every call ends within `--timeout-ms`. So does the whole command, unless it makes progress or
    `is_endless`.
    """
    try:
        servers, kind = servers_of(arguments), channel_kind(arguments)
        tracing.start(read_command_tracing(os.environ, warn), "cli")
        with nullcontext() if is_endless else tracing.command(_name_of(arguments), os.environ):
            return asyncio.run(_run(command, arguments, servers, kind, is_endless=is_endless))
    except KeyboardInterrupt:
        return 130
    except OutcomeUnknownError as error:
        return fail(f"the change may have been committed, or may still be: {error}")
    except AdminError as error:
        return fail(admin_error(error))
    except UnicodeEncodeError as error:
        return fail(non_utf8_argument(error))
    except (CommandError, QuorumUnavailableError, RequestRefusedError, ValueError) as error:
        return fail(str(error))
    finally:
        loss = tracing.stop(TRACE_S)
        if loss:
            warn(loss)


def _name_of(arguments: argparse.Namespace) -> str:
    """`quorate metadata-quorum add-controller`, for its trace."""
    words = (getattr(arguments, name, None) for name in ("command", "action"))
    return " ".join(["quorate", *(word for word in words if word)])


async def _run(
    command: Callable[[ControllerClient, argparse.Namespace], Awaitable[int]],
    arguments: argparse.Namespace,
    servers: list[Address],
    kind: ChannelKind,
    *,
    is_endless: bool,
) -> int:
    timeout_ms: int = arguments.timeout_ms
    # The calls of one command share its time. A single call ends early enough to list the answers
    # of the servers; after many calls the rest of the time is for asking them once more.
    reserve_ms = _reserve_ms(timeout_ms)
    call_ms = timeout_ms - 2 * reserve_ms
    limit_s = (timeout_ms - reserve_ms) / 1000
    loop = asyncio.get_running_loop()
    async with ControllerClient(
        servers, timeout_ms=call_ms, tls=kind.tls, transport=kind.transport
    ) as client:
        try:
            async with asyncio.timeout(None if is_endless else limit_s) as clock:
                if not is_endless:
                    _on_progress.set(lambda: clock.reschedule(loop.time() + limit_s))
                return await command(client, arguments)
        except TimeoutError:
            said = await server_reports(client, servers, reserve_ms / 1000)
            raise CommandError(f"not done within {timeout_ms} ms; {said}") from None


def extend_deadline() -> None:
    """Record progress of a command with many parts: its time limit starts over.

    A list may be arbitrarily long: only a quorum that does not respond ends the command.
    """
    on_progress = _on_progress.get()
    if on_progress is not None:
        on_progress()


def _reserve_ms(timeout_ms: int) -> int:
    return min(REPORT_MS_MAX, timeout_ms // 10)


def deadline_of(arguments: argparse.Namespace) -> float:
    """The deadline of one call, by the loop's clock, early enough to report its outcome."""
    timeout_ms: int = arguments.timeout_ms
    left_ms = timeout_ms - 2 * _reserve_ms(timeout_ms)
    return asyncio.get_running_loop().time() + left_ms / 1000


def servers_of(arguments: argparse.Namespace) -> list[Address]:
    """The servers that the flags name, the pinned one first. Raises CommandError."""
    named: list[Address] = []
    for flag in ("controller", "bootstrap_controller"):
        text = getattr(arguments, flag, None)
        if text:
            try:
                named += [server for server in parse_servers(text) if server not in named]
            except ValueError as error:
                raise CommandError(f"--{flag.replace('_', '-')}: {error}") from error
    if not named:
        raise CommandError("no server to ask: give --bootstrap-controller HOST:PORT")
    return named


def channel_kind(arguments: argparse.Namespace) -> ChannelKind:
    """The channels that `--command-config` requests. Raises CommandError.

    Certificates are checked before the first call: if the client has none, or an expired one, the
    server just closes the connection.
    """
    path: str | None = arguments.command_config
    if path is None:
        return ChannelKind()
    try:
        settings = Settings(read_properties(path), {})
        tls, transport = read_client_tls(settings), read_transport(settings)
        for warning in settings.warnings():
            warn(f"--command-config: {warning}")
        return ChannelKind(open_tls(tls), transport)
    except (ConfigError, TlsError) as error:
        raise CommandError(f"--command-config: {error}") from error


def pinned(arguments: argparse.Namespace) -> Address | None:
    """The one controller that has to answer a read, or None."""
    return parse_server(arguments.controller) if arguments.controller else None


async def ask(
    client: ControllerClient, arguments: argparse.Namespace, request: ReadRequestOf[R]
) -> R:
    """Read from the server, and with the freshness, that the flags select."""
    return await client.read(
        request,
        min_offset=arguments.min_offset,
        controller=pinned(arguments),
        even_if_behind=arguments.even_if_behind,
    )


async def server_reports(
    client: ControllerClient, servers: Sequence[Address], timeout_s: float
) -> str:
    """Ask all servers in parallel; one phrase for each."""
    answers = await ask_all(servers, lambda s: client.try_describe_at(s, timeout_s))
    phrases = []
    for server, answer in answers.items():
        if isinstance(answer, str):
            words = answer
        elif answer.leader.leader_id is None:
            words = f"knows no leader (epoch {answer.leader.epoch})"
        else:
            words = f"says that node {answer.leader.leader_id} leads (epoch {answer.leader.epoch})"
        phrases.append(f"{format_server(server)}: {words}")
    return "tried " + "; ".join(phrases)
