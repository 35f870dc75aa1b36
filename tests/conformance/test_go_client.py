"""grpc-go's interop client, each of its cases, against a listener of every transport."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.conformance.served import ANSWER_S
from tests.conformance.serving import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.conformance.served import Served

CASES: Final = (
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
    "pick_first_unary",
    "rpc_soak",
    "channel_soak",
)
# It has no cases for compression, and those for ALTS and xDS are other programs.
NOT_APPLICABLE: Final[Mapping[str, str]] = {
    "compute_engine_creds": "tokens of a cloud of Google's",
    "service_account_creds": "tokens of a cloud of Google's",
    "jwt_token_creds": "tokens of a cloud of Google's",
    "per_rpc_creds": "tokens of a cloud of Google's",
    "oauth2_auth_token": "tokens of a cloud of Google's",
    "google_default_credentials": "a channel that only a cloud of Google's has",
    "compute_engine_channel_credentials": "a channel that only a cloud of Google's has",
    "orca_per_rpc": "reports of load for balancers: a quorum has none",
    "orca_oob": "reports of load for balancers: a quorum has none",
}
# No client is to be found slow by the clock of a machine that is busy with something else.
PATIENCE: Final = (
    f"-soak_per_iteration_max_acceptable_latency_ms={ANSWER_S * 1000:.0f}",
    f"-soak_overall_timeout_seconds={ANSWER_S:.0f}",
)


def run(programs: Path, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The client with these options, to its end."""
    command = [str(programs / "client"), *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=2 * ANSWER_S
    )


def test_the_client_has_no_other_cases(programs: Path) -> None:
    told = run(programs, ["-help"]).stderr
    listed = told.partition("Valid options are:")[2].partition("(default")[0]
    names = {line.partition(":")[0].strip() for line in listed.splitlines() if ":" in line}
    assert "empty_unary" in names
    assert names <= {*CASES, *NOT_APPLICABLE}


@pytest.mark.parametrize("case", CASES)
def test_a_case_passes(case: str, served: Served, folder: Path | None, programs: Path) -> None:
    options = [f"-server_host={HOST}", f"-server_port={served.address.port}"]
    if folder is not None:
        options += ["-use_tls", "-use_test_ca", f"-ca_file={folder / 'ca.pem'}"]
    done = run(programs, [*options, f"-test_case={case}", *PATIENCE])
    assert done.returncode == 0, done.stderr
