"""Messages at their extremes, made from the descriptors: a new field is in them by itself.

`single` takes a valid request and puts one field after the other at each of its extremes;
`anything` draws several together.
"""

# ruff: noqa: ANN401 - descriptors come in two implementations, messages in many types
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.rpc.gen.admin.v1 import admin_pb2
from quorate.rpc.gen.controller.v1 import controller_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2
from tests.unit.raft import cores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    from quorate.records.ids import ReplicaKey

MODULES: Final[tuple[Any, ...]] = (raft_pb2, controller_pb2, admin_pb2)
NUMBERS: Final = (
    0,
    1,
    2,
    -1,
    32_767,
    32_768,
    65_535,
    65_536,
    70_000,
    2**31 - 2,
    2**31 - 1,
    -(2**31),
)
WIDE_NUMBERS: Final = (*NUMBERS, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63))
UNSIGNED_NUMBERS: Final = (0, 1, 2**31, 2**32 - 1)
FRACTIONS: Final = (0.0, -0.0, 0.5, 1e-320, 1e300, math.inf, -math.inf, math.nan)
TEXTS: Final = (
    "",
    "x",
    cores.CLUSTER,
    "GRPC",
    "kraft.version",
    "metadata.version",
    "1",
    "\0\n\u2028 =\"'",
    "\N{EURO SIGN}" * 20_000,
    "x" * 255,
    "x" * 256,
    "x" * 32_767,
    "x" * 32_768,
    "9" * 5_000,
    "a," * 10_000,
    "x" * 900_000,
)
OCTETS: Final = (b"", b"x", bytes(15), bytes(16), bytes(17), b"\1" * 16, b"\2" * 16, bytes(900_000))
MANY: Final = (33, 101, 1001, 20_000)
_WIDE: Final = frozenset({"int64", "uint64", "sint64", "fixed64", "sfixed64"})


def methods() -> Iterator[tuple[str, str, Descriptor]]:
    """Service, method and request of all that is served."""
    for module in MODULES:
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield service.name, method.name, method.input_type


def _type_name(field: Any) -> str:
    names = {value: name for name, value in vars(type(field)).items() if name.startswith("TYPE_")}
    name: str = names[field.type]
    return name.removeprefix("TYPE_").lower()


def values(field: Any) -> tuple[Any, ...]:
    """The extremes of one plain value of this field."""
    name = _type_name(field)
    if name == "string":
        return TEXTS
    if name == "bytes":
        return OCTETS
    if name == "bool":
        return (False, True)
    if name == "double":
        return FRACTIONS
    if name == "fixed32":
        return UNSIGNED_NUMBERS
    return WIDE_NUMBERS if name in _WIDE else NUMBERS


# --- sound requests -------------------------------------------------------------------------------


def _key(prefix: str, key: ReplicaKey) -> dict[str, Any]:
    return {f"{prefix}_id": key.node_id, f"{prefix}_directory_id": key.directory_id}


def _endpoint() -> dict[str, Any]:
    return {"name": "GRPC", "host": "127.0.0.1", "port": 9094}


_BROKER: Final = {
    "broker_id": 1,
    "incarnation_id": b"i" * 16,
    "cluster_id": cores.CLUSTER,
    "listeners": [{"name": "PLAINTEXT", "host": "h", "port": 9092}],
    "features": [
        {"name": f.name, "min_level": f.min_level, "max_level": f.max_level}
        for f in SUPPORTED_FEATURES
    ],
    "rack": "r",
    "log_dirs": [b"l" * 16],
}
_TOPIC: Final = {
    "name": "t",
    "partitions": -1,
    "replication_factor": -1,
    "configs": [{"name": "cleanup.policy", "value": "compact"}],
}
_ENTITY: Final = [
    {"entity_type": "user", "entity_name": "u"},
    {"entity_type": "client-id"},
]
_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "cluster_id": {"cluster_id": cores.CLUSTER},
    "listeners": {"listeners": [_endpoint()]},
    "replica_endpoints": {"replica_endpoints": [_endpoint()]},
    "leader_endpoints": {"leader_endpoints": [_endpoint()]},
    "k_raft_version_feature": {
        "k_raft_version_feature": {"min_supported_version": 0, "max_supported_version": 1}
    },
    "feature_updates": {"feature_updates": [{"feature": "kraft.version", "max_version_level": 1}]},
    "current_leader_epoch": {"current_leader_epoch": 1},
    "leader_epoch": {"leader_epoch": 1},
    "replica_epoch": {"replica_epoch": 1},
    "records": {"records": [b"x"]},
}
_METADATA: Final[dict[str, dict[str, Any]]] = {
    "create_topics": {"topics": [_TOPIC, {"name": "s", "assignments": [{"ids": [1]}]}]},
    "delete_topics": {"names": ["t"]},
    "incremental_alter_configs": {
        "alterations": [
            {
                "resource": {"type": 4, "name": "1"},
                "changes": [{"name": "listeners", "operation": 2, "value": "a,b"}],
            }
        ]
    },
    "alter_client_quotas": {
        "entries": [
            {
                "entity": _ENTITY,
                "ops": [
                    {"key": "producer_byte_rate", "value": 1024.0},
                    {"key": "request_percentage", "remove": True},
                ],
            }
        ]
    },
    "register_broker": _BROKER,
    "broker_heartbeat": {"broker_id": 1, "current_metadata_offset": 2**62},
    "unregister_broker": {"broker_id": 2},
    "list_topics": {},
    "describe_topics": {"names": ["t"]},
    "describe_configs": {"resources": [{"type": 2, "name": "t"}], "include_defaults": True},
    "list_brokers": {},
    "describe_client_quotas": {
        "components": [{"entity_type": "user", "match_type": 0, "match": "u"}],
        "cursor": {"entity": _ENTITY},
        "response_entry_limit": 1,
    },
}


