"""Checks that no quorum exists before a directory is formatted to bootstrap one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.cli.leader_probe import LeaderStatus, ask_for_leader, check_no_leader, kind_for
from quorate.cli.output import CommandError
from quorate.cli.storage_recover import parse_ignored_servers
from quorate.client.server_addresses import format_server

if TYPE_CHECKING:
    import argparse

    from quorate.records.ids import ClusterId
    from quorate.server.config import ControllerConfig


def refuse_rival(
    arguments: argparse.Namespace, config: ControllerConfig, cluster_id: ClusterId
) -> None:
    """Raises CommandError if a bootstrap server knows a quorum of this cluster, or may know one.

    A directory that bootstraps a quorum has the same first offsets and epoch, so that it could
    continue the log of the other quorum and lead its voters without what they acknowledged.
    """
    ignored = parse_ignored_servers(arguments.ignore_server)
    servers = [each for each in config.quorum.bootstrap_servers if each not in ignored]
    if not servers:
        return
    answers = ask_for_leader(servers, cluster_id, kind_for(arguments, [config]))
    # A server that has never known a leader may be a voter that waits for its first one.
    knowing = (LeaderStatus.LEADS, LeaderStatus.LEADERLESS, LeaderStatus.NEW)
    known = [each for each in answers if each.leader_status in knowing]
    if known:
        raise CommandError(
            f"--standalone: {'; '.join(map(str, known))}: cluster {cluster_id} has controllers, and"
            " a second quorum would lose what either acknowledges. Use --no-initial-controllers, so"
            " that this directory joins them, or give a new cluster another --cluster-id; where one"
            " only waits for this quorum, --ignore-server HOST:PORT"
        )
    check_no_leader(answers, ignored=())
    for answer in answers:
        # DNS or its host may be down, and a leader that hangs accepts no connections.
        if answer.leader_status is LeaderStatus.UNREACHABLE:
            raise CommandError(
                f"--standalone: {answer}: it may have a quorum. See to its name, its host and the"
                f" network, or, where it has none, --ignore-server {format_server(answer.server)}"
            )
