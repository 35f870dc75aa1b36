"""Environment variables of settings: their names, and a check for misspelt ones.

A misspelt variable would otherwise silently leave a setting at its default.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from quorate.records.escaping import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

ENVIRONMENT_PREFIX: Final = "QUORATE_"
# Of all services: one environment may be for several containers of a pod. Settings of one listener
# (`listener.name.NAME.`) are not among them.
EVERY_SETTING: Final = frozenset(
    (
        *("admin.controller", "admin.listener", "admin.request.timeout.ms", "admin.statefulset"),
        *("advertised.listeners", "authorizer.allow.alter", "authorizer.allow.alter.configs"),
        *("auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds"),
        *("authorizer.allow.cluster.action", "authorizer.allow.create"),
        *("authorizer.allow.delete", "authorizer.allow.describe"),
        *("authorizer.allow.describe.configs", "authorizer.allow.quorum.action"),
        *("authorizer.allow.read", "authorizer.class.name"),
        *("authorizer.forwarders", "autojoin.admin.port", "autojoin.container"),
        *("autojoin.controller.port", "autojoin.ghost.delay.ms", "autojoin.identity"),
        *("autojoin.interval.ms", "autojoin.lease.ms", "autojoin.namespace"),
        *("autojoin.statefulset", "autojoin.template", "broker.session.timeout.ms"),
        *("controller.listener.names",),
        *("controller.quorum.append.linger.ms", "controller.quorum.auto.join.enable"),
        *("controller.quorum.bootstrap.servers", "controller.quorum.election.backoff.max.ms"),
        *("controller.quorum.election.timeout.ms", "controller.quorum.fetch.max.bytes"),
        *("controller.quorum.fetch.snapshot.max.bytes", "controller.quorum.fetch.timeout.ms"),
        *("controller.quorum.request.timeout.ms", "controller.quorum.retry.backoff.ms"),
        *("controller.quorum.voters", "default.replication.factor", "grpc.reflection.enable"),
        *("grpc.transport", "health.port", "listener.security.protocol.map", "listeners"),
        *("log.dirs", "log.format", "log.level", "metadata.log.dir"),
        *("metadata.log.free.bytes.min", "metadata.log.max.record.bytes.between.snapshots"),
        *("metadata.log.max.snapshot.interval.ms", "metadata.log.segment.bytes"),
        *("metadata.max.retention.bytes", "metadata.max.retention.ms", "metrics.port"),
        *("node.id", "num.partitions", "process.roles", "security.protocol"),
        *("shutdown.timeout.ms", "ssl.client.auth", "ssl.key.password"),
        *("ssl.keystore.certificate.chain.location", "ssl.keystore.key.location"),
        *("ssl.keystore.location", "ssl.keystore.type", "ssl.truststore.location"),
        *("ssl.truststore.type", "super.users", "tracing.fetch.ratio"),
        *("tracing.otlp.endpoint", "tracing.service.prefix", "tracing.write.ratio"),
    )
)
_OF_A_LISTENER: Final = "QUORATE_LISTENER_NAME_"
# Variables of this project's tests and tools.
_OF_TOOLS: Final = frozenset(
    f"{ENVIRONMENT_PREFIX}{name}"
    for name in (
        *("CHAOS_CONTROL", "CLUSTER_HOME", "CONFORM", "GRPC_PROGRAMS", "HANG", "IMAGE_BUILDER"),
        *("KAFKA_FIXTURES", "KAFKA_JARS", "TRACE", "TURNS"),
    )
)
# Kubernetes gives them to every pod for a service whose name begins with `quorate`.
_SERVICE_LINK: Final = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_LINKED_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://")


def environment_name(key: str) -> str:
    """`QUORATE_NODE_ID` for `node.id`."""
    return ENVIRONMENT_PREFIX + key.upper().replace(".", "_")


def is_service_link(name: str, value: str) -> bool:
    """True if Kubernetes put this variable into the environment of the pod."""
    if _SERVICE_LINK.fullmatch(name):
        return True
    return name.endswith("_PORT") and _LINKED_ADDRESS.match(value) is not None


def unread_variables(
    environment: Mapping[str, str], read: Collection[str], *, reads_listeners: bool
) -> Iterator[str]:
    """A warning for each variable that no setting reads, with the setting that was meant.

    `read` are the keys that this service asked for. Of the variables for one listener only a
    service that `reads_listeners` knows which are read.
    """
    known: dict[str, str] = {environment_name(key): key for key in (*EVERY_SETTING, *read)}
    for name in sorted(environment):
        if not name.startswith(ENVIRONMENT_PREFIX) or name in known or name in _OF_TOOLS:
            continue
        if name.startswith(_OF_A_LISTENER) and not reads_listeners:
            continue
        if not is_service_link(name, environment[name]):
            meant = _meant(name, known)
            yield f"{shown(name)} is not a setting of this release: it is ignored{meant}"


def _meant(name: str, known: Mapping[str, str]) -> str:
    nearest: Iterable[str] = get_close_matches(shown(name), known, n=1)
    return "".join(f". Is {match} ({known[match]}) meant?" for match in nearest)
