"""The lookup of the own advertised host: repeated until it resolves, and then over."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.h2.name_resolver import NameResolver
from quorate.server.advertised_host import LONGEST_WAIT_S, WARNED_AFTER_S, AdvertisedHost
from quorate.telemetry.logs import RepeatFilter

if TYPE_CHECKING:
    import pytest

HOST = "q-0.q-headless.ns.svc.other.local"


class Largest:
    def random(self) -> float:
        return 1.0


@dataclass
class Stage:
    """Lookups that fail until a time, and a clock that moves with each pause."""

    resolves_at_s: float
    error: Exception = field(
        default_factory=lambda: socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    )
    now_s: float = 100.0
    pauses: list[float] = field(default_factory=list)

    def look_up(self, host: str) -> tuple[str, ...]:
        assert host == HOST
        if self.now_s < 100.0 + self.resolves_at_s:
            raise self.error
        return ("10.0.0.1",)

    async def pause(self, wait_s: float) -> None:
        self.pauses.append(wait_s)
        self.now_s += wait_s

    def of(self, host: str) -> AdvertisedHost:
        resolver = NameResolver(self.look_up)
        clock = lambda: self.now_s  # noqa: E731
        return AdvertisedHost(host, Largest(), resolver=resolver, clock=clock, pause=self.pause)


async def test_an_address_is_resolved_at_once() -> None:
    stage = Stage(resolves_at_s=1000.0)
    for address in ("10.0.0.1", "fd00::1"):
        assert stage.of(address).is_resolved


async def test_a_name_that_resolves_is_looked_up_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(resolves_at_s=0.0)
    own = stage.of(HOST)
    assert not own.is_resolved
    await own.resolve()
    assert own.is_resolved
    assert (stage.pauses, caplog.records) == ([], [])


async def test_a_name_that_is_late_is_nothing_to_warn_of(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(resolves_at_s=WARNED_AFTER_S / 2)
    own = stage.of(HOST)
    await own.resolve()
    assert own.is_resolved
    assert not caplog.records


async def test_a_name_that_leads_nowhere_is_asked_for_ever_less_often_and_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(resolves_at_s=3 * WARNED_AFTER_S)
    own = stage.of(HOST)
    await own.resolve()
    assert own.is_resolved
    assert stage.pauses == sorted(stage.pauses)
    assert stage.pauses[-1] == LONGEST_WAIT_S
    assert caplog.records[0].levelname == "WARNING"
    assert caplog.records[0].getMessage() == (
        f"advertised.listeners: {HOST} cannot be resolved: Name or service not known: peers and "
        "clients cannot call this controller, and it is not ready until they can: is this host "
        "right (on Kubernetes: clusterDomain; after a correction delete the pods of the old "
        "revision, pod 0 first)?"
    )
    is_new = RepeatFilter().filter
    assert [is_new(line) for line in caplog.records].count(True) == 1


async def test_an_error_of_another_kind_is_warned_about_and_ends_no_lookup(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(resolves_at_s=3 * WARNED_AFTER_S, error=RuntimeError("out of order"))
    own = stage.of(HOST)
    await own.resolve()
    assert own.is_resolved
    assert f"{HOST} cannot be resolved: RuntimeError('out of order')" in caplog.text
