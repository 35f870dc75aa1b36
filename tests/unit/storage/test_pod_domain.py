"""The pod to which a directory belongs, as it stands in a file of its own."""

from __future__ import annotations

import pytest

from quorate.sim.engine.disk import SimulatedDisk
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.pod_domain import (
    PodDomain,
    parse_pod_domain,
    read_pod_domain,
    write_pod_domain,
)

from .conftest import DIRECTORY, Crashed, crash_after

PATH = f"{DIRECTORY}/pod-domain"
OWN = PodDomain(pod="q-0", service="q-headless", namespace="ns")
OTHER = PodDomain(pod="q-0", service="q-headless", namespace="other")


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_dirs(DIRECTORY)
    return disk


def test_a_domain_is_durable(disk: SimulatedDisk) -> None:
    write_pod_domain(disk, DIRECTORY, OWN)
    assert disk.first_unsafe(DIRECTORY, "pod-domain") is None
    assert disk.read(PATH) == b"q-0.q-headless.ns.svc\n"
    assert read_pod_domain(disk, DIRECTORY) == OWN


def test_a_directory_without_the_file_has_no_pod(disk: SimulatedDisk) -> None:
    assert read_pod_domain(disk, DIRECTORY) is None


def test_pod_and_namespace_count_and_the_service_does_not() -> None:
    assert OWN.is_same_pod(PodDomain(pod="q-0", service="renamed", namespace="ns"))
    assert not OWN.is_same_pod(OTHER)
    assert not OWN.is_same_pod(PodDomain(pod="q-1", service="q-headless", namespace="ns"))


def test_a_crash_while_it_is_replaced_leaves_one_of_the_two() -> None:
    for calls in range(100):
        disk = SimulatedDisk()
        disk.make_dirs(DIRECTORY)
        write_pod_domain(disk, DIRECTORY, OTHER)
        crash_after(disk, calls)
        try:
            write_pod_domain(disk, DIRECTORY, OWN)
        except Crashed:
            disk.hook = lambda operation, path: None
            assert read_pod_domain(disk, DIRECTORY) in (OTHER, OWN)
            write_pod_domain(disk, DIRECTORY, OWN)
            assert read_pod_domain(disk, DIRECTORY) == OWN
        else:
            break
    assert calls > 3


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"q-0",
        b"q-0.q-headless.ns",
        b"q-0.q-headless.ns.svc.cluster.local",
        b"q-0..ns.svc",
        b"q-0.q-headless.ns.svc\nq-1.q-headless.ns.svc\n",
        b"Q-0.q-headless.ns.svc",
        b"\xff.q-headless.ns.svc",
        bytes(64),
        b"q-0.q-headless.ns.svc" + b"\n" * 600,
    ],
)
def test_a_malformed_file_is_refused_with_the_remedy(disk: SimulatedDisk, content: bytes) -> None:
    write_atomically(disk, PATH, content)
    with pytest.raises(StorageError, match=r"pod-domain: malformed .* remove the file"):
        read_pod_domain(disk, DIRECTORY)


def test_line_feeds_of_a_person_are_no_damage(disk: SimulatedDisk) -> None:
    write_atomically(disk, PATH, b"q-0.q-headless.ns.svc\r\n\n")
    assert read_pod_domain(disk, DIRECTORY) == OWN


@pytest.mark.parametrize("text", ["a.b.c", "-a.b.c.svc", "a.b.c.svc.", f"{'a' * 64}.b.c.svc"])
def test_other_names_are_no_domains_of_pods(text: str) -> None:
    with pytest.raises(ValueError, match=r"POD\.SERVICE\.NAMESPACE\.svc"):
        parse_pod_domain(text)
