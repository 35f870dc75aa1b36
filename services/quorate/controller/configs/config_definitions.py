"""Topic configs of Kafka 4.3: names, types, ranges and defaults.

Broker configs are validated less strictly: the release of the brokers determines which exist.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1


class ConfigType(Enum):
    INT = "a whole number"
    DOUBLE = "a number"
    BOOLEAN = "true or false"
    CHOICE = "one of"
    LIST = "a list of"
    THROTTLE = "'*' or a list of partition:broker"


@value_type
class ConfigSpec:
    """The valid values; `low` and `high` are inclusive, `choices` for choices and lists."""

    type: ConfigType
    default: str
    low: float = 0
    high: float = _LONG_MAX
    choices: tuple[str, ...] = ()

    @property
    def is_list(self) -> bool:
        """True if APPEND and SUBTRACT apply."""
        return self.type in {ConfigType.LIST, ConfigType.THROTTLE}

    def problem(self, value: str) -> str | None:
        """The requirement that a value violates, or None if it is valid."""
        if self.type is ConfigType.BOOLEAN:
            return None if value.lower() in {"true", "false"} else self.type.value
        if self.type is ConfigType.CHOICE:
            return None if value in self.choices else self._any_of_choices()
        if self.type is ConfigType.LIST:
            items = list_items(value)
            fits = all(item in self.choices for item in items) and len(set(items)) == len(items)
            return None if fits else f"{self._any_of_choices()}, each once"
        if self.type is ConfigType.THROTTLE:
            fits = value == "*" or all(_THROTTLED.fullmatch(item) for item in list_items(value))
            return None if fits else self.type.value
        number = _number(value, is_whole=self.type is ConfigType.INT)
        if number is not None and self.low <= number <= self.high:
            return None
        return f"{self.type.value} from {self.low} to {self.high}"

    def _any_of_choices(self) -> str:
        return f"{self.type.value} {', '.join(self.choices)}"


_THROTTLED = re.compile(r"[0-9]+:[0-9]+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,19}(\.[0-9]{0,19})?|\.[0-9]{1,19})([eE][+-]?[0-9]{1,2})?")


def list_items(value: str) -> list[str]:
    """The items of a list value, without surrounding blanks; an empty value has no items."""
    return [item.strip() for item in value.split(",")] if value.strip() else []


def _number(value: str, *, is_whole: bool) -> float | None:
    text = value.strip()
    if is_whole:
        return int(text) if _WHOLE.fullmatch(text) else None
    return float(text) if _DECIMAL.fullmatch(text) else None


def _whole(default: int, low: int = 0, high: int = _LONG_MAX) -> ConfigSpec:
    return ConfigSpec(ConfigType.INT, str(default), low, high)


def _boolean(default: str = "false") -> ConfigSpec:
    return ConfigSpec(ConfigType.BOOLEAN, default)


def _choice(*choices: str, default: str) -> ConfigSpec:
    return ConfigSpec(ConfigType.CHOICE, default, choices=choices)


TOPIC_CONFIGS: Final[dict[str, ConfigSpec]] = {
    "cleanup.policy": ConfigSpec(ConfigType.LIST, "delete", choices=("compact", "delete")),
    "compression.gzip.level": _whole(-1, -1, 9),
    "compression.lz4.level": _whole(9, 1, 17),
    "compression.type": _choice(
        "uncompressed", "zstd", "lz4", "snappy", "gzip", "producer", default="producer"
    ),
    "compression.zstd.level": _whole(3, -131072, 22),
    "delete.retention.ms": _whole(86_400_000),
    "file.delete.delay.ms": _whole(60_000),
    "flush.messages": _whole(_LONG_MAX, 1),
    "flush.ms": _whole(_LONG_MAX),
    "follower.replication.throttled.replicas": ConfigSpec(ConfigType.THROTTLE, ""),
    "index.interval.bytes": _whole(4096, 0, _INT_MAX),
    "leader.replication.throttled.replicas": ConfigSpec(ConfigType.THROTTLE, ""),
    "local.retention.bytes": _whole(-2, -2),
    "local.retention.ms": _whole(-2, -2),
    "max.compaction.lag.ms": _whole(_LONG_MAX, 1),
    "max.message.bytes": _whole(1_048_588, 0, _INT_MAX),
    "message.timestamp.after.max.ms": _whole(3_600_000),
    "message.timestamp.before.max.ms": _whole(_LONG_MAX),
    "message.timestamp.type": _choice("CreateTime", "LogAppendTime", default="CreateTime"),
    "min.cleanable.dirty.ratio": ConfigSpec(ConfigType.DOUBLE, "0.5", 0, 1),
    "min.compaction.lag.ms": _whole(0),
    "min.insync.replicas": _whole(1, 1, _INT_MAX),
    "preallocate": _boolean(),
    "remote.log.copy.disable": _boolean(),
    "remote.log.delete.on.disable": _boolean(),
    "remote.storage.enable": _boolean(),
    "retention.bytes": _whole(-1, -1),
    "retention.ms": _whole(604_800_000, -1),
    "segment.bytes": _whole(1_073_741_824, 1_048_576, _INT_MAX),
    "segment.index.bytes": _whole(10_485_760, 4, _INT_MAX),
    "segment.jitter.ms": _whole(0),
    "segment.ms": _whole(604_800_000, 1),
    "unclean.leader.election.enable": _boolean(),
}
"""Every topic configuration of Kafka 4.3."""

BROKER_LISTS: Final = frozenset(
    {
        "advertised.listeners",
        "listener.security.protocol.map",
        "listeners",
        "log.cleanup.policy",
        "metric.reporters",
        "sasl.enabled.mechanisms",
        "sasl.kerberos.principal.to.local.rules",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
    }
)
"""Broker configurations to which APPEND and SUBTRACT apply."""

SENSITIVE: Final = re.compile(r"password|secret|jaas|private\.?key|keystore\.key|credential|token")


def is_sensitive(name: str) -> bool:
    """True if descriptions withhold the value of a config."""
    return name not in TOPIC_CONFIGS and SENSITIVE.search(name.lower()) is not None


def topic_config_problem(entries: Iterable[tuple[str, str]]) -> str | None:
    """The problem with configs of a topic, naming the key; None if all are valid."""
    seen: set[str] = set()
    for name, given in entries:
        if name in seen:
            return f"The configuration {name!r} occurs twice; give it once."
        seen.add(name)
        spec = TOPIC_CONFIGS.get(name)
        if spec is None:
            return f"There is no topic configuration {name!r}; check its spelling."
        problem = spec.problem(given)
        if problem is not None:
            return f"The value {given!r} of {name} is invalid; it must be {problem}."
    return None
