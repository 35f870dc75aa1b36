"""The process where it cannot start, and how passes follow each other where it runs."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from kubernetes.aio import client as k8s

from quorate.autojoin import service
from quorate.autojoin.config import read_config
from quorate.autojoin.decision import decide
from quorate.autojoin.lease import HOLDER, STANDBY, Lease
from quorate.autojoin.metrics import Meters
from quorate.autojoin.reconciler import ClusterError, Reconciler, Reconciliation
from tests.unit.autojoin.lease_store import Store
from tests.unit.autojoin.looks import desired, look, pods, quorum

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENDS_WITHIN_S = 60.0
ACTS = decide(desired(3), look(pods(3), quorum(0, observers=(1,))))
RESTS = decide(desired(3), look(pods(3), quorum(0, 1, 2)))


def test_a_missing_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("QUORATE_AUTOJOIN_STATEFULSET", raising=False)
    monkeypatch.setenv("QUORATE_AUTOJOIN_NAMESPACE", "ns")
    assert service.main_autojoin(None) == 1
    assert "quorate autojoin: autojoin.statefulset is missing" in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert service.main_autojoin(str(tmp_path / "none.properties")) == 1
    assert "none.properties" in capsys.readouterr().err


class Stage:
    """An operator whose passes are written down beforehand: the last one stops it."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *passes: Reconciliation | Exception
    ) -> None:
        self.left = list(passes)
        self.store = Store()
        self.stop = asyncio.Event()
        self.meters = Meters("q", 5.0)
        self.wake: Callable[[], None] | None = None
        self.ready: list[bool] = []
        self.withdrawn: list[str] = []
        monkeypatch.setattr(Reconciler, "withdraw", self.withdraw)
        monkeypatch.setattr(k8s, "CoordinationV1Api", lambda _: self.store)
        monkeypatch.setattr(service, "SOON_S", 0.0)
        monkeypatch.setattr(service, "watch", self.watch)
        monkeypatch.setattr(Reconciler, "run", self.run_pass)

    async def watch(self, _: str, __: str, wake: Callable[[], None], stop: asyncio.Event) -> None:
        self.wake = wake
        await stop.wait()

    async def show_ready(self, is_ready: bool) -> None:  # noqa: FBT001 - as it is called
        self.ready.append(is_ready)

    async def withdraw(self, *_: object) -> None:
        assert self.store.lease is not None
        self.withdrawn.append(self.store.lease.spec.holder_identity)

    async def run_pass(self, *_: object) -> Reconciliation:
        done = self.left.pop(0)
        if not self.left:
            self.stop.set()
        if isinstance(done, Exception):
            raise done
        return done

    async def run(self, *, interval_ms: int, **more: str) -> None:
        properties = {"autojoin.statefulset": "q", "autojoin.identity": "me"}
        properties |= {f"autojoin.{key}": value for key, value in more.items()}
        properties["autojoin.interval.ms"] = str(interval_ms)
        config = read_config(properties, {}, namespace="ns")
        operator = service.Operator(config, None, None, self.meters, self.show_ready)
        await asyncio.wait_for(operator.run(self.stop), ENDS_WITHIN_S)

    def passes(self, outcome: str) -> float | None:
        labels = {"statefulset": "q", "outcome": outcome}
        return self.meters.registry.get_sample_value("quorate_autojoin_passes_total", labels)


async def test_after_an_action_it_looks_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, Reconciliation(ACTS), Reconciliation(ACTS), Reconciliation(RESTS))
    # With the timer alone this would take hours.
    await stage.run(interval_ms=3_600_000)
    assert stage.passes("done") == 3


async def test_what_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(
        monkeypatch,
        ClusterError("no answer"),
        Reconciliation(ACTS, error="refused"),
        ValueError("no memory"),
        Reconciliation(RESTS),
    )
    await stage.run(interval_ms=100)
    assert stage.passes("failed") == 2
    assert stage.passes("refused") == 1
    assert stage.passes("done") == 1


async def test_who_stops_gives_the_lease_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, Reconciliation(RESTS))
    await stage.run(interval_ms=100)
    assert stage.store.lease is not None
    assert stage.store.lease.spec.holder_identity == ""


async def test_a_part_that_ends_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, Reconciliation(RESTS), Reconciliation(RESTS))

    async def broken(*_: object) -> None:
        raise RuntimeError("the watch has ended")

    monkeypatch.setattr(service, "watch", broken)
    with pytest.raises(RuntimeError, match="the watch has ended"):
        await stage.run(interval_ms=3_600_000)


async def test_what_was_told_is_taken_back_before_the_next_one_has_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, Reconciliation(RESTS))
    await stage.run(interval_ms=100)
    assert stage.withdrawn == ["me"]


async def test_one_without_the_lease_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, Reconciliation(RESTS))
    lost = stage.run_pass

    async def lose(*_: object) -> Reconciliation:
        monkeypatch.setattr(Lease, "is_held", lambda _: False)
        return await lost()

    monkeypatch.setattr(Reconciler, "run", lose)
    await stage.run(interval_ms=100)
    assert stage.withdrawn == []


async def test_taking_it_back_does_not_hold_up_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, Reconciliation(RESTS))

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Reconciler, "withdraw", hang)
    monkeypatch.setattr(service, "WITHDRAW_S", 0.0)
    await stage.run(interval_ms=100)
    assert stage.store.lease is not None
    assert stage.store.lease.spec.holder_identity == ""


