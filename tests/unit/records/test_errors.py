"""Error codes against Kafka's numbers."""

from __future__ import annotations

from quorate.records.errors import ErrorCode


def test_codes_have_kafkas_numbers() -> None:
    """A few that brokers act upon, as Kafka's protocol guide lists them."""
    assert {code.name: code.value for code in ErrorCode}.items() >= {
        "NONE": 0,
        "NOT_LEADER_OR_FOLLOWER": 6,
        "UNSUPPORTED_VERSION": 35,
        "NOT_CONTROLLER": 41,
        "FENCED_LEADER_EPOCH": 74,
        "UNKNOWN_LEADER_EPOCH": 75,
        "INCONSISTENT_CLUSTER_ID": 104,
        "DUPLICATE_VOTER": 126,
        "VOTER_NOT_FOUND": 127,
    }.items()
