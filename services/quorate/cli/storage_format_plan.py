"""Plan of `quorate storage format`: made from its flags, then written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from quorate.cli.ids import parse_cluster_id
from quorate.cli.output import CommandError, parse_setting
from quorate.controller.features.levels import METADATA_VERSION, SUPPORTED_FEATURES
from quorate.records.ids import DirectoryId, NodeId, ReplicaKey, parse_directory_id
from quorate.records.metadata import METADATA_VERSION_LATEST, encode_record
from quorate.records.record_types.cluster import FeatureLevelRecord
from quorate.records.value_types import keyword_value_type
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.settings.integers import is_whole_number, whole_number
from quorate.settings.properties import NODE_ID_MAX, ConfigError, parse_address
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.random_ids import draw_uuid

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from quorate.server.config import ControllerConfig
    from quorate.storage.file_system import FileSystem

KRAFT_VERSION: Final = "kraft.version"


@keyword_value_type
class FormatPlan:
    """The contents of one directory; `kind` is Kafka's word for the directory."""

    directory: str
    kind: str
    formatting: Formatting
    metadata_version: int


def write_plan(fs: FileSystem, plan: FormatPlan) -> None:
    """Carry out the plan and report it; the caller holds the lock of the directory."""
    print(
        f"Formatting {plan.kind} {plan.directory} with {METADATA_VERSION} {plan.metadata_version}."
    )
    format_directory(fs, plan.directory, plan.formatting, timestamp_ms=time.time_ns() // 1_000_000)


def new_directory_id() -> DirectoryId:
    """Generate a random directory id."""
    return DirectoryId(draw_uuid())


def make_plan(
    arguments: argparse.Namespace,
    config: ControllerConfig,
    directory_id: DirectoryId | None = None,
) -> FormatPlan:
    """Make the plan from the flags; a directory id is generated unless it is given.

    Raises CommandError that names the flag and the remedy.
    """
    cluster_id = parse_cluster_id("--cluster-id", arguments.cluster_id)
    levels = _levels(arguments.feature)
    kraft_version = levels.pop(KRAFT_VERSION, 0 if config.quorum.voters.voters else 1)
    directory_id = directory_id or new_directory_id()
    kind, voters = "dynamic metadata directory", None
    if kraft_version == 0:
        _check_static(arguments, config)
        kind = "metadata directory"
    elif config.quorum.voters.voters:
        raise CommandError(
            f"--feature: {KRAFT_VERSION}=1 keeps the voters in the log: remove"
            " controller.quorum.voters from the properties, set controller.quorum.bootstrap.servers"
        )
    elif arguments.first_bootstrap:
        raise CommandError(
            f"--first-bootstrap is for {KRAFT_VERSION}=0 only: leave it out, the directory ids of"
            " the voters tell a new disk from a lost one"
        )
    elif arguments.standalone:
        kind = "dynamic metadata voter directory"
        key = ReplicaKey(config.node_id, directory_id)
        voters = VoterSet.of([Voter(key, config.endpoints)])
    elif arguments.initial_controllers is not None:
        kind = "dynamic metadata voter directory"
        voters = _initial_voters(arguments.initial_controllers, config)
        directory_id = _own_directory(voters, config)
    elif not arguments.no_initial_controllers:
        raise CommandError(
            "one of --standalone, --initial-controllers and --no-initial-controllers is needed:"
            " who votes first must be said, or two halves could found two clusters"
        )
    meta = MetaProperties(config.node_id, cluster_id, directory_id)
    return FormatPlan(
        directory=config.log.directory,
        kind=kind,
        formatting=Formatting(
            meta=meta,
            records=bootstrap_records(levels),
            voters=voters,
            is_first_bootstrap=arguments.first_bootstrap,
        ),
        metadata_version=levels.get(METADATA_VERSION, METADATA_VERSION_LATEST),
    )


def bootstrap_records(levels: Mapping[str, int]) -> list[bytes]:
    """The first metadata, encoded: metadata.version, the latest unless named, then the others."""
    first = {METADATA_VERSION: METADATA_VERSION_LATEST} | dict(levels)
    return [
        encode_record(FeatureLevelRecord(name=name, feature_level=level), 0)
        for name, level in first.items()
    ]


def _levels(items: list[str]) -> dict[str, int]:
    ranges = {feature.name: feature for feature in SUPPORTED_FEATURES}
    levels: dict[str, int] = {}
    for item in items:
        name, text = parse_setting("--feature", item)
        known = ranges.get(name)
        if known is None:
            raise CommandError(f"--feature: {name} is not known: use one of {', '.join(ranges)}")
        try:
            level = whole_number(text, minimum=known.min_level, maximum=known.max_level)
        except ValueError:
            raise CommandError(
                f"--feature: {name} has no level {text!r}: use {known.min_level} to"
                f" {known.max_level}"
            ) from None
        if name in levels:
            raise CommandError(f"--feature: {name} is given twice: name each feature once")
        levels[name] = level
    return levels


def _check_static(arguments: argparse.Namespace, config: ControllerConfig) -> None:
    given = [
        flag
        for flag, is_given in (
            ("--statefulset", arguments.statefulset is not None),
            ("--standalone", arguments.standalone),
            ("--initial-controllers", arguments.initial_controllers is not None),
            ("--no-initial-controllers", arguments.no_initial_controllers),
        )
        if is_given
    ]
    if given:
        raise CommandError(
            f"{given[0]} is for {KRAFT_VERSION}=1, but here the voters stand in the properties:"
            " leave it out, or remove controller.quorum.voters and --feature kraft.version=0"
        )
    if not config.quorum.voters.voters:
        raise CommandError(
            f"--feature: {KRAFT_VERSION}=0 keeps the voters in the properties: set"
            " controller.quorum.voters"
        )


def _initial_voters(text: str, config: ControllerConfig) -> VoterSet:
    voters: dict[NodeId, Voter] = {}
    for item in text.split(","):
        node_text, at, rest = item.strip().partition("@")
        address, _, directory = rest.rpartition(":")
        if not at or ":" not in address or not is_whole_number(node_text, maximum=NODE_ID_MAX):
            raise CommandError(
                f"--initial-controllers: {item!r}: write ID@HOST:PORT:DIRECTORY, the directory's"
                " id as `quorate storage random-uuid` prints it"
            )
        try:
            host, port = parse_address("--initial-controllers", address)
            directory_id = parse_directory_id(directory)
        except ConfigError as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            raise CommandError(f"--initial-controllers: {item!r}: {error}") from error
        node_id = NodeId(int(node_text))
        if node_id in voters:
            raise CommandError(
                f"--initial-controllers: node {node_id} is there twice: name each voter once"
            )
        endpoint = Endpoint(config.peers.name, host, port)
        for other in voters.values():
            if directory_id == other.key.directory_id:
                raise CommandError(
                    f"--initial-controllers: nodes {other.key.node_id} and {node_id} have one"
                    " directory id: draw each its own with `quorate storage random-uuid`"
                )
            if endpoint in other.endpoints:
                raise CommandError(
                    f"--initial-controllers: nodes {other.key.node_id} and {node_id} have one"
                    f" address, {address}: give each its own"
                )
        voters[node_id] = Voter(ReplicaKey(node_id, directory_id), (endpoint,))
    return VoterSet.of(voters.values())


def _own_directory(voters: VoterSet, config: ControllerConfig) -> DirectoryId:
    """The directory id under which the first voters know this node."""
    own = next((voter.key for voter in voters if voter.key.node_id == config.node_id), None)
    if own is None or own.directory_id is None:
        raise CommandError(
            f"--initial-controllers: node.id {config.node_id} is not among them: add it, or use"
            " --no-initial-controllers for a node that joins later"
        )
    return own.directory_id
