"""`quorate storage backup` and `restore`: one checksummed file; restores a single-voter quorum."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from quorate.cli.ids import parse_cluster_id
from quorate.cli.leader_probe import ask_for_leader, check_no_leader, kind_for
from quorate.cli.output import CommandError, fail
from quorate.cli.storage_recover import parse_ignored_servers
from quorate.client.controller_calls import QuorumUnavailableError, RequestRefusedError
from quorate.client.controller_client import ControllerClient
from quorate.records.ids import DirectoryId, OffsetAndEpoch, format_uuid
from quorate.server.config import load_config
from quorate.settings.properties import ConfigError
from quorate.settings.regular_files import NotRegularFileError, open_regular
from quorate.storage import layout
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.disaster_recovery.backup import local_end, open_source
from quorate.storage.disaster_recovery.backup_file import check_backup, digest_of, write_backup
from quorate.storage.disaster_recovery.restore import check_empty, make_restore_plan, restore
from quorate.storage.errors import StorageError, problem_of
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import read_meta
from quorate.storage.random_ids import draw_uuid

if TYPE_CHECKING:
    import argparse

    from quorate.client.controller_calls import Address
    from quorate.rpc.channels import ChannelKind
    from quorate.server.config import ControllerConfig
    from quorate.storage.disaster_recovery.backup import BackupSource

_LEADER_TIMEOUT_MS: Final = 3_000
_POLL_S: Final = 0.05
_FILE_MODE: Final = 0o600


# --- backup ---------------------------------------------------------------------------------------


def run_backup(arguments: argparse.Namespace) -> int:
    """Take a backup; 1 if it failed, and then there is no file."""
    try:
        _backup(arguments)
    except (CommandError, ConfigError, StorageError) as error:
        return fail(str(error))
    except OSError as error:
        return fail(problem_of(error, arguments.output))
    return 0


def _backup(arguments: argparse.Namespace) -> None:
    config = load_config(arguments.config, os.environ)
    output: str = arguments.output
    _check_output(output)
    fs, directory = OsFileSystem(), config.log.directory
    meta = read_meta(fs, f"{directory}/{layout.META_PROPERTIES}")
    cluster_id = None if meta is None else meta.cluster_id
    goal = asyncio.run(_committed(config, cluster_id, kind_for(arguments, [config])))
    if goal is not None:
        _await_local(directory, goal, arguments.timeout_ms)
    source = open_source(fs, directory, below=None if goal is None else goal.offset)
    try:
        digest = _write(source, output, is_committed=goal is not None)
    finally:
        source.close()
    known = "all of it committed" if goal else "committed or not: no leader answered"
    print(f"Backup:     {output}")
    print(f"ClusterId:  {source.meta.cluster_id}")
    print(f"LogEnd:     {source.end} ({known})")
    print(f"SHA256:     {digest}")


def _check_output(output: str) -> None:
    if not output:
        raise CommandError("--output is empty: name a file that is not there")
    if os.path.exists(output):
        raise CommandError(f"--output: {output} exists already: name another file")
    parent = os.path.dirname(output) or "."
    if not os.path.isdir(parent):
        raise CommandError(f"--output: {parent} is no directory: make it, or name another file")


async def _committed(
    config: ControllerConfig, cluster_id: str | None, kind: ChannelKind
) -> OffsetAndEpoch | None:
    """The leader's epoch and high watermark; None without a leader. Raises CommandError."""
    advertised = (config.peers.advertised.host, config.peers.advertised.port)
    servers: list[Address] = [advertised, *config.quorum.bootstrap_servers]
    async with ControllerClient(
        servers, timeout_ms=_LEADER_TIMEOUT_MS, tls=kind.tls, transport=kind.transport
    ) as client:
        try:
            identity = await client.api_versions()
            async with asyncio.timeout(_LEADER_TIMEOUT_MS / 1000):
                # A leader that was just elected does not know the committed offset yet.
                quorum = await client.describe_quorum()
                while quorum.high_watermark is None:
                    await asyncio.sleep(_POLL_S)
                    quorum = await client.describe_quorum()
        except (QuorumUnavailableError, TimeoutError):
            return None
        except RequestRefusedError as error:
            raise CommandError(
                f"{error}: what is committed cannot be asked for. Ask as somebody who may, with"
                " --command-config"
            ) from error
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise CommandError(
            f"controller.quorum.bootstrap.servers lead to cluster {identity.cluster_id}, but the"
            f" directory is of {cluster_id}: correct the properties"
        )
    return OffsetAndEpoch(epoch=quorum.leader.epoch, offset=quorum.high_watermark)


