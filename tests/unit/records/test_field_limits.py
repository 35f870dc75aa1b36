from __future__ import annotations

import pytest

from quorate.records.field_limits import STRING_BYTES_MAX, record_problem, string_problem
from quorate.records.metadata import BrokerEndpoint, ConfigRecord, RegisterBrokerRecord

EURO = "\N{EURO SIGN}"


@pytest.mark.parametrize("letter", ["x", "\xe4", EURO, "\N{GRINNING FACE}"])
def test_a_string_is_measured_in_bytes(letter: str) -> None:
    count = STRING_BYTES_MAX // len(letter.encode())
    assert string_problem(letter * count) is None
    problem = string_problem(letter * (count + 1))
    assert problem is not None
    assert "may have 32767 at most, shorten it" in problem


def test_the_field_that_is_too_long_is_named_wherever_it_lies() -> None:
    long = EURO * 20_000
    config = ConfigRecord(resource_type=2, resource_name="a", name="b", value=long)
    assert record_problem(config) == "value has 60000 bytes and may have 32767 at most, shorten it"
    ways = tuple(
        BrokerEndpoint(name=name, host=host, port=1, security_protocol=0)
        for name, host in (("a", "b"), ("c", long))
    )
    broker = RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=bytes(16),
        broker_epoch=1,
        end_points=ways,
        features=(),
        rack=None,
    )
    problem = record_problem(broker)
    assert problem is not None
    assert problem.startswith("host has 60000 bytes")


def test_what_fits_has_no_problem() -> None:
    config = ConfigRecord(resource_type=2, resource_name="a", name="b", value=None)
    assert record_problem(config) is None
