"""grpcurl, which knows no more of a listener than what reflection tells it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conformance.served import ANSWER_S
from tests.conformance.servicer import ECHOED_FIRST, SERVICE
from tests.conformance.serving import HOST
from tests.lacking import lack
from tools import fetch_grpc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conformance.served import Served

# It exits with 64 and the code of the status that a call has ended with.
CODES_BEGIN = 64


@pytest.fixture(scope="session")
def program() -> str:
    """grpcurl of the PATH or of `make grpc`; without it tests fail in CI and skip elsewhere."""
    built = fetch_grpc.PROGRAMS.folder(os.environ) / "grpcurl"
    found = shutil.which("grpcurl") or shutil.which(built)
    if found is None:
        lack(f"grpcurl is needed, on the PATH or in {built.parent}: make grpc")
    return found


@pytest.fixture
def grpcurl(
    served: Served, program: str, folder: Path | None
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs it against the listener: options, then what comes after the address."""

    def run(options: list[str], *what: str) -> subprocess.CompletedProcess[str]:
        tls = ["-plaintext"] if folder is None else ["-cacert", str(folder / "ca.pem")]
        address = f"{HOST}:{served.address.port}"
        command = [program, *tls, *options, address, *what]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=ANSWER_S
        )

    return run


def test_it_lists_and_describes(
    grpcurl: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert SERVICE in grpcurl([], "list").stdout.split()
    described = grpcurl([], "describe", SERVICE).stdout
    assert "rpc UnaryCall ( .grpc.testing.SimpleRequest )" in described


def test_it_calls(grpcurl: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    request = json.dumps({"response_size": 3})
    options = ["-d", request, "-H", f"{ECHOED_FIRST}: echoed", "-v", "-max-time", "60"]
    done = grpcurl(options, f"{SERVICE}/UnaryCall")
    assert done.returncode == 0, done.stderr
    assert '"body": "AAAA"' in done.stdout
    assert f"{ECHOED_FIRST}: echoed" in done.stdout


def test_it_calls_with_streams(grpcurl: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    request = json.dumps({"response_parameters": [{"size": 1}, {"size": 2}]})
    done = grpcurl(["-d", request + request], f"{SERVICE}/FullDuplexCall")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"body"') == 4


def test_it_is_told_what_was_wrong(
    grpcurl: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    request = json.dumps({"response_status": {"code": 9, "message": "not now"}})
    done = grpcurl(["-d", request], f"{SERVICE}/UnaryCall")
    assert done.returncode == CODES_BEGIN + 9
    assert "FailedPrecondition" in done.stderr
    assert "not now" in done.stderr