def sound(descriptor: Descriptor, receiver: int) -> list[Message]:
    """Requests that the replica of that id takes seriously, of every alternative."""
    cls = GetMessageClass(descriptor)
    if "request" in descriptor.oneofs_by_name:
        kinds = [field.name for field in descriptor.oneofs_by_name["request"].fields]
        return [cls(**{kind: _METADATA.get(kind, {})}) for kind in kinds]
    fields: dict[str, Any] = {}
    for field in descriptor.fields:
        fields |= _FIELDS.get(field.name, {})
    names = descriptor.fields_by_name.keys()
    if "voter_directory_id" in names:
        fields |= _key("voter", cores.key(receiver))
    if "replica_directory_id" in names:
        fields |= _key("replica", cores.key(3))
    if "leader_id" in names:
        fields |= {"leader_id": 1}
    return [cls(**{name: value for name, value in fields.items() if name in names})]


# --- one field after the other --------------------------------------------------------------------


def single(message: Message) -> Iterator[tuple[str, Message]]:
    """The message with one field at an extreme; whatever it holds is gone through, too."""
    yield "nothing changed", message
    for path, change in _changes(message):
        changed = type(message)()
        changed.CopyFrom(message)
        change(changed)
        yield path, changed


def _changes(message: Message, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    for field in message.DESCRIPTOR.fields:
        name = ".".join(map(str, (*path, field.name)))
        if field.is_repeated:
            yield from _repeated_changes(message, field, path, name)
        elif field.message_type is not None:
            if message.HasField(field.name):
                yield from _changes(getattr(message, field.name), (*path, field.name))
                yield name, _clearing(path, field.name)
            else:
                yield name, _setting_in_parent(path, field.name)
        else:
            for value in values(field):
                yield f"{name}={_shown(value)}", _setting(path, field.name, value)
            if field.has_presence:
                yield f"{name} absent", _clearing(path, field.name)


def _repeated_changes(
    message: Message, field: Any, path: tuple[Any, ...], name: str
) -> Iterator[tuple[str, Any]]:
    yield f"{name} empty", _clearing(path, field.name)
    present = getattr(message, field.name)
    for count in MANY:
        yield f"{name} x{count}", _repeating(path, field.name, count)
    if field.message_type is not None:
        for index, item in enumerate(present):
            yield from _changes(item, (*path, field.name, index))
    else:
        for value in values(field):
            yield f"{name} with {_shown(value)}", _appending(path, field.name, value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"{text[:20]}...{len(text)}"


def _at(message: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        message = message[step] if isinstance(step, int) else getattr(message, step)
    return message


def _setting(path: tuple[Any, ...], name: str, value: object) -> Any:
    return lambda message: setattr(_at(message, path), name, value)


def _clearing(path: tuple[Any, ...], name: str) -> Any:
    return lambda message: _at(message, path).ClearField(name)


def _setting_in_parent(path: tuple[Any, ...], name: str) -> Any:
    return lambda message: getattr(_at(message, path), name).SetInParent()


def _appending(path: tuple[Any, ...], name: str, value: object) -> Any:
    return lambda message: getattr(_at(message, path), name).append(value)


def _repeating(path: tuple[Any, ...], name: str, count: int) -> Any:
    def repeat(message: Any) -> None:
        target = getattr(_at(message, path), name)
        if hasattr(target, "add"):
            item = type(target.add())()
            if len(target) > 1:
                item.CopyFrom(target[0])
            target.extend([item] * count)
        else:
            kept = list(target)[:1]
            target.extend((kept or [_zero(_at(message, path), name)]) * count)

    return repeat


def _zero(message: Any, name: str) -> object:
    return values(message.DESCRIPTOR.fields_by_name[name])[0]


# --- all fields together --------------------------------------------------------------------------


def anything(message: Message) -> st.SearchStrategy[Message]:
    """The message with any of its fields at any extreme."""
    changes = [change for _, change in _changes(message)]
    if not changes:
        return st.just(message)

    def apply(chosen: list[Any]) -> Message:
        changed = type(message)()
        changed.CopyFrom(message)
        for change in chosen:
            try:
                change(changed)
            except (IndexError, AttributeError):
                # What it would change was cleared before.
                continue
        return changed

    return st.lists(st.sampled_from(changes), min_size=2, max_size=6).map(apply)
