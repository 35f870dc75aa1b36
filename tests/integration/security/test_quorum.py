"""Real controllers behind mutual TLS: they commit, refuse, take up new certificates, and warn."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING

from quorate.client.controller_client import ControllerClient
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from tests.certificates import DAY, Authority
from tests.integration.security.secure_quorum import SecureQuorum
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.security.stores import Stores

WRITERS = 4
DESCRIBE = ("metadata-quorum", "describe", "--status")


def set_config(value: str) -> IncrementalAlterConfigs:
    """A change that needs no broker."""
    every_broker = ConfigResource(ResourceType.BROKER, "")
    change = ConfigChange("log.retention.ms", AlterOperation.SET, value)
    return IncrementalAlterConfigs((ConfigAlteration(every_broker, (change,)),))


async def test_a_quorum_commits_and_refuses_who_may_not(tmp_path: Path, stores: Stores) -> None:
    stores.give("late", stores.authority.leaf("late", valid_for=-DAY))
    async with SecureQuorum(tmp_path / "quorum", stores) as quorum:
        await quorum.client.write(set_config("1"))
        await quorum.assert_logs_agree()
        status, stdout, stderr = await quorum.cli_as("viewer", *DESCRIBE)
        assert (status, stderr) == (0, "")
        assert "LeaderId:" in stdout
        # Without a certificate a client gets the error that it can know: the server hung up.
        status, _, stderr = await quorum.cli_as(None, *DESCRIBE, "--timeout-ms", "5000")
        assert status == 1
        assert "it wants a client certificate, set ssl.keystore.location" in stderr
        # An expired one is found before any call.
        status, _, stderr = await quorum.cli_as("late", *DESCRIBE)
        assert status == 1
        assert stderr.startswith(
            f"error: --command-config: ssl.keystore.location {stores.keystore('late')}: the "
            "certificate of User:CN=late expired on "
        )
        # An identity that is not allowed is answered, with the reason.
        status, _, stderr = await quorum.cli_as("stranger", *DESCRIBE)
        assert status == 1
        assert "PERMISSION_DENIED (NOT_AUTHORIZED): User:CN=stranger may not call" in stderr
        assert (
            "it needs ClusterAction or QuorumAction or Describe on Cluster:kafka-cluster" in stderr
        )
        assert sum(quorum.said(i, "User:CN=stranger may not call") for i in quorum.nodes) > 0


async def test_a_killed_leader_is_noticed_by_a_plain_connect(
    tmp_path: Path, stores: Stores
) -> None:
    async with SecureQuorum(tmp_path / "quorum", stores) as quorum:
        before = (await quorum.leader()).leader
        assert before.leader_id is not None
        await quorum.kill(before.leader_id)
        await quorum.leader(above_epoch=before.epoch)
        survivors = [node_id for node_id in quorum.nodes if node_id != before.leader_id]
        assert sum(quorum.said(node_id, "refuses connections") for node_id in survivors) > 0
        await quorum.client.write(set_config("2"))


async def test_certificates_and_authorities_are_rotated_under_load(
    tmp_path: Path, stores: Stores
) -> None:
    """First both authorities are trusted, then certificates change, then the old one goes."""
    following = Authority("the next authority")
    parties = ["root", "controller-1", "controller-2", "controller-3"]
    async with SecureQuorum(tmp_path / "quorum", stores) as quorum:
        before = (await quorum.leader()).leader
        commits = [0]
        has_ended = asyncio.Event()

        async def write() -> None:
            while not has_ended.is_set():
                await quorum.client.write(set_config(str(commits[0])))
                commits[0] += 1

        writers = asyncio.gather(*(write() for _ in range(WRITERS)))

        async def rotated(times: int) -> None:
            """Every node uses the new files, and commits continue."""
            stores.look_again()
            await quorum.read_anew(times)
            enough = commits[0] + 10 * WRITERS

            async def goes_on() -> bool:
                return writers.done() or commits[0] >= enough

            await quorum.eventually("commits go on", goes_on)

        stores.trust(stores.authority, following)
        await rotated(1)
        for party in parties:
            stores.give(party, following.leaf(party))
        await rotated(2)
        stores.trust(following)
        await rotated(3)
        has_ended.set()
        await writers
        # No node has lost its leader since, and the old authority is not trusted any more.
        assert (await quorum.leader()).leader == before
        await quorum.assert_logs_agree()
        old = stores.files("viewer")
        for node in quorum.nodes.values():
            async with ControllerClient([node.address], tls=old, transport=chosen()) as client:
                said = await client.try_describe_at(node.address)
            assert isinstance(said, str)
            assert "may not trust the certificate of User:CN=viewer" in said


async def test_a_controller_warns_before_its_certificate_ends(
    tmp_path: Path, stores: Stores
) -> None:
    party = "controller-1"
    stores.give(party, stores.authority.leaf(party, valid_for=6 * DAY))
    async with SecureQuorum(tmp_path / "quorum", stores, controllers=1) as quorum:

        async def warned(words: str) -> None:
            async def has_said() -> bool:
                return quorum.said(1, f"expires within {words}, on ") == 1

            await quorum.eventually(f"it warns that it expires within {words}", has_said)

        await warned("7 days")
        stores.give(party, stores.authority.leaf(party, valid_for=dt.timedelta(hours=12)))
        await warned("1 day")
        stores.give(party)
        await quorum.read_anew(2)
        assert quorum.said(1, "expires within") == 2
