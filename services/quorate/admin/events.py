"""Kubernetes Events about what a stop could not do, with the command that helps.

The log of a pod is deleted with the pod. An Event stays for an hour; `kubectl events` shows it.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from quorate.admin.kube_api import ANSWER_S

if TYPE_CHECKING:
    from quorate.admin.statefulset import StatefulSetAddress
    from quorate.api.admin_api import AdminError
    from quorate.records.ids import NodeId

log = logging.getLogger(__name__)
# The API server rejects longer messages.
MESSAGE_MAX: Final = 1024
NOT_REMOVED: Final = "VoterNotRemoved"
NOT_SPARED: Final = "VoterNotSpared"
_COMPONENT: Final = "quorate-admin"


class Events:
    """Posts Events about one pod of a StatefulSet. A failed post is logged and stops nothing."""

    def __init__(self, statefulset: StatefulSetAddress, ordinal: NodeId, *, has_tls: bool) -> None:
        """With TLS, the commands in messages need a properties file."""
        self._statefulset = statefulset
        self._ordinal = ordinal
        self._has_tls = has_tls

    async def tell_not_removed(self, error: AdminError) -> None:
        """The pod is scaled down and stops, but its voter stays in the voter set."""
        removal = f"remove-controller --controller-id {self._ordinal}"
        await self._tell(
            NOT_REMOVED,
            f"{self._pod} is scaled away and stops, and stays a voter",
            error.message,
            f"when a majority of the voters runs: {self._command(removal)}",
        )

    async def tell_not_spared(self, why: str) -> None:
        """The pod stops although the majority may need it."""
        await self._tell(
            NOT_SPARED,
            f"{self._pod} stops without leave",
            why,
            f"bring the other voters back; this shows them: {self._command('describe --status')}",
        )

    @property
    def _pod(self) -> str:
        return f"pod {self._statefulset.name}-{self._ordinal}"

    def _command(self, words: str) -> str:
        name, namespace = self._statefulset.name, self._statefulset.namespace
        tls = " --command-config /etc/quorate/config/client.properties" if self._has_tls else ""
        return (
            f"kubectl exec -n {namespace} {name}-0 -c controller -- quorate metadata-quorum"
            f" --bootstrap-controller {name}:9094{tls} {words}"
        )

    async def _tell(self, reason: str, what: str, why: str, remedy: str) -> None:
        # The command must not be truncated.
        room = MESSAGE_MAX - len(what) - len(remedy) - len(": ; ")
        message = f"{what}: {why[: max(0, room)]}; {remedy}"
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        named = self._statefulset
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{named.name}-", "namespace": named.namespace},
            "involvedObject": {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": named.name,
                "namespace": named.namespace,
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": f"{named.name}-{self._ordinal}",
        }
        path = f"/api/v1/namespaces/{named.namespace}/events"
        try:
            async with asyncio.timeout(ANSWER_S):
                await asyncio.to_thread(named.server.post, path, body)
        except OSError as error:
            log.warning(
                f"no Event could be written ({str(error) or type(error).__name__}): {message}"
            )
