"""Checks that a pod starts on its own formatted disk, and not on a copy of another pod's.

The voters in the log are called by their DNS names. So a copy that is started in another namespace
is a voter of the original quorum: it votes and acknowledges there with the data it has. The init
container runs before every start and knows its pod, so it checks here whose disk it is
(`storage.pod_domain`).

A moved disk is started once a person has named the StatefulSet that it comes from, and that
StatefulSet has no pods any more. From then on it belongs to the new pod, and the permission applies
to no other disk.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from quorate.admin.statefulset import parse_statefulset
from quorate.cli.leader_probe import Answer, LeaderStatus, ask_for_leader, kind_for, why_unknown
from quorate.cli.output import CommandError
from quorate.cli.stateful_set import FLAG
from quorate.cli.storage_recover import parse_ignored_servers
from quorate.records.ids import ReplicaKey
from quorate.records.value_types import keyword_value_type
from quorate.settings.properties import ConfigError
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.layout import META_PROPERTIES, POD_DOMAIN
from quorate.storage.meta_properties import read_meta
from quorate.storage.pod_domain import (
    PodDomain,
    parse_pod_domain,
    read_pod_domain,
    write_pod_domain,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from quorate.cli.stateful_set import StatefulSetObjects
    from quorate.client.controller_calls import Address
    from quorate.server.config import ControllerConfig
    from quorate.storage.file_system import FileSystem

MOVED_FLAG: Final = "--moved-from"
# Kubelet waits for minutes between tries, so this waits for names and pods that appear or
# disappear soon.
ROUNDS: Final = 60
PAUSE_S: Final = 1.0


@keyword_value_type
class _Origin:
    """The StatefulSet from which disks were moved, as the flag names it."""

    namespace: str
    name: str

    def had(self, domain: PodDomain, node_id: int) -> bool:
        """True for the disk of its pod with this ordinal."""
        return (domain.namespace, domain.pod) == (self.namespace, f"{self.name}-{node_id}")


def domain_of_pod(config: ControllerConfig, *, namespace: str, name: str) -> PodDomain:
    """The domain of this pod. Raises CommandError if the node's host does not name it."""
    host, node_id = config.endpoints[0].host.lower(), config.node_id
    pod, _, rest = host.partition(".")
    if pod != f"{name}-{node_id}":
        raise CommandError(
            f"{FLAG}: this node is {host} in advertised.listeners, which does not begin with the"
            f" name of pod {node_id}, {name}-{node_id}: correct advertised.listeners, node.id or"
            f" {FLAG}"
        )
    service = rest.partition(".")[0]
    try:
        return parse_pod_domain(f"{pod}.{service}.{namespace}.svc")
    except ValueError as error:
        raise CommandError(
            f"{FLAG}: this node is {host} in advertised.listeners, of which a name in the cluster"
            f" cannot be made ({error}): write {pod}.SERVICE.{namespace}.svc there"
        ) from error


def doubts(answers: Iterable[Answer], *, domain: str, port: int) -> list[Answer]:
    """The service of the pods, if names are absent and DNS does not know its name.

    It has at least this pod. The pod's own name proves less: kubelet writes it to /etc/hosts.
    """
    if all(answer.leader_status is not LeaderStatus.ABSENT for answer in answers):
        return []
    why = why_unknown(domain) if domain else "advertised.listeners names none"
    if why is None:
        return []
    words = f"must have an address, as the service of this very pod ({why})"
    return [Answer((domain, port), LeaderStatus.UNREACHABLE, words)]


