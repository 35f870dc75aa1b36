"""Quorum access: identifies pods, describes and changes the quorum through a sidecar."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.api.admin_api import AdminError
from quorate.client.admin_client import NO_ANSWER, AdminClient
from quorate.client.controller_calls import ControllerCalls
from quorate.h2.name_resolver import RESOLVER, NameLookupError
from quorate.records.ids import ClusterId, NodeId, ReplicaKey
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.autojoin.state import Pod
    from quorate.client.controller_calls import Address
    from quorate.raft.messages import DescribeQuorumResponse
    from quorate.rpc.security.tls_files import TlsFiles

ASK_TIMEOUT_S: Final = 2.0
DESCRIBE_TIMEOUT_S: Final = 6.0
# A call joins a DNS lookup in progress, so this is added to the time of the call.
LOOKUP_S: Final = 1.0


class PodQuorum:
    """Queries pods by the names of their headless service, which outlive their addresses.

    Implements `reconcile.Quorum`. Clients are kept from pass to pass, and recreated when the pods
    change.
    """

    def __init__(
        self,
        namespace: str,
        *,
        controller_port: int,
        admin_port: int,
        timeout_s: float,
        tls: TlsFiles | None = None,
        transport: Transport = DEFAULT_TRANSPORT,
    ) -> None:
        self._namespace = namespace
        self._controller_port = controller_port
        self._admin_port = admin_port
        self._timeout_s = timeout_s
        self._tls = tls
        self._transport = transport
        self._controllers: ControllerCalls | None = None
        self._sidecars: AdminClient | None = None
        self._known: tuple[str, ...] = ()

    async def close(self) -> None:
        """Close the open clients."""
        if self._controllers is not None:
            await self._controllers.close()
        if self._sidecars is not None:
            await self._sidecars.close()
        self._controllers = self._sidecars = None
        self._known = ()

    def _hosts(self, pods: Sequence[Pod], service: str) -> tuple[str, ...]:
        return tuple(f"{pod.name}.{service}.{self._namespace}.svc" for pod in pods)

    async def _connect(self, pods: Sequence[Pod], service: str) -> ControllerCalls | None:
        hosts = self._hosts(pods, service)
        if hosts != self._known:
            await self.close()
        if not hosts:
            return None
        if self._controllers is None:
            self._known = hosts
            self._controllers = ControllerCalls(
                drain_s=ASK_TIMEOUT_S, tls=self._tls, transport=self._transport
            )
            self._sidecars = AdminClient(
                [(host, self._admin_port) for host in hosts],
                timeout_s=self._timeout_s,
                tls=self._tls,
                transport=self._transport,
            )
        return self._controllers

    async def identify_pods(self, pods: Sequence[Pod], service: str) -> tuple[Pod, ...]:
        """Identify each running pod; other and unresponsive pods stay as they are."""
        client = await self._connect(pods, service)
        if client is None:
            return tuple(pods)
        hosts = self._hosts(pods, service)
        asked = (
            self._ask_one(client, pod, (host, self._controller_port))
            for pod, host in zip(pods, hosts, strict=True)
        )
        return tuple(await asyncio.gather(*asked))

    async def _ask_one(self, client: ControllerCalls, pod: Pod, server: Address) -> Pod:
        if not pod.is_running:
            return pod
        answer = await client.try_api_versions_at(server, ASK_TIMEOUT_S)
        if isinstance(answer, str):
            return replace(pod, describe_error=await _why_unresolved(server[0]) or answer)
        if answer.directory_id is None:
            return pod
        if answer.node_id != pod.ordinal:
            # Restarted pods may have swapped addresses; DNS may be correct by now.
            client.renew(server, keeps_address=False)
        key = ReplicaKey(NodeId(answer.node_id), answer.directory_id)
        return replace(pod, key=key, cluster_id=ClusterId(answer.cluster_id))

    async def describe(
        self, pods: Sequence[Pod], service: str
    ) -> tuple[DescribeQuorumResponse | None, str]:
        """Describe the quorum through the first sidecar that answers."""
        await self._connect(pods, service)
        if self._sidecars is None:
            return None, "there is no pod to ask"
        try:
            return await self._sidecars.describe(DESCRIBE_TIMEOUT_S), ""
        except AdminError as error:
            if error.reason != NO_ANSWER:
                return None, error.message
            looked_up = await asyncio.gather(*map(_why_unresolved, self._known))
            news = (each for each in looked_up if each not in error.message)
            return None, "; ".join((error.message, *news))

    async def add_voter(self, key: ReplicaKey) -> None:
        """Add a voter. Raises AdminError."""
        await self._connected().add_voter(key)

    async def remove_voter(self, key: ReplicaKey) -> None:
        """Remove a voter. Raises AdminError."""
        await self._connected().remove_voter(key)

    async def transfer_leadership(self, to: ReplicaKey) -> None:
        """Transfer leadership. Raises AdminError."""
        await self._connected().transfer_leadership(to)

    def _connected(self) -> AdminClient:
        assert self._sidecars is not None, "a decision needs a view, and a view a client"
        return self._sidecars


async def _why_unresolved(host: str) -> str:
    """The reason that a name does not resolve, or an empty string if it does."""
    try:
        await RESOLVER.resolve(host, limit_s=LOOKUP_S)
    except NameLookupError as error:
        return str(error)
    return ""
