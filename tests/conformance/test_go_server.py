"""Our channels against grpc-go's interop server, with every case that we have."""

from __future__ import annotations

import subprocess
from collections import deque
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest

from tests.conformance.cases import CASES
from tests.conformance.served import Address
from tests.conformance.transports import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The port follows, in the output of a server that logs what it does.
LISTENS: Final = "interop server listening on "
TALKATIVE: Final = {"GRPC_GO_LOG_SEVERITY_LEVEL": "info"}
LINES: Final = 50


@contextmanager
def running(programs: Path, folder: Path | None) -> Iterator[Address]:
    """The server, on a port that the kernel has chosen."""
    command = [str(programs / "server"), "-port=0"]
    if folder is not None:
        both = folder / "server.pem"
        command += ["-use_tls", f"-tls_cert_file={both}", f"-tls_key_file={both}"]
    process = subprocess.Popen(command, env=TALKATIVE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said: deque[str] = deque(maxlen=LINES)
    reading = Thread(target=lambda: said.extend(process.stderr or ()))
    try:
        for line in process.stderr:
            said.append(line)
            if LISTENS in line:
                break
        else:
            pytest.fail(f"the server of grpc-go has ended: {''.join(said)}")
        # It would block without a reader of the rest of its output.
        reading.start()
        yield Address(int(line.rpartition(":")[2]), folder)
        assert process.poll() is None, "".join(said)
    finally:
        process.kill()
        process.wait()
        if reading.ident is not None:
            reading.join()
        process.stderr.close()


@pytest.fixture(scope="module")
def address(programs: Path, folder: Path | None) -> Iterator[Address]:
    """The address of the server, for all tests of the module."""
    with running(programs, folder) as listening:
        yield listening


# This server cancels what is over its deadline, which grpcio takes for a cancellation now and then.
@pytest.mark.parametrize("transport", sorted(OURS), indirect=True)
@pytest.mark.parametrize("case", CASES)
async def test_a_case_passes(case: str, transport: str, address: Address) -> None:
    async with address.connect(transport) as channel:
        await CASES[case](channel)