async def test_it_is_ready_while_all_is_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(
        monkeypatch,
        Reconciliation(ACTS),
        Reconciliation(RESTS),
        ClusterError("no answer"),
        Reconciliation(RESTS),
    )
    monkeypatch.setattr(service, "READINESS_S", 0.0)
    told = stage.run_pass
    seen = []

    async def after_it_is_told(*_: object) -> Reconciliation:
        for _turn in range(3):
            await asyncio.sleep(0)
        seen.append(stage.ready[-1:] == [True])
        return await told()

    monkeypatch.setattr(Reconciler, "run", after_it_is_told)
    await stage.run(interval_ms=100)
    assert seen == [False, False, True, False]
    # One that ends is not ready.
    assert not stage.ready[-1]


async def test_a_lease_that_was_away_for_a_moment_begins_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only another holder may have changed what this one knows."""
    stage = Stage(monkeypatch)
    seen = [(False, 0)]
    renewals = [(True, 1), (False, 1), (True, 1), (False, 1), (True, 2)]
    begun = []

    async def renew(_: object) -> None:
        seen.append(renewals.pop(0))
        if not renewals:
            stage.stop.set()

    async def rest(_: object) -> Reconciliation:
        return Reconciliation(RESTS)

    async def withdraw(_: object) -> None: ...

    monkeypatch.setattr(Lease, "renew", renew)
    monkeypatch.setattr(Lease, "is_held", lambda _: seen[-1][0])
    monkeypatch.setattr(Lease, "turn", property(lambda _: seen[-1][1]), raising=False)
    monkeypatch.setattr(Lease, "wait_s", 0.0)
    monkeypatch.setattr(Reconciler, "run", rest)
    monkeypatch.setattr(Reconciler, "withdraw", withdraw)
    monkeypatch.setattr(Reconciler, "begin", lambda _: begun.append(seen[-1][1]))
    await stage.run(interval_ms=100)
    assert begun == [0, 1, 2]


FAILS = ClusterError("no answer")
REFUSED = Reconciliation(ACTS, error="refused")


@pytest.mark.parametrize(
    ("passes", "holders"),
    [
        (("new", "new"), ["me", "", "me", ""]),
        (("old", "old"), ["me", ""]),
        (("third", "third"), ["me", ""]),
        ((FAILS, FAILS, "old"), ["me", ""]),
        # It may be this operator that cannot look.
        ((FAILS, FAILS, FAILS, "old"), ["me", "", "me", ""]),
        # One of the StatefulSet's release would get it back.
        (("old", FAILS, FAILS, FAILS, "old"), ["me", ""]),
        # Each of these has looked.
        ((REFUSED, REFUSED, REFUSED, "old"), ["me", ""]),
    ],
)
async def test_after_a_pass_it_gives_way_to_an_operator_of_the_statefulsets_release(
    monkeypatch: pytest.MonkeyPatch,
    passes: tuple[str | Reconciliation | Exception, ...],
    holders: list[str],
) -> None:
    outcomes = [
        Reconciliation(RESTS, desired=replace(desired(3), template=each))
        if isinstance(each, str)
        else each
        for each in passes
    ]
    stage = Stage(monkeypatch, *outcomes)
    store = stage.store
    spec = k8s.V1LeaseSpec(holder_identity="me", lease_duration_seconds=1)
    # The standby has ended since it wrote this.
    metadata = k8s.V1ObjectMeta(name="l", resource_version="0", annotations={STANDBY: "new"})
    store.lease = k8s.V1Lease(metadata=metadata, spec=spec)
    seen: list[str] = []
    keep = store.replace_namespaced_lease

    async def noted(name: str, namespace: str, lease: k8s.V1Lease, **_: object) -> None:
        await keep(name, namespace, lease)
        if seen[-1:] != [lease.spec.holder_identity]:
            seen.append(lease.spec.holder_identity)

    monkeypatch.setattr(store, "replace_namespaced_lease", noted)
    monkeypatch.setattr(service, "BACKOFF_MAX_S", 0.0)
    await stage.run(interval_ms=100, template="old", **{"lease.ms": "1000"})
    assert seen == holders


async def test_the_verdict_of_a_pass_is_in_the_lease_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, Reconciliation(ACTS), Reconciliation(RESTS), Reconciliation(RESTS))
    monkeypatch.setattr(service, "READINESS_S", 0.0)
    told = stage.run_pass
    said = asyncio.Event()
    keep = stage.store.replace_namespaced_lease

    async def noted(name: str, namespace: str, lease: k8s.V1Lease, **_: object) -> None:
        await keep(name, namespace, lease)
        if json.loads(lease.metadata.annotations[HOLDER])["isInStep"]:
            said.set()

    async def after_it_is_told(*_: object) -> Reconciliation:
        if len(stage.left) == 1:
            await said.wait()
        else:
            assert not said.is_set()
        return await told()

    monkeypatch.setattr(stage.store, "replace_namespaced_lease", noted)
    monkeypatch.setattr(Reconciler, "run", after_it_is_told)
    # By its timer it would renew the Lease after minutes.
    await stage.run(interval_ms=100, **{"lease.ms": "3600000"})
