"""Timeouts derived from the settings, and rejection of settings that do not fit together.

A follower without contact for `controller.quorum.fetch.timeout.ms` starts an election, so a Fetch
without data is held for at most a quarter of that. The rest is for the round trip, a flush, and one
retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.ids import Millis
from quorate.records.value_types import keyword_value_type
from quorate.settings.properties import ConfigError

if TYPE_CHECKING:
    from quorate.records.voters import VoterSet

# Kafka's maximum wait of a Fetch, which is fixed there.
FETCH_WAIT_MAX_MS: Final = 500
FETCH_WAIT_SHARE: Final = 4
LINGER_MAX_MS: Final = 10
LINGER_SHARE: Final = 20
# The fraction of a broker's session that a write may wait for others.
SESSION_SHARE: Final = 4
# Below these, a normal delay of a machine (a flush, a scheduler pause) would be an outage.
ELECTION_TIMEOUT_MIN_MS: Final = 50
FETCH_TIMEOUT_MIN_MS: Final = 100
REQUEST_TIMEOUT_MIN_MS: Final = 100
_PREFIX: Final = "controller.quorum."


@keyword_value_type
class QuorumSettings:
    """`controller.quorum.*`, in milliseconds and bytes."""

    bootstrap_servers: tuple[tuple[str, int], ...]
    voters: VoterSet
    election_timeout_ms: Millis
    fetch_timeout_ms: Millis
    election_backoff_max_ms: Millis
    request_timeout_ms: Millis
    retry_backoff_ms: Millis
    append_linger_ms: Millis
    auto_join: bool
    fetch_max_bytes: int
    fetch_snapshot_max_bytes: int


def fetch_max_wait_ms(quorum: QuorumSettings) -> Millis:
    """The longest wait of a Fetch without data, safely below the follower's timeout."""
    waits = (
        FETCH_WAIT_MAX_MS,
        quorum.fetch_timeout_ms // FETCH_WAIT_SHARE,
        quorum.request_timeout_ms // 2,
    )
    return Millis(min(waits))


def high_watermark_linger_ms(quorum: QuorumSettings) -> Millis:
    """The time for which the report of a commit waits for records to travel with."""
    return Millis(min(LINGER_MAX_MS, quorum.fetch_timeout_ms // LINGER_SHARE))


def check_fit(quorum: QuorumSettings, broker_session_timeout_ms: int) -> None:
    """Reject settings that cannot work together.

    Raises ConfigError that names both settings and the remedy.
    """
    linger = (f"{_PREFIX}append.linger.ms", quorum.append_linger_ms)
    fetch_timeout = (f"{_PREFIX}fetch.timeout.ms", quorum.fetch_timeout_ms)
    _below(linger, fetch_timeout, 2, "a write would wait longer than it takes to replace a leader")
    # A broker is silent while its last heartbeat waits for the record that unfences it.
    _below(
        linger,
        ("broker.session.timeout.ms", broker_session_timeout_ms),
        SESSION_SHARE,
        "a broker would be fenced again before it hears that it is not",
    )
    election_timeout = (f"{_PREFIX}election.timeout.ms", quorum.election_timeout_ms)
    for timeout in (fetch_timeout, election_timeout):
        _below(
            (f"{_PREFIX}retry.backoff.ms", quorum.retry_backoff_ms),
            timeout,
            4,
            "one request that fails would cost an election",
        )


def _below(one: tuple[str, int], other: tuple[str, int], share: int, why: str) -> None:
    if one[1] > other[1] // share:
        raise ConfigError(
            f"{one[0]} is {one[1]} and {other[0]} is {other[1]}: {why}; the "
            f"first must be at most {other[1] // share}, or the second at least {one[1] * share}"
        )
