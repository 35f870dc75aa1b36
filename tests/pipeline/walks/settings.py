"""Settings and rights, by walking through the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.pipeline.walks.past import Bound, Cells, Event, Past, ordered

if TYPE_CHECKING:
    from typing import Any

# org.apache.kafka.common.config.ConfigResource.Type, and the enums of org.apache.kafka.common.acl.
RESOURCES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
ACL_RESOURCES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
OPERATIONS = (
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
WITHHELD = "(withheld)"


def features(past: Past) -> list[Cells]:
    """Each level that a feature got which it did not have before."""
    levels: dict[str, int] = {}
    found: list[Cells] = []
    for event in past.effective:
        match event.kind:
            case "FeatureLevelRecord":
                name, level = event.data["name"], event.data["featureLevel"]
            case "KRaftVersionRecord":
                name, level = "kraft.version", event.data["kRaftVersion"]
            case _:
                continue
        before = levels.get(name)
        if level != before:
            levels[name] = level
            at = (None, None) if event.row.from_snapshot else (event.row.offset, event.at_ms)
            found.append((*at, event.row.leader_epoch, name, level, before))
    return ordered(found)


@dataclass
class Setting:
    """A value from when it was set to when it was not so any more."""

    key: tuple[int, str, str]
    value: str
    previous: str | None
    start: Bound
    end: Bound | None = None
    ended_by: str | None = None


def shown(config: str, value: str | None) -> str | None:
    """The value, unless it is a password."""
    return WITHHELD if "password" in config and value is not None else value


def settings(past: Past) -> list[Setting]:
    """Each value that was set."""
    names: dict[str, str] = {}
    live: dict[tuple[int, str, str], Setting] = {}
    found: list[Setting] = []
    for event in past.effective:
        data = event.data
        match event.kind:
            case "TopicRecord":
                names[data["topicId"]] = data["name"]
            case "RemoveTopicRecord":
                name = names[data["topicId"]]
                for key in [key for key in live if key[:2] == (2, name)]:
                    _end(live.pop(key), event, "topic removal")
            case "ConfigRecord":
                key = data["resourceType"], data["resourceName"], data["name"]
                old = live.pop(key, None)
                if old is not None:
                    _end(old, event, "removal" if data["value"] is None else "change")
                if data["value"] is not None:
                    previous = None if old is None else old.value
                    live[key] = Setting(key, data["value"], previous, event.bound)
                    found.append(live[key])
    return found


def _end(setting: Setting, event: Event, word: str) -> None:
    setting.end, setting.ended_by = event.bound, word


def configs(past: Past) -> list[Cells]:
    """The history of what was set."""
    return ordered(
        (
            RESOURCES[each.key[0]],
            *each.key[1:],
            shown(each.key[2], each.value),
            shown(each.key[2], each.previous),
            *past.interval(each.start, each.end),
            each.ended_by,
        )
        for each in settings(past)
    )


def acl(data: dict[str, Any]) -> Cells:
    """An ACL in Kafka's words; numbers without one stay numbers."""
    kind, operation = data["resourceType"], data["operation"]
    return (
        data["principal"],
        PERMISSIONS[data["permissionType"]],
        OPERATIONS[operation - 2],
        ACL_RESOURCES[kind - 2] if kind - 2 < len(ACL_RESOURCES) else f"UNKNOWN({kind})",
        data["resourceName"],
        PATTERNS[data["patternType"]],
        data["host"],
        data["id"],
    )


def acls(past: Past) -> list[Cells]:
    """The history of ACLs."""
    begun: dict[str, Event] = {}
    ended: dict[str, Bound] = {}
    for event in past.effective:
        if event.kind == "AccessControlEntryRecord":
            begun[event.data["id"]] = event
        elif event.kind == "RemoveAccessControlEntryRecord":
            ended[event.data["id"]] = event.bound
    return ordered(
        (*acl(event.data), *past.interval(event.bound, ended.get(acl_id)))
        for acl_id, event in begun.items()
    )
