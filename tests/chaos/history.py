"""Clients' operations on keys and their results: the input of the two checkers.

A key is a topic name, its value the topic's `retention.ms`; values are never written twice. Times
are monotonic nanoseconds of this one process, so they order operations of all clients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

ABSENT: Final = None


class Kind(Enum):
    CREATE = "create"
    SET = "set"
    DELETE = "delete"
    READ = "read"


class Outcome(Enum):
    """The end of an operation; one that certainly had no effect is not recorded at all."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation on one key.

    `value` is what was written, or what a read saw (None: the topic does not exist). A refusal
    tells as much as a read: a create was refused because the topic is there, the others because
    it is not. One of unknown outcome has no end: it may take effect at any time after its begin, or
    never.
    """

    client: int
    key: str
    kind: Kind
    begin: int
    end: int | None
    outcome: Outcome = Outcome.OK
    value: int | None = ABSENT

    def __str__(self) -> str:
        value = "" if self.value is None and self.kind is not Kind.READ else f" {self.value}"
        return f"client {self.client}: {self.kind.value} {self.key}{value}: {self.outcome.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRead:
    """A read answered by one controller from its own image, in one life of its process."""

    controller: int
    life: int
    key: str
    begin: int
    end: int
    min_offset: int
    offset: int
    value: int | None

    def __str__(self) -> str:
        return (
            f"controller {self.controller} (life {self.life}): {self.key} is {self.value}"
            f" at {self.offset}, asked for {self.min_offset}"
        )


@dataclass(slots=True)
class History:
    """Everything that the clients of one run recorded; current reads are in both lists."""

    operations: list[Operation] = field(default_factory=list)
    local_reads: list[LocalRead] = field(default_factory=list)

    def by_key(self) -> dict[str, list[Operation]]:
        """Linearizability is local: each key is checked alone (Herlihy and Wing, 1990)."""
        keys: dict[str, list[Operation]] = {}
        for operation in sorted(self.operations, key=lambda o: o.begin):
            keys.setdefault(operation.key, []).append(operation)
        return keys
