"""Identities that the pods report, with the calls replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from quorate.api.admin_api import NO_LEADER, AdminError
from quorate.autojoin import quorum_client
from quorate.autojoin.quorum_client import PodQuorum
from quorate.client.admin_client import NO_ANSWER, AdminClient
from quorate.client.controller_calls import ApiVersions, ControllerCalls
from quorate.h2.name_resolver import NameLookupError
from quorate.records.errors import ErrorCode
from quorate.settings.transport import Transport
from tests.unit.autojoin.looks import CLUSTER, key, pod, quorum

if TYPE_CHECKING:
    from quorate.raft import messages as m

SILENT = tuple(replace(pod(each), key=None, cluster_id=None) for each in range(3))


class Names:
    """A resolver that knows every name but those of these pods."""

    def __init__(self, *unknown: str) -> None:
        self.unknown = unknown

    async def resolve(self, host: str, *, limit_s: float) -> tuple[str, ...]:
        assert limit_s > 0
        if host.partition(".")[0] in self.unknown:
            raise NameLookupError(f"{host} cannot be resolved: Name or service not known")
        return ("10.0.0.1",)


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Unless told otherwise DNS knows every pod."""
    known = Names()
    monkeypatch.setattr(quorum_client, "RESOLVER", known)
    return known


def pods_quorum() -> PodQuorum:
    return PodQuorum("ns", controller_port=9094, admin_port=9095, timeout_s=5.0)


async def test_running_pods_say_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def say(_: object, server: tuple[str, int], __: float) -> ApiVersions | str:
        asked.append(server)
        if server[0].startswith("q-1"):
            return "connection refused"
        return ApiVersions(CLUSTER, 0, "9", (), key(0).directory_id)

    monkeypatch.setattr(ControllerCalls, "try_api_versions_at", say)
    client = pods_quorum()
    broken = replace(SILENT[2], is_running=False)
    told = await client.identify_pods((SILENT[0], SILENT[1], broken), "q-headless")
    assert asked == [("q-0.q-headless.ns.svc", 9094), ("q-1.q-headless.ns.svc", 9094)]
    refused = replace(SILENT[1], describe_error="connection refused")
    assert told == (replace(SILENT[0], key=key(0), cluster_id=CLUSTER), refused, broken)
    await client.close()


async def test_a_pod_that_answers_for_another_one_is_resolved_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def say(_: object, server: tuple[str, int], __: float) -> ApiVersions | str:
        return ApiVersions(CLUSTER, 0, "9", (), key(0).directory_id)

    renewed = []

    def renew(_: object, server: tuple[str, int], *, keeps_address: bool) -> None:
        renewed.append((server, keeps_address))

    monkeypatch.setattr(ControllerCalls, "try_api_versions_at", say)
    monkeypatch.setattr(ControllerCalls, "renew", renew)
    client = pods_quorum()
    await client.identify_pods(SILENT[:2], "q-headless")
    assert renewed == [(("q-1.q-headless.ns.svc", 9094), False)]
    await client.close()


async def test_all_its_calls_are_made_by_the_transport_that_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = []

    def noted(real: Any) -> Any:  # noqa: ANN401 - the class of either client
        def make(*args: Any, transport: Transport, **how: Any) -> Any:  # noqa: ANN401
            chosen.append(transport)
            return real(*args, transport=transport, **how)

        return make

    for client in (AdminClient, ControllerCalls):
        monkeypatch.setattr(quorum_client, client.__name__, noted(client))
    operator = PodQuorum(
        "ns", controller_port=9094, admin_port=9095, timeout_s=5.0, transport=Transport.H2
    )
    silent = tuple(replace(each, is_running=False) for each in SILENT)
    assert await operator.identify_pods(silent, "q") == silent
    await operator.close()
    assert chosen == [Transport.H2] * 2


async def test_the_leaders_view_or_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    view = quorum(0, 1, 2)

    async def describe(_: object, __: float) -> m.DescribeQuorumResponse:
        return view

    async def nobody(_: object, __: float) -> m.DescribeQuorumResponse:
        raise AdminError(NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE, "nobody leads")

    client = pods_quorum()
    assert await client.describe((), "q") == (None, "there is no pod to ask")
    monkeypatch.setattr(AdminClient, "describe", describe)
    assert await client.describe(SILENT, "q") == (view, "")
    monkeypatch.setattr(AdminClient, "describe", nobody)
    assert await client.describe(SILENT, "q") == (None, "nobody leads")
    await client.close()


async def test_a_name_without_an_address_is_the_reason_of_a_silence(
    monkeypatch: pytest.MonkeyPatch, names: Names
) -> None:
    """A lookup that takes longer than the call looks like a pod that does not answer."""

    async def say(_: object, server: tuple[str, int], __: float) -> str:
        return "no answer in time"

    async def nobody(_: object, __: float) -> m.DescribeQuorumResponse:
        said = "no sidecar answers: q-0...: no answer in time; q-1...: connection refused"
        raise AdminError(NO_ANSWER, ErrorCode.LEADER_NOT_AVAILABLE, said)

    monkeypatch.setattr(ControllerCalls, "try_api_versions_at", say)
    monkeypatch.setattr(AdminClient, "describe", nobody)
    names.unknown = ("q-0",)
    client = pods_quorum()
    told = await client.identify_pods(SILENT[:2], "q-headless")
    unresolved = "q-0.q-headless.ns.svc cannot be resolved: Name or service not known"
    assert [each.describe_error for each in told] == [unresolved, "no answer in time"]
    _, silence = await client.describe(SILENT[:2], "q-headless")
    assert silence.endswith(f"connection refused; {unresolved}")
    await client.close()