class PodDisk:
    """A formatted directory, and the pod that is about to start on it."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        config: ControllerConfig,
        objects: StatefulSetObjects,
        fs: FileSystem,
        own: PodDomain,
    ) -> None:
        self._arguments = arguments
        self._config = config
        self._objects = objects
        self._fs = fs
        self._own = own
        self._directory = config.log.directory
        self._path = f"{self._directory}/{POD_DOMAIN}"

    def admit(self) -> None:
        """Let the pod start on its own disk, on one without a pod, and on one that was moved.

        Raises CommandError for every other disk, and StorageError if its pod cannot be read.
        """
        known = read_pod_domain(self._fs, self._directory)
        own = self._own
        if known == own:
            return
        if known is None:
            print(f"{self._directory} belongs to {own} from now on")
        elif known.is_same_pod(own):
            print(f"{self._directory}: the pod is called {own} from now on, not {known}")
        else:
            self._refuse_copy(known)
            print(f"{self._directory} was moved: it belongs to {own} from now on, not to {known}")
        with DirectoryLock(self._directory):
            write_pod_domain(self._fs, self._directory, own)

    def _refuse_copy(self, known: PodDomain) -> None:
        """Raises CommandError unless the disk was moved here from the place that the flag names."""
        own, node_id = self._own, self._config.node_id
        name, dash, ordinal = known.pod.rpartition("-")
        said = f"{self._path}: this is the disk of {known}, and this pod is {own}"
        if not dash or ordinal != str(node_id):
            raise CommandError(
                f"{said}: a disk is that of one ordinal, and a copy of it would vote and"
                " acknowledge as the other voter. Give this pod its own disk, or an empty one"
            )
        if not self._arguments.moved_from:
            raise CommandError(
                f"{said}: a copy of that disk would vote and acknowledge in the quorum of the"
                " original. If the disk was moved, not copied, and the original is gone for good,"
                f" say so with {MOVED_FLAG} {known.namespace}/{name} (persistence.movedFrom of the"
                " chart). docs/kubernetes.md says how to make a copy that is a quorum of its own"
            )
        origin = _origin(self._arguments.moved_from)
        if not origin.had(known, node_id):
            raise CommandError(
                f"{said}: {MOVED_FLAG} names {origin.namespace}/{origin.name}, which had no such"
                f" pod. If the disk was moved, write {known.namespace}/{name}"
            )
        self._refuse_cluster()
        self._refuse_other_quorum(said)
        self._refuse_original(known, said)

    def _refuse_cluster(self) -> None:
        """Raises CommandError if empty disks here would be formatted for another cluster."""
        meta = read_meta(self._fs, f"{self._directory}/{META_PROPERTIES}")
        if meta is not None and meta.cluster_id != self._arguments.cluster_id:
            raise CommandError(
                f"--cluster-id is {self._arguments.cluster_id}, but the disk that was moved here is"
                f" of cluster {meta.cluster_id}: give that one (clusterId of the chart)"
            )

    def _refuse_other_quorum(self, said: str) -> None:
        """Raises CommandError if the record is that of a quorum that was bootstrapped here."""
        record = self._objects.read_record()
        meta = read_meta(self._fs, f"{self._directory}/{META_PROPERTIES}")
        if record is None or meta is None:
            return
        own = ReplicaKey(meta.node_id, meta.directory_id)
        if record.cluster_id == meta.cluster_id and record.first in (None, own):
            return
        name = self._objects.record_name
        raise CommandError(
            f"{said}: ConfigMap {name} says that a quorum of cluster {record.cluster_id} was"
            " founded here, and the disk that was moved would be in a second one. That quorum has"
            " to go first: scale this StatefulSet to 0 (with whenScaled Retain, or all claims go),"
            f" delete the claims of its disks that were not moved, and delete ConfigMap {name}"
        )

    def _refuse_original(self, known: PodDomain, said: str) -> None:
        """Raises CommandError unless DNS has no pod of the StatefulSet that the disk comes from.

        Pods may still be ending, so this retries for a while.
        """
        endpoint = self._config.endpoints[0]
        service = f"{known.service}.{known.namespace}.svc"
        ignored = parse_ignored_servers(self._arguments.ignore_server)
        servers = [(str(known), endpoint.port), (service, endpoint.port)]
        servers = [server for server in servers if server not in ignored]
        for left in reversed(range(ROUNDS)):
            there = self._not_absent(servers)
            if not there:
                return
            words = "; ".join(map(str, there))
            if left:
                print(f"the original has to be gone first: {words}: asks again", flush=True)
                time.sleep(PAUSE_S)
        raise CommandError(
            f"{said}: {MOVED_FLAG} says that it was moved, but {words}. The original has to be"
            " gone first: uninstall it there, its service included, and see to DNS"
        )

    def _not_absent(self, servers: list[Address]) -> list[Answer]:
        """The answers that do not prove a name absent."""
        endpoint = self._config.endpoints[0]
        kind = kind_for(self._arguments, [self._config])
        answers = ask_for_leader(servers, self._arguments.cluster_id, kind)
        answers += doubts(answers, domain=endpoint.host.partition(".")[2], port=endpoint.port)
        return [answer for answer in answers if answer.leader_status is not LeaderStatus.ABSENT]


def _origin(text: str) -> _Origin:
    try:
        namespace, name = parse_statefulset(text, key=MOVED_FLAG)
    except ConfigError as error:
        raise CommandError(str(error)) from error
    return _Origin(namespace=namespace, name=name)
