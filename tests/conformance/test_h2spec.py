"""h2spec, all of it: what a server owes to frames right and wrong, and to what is only advised."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.conformance.served import ANSWER_S
from tests.conformance.serving import HOST
from tests.conformance.transports import OURS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance.served import Served

# All of them together, on a machine that is busy with something else.
RUN_S: Final = 600
SUMMARY: Final = re.compile(r"^(\d+) tests, (\d+) passed, \d+ skipped, \d+ failed$", re.MULTILINE)


# grpcio is the reference elsewhere: what it does here is known, and cannot be fixed by us.
@pytest.mark.parametrize("transport", sorted(OURS), indirect=True)
def test_every_case_passes(served: Served, folder: Path | None, programs: Path) -> None:
    tls = [] if folder is None else ["--tls", "--insecure"]
    command = [str(programs / "h2spec"), "--strict", *tls, "--host", HOST]
    command += ["--port", str(served.address.port), "--timeout", f"{ANSWER_S:.0f}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_S)
    failures = done.stdout.partition("Failures:")[2]
    assert done.returncode == 0, failures or done.stdout + done.stderr
    summary = SUMMARY.search(done.stdout)
    assert summary is not None, done.stdout
    total, passed = summary.groups()
    assert int(total) > 0
    assert passed == total, done.stdout
