"""Values that follow from the timeouts of the settings, and conflicts between timeouts."""

from __future__ import annotations

import pytest

from quorate.server.config import read_config
from quorate.server.timeouts import QuorumSettings, fetch_max_wait_ms, high_watermark_linger_ms
from quorate.settings.properties import ConfigError
from tests.unit.server.test_config import LEAST

PREFIX = "controller.quorum."


def quorum(**millis: int) -> QuorumSettings:
    given = {PREFIX + name.replace("_", "."): str(value) for name, value in millis.items()}
    return read_config({**LEAST, **given}, {}).quorum


def test_with_kafkas_timeouts_a_fetch_waits_as_kafkas_does() -> None:
    assert fetch_max_wait_ms(quorum()) == 500
    assert high_watermark_linger_ms(quorum()) == 10


@pytest.mark.parametrize("timeout_ms", [100, 200, 500, 800, 2000, 60_000])
def test_an_idle_follower_hears_its_leader_several_times_within_the_fetch_timeout(
    timeout_ms: int,
) -> None:
    settings = quorum(fetch_timeout_ms=timeout_ms)
    wait = fetch_max_wait_ms(settings) + high_watermark_linger_ms(settings)
    assert 3 * wait <= timeout_ms
    assert high_watermark_linger_ms(settings) > 0


def test_a_fetch_is_answered_within_the_request_timeout() -> None:
    assert fetch_max_wait_ms(quorum(request_timeout_ms=200)) == 100


@pytest.mark.parametrize(
    ("millis", "words"),
    [
        ({"fetch_timeout_ms": 99}, ("fetch.timeout.ms is 99", "100 or more")),
        ({"election_timeout_ms": 49}, ("election.timeout.ms is 49", "50 or more")),
        ({"request_timeout_ms": 10}, ("request.timeout.ms is 10", "100 or more")),
        ({"retry_backoff_ms": 0}, ("retry.backoff.ms is 0", "1 or more")),
        (
            {"append_linger_ms": 1500},
            ("append.linger.ms is 1500", "fetch.timeout.ms is 2000", "at most 1000", "least 3000"),
        ),
        (
            {"retry_backoff_ms": 300},
            ("retry.backoff.ms is 300", "election.timeout.ms is 1000", "at most 250"),
        ),
        (
            {"retry_backoff_ms": 200, "fetch_timeout_ms": 400},
            ("retry.backoff.ms is 200", "fetch.timeout.ms is 400", "at least 800"),
        ),
    ],
)
def test_what_does_not_fit_names_the_settings_and_the_remedy(
    millis: dict[str, int], words: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        quorum(**millis)
    for word in words:
        assert word in str(refused.value)


def test_a_heartbeat_does_not_wait_for_most_of_a_session() -> None:
    settings = {
        **LEAST,
        "controller.quorum.append.linger.ms": "1000",
        "broker.session.timeout.ms": "3999",
    }
    with pytest.raises(ConfigError) as refused:
        read_config(settings, {})
    for word in ("append.linger.ms is 1000", "broker.session.timeout.ms is 3999", "least 4000"):
        assert word in str(refused.value)
    read_config({**settings, "broker.session.timeout.ms": "4000"}, {})


def test_a_port_has_one_use() -> None:
    with pytest.raises(ConfigError, match=r"health.port has port 9094 and so has listeners"):
        read_config({**LEAST, "health.port": "9094"}, {})
    with pytest.raises(ConfigError, match=r"metrics.port has port 9 and so has health.port"):
        read_config({**LEAST, "health.port": "9", "metrics.port": "9"}, {})
    for none in ("-1", "0"):
        read_config({**LEAST, "health.port": none, "metrics.port": none}, {})
