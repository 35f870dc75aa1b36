"""A controller is scaled down and wanted again before its pod has ended: it votes again.

The sidecar runs in the test, since only that of a pod reads a StatefulSet.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from quorate.admin.statefulset import StopIntent
from quorate.client.controller_client import ControllerClient
from quorate.client.membership_client import MembershipClient
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from tests.integration.admin.test_turns import Pod
from tests.integration.client.conftest import sidecar
from tests.integration.membership.members import Members
from tests.integration.membership.test_disk_loss import AUTO_JOIN
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from pathlib import Path

# The node of the sidecar.
GOING = 1


async def prepare_stop(members: Members, stop_intent: StopIntent, *, leave: bool = False) -> None:
    """The hook before the stop; the sidecar asks a controller that runs."""
    servers = [members.all_nodes[2].address]
    request = pb.PrepareStopRequest(leave=leave)
    async with (
        ControllerClient(servers, transport=chosen()) as client,
        sidecar(MembershipClient(client), pod=Pod(stop_intent)) as beside,  # type: ignore[arg-type]
    ):
        prepared = await beside.stub.PrepareStop(request)
    assert (prepared.removed, prepared.is_voter) == (True, False)


async def test_who_is_scaled_away_and_comes_back_votes_again(tmp_path: Path) -> None:
    async with Members(tmp_path, AUTO_JOIN, voters=3) as members:
        await members.register_brokers()
        await prepare_stop(members, StopIntent.SCALED_AWAY)
        # Until it is stopped it does not join. A newcomer that joins shows that time enough has
        # passed for it, too.
        await members.bring_up(4)
        await members.voters_become(2, 3, 4)
        told = await members.cli("metadata-quorum", "describe", "--status")
        assert "its pod is scaled away" in told
        await members.stop(GOING)
        await members.bring_up(GOING)
        await members.voters_become(1, 2, 3, 4)
        assert (await members.leader()).decommissioned == ()
        await members.assert_logs_agree()


async def test_who_is_killed_before_it_learns_of_its_removal_votes_again(tmp_path: Path) -> None:
    """Its disk says that it is a voter; only the leader knows better."""
    async with Members(tmp_path, AUTO_JOIN, voters=3) as members:
        await members.register_brokers()
        if await members.leader_id() == GOING:
            await members.cli("metadata-quorum", "transfer-leader", "--to", "2")
        members.signal(GOING, signal.SIGSTOP)
        await prepare_stop(members, StopIntent.SCALED_AWAY)
        await members.voters_become(2, 3)
        await members.kill(GOING)
        assert members.sets_in_log(GOING)[-1] == [1, 2, 3]
        await members.bring_up(GOING)
        await members.voters_become(1, 2, 3)


async def test_who_leaves_by_hand_stays_away(tmp_path: Path) -> None:
    async with Members(tmp_path, AUTO_JOIN, voters=3) as members:
        await members.register_brokers()
        await prepare_stop(members, StopIntent.RETURNS, leave=True)
        await members.stop(GOING)
        await members.bring_up(GOING)
        await members.bring_up(4)
        await members.voters_become(2, 3, 4)
        assert (await members.leader()).decommissioned == (members.key(GOING),)
