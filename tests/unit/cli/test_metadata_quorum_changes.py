"""Requests and output of add-controller, remove-controller and transfer-leader."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

import pytest

from quorate.cli import metadata_quorum
from quorate.cli.metadata_quorum_changes import (
    add_request,
    fields,
    in_words,
    parse_endpoint,
    remove_request,
)
from quorate.cli.output import CommandError
from quorate.raft import messages as m
from quorate.records.ids import ClusterId, Millis, NodeId, ReplicaKey, format_uuid
from quorate.records.voters import Endpoint
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import MetaProperties, write_meta
from tests.unit.raft import cores

if TYPE_CHECKING:
    from pathlib import Path

ANY = ClusterId("")
UUID = format_uuid(cores.key(4).directory_id or b"")


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    metadata_quorum.register(parser.add_subparsers())
    return parser.parse_args(["metadata-quorum", "--bootstrap-controller", "h:1", *words])


def properties(tmp_path: Path, *, node_id: int = 4, is_formatted: bool = True) -> str:
    """A controller's properties, and its formatted directory."""
    directory = tmp_path / "data"
    directory.mkdir()
    path = tmp_path / "controller.properties"
    path.write_text(
        f"node.id={node_id}\nmetadata.log.dir={directory}\nlisteners=GRPC://:9094\n"
        "advertised.listeners=GRPC://node-4:9094\ncontroller.quorum.bootstrap.servers=h:1\n",
        encoding="utf-8",
    )
    if is_formatted:
        directory_id = cores.key(4).directory_id
        assert directory_id is not None
        meta = MetaProperties(NodeId(4), cores.CLUSTER, directory_id)
        write_meta(OsFileSystem(), os.fspath(directory / "meta.properties"), meta)
    return os.fspath(path)


def test_a_controller_is_added_as_its_own_files_say(tmp_path: Path) -> None:
    arguments = parsed("add-controller", "--config", properties(tmp_path), "--force")
    assert add_request(arguments) == m.AddRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(4),
        listeners=cores.endpoints(4),
        timeout_ms=Millis(0),
        force=True,
    )


def test_a_controller_is_added_as_the_flags_say() -> None:
    endpoint = ("--endpoint", "GRPC://node-4:9094")
    flags = ("--controller-id", "4", "--controller-directory-id", UUID, *endpoint)
    assert add_request(parsed("add-controller", *flags)) == m.AddRaftVoterRequest(
        cluster_id=ANY, voter=cores.key(4), listeners=cores.endpoints(4), timeout_ms=Millis(0)
    )
    bare = add_request(parsed("add-controller", "--controller-id", "4"))
    assert bare == m.AddRaftVoterRequest(
        cluster_id=ANY, voter=ReplicaKey(NodeId(4)), listeners=(), timeout_ms=Millis(0)
    )


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    config = properties(tmp_path, node_id=5)
    with pytest.raises(CommandError, match=r"node.id is 5 in .* and 4 in "):
        add_request(parsed("add-controller", "--config", config))
    with pytest.raises(CommandError, match="leave the flags out"):
        add_request(parsed("add-controller", "--config", config, "--controller-id", "4"))


def test_a_directory_has_to_be_formatted_first(tmp_path: Path) -> None:
    config = properties(tmp_path, is_formatted=False)
    with pytest.raises(CommandError, match=r"meta.properties is missing: format the directory"):
        add_request(parsed("add-controller", "--config", config))


def test_bad_flags_are_named() -> None:
    with pytest.raises(CommandError, match="give --config with"):
        add_request(parsed("add-controller"))
    with pytest.raises(CommandError, match="--controller-directory-id: not a uuid"):
        remove_request(parsed("remove-controller", "-i", "4", "-d", "x"))
    for text in ("node-4:9094", "://node-4:9094", "GRPC://node-4"):
        with pytest.raises(CommandError, match="--endpoint"):
            parse_endpoint(text)
    assert parse_endpoint("GRPC://[::1]:9094") == Endpoint("GRPC", "::1", 9094)


def test_a_voter_is_removed_by_its_id_alone_or_with_its_directory() -> None:
    bare = remove_request(parsed("remove-controller", "--controller-id", "4"))
    assert bare == m.RemoveRaftVoterRequest(
        cluster_id=ANY, voter=ReplicaKey(NodeId(4)), timeout_ms=Millis(0)
    )
    whole = remove_request(parsed("remove-controller", "-i", "4", "-d", UUID, "--force"))
    assert whole == m.RemoveRaftVoterRequest(
        cluster_id=ANY, voter=cores.key(4), timeout_ms=Millis(0), force=True
    )


@pytest.mark.parametrize(
    ("request_", "said", "shown"),
    [
        (
            m.AddRaftVoterRequest(
                cluster_id=ANY,
                voter=cores.key(4),
                listeners=cores.endpoints(4),
                timeout_ms=Millis(0),
            ),
            f"Added controller 4 with directory id {UUID} and endpoints: GRPC://node-4:9094",
            {"id": 4, "directoryId": UUID, "endpoints": ["GRPC://node-4:9094"]},
        ),
        (
            m.RemoveRaftVoterRequest(cluster_id=ANY, voter=cores.key(4), timeout_ms=Millis(0)),
            f"Removed KRaft controller 4 with directory id {UUID}",
            {"id": 4, "directoryId": UUID},
        ),
        (
            m.RemoveRaftVoterRequest(
                cluster_id=ANY, voter=ReplicaKey(NodeId(4)), timeout_ms=Millis(0)
            ),
            "Removed KRaft controller 4 without a directory id",
            {"id": 4},
        ),
        (
            m.TransferLeadershipRequest(ANY, cores.key(4)),
            "Transferred leadership to controller 4",
            {"id": 4, "directoryId": UUID},
        ),
    ],
)
def test_results_have_the_shapes_of_kafkas_tool(
    request_: m.MembershipRequest, said: str, shown: dict[str, object]
) -> None:
    verb, _, what = in_words(request_)
    assert f"{verb} {what}" == said
    assert fields(request_) == shown
