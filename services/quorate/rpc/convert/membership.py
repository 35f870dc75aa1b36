"""Membership requests and responses from and to protobuf.

They change the voters, their kraft.version or the leader. The raft service and the admin API each
have a message for each of them, with the name of the dataclass (raft/messages.py) and of its
fields; a few fields consist of several, or have to be checked. Fields that a message lacks keep the
dataclass's default. Bad input raises ValueError that names the field.
"""

# ruff: noqa: ANN401 - messages of two services
from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, get_args

from google.protobuf.message_factory import GetMessageClass

from quorate.raft import messages as m
from quorate.records.ids import Epoch, Millis
from quorate.records.value_types import value_type
from quorate.records.voters import KRAFT_VERSION
from quorate.rpc.convert.raft import (
    at_least_0,
    at_most,
    cluster_of,
    endpoints_of,
    error_of,
    key_of,
    leader_of,
    pb_endpoints,
    pb_leader,
    versions_of,
)
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.descriptor import ServiceDescriptor
    from google.protobuf.message import Message

    from quorate.records.ids import ReplicaKey

FEATURES_MAX: Final = 1000
# The most unknown names in an error, and the most characters of each.
_NAMES_SHOWN_MAX: Final = 32
_SHAPES: Final[dict[str, Any]] = {shape.__name__: shape for shape in get_args(m.MembershipRequest)}


class UnsupportedFeatureError(ValueError):
    """A feature that cannot be changed in this release."""


# --- parts of requests ----------------------------------------------------------------------------


@value_type
class _NestedField:
    """The conversion of a field of a request, for messages with the field `inside`."""

    inside: str
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], object]


def _plain(name: str) -> _NestedField:
    return _NestedField(
        name, attrgetter(name), lambda message, value: setattr(message, name, value)
    )


def _checked(name: str, check: Callable[[Any], Any]) -> _NestedField:
    plain = _plain(name)
    return _NestedField(name, lambda message: check(getattr(message, name)), plain.write)


def _read_voter(message: Any) -> ReplicaKey:
    has_directory = message.HasField("voter_directory_id")
    directory = message.voter_directory_id if has_directory else None
    return key_of(message.voter_id, directory, "voter")


def _write_voter(message: Any, key: ReplicaKey) -> None:
    message.voter_id = key.node_id
    if key.directory_id is not None:
        message.voter_directory_id = key.directory_id


def _bound(name: str, which: int) -> _NestedField:
    """Convert one end of the range of kraft.versions that a voter supports."""

    def read(message: Any) -> int:
        feature = message.k_raft_version_feature
        low, high = feature.min_supported_version, feature.max_supported_version
        return versions_of(low, high, "k_raft_version_feature")[which]

    return _NestedField(
        "k_raft_version_feature",
        read,
        lambda message, value: setattr(message.k_raft_version_feature, name, value),
    )


def _read_level(message: Any) -> int:
    """Read the level of kraft.version, the only feature that is not metadata."""
    at_most(message.feature_updates, FEATURES_MAX, "feature_updates")
    levels = {update.feature: update.max_version_level for update in message.feature_updates}
    if not levels:
        raise ValueError(f"feature_updates: name a feature, such as {KRAFT_VERSION}")
    others = sorted(levels.keys() - {KRAFT_VERSION})
    if others:
        named = ", ".join(name[:_NAMES_SHOWN_MAX] for name in others[:_NAMES_SHOWN_MAX])
        raise UnsupportedFeatureError(
            f"{named} cannot be changed in this release: {KRAFT_VERSION} is the one feature that "
            "can (feature_updates)"
        )
    level: int = levels[KRAFT_VERSION]
    return level


def _write_level(message: Any, level: int) -> None:
    message.feature_updates.add(feature=KRAFT_VERSION, max_version_level=level)


# Every other field has the same name in the message.
_PARTS: Final = {
    "cluster_id": _checked("cluster_id", cluster_of),
    "voter": _NestedField("voter_id", _read_voter, _write_voter),
    "listeners": _NestedField(
        "listeners",
        lambda message: endpoints_of(message.listeners, "listeners"),
        lambda message, value: message.listeners.extend(pb_endpoints(value)),
    ),
    "timeout_ms": _checked("timeout_ms", lambda value: Millis(at_least_0(value, "timeout_ms"))),
    "current_leader_epoch": _checked(
        "current_leader_epoch", lambda value: Epoch(at_least_0(value, "current_leader_epoch"))
    ),
    "kraft_version_min": _bound("min_supported_version", 0),
    "kraft_version_max": _bound("max_supported_version", 1),
    "kraft_version": _NestedField("feature_updates", _read_level, _write_level),
}


def _parts(descriptor: Any) -> dict[str, _NestedField]:
    """Return the fields that a message has of its request, by the request's field names."""
    return _parts_of(descriptor.name, frozenset(descriptor.fields_by_name))


@cache
def _parts_of(name: str, known: frozenset[str]) -> dict[str, _NestedField]:
    names = [field.name for field in fields(_SHAPES[name])]
    parts = {each: _PARTS.get(each) or _plain(each) for each in names}
    return {each: part for each, part in parts.items() if part.inside in known}


# --- requests -------------------------------------------------------------------------------------


def method_of(request: m.MembershipRequest) -> str:
    """Return the name of the request's method, the same in both services."""
    return type(request).__name__.removesuffix("Request")


def request_of(message: Message) -> m.MembershipRequest:
    """Return the request of the message's name. Raises ValueError that names the field."""
    descriptor = message.DESCRIPTOR
    values = {name: part.read(message) for name, part in _parts(descriptor).items()}
    request: m.MembershipRequest = _SHAPES[descriptor.name](**values)
    return request


def message_of(request: m.MembershipRequest, service: ServiceDescriptor) -> Any:
    """Create the service's message for a request."""
    descriptor = service.methods_by_name[method_of(request)].input_type
    message = GetMessageClass(descriptor)()
    for name, part in _parts(descriptor).items():
        part.write(message, getattr(request, name))
    return message


# --- answers --------------------------------------------------------------------------------------


def reason_of(name: str) -> m.Reason | None:
    """Return a reason; None for one of a later release, which is still a rejection."""
    return m.Reason(name) if name in {reason.value for reason in m.Reason} else None


def answer_of(message: Any) -> m.MembershipResponse:
    """Convert a response of the raft service to any of these requests."""
    return m.MembershipResponse(
        error_of(message.error_code),
        message.error_message,
        leader_of(message.current_leader),
        reason_of(message.reason),
        tuple(sorted(message.metadata.items())),
    )


def answer_fields(answer: m.MembershipResponse) -> dict[str, Any]:
    """Return the fields that the messages of all these responses share."""
    return {
        "error_code": int(answer.error),
        "error_message": answer.message,
        "current_leader": pb_leader(answer.leader),
        "reason": answer.reason.value if answer.reason is not None else "",
        "metadata": dict(answer.metadata),
    }


def key_in(message: pb.ReplicaKey, field: str = "voter") -> ReplicaKey:
    """Convert a replica key, with its directory id if it has one."""
    directory = message.directory_id if message.HasField("directory_id") else None
    return key_of(message.id, directory, field)


def pb_key(key: ReplicaKey) -> pb.ReplicaKey:
    return pb.ReplicaKey(id=key.node_id, directory_id=key.directory_id)