def _await_local(directory: str, goal: OffsetAndEpoch, timeout_ms: int) -> None:
    """Wait until this directory has what is committed; its epoch proves the leader's log."""
    fs, deadline = OsFileSystem(), time.monotonic() + timeout_ms / 1000
    while True:
        end = local_end(fs, directory)
        if end is not None and end.epoch >= goal.epoch and end.offset >= goal.offset:
            return
        if time.monotonic() >= deadline:
            raise CommandError(
                f"{directory} ends at {end or 'nothing'}, and {goal} is committed: start its"
                " controller and let it catch up, or take the backup from another one"
            )
        time.sleep(_POLL_S)


def _write(source: BackupSource, output: str, *, is_committed: bool) -> str:
    """Write the file durably under its name; returns its SHA-256."""
    unfinished = output + layout.TEMPORARY_SUFFIX
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        descriptor = os.open(unfinished, flags, _FILE_MODE)
    except OSError as error:
        raise CommandError(
            f"--output: {unfinished}: {error.strerror}: name a file that can be written"
        ) from error
    try:
        with os.fdopen(descriptor, "r+b") as file:
            manifest = source.manifest(taken_ms=_now_ms(), is_committed=is_committed)
            write_backup(manifest, source.parts, file)
            file.flush()
            os.fsync(file.fileno())
            digest = digest_of(file)
        os.rename(unfinished, output)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
    OsFileSystem().sync_dir(os.path.dirname(os.path.abspath(output)))
    return digest


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- restore --------------------------------------------------------------------------------------


def run_restore(arguments: argparse.Namespace) -> int:
    """Restore a backup; 1 if a precondition does not hold."""
    try:
        _restore(arguments)
    except (CommandError, ConfigError, StorageError) as error:
        return fail(str(error))
    except OSError as error:
        return fail(problem_of(error, arguments.input))
    return 0


def _opened_input(path: str) -> IO[bytes]:
    try:
        return open(open_regular(path, os.O_RDONLY), "rb")
    except NotRegularFileError as error:
        raise CommandError(f"--input: {path}: {error}; name what `backup` wrote") from error
    except OSError as error:
        raise CommandError(
            f"--input: {path}: {error.strerror}: name what `backup` wrote"
        ) from error


def _restore(arguments: argparse.Namespace) -> None:
    config = load_config(arguments.config, os.environ)
    ignored = parse_ignored_servers(arguments.ignore_server)
    fs, directory = OsFileSystem(), config.log.directory
    check_empty(fs, directory)
    with _opened_input(arguments.input) as file:
        backup = check_backup(file, arguments.input)
        cluster_id = backup.manifest.meta.cluster_id
        if arguments.new_cluster_id is not None:
            cluster_id = parse_cluster_id("--new-cluster-id", arguments.new_cluster_id)
        advertised = (config.peers.advertised.host, config.peers.advertised.port)
        servers = [advertised, *config.quorum.bootstrap_servers]
        kind = kind_for(arguments, [config])
        check_no_leader(ask_for_leader(servers, cluster_id, kind), ignored=ignored)
        plan = make_restore_plan(
            backup.manifest,
            arguments.input,
            node_id=config.node_id,
            cluster_id=cluster_id,
            unpacked_as=DirectoryId(draw_uuid()),
            directory_id=DirectoryId(draw_uuid()),
            endpoints=config.endpoints,
            started_ms=_now_ms(),
        )
        fs.make_dirs(directory)
        with DirectoryLock(directory):
            end = restore(fs, directory, plan, file, timestamp_ms=_now_ms())
    print(f"Restored:     {directory}: node {config.node_id} is the only voter")
    print(f"SHA256:       {backup.digest}")
    print(f"ClusterId:    {cluster_id}")
    print(f"DirectoryId:  {format_uuid(plan.after.directory_id)}")
    print(f"LogEnd:       {backup.manifest.end} in the backup, now {end}")
    print(
        f"Brokers whose metadata is ahead of offset {backup.manifest.end.offset} have to be"
        " formatted again before they start."
    )
