"""AdminClient: membership changes through the admin sidecar of any controller.

Every failure is an AdminError with a reason: those of docs/admin.md, and NO_ANSWER if no sidecar
could be asked. A change whose answer is lost is OUTCOME_UNKNOWN: describe the quorum before
repeating it.
"""

# ruff: noqa: ANN401 - one call serves every method, whatever its message
from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import grpc.aio

from quorate.api.admin_api import (
    NO_LEADER,
    OUTCOME_UNKNOWN,
    AdminError,
    ChangeResult,
    PrepareStopResult,
)
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Millis
from quorate.rpc.admin.errors import admin_error
from quorate.rpc.channels import ChannelPool, target
from quorate.rpc.convert.describe import describe_response
from quorate.rpc.convert.membership import key_in, message_of, method_of
from quorate.rpc.convert.raft import leader_of
from quorate.rpc.error_status import explain_error, was_never_sent
from quorate.rpc.gen.admin.v1 import admin_pb2 as pb
from quorate.rpc.gen.admin.v1 import admin_pb2_grpc
from quorate.rpc.gen.raft.v1 import raft_pb2
from quorate.rpc.method_table import ADMIN
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.client.controller_calls import Address
    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import Endpoint
    from quorate.rpc.security.tls_files import TlsFiles

TIMEOUT_S: Final = 30.0
NO_ANSWER: Final = "NO_ANSWER"
_ANY_CLUSTER: Final = ClusterId("")


class AdminClient:
    """Use as an async context manager. Any of `servers` does; each call is bounded in time.

    An unreachable sidecar is skipped, and the one that answered last is asked first.
    """

    def __init__(
        self,
        servers: Sequence[Address],
        *,
        timeout_s: float = TIMEOUT_S,
        tls: TlsFiles | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        """Plaintext without `tls`."""
        if not servers:
            raise ValueError("no sidecar to ask: give at least one address")
        self._servers = list(dict.fromkeys(servers))
        self._timeout_s = timeout_s
        self._tls = tls
        self._channels = ChannelPool(tls, drain_s=timeout_s, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._channels.close()

    # --- calls; all raise AdminError --------------------------------------------------------------

    async def describe(self, timeout_s: float | None = None) -> m.DescribeQuorumResponse:
        """The leader's view of the quorum. The time limit is divided among the sidecars."""
        request = raft_pb2.DescribeQuorumRequest()
        answer = await self._ask("DescribeQuorum", request, timeout_s, is_read=True)
        return describe_response(answer)

    async def add_voter(
        self,
        voter: ReplicaKey,
        listeners: tuple[Endpoint, ...] = (),
        *,
        force: bool = False,
        timeout_s: float | None = None,
    ) -> ChangeResult:
        """Add an observer to the voters; the sidecar looks up arguments that are left out."""
        request = m.AddRaftVoterRequest(
            cluster_id=_ANY_CLUSTER,
            voter=voter,
            listeners=listeners,
            timeout_ms=Millis(0),
            force=force,
        )
        return await self.change(request, timeout_s)

    async def remove_voter(
        self, voter: ReplicaKey, *, force: bool = False, timeout_s: float | None = None
    ) -> ChangeResult:
        """Remove a voter; returns when the removal is committed."""
        request = m.RemoveRaftVoterRequest(
            cluster_id=_ANY_CLUSTER, voter=voter, timeout_ms=Millis(0), force=force
        )
        return await self.change(request, timeout_s)

    async def transfer_leadership(
        self, to: ReplicaKey, timeout_s: float | None = None
    ) -> ChangeResult:
        """Transfer leadership to a voter; returns when it leads."""
        return await self.change(m.TransferLeadershipRequest(_ANY_CLUSTER, to), timeout_s)

    async def change(
        self, request: m.MembershipRequest, timeout_s: float | None = None
    ) -> ChangeResult:
        """Make any change. The result holds the final request and the current leader."""
        answer = await self._ask(method_of(request), message_of(request, ADMIN), timeout_s)
        leader = leader_of(answer.current_leader)
        if isinstance(request, m.UpdateFeaturesRequest | m.TransferLeadershipRequest):
            return ChangeResult(request, leader)
        return ChangeResult(replace(request, voter=key_in(answer.voter)), leader)

    async def prepare_stop(
        self, *, leave: bool, timeout_s: float | None = None
    ) -> PrepareStopResult:
        """Make it safe to stop the controller of the one sidecar that this client knows."""
        if len(self._servers) > 1:
            raise ValueError("which controller stops? PrepareStop is for a client of one sidecar")
        answer = await self._ask("PrepareStop", pb.PrepareStopRequest(leave=leave), timeout_s)
        return PrepareStopResult(
            handed_over=answer.handed_over,
            removed=answer.removed,
            is_voter=answer.is_voter if answer.HasField("is_voter") else None,
            leader=leader_of(answer.current_leader),
            has_leave=answer.has_leave,
            without_leave=answer.without_leave,
        )

    # --- asking one after the other ---------------------------------------------------------------

    async def _ask(
        self, method: str, message: Any, timeout_s: float | None, *, is_read: bool = False
    ) -> Any:
        """The first answer; reads go to the next sidecar after any failure, changes if never sent.

        A sidecar that finds no leader has changed nothing, and may be partitioned from it.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._timeout_s if timeout_s is None else timeout_s)
        said: list[str] = []
        leaderless: AdminError | None = None
        servers = list(self._servers)
        for position, server in enumerate(servers):
            left_s = max(0.001, deadline - loop.time())
            # An unresponsive server leaves the others their part of the time.
            attempt_s = left_s / (len(servers) - position) if is_read else left_s
            stub = admin_pb2_grpc.AdminStub(self._channels.get(*server))
            try:
                answer = await getattr(stub, method)(message, timeout=attempt_s)
            except grpc.aio.AioRpcError as error:
                refusal = admin_error(error)
                if refusal is not None and refusal.reason == NO_LEADER:
                    leaderless = leaderless or refusal
                    continue
                if refusal is not None:
                    raise refusal from error
                said.append(f"{target(*server)}: {explain_error(error, self._tls)}")
                # The listener may not be a sidecar: it does not know the call, and did nothing.
                may_be_done = error.code() is not grpc.StatusCode.UNIMPLEMENTED
                if not is_read and may_be_done and not was_never_sent(error):
                    raise _unknown(said[-1]) from error
            else:
                self._servers.remove(server)
                self._servers.insert(0, server)
                return answer
        raise leaderless or AdminError(
            NO_ANSWER, ErrorCode.LEADER_NOT_AVAILABLE, f"no sidecar answers: {'; '.join(said)}"
        )


def _unknown(said: str) -> AdminError:
    return AdminError(
        OUTCOME_UNKNOWN,
        ErrorCode.REQUEST_TIMED_OUT,
        f"the change may have been made, or may still be ({said}). Look at the quorum before you "
        "ask again",
    )
