"""Decisive commands of the runbooks, with a kubectl that answers for a cluster."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.chart.rendering import ROOT

if TYPE_CHECKING:
    from pathlib import Path

KUBECTL: Final = """#!/bin/sh
case "$2" in
    statefulset) echo "$REPLICAS" ;;
    pvc) for n in 0 1 2 3 4 10; do echo "persistentvolumeclaim/data-q-quorate-$n"; done ;;
    *) exit 1 ;;
esac
"""


@pytest.mark.parametrize(
    ("replicas", "ordinals"),
    [(3, [3, 4, 10]), (5, [10]), (11, []), (0, [])],
)
def test_only_claims_beyond_the_replicas_are_listed(
    tmp_path: Path, replicas: int, ordinals: list[int]
) -> None:
    """At zero every claim is beyond them, and together they are the quorum."""
    text = (ROOT / "docs" / "runbooks" / "claims-of-scaled-down-pods.md").read_text()
    listing = text.partition("## Which they are")[2].partition("## Removing")[0]
    (script,) = re.findall(r"```sh\n(.*?)```", listing, re.DOTALL)
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)

    done = subprocess.run(
        ["/bin/sh", "-eu", "-c", script],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "REPLICAS": str(replicas)},
        capture_output=True,
        text=True,
        check=True,
    )

    claims = [f"persistentvolumeclaim/data-q-quorate-{ordinal}" for ordinal in ordinals]
    assert done.stdout.split() == claims
