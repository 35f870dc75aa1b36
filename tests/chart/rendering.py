"""Renders the chart with helm and finds objects in what comes out."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "deploy" / "helm" / "quorate"
CASES: Final = sorted((CHART / "ci").glob("*-values.yaml"))
# What the chart is rendered for where no cluster is asked.
VERSION: Final = "1.34.0"
# A value that is required then.
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"
ALONE: Final = ("--set", f"clusterId={CLUSTER_ID}")
CONFORM: Final = "QUORATE_CONFORM"


@dataclass(frozen=True)
class Helm:
    """Runs helm; without a cluster unless there is a kubeconfig."""

    program: str
    kubeconfig: str = os.devnull

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """One command, whatever its exit status."""
        command = [self.program, *(str(word) for word in words)]
        environment = os.environ | {"KUBECONFIG": self.kubeconfig}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def _template(
        self, *words: str | Path, release: str = "q", chart: Path = CHART
    ) -> subprocess.CompletedProcess[str]:
        """The manifests of an installation, with the present objects if a cluster is given."""
        asked = ALONE if self.kubeconfig == os.devnull else ("--dry-run=server",)
        return self.run("template", release, chart, "--kube-version", VERSION, *asked, *words)

    def render(self, *words: str | Path, release: str = "q", chart: Path = CHART) -> str:
        """The manifests as text. Fails the test with what helm says."""
        done = self._template(*words, release=release, chart=chart)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(
        self, *words: str | Path, release: str = "q", chart: Path = CHART
    ) -> list[dict[str, Any]]:
        """The manifests as objects."""
        rendered = yaml.safe_load_all(self.render(*words, release=release, chart=chart))
        return [document for document in rendered if document]

    def refusal(self, *words: str | Path, release: str = "q") -> str:
        """The error of helm about values. Fails the test when it reports none."""
        done = self._template(*words, release=release)
        assert done.returncode != 0, "these values were taken"
        return done.stderr


def one(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    """The one object of a kind, or of a kind and a name."""
    found = [
        o for o in objects if o["kind"] == kind and (not name or o["metadata"]["name"] == name)
    ]
    assert len(found) == 1, [(o["kind"], o["metadata"]["name"]) for o in objects]
    return found[0]
