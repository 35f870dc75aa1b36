"""The client of the admin API against real sidecars: answers, refusals, silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.api.admin_api import NO_LEADER, OUTCOME_UNKNOWN, AdminError
from quorate.client.admin_client import NO_ANSWER, AdminClient
from quorate.client.controller_client import ControllerClient
from quorate.client.membership_client import MembershipClient
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, NodeId, ReplicaKey
from tests.integration.client.conftest import sidecar
from tests.integration.client.mute import mute
from tests.integration.client.scripted import ScriptedQuorum, observer, refusal
from tests.integration.transports import EACH, chosen
from tests.ports import HOST, free_ports
from tests.unit.raft import cores

if TYPE_CHECKING:
    from tests.integration.client.conftest import Beside

pytestmark = EACH

ANY = ClusterId("")


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(NodeId(node_id))


async def test_each_call_brings_what_was_done(quorum: ScriptedQuorum, beside: Beside) -> None:
    quorum.observers = (observer(4),)
    async with AdminClient([beside.address], transport=chosen()) as client:
        described = await client.describe()
        assert [state.key for state in described.voters] == [cores.key(i) for i in (1, 2, 3)]
        added = await client.add_voter(key(4))
        assert isinstance(added.request, m.AddRaftVoterRequest)
        assert added.request.voter == cores.key(4)
        moved = await client.transfer_leadership(key(2))
        assert (moved.leader.leader_id, moved.leader.epoch) == (2, 6)
        removed = await client.remove_voter(key(3))
        assert isinstance(removed.request, m.RemoveRaftVoterRequest)
        assert removed.request.voter == cores.key(3)
        updated = await client.change(
            m.UpdateRaftVoterRequest(
                cluster_id=ANY,
                current_leader_epoch=Epoch(0),
                voter=key(2),
                listeners=quorum.endpoints(2),
                kraft_version_min=0,
                kraft_version_max=1,
            )
        )
        assert isinstance(updated.request, m.UpdateRaftVoterRequest)
        assert updated.request.voter == cores.key(2)
        await client.change(m.UpdateFeaturesRequest(1, validate_only=False))
        prepared = await client.prepare_stop(leave=True)
        assert (prepared.handed_over, prepared.removed, prepared.is_voter) == (False, True, False)
        assert sorted(quorum.voters) == [2, 4]


async def test_a_refusal_has_the_leaders_reason(quorum: ScriptedQuorum, beside: Beside) -> None:
    quorum.answers.append(
        refusal(ErrorCode.VOTER_NOT_FOUND, m.Reason.VOTER_LAGGING, "wait", lag="9")
    )
    async with AdminClient([beside.address], transport=chosen()) as client:
        with pytest.raises(AdminError, match="wait") as error:
            await client.remove_voter(key(3))
    assert error.value.reason == m.Reason.VOTER_LAGGING.value
    assert error.value.metadata["lag"] == "9"


async def test_what_is_no_sidecar_has_done_nothing(quorum: ScriptedQuorum) -> None:
    (controller,) = quorum.endpoints(1)
    server = (controller.host, controller.port)
    async with AdminClient([server], transport=chosen()) as client:
        with pytest.raises(AdminError, match=r"no sidecar answers.*UNIMPLEMENTED") as error:
            await client.prepare_stop(leave=False)
    assert error.value.reason == NO_ANSWER


async def test_a_sidecar_that_is_down_is_passed_over(beside: Beside) -> None:
    async with AdminClient(
        [(HOST, free_ports(1)[0]), beside.address], transport=chosen()
    ) as client:
        assert (await client.remove_voter(key(3))).leader.leader_id == 1


async def test_a_look_passes_over_a_sidecar_that_does_not_answer(beside: Beside) -> None:
    async with (
        mute() as server,
        AdminClient([server, beside.address], timeout_s=6, transport=chosen()) as client,
    ):
        assert (await client.describe()).leader.leader_id == 1


async def test_a_sidecar_that_is_cut_off_from_the_leader_is_passed_over(beside: Beside) -> None:
    async with (
        ScriptedQuorum(1) as alone,
        ControllerClient([alone.addresses[1]], transport=chosen()) as controllers,
    ):
        alone.lead(None)
        async with sidecar(MembershipClient(controllers)) as cut_off:
            async with AdminClient(
                [cut_off.address, beside.address], timeout_s=6, transport=chosen()
            ) as client:
                assert (await client.describe()).leader.leader_id == 1
            async with AdminClient([cut_off.address], timeout_s=4, transport=chosen()) as client:
                with pytest.raises(AdminError, match="knows no leader") as error:
                    await client.describe()
                assert error.value.reason == NO_LEADER


async def test_without_any_sidecar_all_are_named() -> None:
    first, second = ((HOST, port) for port in free_ports(2))
    async with AdminClient([first, second], transport=chosen()) as client:
        with pytest.raises(AdminError) as error:
            await client.remove_voter(key(3))
    assert error.value.reason == NO_ANSWER
    assert str(error.value) == (
        f"no sidecar answers: {HOST}:{first[1]}: connection refused; "
        f"{HOST}:{second[1]}: connection refused"
    )


async def test_a_change_without_an_answer_is_of_unknown_outcome(
    quorum: ScriptedQuorum, beside: Beside
) -> None:
    async def never(_: m.MembershipRequest) -> m.MembershipResponse:
        await beside.server.stop(0)
        return refusal(ErrorCode.REQUEST_TIMED_OUT, None)

    quorum.answers.append(never)
    async with AdminClient(
        [beside.address, (HOST, free_ports(1)[0])], transport=chosen()
    ) as client:
        with pytest.raises(AdminError, match="Look at the quorum") as error:
            await client.remove_voter(key(3))
    assert error.value.reason == OUTCOME_UNKNOWN


async def test_whose_stop_is_prepared_is_no_question(beside: Beside) -> None:
    async with AdminClient([beside.address, (HOST, 1)], transport=chosen()) as client:
        with pytest.raises(ValueError, match="which controller stops"):
            await client.prepare_stop(leave=False)
    with pytest.raises(ValueError, match="no sidecar to ask"):
        AdminClient([])
