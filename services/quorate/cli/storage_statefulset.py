"""Formats the disk of a pod: the first pod bootstraps the quorum of its StatefulSet, others join.

A quorum is bootstrapped only on proof: no bootstrap record exists, and each of the other pods
reports twice that it has never known a leader, or refuses the connection or provably does not exist
for longer. A name proves that only while DNS knows the service of the pods, which has this pod. The
record is created before the directory is formatted, so before the new quorum can acknowledge
anything. It names the directory id that this disk has noted beforehand (`storage.founding`): after
a crash at any step the same disk continues, and every other one joins.

An unclear state is checked again for a while, and ends with status 1: kubelet tries again. Joining
is always safe, and a formatted disk is left alone.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.admin.statefulset import statefulset_at
from quorate.autojoin.bootstrap_record import BootstrapRecord
from quorate.cli import pod_disk_check
from quorate.cli.ids import parse_cluster_id
from quorate.cli.leader_probe import Answer, LeaderStatus, ask_for_leader, kind_for
from quorate.cli.output import CommandError
from quorate.cli.pod_disk_check import MOVED_FLAG, PodDisk, domain_of_pod, doubts
from quorate.cli.stateful_set import FLAG, StatefulSetObjects
from quorate.cli.storage_format_plan import make_plan, new_directory_id, write_plan
from quorate.cli.storage_recover import parse_ignored_servers
from quorate.records.ids import ReplicaKey
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.disaster_recovery.recovery_plan import check_no_unfinished_recovery
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.formatter import check_unused
from quorate.storage.founding_mark import end_founding, read_founding, write_founding
from quorate.storage.layout import LOG_DIR, META_PROPERTIES, QUORUM_STATE
from quorate.storage.meta_properties import read_meta
from quorate.storage.quorum_state import read_quorum_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from quorate.cli.storage_format_plan import FormatPlan
    from quorate.client.controller_calls import Address
    from quorate.records.ids import ClusterId, DirectoryId
    from quorate.server.config import ControllerConfig
    from quorate.storage.file_system import FileSystem
    from quorate.storage.pod_domain import PodDomain

FOUNDER: Final = 0
# Rounds in a row: a single answer may come from an unusual moment.
PROOFS: Final = 2
# Rounds in a row in which a pod does not answer. Its init container may be about to reject the disk
# of a quorum, and creates the record then.
SILENCES: Final = 20
_KNOWING: Final = (LeaderStatus.LEADS, LeaderStatus.LEADERLESS)
_NOT_KNOWING: Final = (LeaderStatus.NEW, LeaderStatus.REFUSED, LeaderStatus.ABSENT)


class Verdict(Enum):
    """The conclusion from the answers of all other pods."""

    QUORUM = "a pod knows a quorum"
    NO_QUORUM = "no pod knows a quorum"
    UNKNOWN = "it cannot be told"


def judge_pods(answers: Iterable[Answer]) -> Verdict:
    """A quorum exists if one pod knows it; that none exists takes proof from every pod."""
    standings = [answer.leader_status for answer in answers]
    if any(standing in _KNOWING for standing in standings):
        return Verdict.QUORUM
    if all(standing in _NOT_KNOWING for standing in standings):
        return Verdict.NO_QUORUM
    return Verdict.UNKNOWN


def format_pod(arguments: argparse.Namespace, config: ControllerConfig) -> None:
    """Bootstrap, join, or leave the directory as it is.

    Raises CommandError, ConfigError, StorageError or OSError if neither is safe or possible.
    """
    cluster_id = parse_cluster_id("--cluster-id", arguments.cluster_id)
    address = statefulset_at(arguments.statefulset, os.environ, key=FLAG)
    if address is None:
        raise CommandError(f"{FLAG} is '': write NAMESPACE/NAME")
    objects = StatefulSetObjects(address=address)
    own = domain_of_pod(config, namespace=address.namespace, name=address.name)
    fs = OsFileSystem()
    directory = config.log.directory
    check_no_unfinished_recovery(fs, directory)
    if fs.exists(f"{directory}/{META_PROPERTIES}"):
        print(f"{directory} is formatted already")
        _admit(PodDisk(arguments, config, objects, fs, own), fs, directory, objects)
        end_founding(fs, directory)
        _warn_of_cluster(fs, directory, cluster_id)
        _keep_record(fs, directory, objects)
        return
    pod = _PodFormat(arguments, config, objects, fs, cluster_id, own)
    fs.make_dirs(directory)
    with DirectoryLock(directory), _interrupted_by_sigterm():
        pod.run()


def _admit(disk: PodDisk, fs: FileSystem, directory: str, objects: StatefulSetObjects) -> None:
    """Raises CommandError for a disk of another pod, and makes sure that a record exists.

    Its controller never listens, so an empty disk would take that for the proof that no quorum
    exists. The record only prevents bootstrapping.
    """
    try:
        with _interrupted_by_sigterm():
            disk.admit()
    except (CommandError, StorageError) as error:
        _keep_record(fs, directory, objects)
        raise CommandError(
            f"{error}. While ConfigMap {objects.record_name} is there no empty disk founds a"
            " quorum here: if a new one is wanted instead, delete it and the claims of these disks"
        ) from error


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C: a container's first process gets no signal without a handler.

    Interrupted work continues at the next start.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _warn_of_cluster(fs: FileSystem, directory: str, cluster_id: ClusterId) -> None:
    """Warn that a disk belongs to another cluster, whose controllers this quorum rejects.

    It starts anyway: the disk may be right and the flag wrong, and otherwise it does no damage.
    """
    try:
        meta = read_meta(fs, f"{directory}/{META_PROPERTIES}")
    except StorageError:
        # The controller reports it, with the remedy.
        return
    if meta is not None and meta.cluster_id != cluster_id:
        print(
            f"warning: {directory} is of cluster {meta.cluster_id}, and --cluster-id is"
            f" {cluster_id} (clusterId of the chart): a quorum refuses the controllers of another"
            " cluster. If the disk is none of this quorum's, delete its claim and this pod;"
            " otherwise correct the id",
            file=sys.stderr,
        )


def _keep_record(fs: FileSystem, directory: str, objects: StatefulSetObjects) -> None:
    """Create the record if it is missing: a disk that has been in an epoch proves a quorum.

    Quorums of earlier releases without an operator have none. A controller starts without it, too.
    """
    try:
        election = read_quorum_state(fs, f"{directory}/{LOG_DIR}/{QUORUM_STATE}")
        meta = read_meta(fs, f"{directory}/{META_PROPERTIES}")
        if meta is None or election is None or election.epoch == 0:
            return
        if objects.read_record() is None and objects.create_record(
            BootstrapRecord(meta.cluster_id), objects.look().labels
        ):
            print(f"ConfigMap {objects.record_name} is created: cluster {meta.cluster_id} exists")
    except StorageError:
        # The controller reports it, with the remedy.
        return
    except Exception as error:
        # Whatever an API server answers, a formatted disk is started.
        print(f"warning: {error}", file=sys.stderr)


class _PodFormat:
    """The formatting of one empty disk."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        config: ControllerConfig,
        objects: StatefulSetObjects,
        fs: FileSystem,
        cluster_id: ClusterId,
        own: PodDomain,
    ) -> None:
        self._arguments = arguments
        self._config = config
        self._objects = objects
        self._fs = fs
        self._cluster_id = cluster_id
        self._directory = config.log.directory
        self._own = own
        endpoint = config.endpoints[0]
        self._domain = endpoint.host.partition(".")[2]
        self._port = endpoint.port

    def run(self) -> None:
        """Bootstrap or join. Raises CommandError if neither is safe yet."""
        if self._arguments.moved_from:
            self._join_moved()
            return
        if not self._may_found():
            self._join_as_other("the first pod of the StatefulSet founds quorums: this disk joins")
            return
        record = self._objects.read_record() or self._begin()
        if record is None:
            return
        if record.first == self._key(read_founding(self._fs, self._directory)):
            self._found(record)
        else:
            self._join_recorded(record)

    def _may_found(self) -> bool:
        """True for the first pod of the StatefulSet. Raises CommandError if it is not wanted."""
        node_id = self._config.node_id
        try:
            wanted = self._objects.look().wanted
        except CommandError as error:
            if node_id == FOUNDER:
                raise
            print(f"warning: {error}", file=sys.stderr)
            return False
        if node_id == FOUNDER and node_id not in wanted:
            raise CommandError(
                f"{FLAG}: StatefulSet {self._objects.name} wants no pod {node_id} (replicas"
                f" {len(wanted)}, ordinals from {wanted.start}), so none is founded here: scale it"
                " up, or let another of its pods be the first"
            )
        return bool(wanted) and node_id == wanted.start

    def _key(self, directory_id: DirectoryId | None) -> ReplicaKey:
        """This disk's key as a record names it; no record names a disk without a directory id."""
        return ReplicaKey(self._config.node_id, directory_id)

    # --- who knows a quorum -----------------------------------------------------------------------

    def _answers(self, servers: Sequence[Address], cluster_id: ClusterId) -> list[Answer]:
        return ask_for_leader(servers, cluster_id, kind_for(self._arguments, [self._config]))

    def _ask(
        self, settled: Sequence[Verdict], cluster_id: ClusterId
    ) -> tuple[Verdict, list[Answer]]:
        """The verdict of the other pods; one that is not settled may change in a moment."""
        needs_proof, in_a_row, heard = Verdict.NO_QUORUM in settled, 0, 0
        for left in reversed(range(pod_disk_check.ROUNDS)):
            # Pods may be added and removed in between.
            servers = self._others()
            answers = self._answers(servers, cluster_id)
            if needs_proof:
                answers += doubts(answers, domain=self._domain, port=self._port)
            verdict = judge_pods(answers)
            in_a_row = in_a_row + 1 if verdict is Verdict.NO_QUORUM else 0
            all_new = all(answer.leader_status is LeaderStatus.NEW for answer in answers)
            heard = heard + 1 if all_new else 0
            is_proven = heard >= PROOFS or in_a_row >= SILENCES or not servers
            is_enough = verdict is not Verdict.NO_QUORUM or is_proven
            if (verdict in settled and is_enough) or not (left and servers):
                break
            print(f"{verdict.value}: asks again", flush=True)
            time.sleep(pod_disk_check.PAUSE_S)
        if needs_proof and not is_enough:
            # After a single round the limit is reached.
            verdict = Verdict.UNKNOWN
        return verdict, answers

    def _others(self) -> list[Address]:
        """The addresses of the other pods that the StatefulSet wants now.

        Its service adds nothing: it leads to some of the same pods.
        """
        ignored = parse_ignored_servers(self._arguments.ignore_server)
        dot = "." if self._domain else ""
        servers = [
            (f"{self._objects.name}-{ordinal}{dot}{self._domain}", self._port)
            for ordinal in self._objects.look().ordinals
            if ordinal != self._config.node_id
        ]
        return [server for server in servers if server not in ignored]

    # --- founding ---------------------------------------------------------------------------------

    def _begin(self) -> BootstrapRecord | None:
        """Create a missing record if no pod knows a quorum. None: this disk has joined one."""
        verdict, answers = self._ask((Verdict.QUORUM, Verdict.NO_QUORUM), self._cluster_id)
        if verdict is Verdict.QUORUM:
            print(f"a quorum is known: {_words(answers, _KNOWING)}: this disk joins it")
            self._record_known()
            self._join(self._cluster_id)
            return None
        if verdict is Verdict.UNKNOWN:
            known = (*_KNOWING, *_NOT_KNOWING)
            unclear = [answer for answer in answers if answer.leader_status not in known]
            raise CommandError(
                f"{FLAG}: {'; '.join(map(str, unclear or answers))}: a quorum may be there, so"
                " none is founded. See to DNS, the network and the certificates between the pods,"
                " and that those pods run; `kubectl delete pod --force` takes the name of one away"
                " whose node is gone for good"
            )
        noted = read_founding(self._fs, self._directory)
        directory_id = noted or new_directory_id()
        # A directory that cannot be formatted must not be recorded.
        self._plan(self._cluster_id, directory_id, is_founder=True)
        check_unused(self._fs, self._directory)
        if noted is None:
            write_founding(self._fs, self._directory, directory_id)
        mine = BootstrapRecord(self._cluster_id, self._key(directory_id))
        print(f"no pod knows a quorum: {'; '.join(map(str, answers)) or 'there is no other pod'}")
        if self._objects.create_record(mine, self._objects.look().labels):
            return mine
        record = self._objects.read_record()
        if record is None:
            raise CommandError(
                f"{FLAG}: ConfigMap {self._objects.record_name} was there and is gone again: try"
                " again"
            )
        return record

    def _found(self, record: BootstrapRecord) -> None:
        """Continue the bootstrap that this disk has begun according to the record."""
        assert record.first is not None, "it names this disk"
        answers = self._answers(self._others(), record.cluster_id)
        if judge_pods(answers) is Verdict.QUORUM:
            print(
                f"ConfigMap {self._objects.record_name} names this disk, but a quorum is known:"
                f" {_words(answers, _KNOWING)}: this disk joins it"
            )
            self._join(record.cluster_id)
            return
        if self._objects.read_record() != record:
            raise CommandError(
                f"{FLAG}: ConfigMap {self._objects.record_name} has changed meanwhile: try again"
            )
        print(f"ConfigMap {self._objects.record_name} names this disk: this one is founded here")
        self._write(record.cluster_id, record.first.directory_id, is_founder=True)

    # --- joining ----------------------------------------------------------------------------------

    def _join_moved(self) -> None:
        """Join the quorum whose disks were moved here, once one of them has started.

        A moved disk starts with the record, and before its controller listens.
        """
        for left in reversed(range(pod_disk_check.ROUNDS)):
            record = self._objects.read_record()
            if record is not None:
                self._refuse_other_cluster(record)
                break
            answers = self._answers(self._others(), self._cluster_id)
            if judge_pods(answers) is Verdict.QUORUM:
                break
            if left:
                print("no disk that was moved here has started: asks again", flush=True)
                time.sleep(pod_disk_check.PAUSE_S)
        else:
            claims = ", ".join(
                f"data-{self._objects.name}-{n}" for n in self._objects.look().wanted
            )
            raise CommandError(
                f"{MOVED_FLAG} {self._arguments.moved_from} says that disks were moved here, but"
                f" this one is empty and none has started: of the claims {claims} at least those"
                " of a majority of the voters have to be bound to the volumes that were moved. See"
                " to it before the pods start again, or take the flag out (persistence.movedFrom"
                " of the chart) if a new quorum is wanted"
            )
        print(
            f"disks were moved here from {self._arguments.moved_from}, and with them the quorum:"
            " this empty disk joins it"
        )
        self._join(self._cluster_id)

    def _refuse_other_cluster(self, record: BootstrapRecord) -> None:
        """Raises CommandError if the record is not of the cluster whose disks were moved."""
        if record.cluster_id != self._cluster_id:
            name = self._objects.record_name
            raise CommandError(
                f"--cluster-id is {self._cluster_id}, but ConfigMap {name} says that there is a"
                f" quorum of cluster {record.cluster_id} here. Give the id of the disks that were"
                f" moved (clusterId of the chart); if it is right, delete ConfigMap {name}"
            )

    def _join_as_other(self, reason: str) -> None:
        print(reason)
        cluster_id = self._cluster_id
        try:
            record = self._objects.read_record()
        except CommandError as error:
            # The quorum rejects a disk with another cluster id and reports it: no damage is done.
            print(f"warning: {error}", file=sys.stderr)
        else:
            cluster_id = cluster_id if record is None else record.cluster_id
        self._join(cluster_id)

    def _record_known(self) -> None:
        """Record the known quorum, for times when no pod can be asked. Joining needs no record."""
        try:
            self._objects.create_record(
                BootstrapRecord(self._cluster_id), self._objects.look().labels
            )
        except CommandError as error:
            print(f"warning: {error}", file=sys.stderr)

    def _join_recorded(self, record: BootstrapRecord) -> None:
        """The record names another disk: wait for a pod that may know that quorum, and join it."""
        name = self._objects.record_name
        verdict, answers = self._ask((Verdict.QUORUM, Verdict.UNKNOWN), record.cluster_id)
        if verdict is Verdict.NO_QUORUM:
            raise CommandError(
                f"{FLAG}: ConfigMap {name} says that cluster {record.cluster_id} has a quorum, but"
                " this disk is empty and no pod knows it"
                f" ({'; '.join(map(str, answers)) or 'there is no other pod'}): waits for one that"
                " does. See that the other pods run, and whether their claims are there: while one"
                " disk of that quorum may come back, a new quorum would lose what it holds. What to"
                " do when all are lost for good is in docs/kubernetes.md"
            )
        print(f"the quorum is known by ConfigMap {name}: this disk joins it")
        if verdict is Verdict.QUORUM and all(
            a.leader_status is not LeaderStatus.LEADS for a in answers
        ):
            print(
                f"warning: no pod has a leader: {_words(answers, (LeaderStatus.LEADERLESS,))}. This"
                " disk waits for the voters of that quorum: bring their disks back",
                file=sys.stderr,
            )
        self._join(record.cluster_id)

    def _join(self, cluster_id: ClusterId) -> None:
        self._write(cluster_id, None, is_founder=False)

    def _write(
        self, cluster_id: ClusterId, directory_id: DirectoryId | None, *, is_founder: bool
    ) -> None:
        if cluster_id != self._cluster_id:
            print(f"the record's cluster id counts: {cluster_id}, not {self._cluster_id}")
        write_plan(self._fs, self._plan(cluster_id, directory_id, is_founder=is_founder))
        end_founding(self._fs, self._directory)

    def _plan(
        self, cluster_id: ClusterId, directory_id: DirectoryId | None, *, is_founder: bool
    ) -> FormatPlan:
        """The contents of the directory. Raises CommandError that names the flag and the remedy."""
        flags = vars(self._arguments) | {
            "cluster_id": str(cluster_id),
            "standalone": is_founder,
            "no_initial_controllers": not is_founder,
        }
        plan = make_plan(argparse.Namespace(**flags), self._config, directory_id)
        return replace(plan, formatting=replace(plan.formatting, pod_domain=self._own))


def _words(answers: Iterable[Answer], standings: Sequence[LeaderStatus]) -> str:
    return "; ".join(str(answer) for answer in answers if answer.leader_status in standings)
