"""`quorate storage recover`: recover from loss of quorum with the remaining disks.

See rule `quorum_loss_recovery`. Without `--execute` it inspects, asks servers and prints the plan.
Lost data cannot be restored, so it refuses if a leader or a process on a directory may be alive,
and in every unclear case.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.cli.ids import parse_cluster_id
from quorate.cli.leader_probe import ask_for_leader, check_no_leader, kind_for
from quorate.cli.output import CommandError, fail, print_json
from quorate.client.server_addresses import parse_server
from quorate.records.ids import DirectoryId, OffsetAndEpoch, format_uuid
from quorate.records.value_types import value_type
from quorate.server.config import ControllerConfig, load_config
from quorate.settings.properties import ConfigError
from quorate.storage import layout
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.disaster_recovery.quorum_recovery import (
    execute_plan,
    inspect_directory,
    longest_log,
    new_epoch,
)
from quorate.storage.disaster_recovery.recovery_plan import (
    RecoveryKind,
    RecoveryPlan,
    read_plan,
    write_plan,
)
from quorate.storage.errors import StorageError, problem_of
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import MetaProperties, read_meta
from quorate.storage.random_ids import draw_uuid
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from quorate.cli.leader_probe import Answer
    from quorate.client.controller_calls import Address
    from quorate.records.ids import ClusterId
    from quorate.records.voters import Endpoint, Voter, VoterSet
    from quorate.storage.disaster_recovery.quorum_recovery import SurvivingDirectory


@value_type
class NamedDirectory:
    """A directory that was named, with its properties if those were."""

    directory: str
    config: ControllerConfig | None = None


@value_type
class Report:
    """The actions that are planned or done, and their reasons."""

    plan: RecoveryPlan
    directory: str
    survivors: tuple[SurvivingDirectory, ...] = ()
    answers: tuple[Answer, ...] = ()
    is_continued: bool = False
    end: OffsetAndEpoch | None = None


def run(arguments: argparse.Namespace) -> int:
    """Show the plan, or carry it out; 1 if a precondition does not hold."""
    try:
        report = _recover(arguments)
    except (CommandError, ConfigError, StorageError) as error:
        return fail(str(error))
    except OSError as error:
        return fail(problem_of(error, "the directories"))
    if arguments.output == "json":
        print_json(report_fields(report))
    else:
        print("\n".join(report_lines(report)))
    return 0


def _recover(arguments: argparse.Namespace) -> Report:
    sources = find_sources(arguments)
    ignored = parse_ignored_servers(arguments.ignore_server)
    new_cluster_id = None
    if arguments.new_cluster_id is not None:
        new_cluster_id = parse_cluster_id("--new-cluster-id", arguments.new_cluster_id)
    for source in sources:
        DirectoryLock(source.directory).check()
    interrupted = _interrupted(sources)
    if interrupted is None:
        report = _make_report(sources, new_cluster_id)
    else:
        source, plan = interrupted
        report = Report(plan, source.directory, is_continued=True)
    cluster_id = report.plan.before.cluster_id
    configs = [source.config for source in sources if source.config is not None]
    kind = kind_for(arguments, configs)
    answers = ask_for_leader(_servers(sources, report), cluster_id, kind)
    check_no_leader(answers, ignored=ignored)
    report = replace(report, answers=tuple(answers))
    return _execute(report) if arguments.execute else report


def _execute(report: Report) -> Report:
    fs, plan = OsFileSystem(), report.plan
    with DirectoryLock(report.directory):
        if not report.is_continued:
            config = StorageConfig(node_id=plan.before.node_id)
            if inspect_directory(fs, report.directory, config).end != plan.end:
                raise CommandError(
                    f"{report.directory}: its log has changed meanwhile: stop whatever writes to"
                    " it, and run this command again"
                )
            write_plan(fs, report.directory, plan)
        end = execute_plan(fs, report.directory, plan, timestamp_ms=_now_ms())
    return replace(report, end=end)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- what is given --------------------------------------------------------------------------------


def find_sources(arguments: argparse.Namespace) -> list[NamedDirectory]:
    """The directories that the flags name. Raises CommandError, ConfigError."""
    sources = []
    for path in arguments.config:
        config = load_config(path, os.environ)
        sources.append(NamedDirectory(config.log.directory, config))
    sources += [NamedDirectory(os.path.abspath(path)) for path in arguments.directory]
    if not sources:
        raise CommandError(
            "no directory is named: give --config of each controller whose disk is left, or"
            " --directory"
        )
    seen: set[str] = set()
    for source in sources:
        real = os.path.realpath(source.directory)
        if not os.path.isdir(real):
            raise CommandError(
                f"{source.directory} is not a directory: correct --directory, or metadata.log.dir"
                " in the properties"
            )
        if real in seen:
            raise CommandError(f"{source.directory} is named twice: name each directory once")
        seen.add(real)
    return sources


def parse_ignored_servers(texts: Sequence[str]) -> list[Address]:
    """Parse `--ignore-server`. Raises CommandError."""
    try:
        return [parse_server(text) for text in texts]
    except ValueError as error:
        raise CommandError(f"--ignore-server: {error}") from error


def _interrupted(sources: Sequence[NamedDirectory]) -> tuple[NamedDirectory, RecoveryPlan] | None:
    fs = OsFileSystem()
    found = [(source, read_plan(fs, source.directory)) for source in sources]
    plans = [(source, plan) for source, plan in found if plan is not None]
    if not plans:
        return None
    source, plan = plans[0]
    if len(plans) > 1:
        raise CommandError(
            f"{source.directory} and {plans[1][0].directory}: a recovery was interrupted in both."
            " Name only the one that shall become the new quorum"
        )
    if plan.kind is not RecoveryKind.RECOVER:
        raise CommandError(
            f"{source.directory}: `quorate storage {plan.kind.value}` was interrupted here: run"
            " that command again"
        )
    return source, plan


def _survey(source: NamedDirectory) -> SurvivingDirectory:
    fs = OsFileSystem()
    config = source.config
    if config is not None:
        wanted = StorageConfig(node_id=config.node_id, static_voters=config.quorum.voters)
        return inspect_directory(fs, source.directory, wanted)
    meta = read_meta(fs, f"{source.directory}/{layout.META_PROPERTIES}")
    if meta is None:
        raise CommandError(
            f"{source.directory}/{layout.META_PROPERTIES} is missing: whose disk this was cannot"
            " be known. Restore the file, or leave the directory out"
        )
    return inspect_directory(fs, source.directory, StorageConfig(node_id=meta.node_id))


def _make_report(sources: Sequence[NamedDirectory], cluster_id: ClusterId | None) -> Report:
    survivors = []
    for source in sources:
        try:
            survivors.append(_survey(source))
        except StorageError as error:
            raise CommandError(
                f"{error}. Or leave {source.directory} out: then its log does not count"
            ) from error
    first = survivors[0]
    for survivor in survivors:
        if survivor.meta.cluster_id != first.meta.cluster_id:
            raise CommandError(
                f"{survivor.directory} is of cluster {survivor.meta.cluster_id}, but"
                f" {first.directory} of {first.meta.cluster_id}: name the disks of one cluster"
            )
    chosen = longest_log(survivors)
    config = next(source.config for source in sources if source.directory == chosen.directory)
    endpoints = config.endpoints if config is not None else chosen.endpoints
    if not endpoints:
        raise CommandError(
            f"{chosen.directory}: where node {chosen.meta.node_id} listens is not in its voter"
            " set: name its properties with --config instead of --directory"
        )
    meta = chosen.meta
    after = MetaProperties(meta.node_id, cluster_id or meta.cluster_id, DirectoryId(draw_uuid()))
    plan = RecoveryPlan(
        kind=RecoveryKind.RECOVER,
        started_ms=_now_ms(),
        before=meta,
        after=after,
        end=chosen.end,
        epoch=new_epoch([survivor.epoch for survivor in survivors]),
        endpoints=endpoints,
        voters_before=chosen.voters,
        witnesses=tuple(survivor.witness for survivor in survivors),
    )
    return Report(plan, chosen.directory, tuple(survivors))


def _servers(sources: Sequence[NamedDirectory], report: Report) -> list[Address]:
    """Servers that may lead: bootstrap servers, named controllers, voters of every log."""
    servers: list[Address] = []
    for source in sources:
        if source.config is not None:
            config = source.config
            servers += config.quorum.bootstrap_servers
            servers += _addresses((config.peers.advertised,))
            servers += _voter_addresses(config.quorum.voters)
    servers += _voter_addresses(report.plan.voters_before)
    for survivor in report.survivors:
        for entry in survivor.examined.state.voters:
            servers += _voter_addresses(entry.voters)
    return list(dict.fromkeys(servers))


def _voter_addresses(voters: VoterSet) -> list[Address]:
    return [address for voter in voters for address in _addresses(voter.endpoints)]


def _addresses(endpoints: Sequence[Endpoint]) -> list[Address]:
    return [(endpoint.host, endpoint.port) for endpoint in endpoints]


# --- what is said ---------------------------------------------------------------------------------


def _absent(plan: RecoveryPlan) -> list[Voter]:
    """The voters of the old voter set whose directory was not inspected."""
    present = [plan.voters_before.voter(witness.key) for witness in plan.witnesses]
    return [voter for voter in plan.voters_before if voter not in present]


def lost_records(report: Report) -> list[str]:
    """The data that is lost, as far as the directories show."""
    plan = report.plan
    said = []
    longest = max((w.highest_end for w in plan.witnesses), default=plan.end)
    if longest > plan.end:
        source = next(w.source for w in plan.witnesses if w.highest_end == longest)
        said.append(
            f"what the log of {source}, which once ended at {longest}, had from {plan.end} on"
        )
    absent = _absent(plan)
    if absent and len(absent) >= plan.voters_before.majority:
        ids = ", ".join(str(voter.key.node_id) for voter in absent)
        said.append(
            f"whatever was acknowledged above {plan.end} by the disks of {ids}, which are not here;"
            " how much that is cannot be known"
        )
    return said


def plan_warnings(report: Report) -> list[str]:
    """Reasons for another way of recovery."""
    plan = report.plan
    voters, absent = plan.voters_before, _absent(plan)
    if not voters.voters or len(absent) >= voters.majority or lost_records(report):
        return []
    said = [
        f"every majority of the {len(voters)} voters has a disk here: unless one of them is an"
        " older copy, nothing that was acknowledged is lost"
    ]
    if len(voters) - len(absent) >= voters.majority:
        said.append("they are a majority: started together they elect a leader by themselves")
    return said


def next_steps(report: Report) -> list[str]:
    """Steps for a person afterwards, without which the old quorum could come back."""
    plan = report.plan
    offset = plan.end.offset
    steps = [
        f"Start node {plan.after.node_id} on {report.directory}: it elects itself.",
        "Wipe every other disk of the old quorum before its controller starts again, and format it"
        f" with `quorate storage format --cluster-id {plan.after.cluster_id}"
        " --no-initial-controllers`: old disks together could go on as the old quorum.",
        f"Brokers whose metadata is ahead of offset {offset} have records that this quorum does"
        " not: format their metadata directories again before they start.",
    ]
    if plan.after.cluster_id != plan.before.cluster_id:
        steps.append(
            "Every broker and controller belongs to the old cluster id: format them all again."
        )
    return steps


def report_lines(report: Report) -> list[str]:
    """The report for a terminal."""
    plan = report.plan
    before, after = plan.before, plan.after
    lines = [f"Cluster {before.cluster_id}, voters {_names(plan.voters_before)}"]
    if report.is_continued:
        lines.append(f"A recovery of {report.directory} was interrupted: it goes on.")
    lines.append("Directories:")
    for witness in plan.witnesses:
        mark = "*" if witness.source == report.directory else " "
        once = f", once {witness.highest_end}" if witness.highest_end > witness.end else ""
        lines.append(
            f" {mark} {witness.source}: node {witness.key}, epoch {witness.epoch}, log end"
            f" {witness.end}{once}"
        )
    for survivor in report.survivors:
        lines += [f"   {finding}" for finding in survivor.examined.findings]
    lines += ["Asked for a leader:", *(f"   {answer}" for answer in report.answers)]
    endpoints = ",".join(str(endpoint) for endpoint in plan.endpoints)
    lines += [
        f"New quorum: node {after.node_id} alone, at {endpoints}, cluster {after.cluster_id}",
        f"   directory {report.directory}, the longest log (*), kept whole up to {plan.end}",
        f"   epoch {plan.epoch}",
    ]
    lines += [f"Lost: {loss}" for loss in lost_records(report)]
    lines += [f"Note: {remark}" for remark in plan_warnings(report)]
    if report.end is None:
        return [*lines, "DRY RUN: nothing has been changed. Run it with --execute to do this."]
    path = f"{report.directory}/{layout.rescue_record_name(plan.epoch)}"
    return [
        *lines,
        f"Recovered: log end {report.end}, directory id {format_uuid(before.directory_id)} is now"
        f" {format_uuid(after.directory_id)}",
        f"Record: {path}",
        "Next:",
        *(f"   {step}" for step in next_steps(report)),
    ]


def _names(voters: VoterSet) -> str:
    return ", ".join(str(voter.key) for voter in voters) or "unknown"


def report_fields(report: Report) -> dict[str, object]:
    """The report for a script."""
    plan, is_done = report.plan, report.end is not None
    new_id = format_uuid(plan.after.directory_id) if is_done or report.is_continued else None
    return {
        "clusterId": plan.before.cluster_id,
        "voters": [str(voter.key) for voter in plan.voters_before],
        "directories": [
            {
                "directory": witness.source,
                "node": str(witness.key),
                "epoch": witness.epoch,
                "logEnd": str(witness.end),
                "highestLogEnd": str(witness.highest_end),
            }
            for witness in plan.witnesses
        ],
        "asked": [str(answer) for answer in report.answers],
        "chosen": report.directory,
        "newQuorum": {
            "nodeId": plan.after.node_id,
            "clusterId": plan.after.cluster_id,
            "directoryId": new_id,
            "epoch": plan.epoch,
            "endpoints": [str(endpoint) for endpoint in plan.endpoints],
        },
        "lost": lost_records(report),
        "notes": plan_warnings(report),
        "isContinued": report.is_continued,
        "isExecuted": is_done,
        "logEnd": None if report.end is None else str(report.end),
        "next": next_steps(report) if is_done else [],
    }
