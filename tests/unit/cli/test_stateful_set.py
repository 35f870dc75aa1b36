"""The API server's objects that a pod reads and creates before it formats its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.autojoin.bootstrap_record import BootstrapRecord, encode_record
from quorate.cli.output import CommandError
from quorate.cli.stateful_set import StatefulSetObjects
from quorate.records.ids import ClusterId
from tests.unit.admin.api_servers import StandIn, api
from tests.unit.autojoin.looks import RECORD

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["api"]


@pytest.fixture
def objects(api: StandIn, tmp_path: Path) -> StatefulSetObjects:
    return StatefulSetObjects(address=api.at(tmp_path))


def test_the_stateful_set_says_which_pods_there_are(
    api: StandIn, objects: StatefulSetObjects
) -> None:
    spec = {"replicas": 3, "ordinals": {"start": 1}}
    labels = {
        "a": "b",
        "app.kubernetes.io/instance": "q",
        "app.kubernetes.io/managed-by": "Helm",
    }
    api.answer = {"metadata": {"labels": labels}, "spec": spec}
    seen = objects.look()
    # Without those by which a release is pruned.
    assert (seen.ordinals, dict(seen.labels)) == (range(1, 4), {"a": "b"})
    for present, ordinals in ((5, range(1, 6)), (2, range(1, 4))):
        api.answer["status"] = {"replicas": present}
        seen = objects.look()
        assert (seen.wanted, seen.ordinals) == (range(1, 4), ordinals)
    api.answer = {"metadata": {}, "spec": {"replicas": 0}}
    assert objects.look().labels == {}
    odd: tuple[object, ...] = ({}, [], {"metadata": {}, "spec": {"replicas": "3"}})
    for each in odd:
        api.answer = each
        with pytest.raises(CommandError, match="statefulsets/q is no StatefulSet"):
            objects.look()


def test_the_record_is_read_and_created_as_the_operator_does(
    api: StandIn, objects: StatefulSetObjects
) -> None:
    api.answer = {"data": encode_record(RECORD)}
    assert objects.read_record() == RECORD
    api.answer = {"data": {"clusterId": "c"}}
    assert objects.read_record() == BootstrapRecord(ClusterId("c"))

    assert objects.create_record(RECORD, {"a": "b"})
    ((path, body),) = api.posted
    assert path == "/api/v1/namespaces/ns/configmaps"
    assert body["metadata"] == {"name": "q-bootstrap", "labels": {"a": "b"}}
    assert body["immutable"] is True
    assert body["data"] == encode_record(RECORD)


def test_there_may_be_no_record_or_one_already(api: StandIn, objects: StatefulSetObjects) -> None:
    api.status = 404
    assert objects.read_record() is None
    api.status = 409
    assert not objects.create_record(RECORD, {})


@pytest.mark.parametrize("answer", [{}, {"data": None}, {"data": {"clusterid": "c"}}, {"data": 7}])
def test_what_is_no_record_is_named(
    api: StandIn, objects: StatefulSetObjects, answer: dict[str, object]
) -> None:
    api.answer = answer
    with pytest.raises(CommandError, match="--statefulset: "):
        objects.read_record()


@pytest.mark.parametrize(
    ("status", "helps"),
    [(401, "Give the pod's account the rights"), (403, "Give the pod"), (500, "See to the API")],
)
def test_a_refusal_is_named_with_what_helps(
    api: StandIn, objects: StatefulSetObjects, status: int, helps: str
) -> None:
    api.status = status
    api.answer = {"message": "because"}
    for call in (objects.look, objects.read_record, lambda: objects.create_record(RECORD, {})):
        with pytest.raises(CommandError, match=helps):
            call()


def test_an_api_server_out_of_reach_is_named_with_what_helps(
    objects: StatefulSetObjects, tmp_path: Path
) -> None:
    (tmp_path / "token").unlink()
    with pytest.raises(CommandError, match="a NetworkPolicy has to allow that egress"):
        objects.look()
