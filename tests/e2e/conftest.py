"""Tests on a real cluster: not part of `make test`, see README.md in this folder."""

from __future__ import annotations

import secrets
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without --e2e these tests do not exist: they need a cluster and minutes."""
    del collection_path
    return None if config.getoption("--e2e") else True


@pytest.fixture(scope="session")
def image(request: pytest.FixtureRequest) -> str:
    """The image's name, once it is on the nodes."""
    name: str = request.config.getoption("--image")
    load = shlex.split(request.config.getoption("--load-image"))
    if load:
        subprocess.run([*load, name], check=True)
    return name


@pytest.fixture
def cluster(image: str, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A namespace of the test's own; a failed test first shows what is in it."""
    cluster = Cluster(namespace=f"e2e-{secrets.token_hex(4)}", image=image)
    cluster.kubectl("create", "namespace", cluster.namespace, namespaced=False)
    # What the chart promises is enforced here: a pod that wants more is not let in.
    standard = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", cluster.namespace, standard, namespaced=False)
    try:
        yield cluster
        if request.session.testsfailed:
            cluster.show()
    finally:
        cluster.kubectl("delete", "namespace", cluster.namespace, "--wait=false", namespaced=False)
