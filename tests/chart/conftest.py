"""Shared fixtures of the chart's tests: helm, found in PATH."""

from __future__ import annotations

import shutil

import pytest

from tests.chart.rendering import Helm
from tests.lacking import lack


@pytest.fixture(scope="session")
def helm() -> Helm:
    """helm 3 or newer."""
    program = shutil.which("helm")
    if program is None:
        lack("helm is needed in PATH: go install helm.sh/helm/v3/cmd/helm@latest")
    assert program is not None
    return Helm(program)
