"""Tests on a real cluster: not part of `make test`, see README.md in this folder."""

from __future__ import annotations

import secrets
import shlex
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.e2e.api_proxy import ApiProxy
from tests.e2e.cluster import Cluster
from tests.e2e.cluster_lock import ClusterLock
from tests.e2e.nodes import Nodes
from tests.e2e.week import dealt
from tests.lacking import lack

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

FAILED: Final = pytest.StashKey[bool]()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without --e2e these tests do not exist: they need a cluster and minutes."""
    del collection_path
    return None if config.getoption("--e2e") else True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test's fixtures learn whether it failed: the session counts other tests, too."""
    del call
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests come first, so that no worker begins one when all others have ended.

    Tests that need the cluster alone come last: before that, several workers are all at work.
    With --day those that are run once a week are left to their days.
    """
    day = config.getoption("--day")
    if day is not None:
        weekly = {item.nodeid for item in items if has_mark(item, "weekly")}
        left = weekly - dealt(weekly, day)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
        items[:] = [item for item in items if item.nodeid not in left]
    items.sort(key=lambda item: (has_mark(item, "alone"), not has_mark(item, "long")))


def has_mark(item: pytest.Item, name: str) -> bool:
    """True if a test, or its module, has this mark."""
    return item.get_closest_marker(name) is not None


@pytest.fixture(autouse=True)
def cluster_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterLock]:
    """Shared by all tests; one that damages what others stand on acquires it alone."""
    # The folder above that of this process is shared by all workers of a run.
    with ClusterLock(tmp_path_factory.getbasetemp().parent / "cluster.lock") as lock:
        yield lock


@pytest.fixture(scope="session")
def api() -> Iterator[ApiProxy]:
    """Reads from the API server."""
    with ApiProxy() as api:
        yield api


@pytest.fixture(scope="session")
def image(request: pytest.FixtureRequest) -> str:
    """The image's name, once it is on the nodes."""
    name: str = request.config.getoption("--image")
    load = shlex.split(request.config.getoption("--load-image"))
    if load:
        subprocess.run([*load, name], check=True)
    return name


@pytest.fixture(scope="session")
def next_image(request: pytest.FixtureRequest, image: str) -> str:
    """Another image than the first, once it is on the nodes."""
    name: str = request.config.getoption("--next-image")
    if not name:
        lack("a second image is needed: --next-image NAME:TAG, as a new release would be")
    assert name != image
    load = shlex.split(request.config.getoption("--load-image"))
    if load:
        subprocess.run([*load, name], check=True)
    return name


@pytest.fixture(scope="session")
def nodes(request: pytest.FixtureRequest) -> Nodes:
    """The nodes of the cluster, with faults to inject."""
    command = shlex.split(request.config.getoption("--nodes"))
    if not command:
        lack("a command that harms nodes is needed: --nodes COMMAND, see tests/e2e/nodes.py")
    return Nodes(tuple(command))


@pytest.fixture(scope="session")
def jaeger(request: pytest.FixtureRequest) -> str:
    """The address of Jaeger's query API."""
    url: str = request.config.getoption("--jaeger")
    if not url:
        lack("Jaeger is needed: --jaeger URL, such as http://127.0.0.1:16686")
    return url.rstrip("/")


@pytest.fixture
def cluster(
    cluster_lock: ClusterLock, image: str, api: ApiProxy, request: pytest.FixtureRequest
) -> Iterator[Cluster]:
    """A namespace of the test's own; a failed test first shows what is in it."""
    cluster = Cluster(namespace=f"e2e-{secrets.token_hex(4)}", image=image, api=api)
    cluster.kubectl("create", "namespace", cluster.namespace, namespaced=False)
    # What the chart promises is enforced here: a pod that wants more is not let in.
    standard = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", cluster.namespace, standard, namespaced=False)
    try:
        yield cluster
        if request.node.stash.get(FAILED, False):
            cluster.show()
    finally:
        cluster.kubectl("delete", "namespace", cluster.namespace, "--wait=false", namespaced=False)
