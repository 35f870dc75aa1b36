"""Reference model of the client state: sixteen broker configs.

Operation n sets key n % 16 to a value that contains n. So a lost, duplicated or reordered operation
shows in the state, in the log, or in a read. This model does not use images: the simulator checks
the production controllers against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeGuard

from quorate.controller.configs.config_resources import ALL_BROKERS
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    DescribeConfigsReply,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.records.metadata import ConfigRecord, decode_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.controller.image import MetadataImage
    from quorate.controller.request_types import ReadReply
    from quorate.records.metadata import MetadataRecord

KEYS: Final = 16
_PREFIX: Final = "k"
# The records of a few seeds.
_REMEMBERED: Final = 4096
EVERYBODY: Final = ConfigResource(ResourceType.BROKER, "")


@dataclass(slots=True)
class KvModel:
    """The configs by name; `applied` is the end of the offsets that the state reflects."""

    applied: int = 0
    content: dict[str, str] = field(default_factory=dict)

    def apply(self, value: bytes) -> None:
        """Apply one encoded record; other kinds are ignored."""
        config = _config_of(value)
        if config is not None:
            assert config.value is not None, "nobody removes any"
            self.content[config.name] = config.value

    def copy(self) -> KvModel:
        return KvModel(self.applied, dict(self.content))

    def __str__(self) -> str:
        newest = max((int(value.partition(":")[0]) for value in self.content.values()), default=-1)
        return f"{len(self.content)} keys, operation {newest} is the newest"

    @classmethod
    def of(cls, image: MetadataImage) -> KvModel:
        """The state in a controller's image."""
        return cls(image.position.end_offset, _ours(image.configs.of(ALL_BROKERS).items()))

    @classmethod
    def told(cls, reply: ReadReply) -> KvModel:
        """The state in a read reply."""
        assert isinstance(reply, DescribeConfigsReply), "nothing else is asked for"
        (described,) = reply.resources
        entries = ((entry.name, entry.value or "") for entry in described.entries)
        return cls(reply.offset, _ours(entries))

    @classmethod
    def load(cls, applied: int, records: Iterable[bytes]) -> KvModel:
        """The state in the records of a snapshot."""
        machine = cls(applied)
        for value in records:
            machine.apply(value)
        return machine


def _ours(entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The sixteen among all configs for all brokers."""
    return {name: value for name, value in entries if name.startswith(_PREFIX)}


def request_of(operations: tuple[int, ...], size_bytes: int) -> IncrementalAlterConfigs:
    """A client's request with operations that take effect together, each of about `size_bytes`."""
    filling = "." * size_bytes
    changes = (
        ConfigChange(f"{_PREFIX}{number % KEYS}", AlterOperation.SET, f"{number}:{filling}")
        for number in operations
    )
    return IncrementalAlterConfigs((ConfigAlteration(EVERYBODY, tuple(changes)),))


def operation_of(value: bytes) -> int | None:
    """The operation of a record; None for a record of another kind."""
    config = _config_of(value)
    return None if config is None else operation_in(config)


def operation_in(record: MetadataRecord) -> int | None:
    """The operation of a decoded record; None for a record of another kind."""
    if not _is_ours(record):
        return None
    return int((record.value or "").partition(":")[0])


def _is_ours(record: MetadataRecord) -> TypeGuard[ConfigRecord]:
    """True if the record sets one of the sixteen configs, and not one of a topic or broker."""
    return (
        isinstance(record, ConfigRecord)
        and record.resource_type == EVERYBODY.type
        and record.resource_name == EVERYBODY.name
        and record.name.startswith(_PREFIX)
    )


@lru_cache(maxsize=_REMEMBERED)
def _config_of(value: bytes) -> ConfigRecord | None:
    record = decode_record(value)[0]
    return record if _is_ours(record) else None
