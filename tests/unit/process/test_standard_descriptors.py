"""Standard descriptors that the parent closed, in a child that starts without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# Writes the target of each descriptor to the pipe whose number it is given.
PROGRAM = """
import json, os, sys
from quorate.process.standard_descriptors import open_standard_descriptors
open_standard_descriptors()
paths = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
inherited = [os.get_inheritable(number) for number in range(3)]
os.write(int(sys.argv[1]), json.dumps([paths, inherited]).encode())
"""


@pytest.mark.parametrize("closed", [{0}, {2}, {0, 1}, {1, 2}, {0, 1, 2}])
def test_closed_ones_lead_to_dev_null_and_open_ones_stay(closed: set[int]) -> None:
    reader, writer = os.pipe()
    closing = " ".join(f"{number}>&-" for number in sorted(closed))
    subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {writer} {closing}', sys.executable, PROGRAM],
        stdin=writer,
        stdout=writer,
        stderr=writer,
        pass_fds=[writer],
        check=True,
    )
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        paths, inherited = json.loads(pipe.read())
    assert [path == os.devnull for path in paths] == [number in closed for number in range(3)]
    assert inherited == [True, True, True]
