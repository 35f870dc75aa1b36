"""The admin sidecar behind mutual TLS calls controllers for its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from quorate.api.authorization_settings import STANDARD_AUTHORIZER
from quorate.rpc.error_status import error_info_of
from quorate.rpc.gen.admin.v1 import admin_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2
from tests.integration.admin.sidecars import sidecar_of
from tests.integration.quorum import DEADLINE_S
from tests.integration.security.secure_quorum import SecureQuorum

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from tests.integration.security.stores import Stores

DESCRIBE = raft_pb2.DescribeQuorumRequest()
REMOVE = admin_pb2.RemoveRaftVoterRequest(voter_id=1)
STOP = admin_pb2.PrepareStopRequest()


@pytest.fixture
async def secure(tmp_path: Path, stores: Stores) -> AsyncIterator[SecureQuorum]:
    """One controller, which lets `admin` call for others."""
    async with SecureQuorum(tmp_path / "quorum", stores, controllers=1) as quorum:
        yield quorum


def certificate_of(stores: Stores, party: str) -> dict[str, str]:
    """The settings of a sidecar with this certificate."""
    return {
        "security.protocol": "SSL",
        "ssl.keystore.location": str(stores.keystore(party)),
        "ssl.truststore.location": str(stores.truststore),
        "ssl.client.auth": "required",
    }


async def refused(call: Awaitable[object]) -> str:
    """The status of a refused call, on one line."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    refusal = error_info_of(raised.value)
    assert refusal is not None
    return f"{refusal.code.name} {refusal.reason}: {refusal.message}"


async def test_controllers_judge_whoever_called_the_sidecar(
    secure: SecureQuorum, stores: Stores, tmp_path: Path
) -> None:
    async with sidecar_of(secure, 1, tmp_path, certificate_of(stores, "admin")) as sidecar:
        async with sidecar.called_as(stores.files("viewer")) as stub:
            answer = await stub.DescribeQuorum(DESCRIBE, timeout=DEADLINE_S)
            assert [voter.replica_id for voter in answer.current_voters] == [1]
            said = await refused(stub.RemoveRaftVoter(REMOVE, timeout=DEADLINE_S))
            assert said.startswith("PERMISSION_DENIED NOT_AUTHORIZED")
            assert "User:CN=viewer may not call quorate.raft.v1.Raft/RemoveRaftVoter" in said
        async with sidecar.called_as(stores.files("stranger")) as stub:
            said = await refused(stub.DescribeQuorum(DESCRIBE, timeout=DEADLINE_S))
            assert said.startswith("PERMISSION_DENIED NOT_AUTHORIZED")
            assert "User:CN=stranger may not call quorate.raft.v1.Raft/DescribeQuorum" in said
        async with sidecar.called_as(stores.files("root")) as stub:
            said = await refused(stub.RemoveRaftVoter(REMOVE, timeout=DEADLINE_S))
            assert said.startswith("FAILED_PRECONDITION LAST_VOTER")
        assert 'principal="User:CN=root"' in await sidecar.line("is the last one")


async def test_a_sidecar_that_may_not_call_for_others_is_told(
    secure: SecureQuorum, stores: Stores, tmp_path: Path
) -> None:
    async with (
        sidecar_of(secure, 1, tmp_path, certificate_of(stores, "operator")) as sidecar,
        sidecar.called_as(stores.files("root")) as stub,
    ):
        said = await refused(stub.DescribeQuorum(DESCRIBE, timeout=DEADLINE_S))
    assert said.startswith("PERMISSION_DENIED FORWARDING_NOT_ALLOWED")
    assert "User:CN=operator may not call for others: list it in authorizer.forwarders" in said


async def test_a_sidecar_may_judge_by_lists_of_its_own(
    secure: SecureQuorum, stores: Stores, tmp_path: Path
) -> None:
    lists = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "authorizer.allow.describe": "User:CN=viewer",
    }
    own = certificate_of(stores, "admin") | lists
    async with sidecar_of(secure, 1, tmp_path, own) as sidecar:
        async with sidecar.called_as(stores.files("viewer")) as stub:
            await stub.DescribeQuorum(DESCRIBE, timeout=DEADLINE_S)
            said = await refused(stub.PrepareStop(STOP, timeout=DEADLINE_S))
            assert said.startswith("PERMISSION_DENIED NOT_AUTHORIZED: User:CN=viewer may not call")
            assert "quorate.admin.v1.Admin/PrepareStop: it needs Alter" in said
        async with sidecar.called_as(stores.files("root")) as stub:
            said = await refused(stub.DescribeQuorum(DESCRIBE, timeout=DEADLINE_S))
            assert said.startswith("PERMISSION_DENIED NOT_AUTHORIZED: User:CN=root may not call")
