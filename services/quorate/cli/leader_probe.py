"""Checks that no leader is alive before a command creates a new quorum.

A missing answer counts only if no process listens: the host refuses the connection, or the name
provably does not exist. A name that cannot be looked up, an unreachable host, or a process that
accepts a connection and gives no decodable answer may each belong to a leader: those prove nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.cli.connection import channel_kind
from quorate.cli.output import CommandError
from quorate.client.controller_calls import RequestRefusedError
from quorate.client.controller_client import ControllerClient
from quorate.client.fan_out import ask_all
from quorate.client.server_addresses import format_server
from quorate.h2.name_resolver import RESOLVER, NameLookupError, NoSuchNameError
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type
from quorate.rpc.channels import ChannelKind, open_tls
from quorate.settings.tls import TlsError
from quorate.settings.transport import DEFAULT_TRANSPORT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from quorate.client.controller_calls import Address
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.server.config import ControllerConfig

PROBE_TIMEOUT_S: Final = 3.0
# A follower that heard from its leader more recently than this (ms) vouches for it.
HEARD_LATELY_MS: Final = 10_000


class LeaderStatus(Enum):
    """The meaning of a server's answer for a new quorum."""

    REFUSED = "no process listens"
    ABSENT = "the name does not exist"
    UNREACHABLE = "no connection, for another reason"
    FOREIGN = "another cluster"
    NEW = "no leader ever"
    LEADERLESS = "no leader now"
    LEADS = "a leader"
    UNCLEAR = "no answer that can be understood"


@value_type
class Answer:
    """The answer of one server, as text that follows its address."""

    server: Address
    leader_status: LeaderStatus
    words: str

    def __str__(self) -> str:
        return f"{format_server(self.server)} {self.words}"


def ask_for_leader(servers: Iterable[Address], cluster_id: str, kind: ChannelKind) -> list[Answer]:
    """Ask all servers in parallel, and the leaders that they name; the answers in order."""
    return asyncio.run(_ask_all(list(dict.fromkeys(servers)), cluster_id, kind))


def why_unknown(host: str) -> str | None:
    """The reason for which DNS has no address of a name now; None if it has one."""
    RESOLVER.forget(host)
    try:
        asyncio.run(RESOLVER.resolve(host, limit_s=PROBE_TIMEOUT_S))
    except NameLookupError as error:
        return str(error)
    return None


def kind_for(arguments: argparse.Namespace, configs: Iterable[ControllerConfig]) -> ChannelKind:
    """The kind of channel that `--command-config` requests, else the one between controllers.

    Raises CommandError.
    """
    if arguments.command_config is not None:
        return channel_kind(arguments)
    known = list(configs)
    settings = next((config.peers.tls for config in known if config.peers.tls is not None), None)
    try:
        transport = next((config.transport for config in known), DEFAULT_TRANSPORT)
        return ChannelKind(open_tls(settings), transport)
    except TlsError as error:
        raise CommandError(str(error)) from error


def check_no_leader(answers: Sequence[Answer], *, ignored: Sequence[Address]) -> None:
    """Raises CommandError if a leader answers, or may exist, at a server that is not ignored."""
    judged = [answer for answer in answers if answer.server not in ignored]
    leading = "; ".join(
        str(answer) for answer in judged if answer.leader_status is LeaderStatus.LEADS
    )
    if leading:
        raise CommandError(
            f"{leading}: the quorum is alive, and a second one beside it would lose what either"
            " acknowledges. Use the one that there is, or stop all its controllers first"
        )
    for answer in judged:
        if answer.leader_status is LeaderStatus.UNCLEAR:
            raise CommandError(
                f"{answer}: whether a leader is there cannot be judged. Stop what listens there, or"
                " ask as somebody who may with --command-config; or, where it is no controller of"
                f" this quorum, --ignore-server {format_server(answer.server)}"
            )


async def _ask_all(servers: list[Address], cluster_id: str, kind: ChannelKind) -> list[Answer]:
    asked = await ask_all(
        servers, lambda server: _ask(server, cluster_id, kind), named_in=lambda said: said[1]
    )
    return [answer for answer, _ in asked.values()]


async def _ask(server: Address, cluster_id: str, kind: ChannelKind) -> tuple[Answer, list[Address]]:
    """One server's answer, and the addresses of the leader that it names."""
    try:
        host, port = server
        _, writer = await RESOLVER.connect(
            host,
            lambda address: asyncio.open_connection(address, port),
            limit_s=PROBE_TIMEOUT_S,
        )
    except TimeoutError:
        words = f"cannot be reached within {PROBE_TIMEOUT_S:g} s"
        return Answer(server, LeaderStatus.UNREACHABLE, words), []
    except NoSuchNameError as error:
        return Answer(server, LeaderStatus.ABSENT, f"does not exist ({error})"), []
    except ConnectionRefusedError:
        return Answer(server, LeaderStatus.REFUSED, "does not answer (connection refused)"), []
    except OSError as error:
        words = f"cannot be reached ({error.strerror or error})"
        return Answer(server, LeaderStatus.UNREACHABLE, words), []
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    async with ControllerClient([server], tls=kind.tls, transport=kind.transport) as client:
        try:
            said = await client.try_describe_at(server, PROBE_TIMEOUT_S)
            identity = await client.try_api_versions_at(server, PROBE_TIMEOUT_S)
        except RequestRefusedError as error:
            return Answer(server, LeaderStatus.UNCLEAR, f"refuses to say who leads ({error})"), []
    for answer in (said, identity):
        if isinstance(answer, str):
            words = f"accepts connections, but: {answer}"
            return Answer(server, LeaderStatus.UNCLEAR, words), []
    assert not isinstance(said, str), "words were returned above"
    assert not isinstance(identity, str), "words were returned above"
    if identity.cluster_id != cluster_id:
        words = f"is of another cluster, {identity.cluster_id}"
        return Answer(server, LeaderStatus.FOREIGN, words), []
    standing, words = classify_answer(said, identity.node_id)
    return Answer(server, standing, words), [(e.host, e.port) for e in said.leader.endpoints]


def classify_answer(said: DescribeQuorumResponse, node_id: int) -> tuple[LeaderStatus, str]:
    """Classify a controller's answer, with text that follows its address."""
    leader, epoch = said.leader.leader_id, said.leader.epoch
    if said.error is ErrorCode.NONE:
        return LeaderStatus.LEADS, f"is node {node_id}, which leads in epoch {epoch}"
    if leader is None and epoch == 0:
        return LeaderStatus.NEW, f"is node {node_id}, which has never known a leader"
    if leader is None or leader == node_id:
        return LeaderStatus.LEADERLESS, f"is node {node_id}, without a leader in epoch {epoch}"
    ages = [said.now_ms - heard.at_ms for heard in said.heard if heard.node_id == leader]
    if ages and min(ages) <= HEARD_LATELY_MS:
        words = f"is node {node_id}, which heard its leader {leader} {min(ages)} ms ago"
        return LeaderStatus.LEADS, words
    return (
        LeaderStatus.LEADERLESS,
        f"is node {node_id}, which followed node {leader} in epoch {epoch}",
    )
