"""grpc-go's interop client against our listeners: all its cases but those of clouds and loads."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.conformance.served import ANSWER_S
from tests.conformance.serving import HOST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance.served import Served

# What it has beyond these: credentials of Google's clouds, and load reports (orca_per_rpc and
# orca_oob), which no listener of ours makes.
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


@pytest.mark.parametrize("case", CASES)
def test_the_client_of_grpc_go_and_our_server(
    case: str, served: Served, programs: Path, folder: Path | None
) -> None:
    command = [str(programs / "client"), f"-test_case={case}", f"-server_host={HOST}"]
    command += [f"-server_port={served.address.port}"]
    # How quickly is not what is asked here.
    slow = int(ANSWER_S)
    command += [f"-soak_per_iteration_max_acceptable_latency_ms={slow * 1000}"]
    command += [f"-soak_overall_timeout_seconds={slow}"]
    if folder is not None:
        command += ["-use_tls", f"-ca_file={folder / 'ca.pem'}"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=2 * ANSWER_S
    )
    assert done.returncode == 0, done.stderr
