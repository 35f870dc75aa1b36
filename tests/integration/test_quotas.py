"""`quorate quotas` against real controllers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.integration.quorum import Quorum


async def test_quotas_are_altered_and_described(quorum: Quorum) -> None:
    alice_at_c = ("--user", "alice", "--client", "c")
    rates = ("--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    status, stdout, _ = await quorum.try_cli("quotas", "alter", *alice_at_c, *rates)
    assert (status, stdout) == (
        0,
        "Completed updating config for user-principal 'alice', client-id 'c'.\n",
    )
    percentage = ("--add-config", "request_percentage=12.5")
    everybody = ("quotas", "alter", "--user-defaults", *percentage)
    assert (await quorum.try_cli(*everybody, "--validate-only"))[:2] == (
        0,
        "The change is valid for the default user-principal.\n",
    )
    assert (await quorum.try_cli("quotas", "describe", "--user-defaults"))[:2] == (0, "")
    assert (await quorum.try_cli(*everybody))[0] == 0
    gone = ("--delete-config", "consumer_byte_rate")
    assert (await quorum.try_cli("quotas", "alter", *alice_at_c, *gone))[0] == 0
    status, stdout, stderr = await quorum.try_cli("quotas", "describe", "--user")
    assert (status, stdout.splitlines()) == (
        0,
        [
            "Quota configs for user-principal 'alice', client-id 'c' are producer_byte_rate=1024.0",
            "Quota configs for the default user-principal are request_percentage=12.5",
        ],
    )
    assert stderr.startswith("committed offset: ")
    strictly = ("describe", "--user", "--strict", "-o", "json")
    status, stdout, _ = await quorum.try_cli("quotas", *strictly)
    assert json.loads(stdout)["entries"] == [
        {"entity": {"user": None}, "values": {"request_percentage": 12.5}}
    ]


async def test_a_quota_that_is_refused_is_an_error(quorum: Quorum) -> None:
    wrong = ("quotas", "alter", "--ip", "10.0.0.1", "--add-config", "producer_byte_rate=1")
    status, stdout, stderr = await quorum.try_cli(*wrong)
    assert (status, stdout) == (1, "")
    assert "error: ip '10.0.0.1': INVALID_REQUEST: There is no quota" in stderr
    status, stdout, _ = await quorum.try_cli(*wrong, "-o", "json")
    assert status == 1
    (entry,) = json.loads(stdout)["entries"]
    assert (entry["entity"], entry["error"]) == ({"ip": "10.0.0.1"}, "INVALID_REQUEST")
