"""A controller leaves only when its StatefulSet says that it is scaled down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from quorate.admin.statefulset import (
    ACCESS_REVOKED_S,
    Outlook,
    StopIntent,
    StopIntentReader,
    outlook_of,
    statefulset_at,
)
from quorate.settings.properties import ConfigError
from tests.unit.admin.api_servers import StandIn, api

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["api"]


def found(replicas: object, **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"replicas": replicas, **spec}}


@pytest.mark.parametrize(
    ("ordinal", "stop_intent"),
    [
        (0, StopIntent.RETURNS),
        (2, StopIntent.RETURNS),
        (3, StopIntent.SCALED_AWAY),
        (4, StopIntent.SCALED_AWAY),
    ],
)
def test_ordinals_beyond_the_replicas_are_scaled_away(
    ordinal: int, stop_intent: StopIntent
) -> None:
    assert outlook_of(found(3), ordinal).stop_intent is stop_intent


def test_ordinals_may_begin_later() -> None:
    assert outlook_of(found(3, ordinals={"start": 5}), 7).stop_intent is StopIntent.RETURNS
    assert outlook_of(found(3, ordinals={"start": 5}), 8).stop_intent is StopIntent.SCALED_AWAY


@pytest.mark.parametrize("replicas", [0, 3])
def test_a_deleted_statefulset_scales_nobody_away(replicas: int) -> None:
    gone = found(replicas)
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert outlook_of(gone, 1).stop_intent is StopIntent.ALL_GO


def test_without_replicas_all_stop_and_stay_voters() -> None:
    assert outlook_of(found(0), 0).stop_intent is StopIntent.ALL_GO


@pytest.mark.parametrize("odd", [{}, {"metadata": {}}, found(None), found("3")])
def test_what_is_no_statefulset_is_not_judged(odd: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError)):
        outlook_of(odd, 0)


def test_the_address_is_that_of_the_pods_api_server() -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    named = statefulset_at("metadata/q-quorate", environment)

    assert named is not None
    assert str(named) == (
        "https://10.0.0.1:6443/apis/apps/v1/namespaces/metadata/statefulsets/q-quorate"
    )
    six = statefulset_at("a/b", {"KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert six is not None
    assert str(six).startswith("https://[fd00::1]:443/")
    assert statefulset_at("", {}) is None


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="write NAMESPACE/NAME"):
        statefulset_at("q-quorate", {"KUBERNETES_SERVICE_HOST": "h"})
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is missing"):
        statefulset_at("a/b", {})


async def test_the_api_server_is_asked_with_the_accounts_token(
    api: StandIn, tmp_path: Path
) -> None:
    api.answer = found(3)

    assert await StopIntentReader(api.at(tmp_path), 2).read() == Outlook(StopIntent.RETURNS, 3)
    assert await StopIntentReader(api.at(tmp_path), 3).read() == Outlook(StopIntent.SCALED_AWAY, 3)
    assert set(api.tokens) == {"Bearer secret"}


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_a_refusal_from_the_beginning_is_a_restart_and_said_once(
    api: StandIn, tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    api.status = status
    api.answer = found(0)
    pod = StopIntentReader(api.at(tmp_path), 3)

    for _ in range(2):
        assert await pod.read() is None
    assert caplog.text.count("a stop is taken for a restart") == 1
    assert "see that the account of the pod may get this one object" in caplog.text


@pytest.mark.parametrize("status", [401, 404])
async def test_an_account_that_goes_goes_with_everything_else(
    api: StandIn, tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 100.0
    api.answer = found(3)
    pod = StopIntentReader(api.at(tmp_path), 2, clock=lambda: now_s)
    await pod.read()

    api.status = status

    if status != 404:
        # As from an API server that starts.
        assert await pod.read() is None
        now_s += ACCESS_REVOKED_S
    assert await pod.read() == Outlook(StopIntent.ALL_GO)
    assert "could be read before, and is gone now" in caplog.text


async def test_an_account_without_its_rights_stops_no_pod(api: StandIn, tmp_path: Path) -> None:
    now_s = 100.0
    api.answer = found(3)
    pod = StopIntentReader(api.at(tmp_path), 2, clock=lambda: now_s)
    await pod.read()

    api.status = 403
    for _ in range(4):
        now_s += ACCESS_REVOKED_S
        assert await pod.read() is None
    # An uninstall takes the rights away, and a moment later the account.
    api.status = 401
    assert await pod.read() == Outlook(StopIntent.ALL_GO)


async def test_how_long_it_could_not_be_read_is_known(api: StandIn, tmp_path: Path) -> None:
    now_s = 100.0
    pod = StopIntentReader(api.at(tmp_path), 2, clock=lambda: now_s)
    now_s += 7.0
    api.status = 403
    await pod.read()
    assert pod.unread_s == 7.0

    api.status, api.answer = 200, found(3)
    await pod.read()
    now_s += 7.0
    assert pod.unread_s == 0.0

    api.status = 503
    await pod.read()
    now_s += 2.0
    await pod.read()
    assert pod.unread_s == 2.0


async def test_a_namespace_that_is_deleted_takes_all_with_it(api: StandIn, tmp_path: Path) -> None:
    api.answer = found(3)
    pod = StopIntentReader(api.at(tmp_path), 2)
    api.namespace = {"metadata": {"name": "ns"}}
    assert await pod.read() == Outlook(StopIntent.RETURNS, 3)

    api.namespace = {"metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert await pod.read() == Outlook(StopIntent.ALL_GO)


@pytest.mark.parametrize("odd", [["no", "object"], {"metadata": None}, 403])
async def test_a_namespace_that_cannot_be_read_is_there(
    api: StandIn, tmp_path: Path, odd: object
) -> None:
    api.answer = found(3)
    api.namespace = odd

    assert await StopIntentReader(api.at(tmp_path), 3).read() == Outlook(StopIntent.SCALED_AWAY, 3)


@pytest.mark.parametrize("between", [None, 200, 500])
async def test_an_api_server_that_starts_and_knows_nobody_yet_stops_nobody(
    api: StandIn, tmp_path: Path, between: int | None
) -> None:
    now_s = 100.0
    api.answer = found(3)
    pod = StopIntentReader(api.at(tmp_path), 2, clock=lambda: now_s)
    await pod.read()

    api.status = 401
    assert await pod.read() is None
    now_s += ACCESS_REVOKED_S - 0.1
    assert await pod.read() is None
    if between is None:
        # No caller has asked for long: the answer may have changed since.
        now_s += 3600.0
    else:
        # It knows after all, or fails.
        api.status = between
        await pod.read()
    api.status = 401
    now_s += 0.1
    assert await pod.read() is None
    now_s += ACCESS_REVOKED_S
    assert await pod.read() == Outlook(StopIntent.ALL_GO)


async def test_a_server_that_fails_has_taken_no_rights(api: StandIn, tmp_path: Path) -> None:
    api.answer = found(3)
    pod = StopIntentReader(api.at(tmp_path), 2)
    await pod.read()

    api.status = 503

    assert await pod.read() is None


async def test_whoever_looks_all_the_time_is_told_what_was_seen_last(
    api: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answer = found(2)
    pod = StopIntentReader(api.at(tmp_path), 2)
    monkeypatch.setattr("quorate.admin.statefulset.LOOK_AGAIN_S", 60.0)
    assert await pod.read_cached() == Outlook(StopIntent.SCALED_AWAY, 2)

    api.answer = found(3)

    assert await pod.read_cached() == Outlook(StopIntent.SCALED_AWAY, 2)
    monkeypatch.setattr("quorate.admin.statefulset.LOOK_AGAIN_S", 0.0)
    assert await pod.read_cached() == Outlook(StopIntent.RETURNS, 3)


async def test_nonsense_is_a_restart(api: StandIn, tmp_path: Path) -> None:
    api.answer = ["no", "object"]

    assert await StopIntentReader(api.at(tmp_path), 3).read() is None


async def test_nobody_there_is_a_restart(api: StandIn, tmp_path: Path) -> None:
    named = api.at(tmp_path)
    (tmp_path / "token").unlink()

    assert await StopIntentReader(named, 3).read() is None
