"""Transcripts that tell a story of what a controller decides: commands to it, requests, records.

A file is made of comment lines, command lines, `----` and the output. All that is decided is
committed immediately, and the only draw is that of topic ids, which are counted. Commands:

    brokers 1 2 3             start them: each registers and sends heartbeats, which is not printed
    register 1 as 7           one registers in another life, which is the incarnation 7
    heard 1 2                 heartbeats of those
    pass 9500 heard 1 2       time passes, in which those are heard twice a second
    stop 1                    one wants to shut down
    create a 1,2,3 2,3,1      a topic with these replicas for each partition
    delete a b                topics
    alter TOPIC:a x=1 y+=2 z! configs of a resource: set, append to (`-=` takes away), delete
    alter BROKER:1 x=1 | BROKER: y=2      those of several; the last are those of all brokers
    quota user=ann,client-id x=1 y!       quotas of an entity (one user, any client): set, remove
    quota user=ann x=1 | client-id y=2    those of several
    may ann ALTER_CONFIGS TOPIC:a-*       from here on she may; others but the teller may not
    as ann create a 1,2,3     any of these requests, by another principal
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from quorate.controller.authorization.authorizer import (
    CLUSTER,
    Caller,
    Operation,
    ResourceKind,
    topic_resource,
)
from quorate.controller.authorization.config_authorizer import ConfigAuthorizer, Rule
from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    EntityPart,
    QuotaAlteration,
    QuotaOp,
)
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.errors import RefusedError
from quorate.controller.topics.messages import CreateTopics, DeleteTopics, NewTopic
from tests.unit.controller.conftest import CALLER, Cluster, uuid

if TYPE_CHECKING:
    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.decision import Decision
    from quorate.controller.image import View
    from quorate.controller.request_types import WriteRequest

RULE: Final = "----"
HEARD_EVERY_MS: Final = 500
INDENT: Final = " " * 9
ID_BYTES: Final = 16
# What each broker says of itself when it registers.
UNTOLD: Final = frozenset({"end_points", "features", "listeners"})


class Told(Cluster):
    """A cluster that writes down what its controller is asked for and what it decides."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rules: list[Rule] = []
        self.caller = CALLER
        super().__init__(authorizer=self)

    def rights(self, view: View | None, caller: Caller) -> Rights:
        """The teller may do everything, others what the story gave them."""
        listed = ConfigAuthorizer(frozenset({CALLER.principal}), {}, self.rules)
        return listed.rights(view, caller)

    def decide(self, request: WriteRequest, caller: Caller = CALLER) -> Decision:
        caller = self.caller if caller == CALLER else caller
        who = "" if caller == CALLER else f"{caller.principal} "
        self.lines.append(f"[{self.now_ms:6}] {who}> {shown(request)}")
        decision = super().decide(request, caller)
        self.lines.append(f"{INDENT}{shown(decision.reply)}")
        return decision

    def commit(self, decision: Decision) -> Decision:
        if decision.reply is None:
            self.lines.append(f"[{self.now_ms:6}] decides of its own accord")
        self.lines += [f"{INDENT}{shown(record)}" for record in decision.records]
        return super().commit(decision)

    def tell(self, command: str) -> None:
        """One line of a story; a request may be refused as a whole."""
        try:
            self.do(command)
        except RefusedError as refused:
            self.lines.append(f"{INDENT}{refused.error.name}: {refused.message}")
        self.caller = CALLER
        self.settle()

    def do(self, command: str) -> None:
        match command.split():
            case ["brokers", *brokers]:
                before = len(self.lines)
                self.start_brokers(*map(int, brokers))
                self.lines[before:] = [
                    f"[{self.now_ms:6}] brokers {', '.join(brokers)} are unfenced"
                ]
            case ["register", broker, "as", life]:
                incarnation = uuid(int(life))
                self.decide(self.registration(int(broker), incarnation_id=incarnation))
            case ["heard", *brokers]:
                self._heard(brokers)
            case ["pass", time_ms, "heard", *brokers]:
                self._pass(int(time_ms), brokers)
            case ["stop", broker]:
                self.decide(self.heartbeat(int(broker), want_shut_down=True))
            case ["create", name, *partitions]:
                replicas = tuple(tuple(map(int, one.split(","))) for one in partitions)
                self.decide(CreateTopics((NewTopic(name, assignments=replicas),)))
            case ["delete", *names]:
                self.decide(DeleteTopics(tuple(names)))
            case ["alter", *words]:
                self.decide(IncrementalAlterConfigs(tuple(map(_alteration, _parts(words)))))
            case ["quota", *words]:
                self.decide(AlterClientQuotas(tuple(map(_quotas, _parts(words)))))
            case ["may", who, operation, resource]:
                self.rules.append(_rule(who, Operation[operation], resource))
            case ["as", who, *words]:
                self.caller = Caller(f"User:{who}")
                self.do(" ".join(words))
            case _:
                raise ValueError(command)

    def _heard(self, brokers: list[str]) -> None:
        for broker in brokers:
            self.decide(self.heartbeat(int(broker)))

    def _pass(self, time_ms: int, brokers: list[str]) -> None:
        """Heartbeats that change nothing are not told."""
        end_ms = self.now_ms + time_ms
        while self.now_ms < end_ms:
            self.now_ms = min(end_ms, self.now_ms + HEARD_EVERY_MS)
            for broker in brokers:
                before = len(self.lines)
                if not self.decide(self.heartbeat(int(broker))).records:
                    del self.lines[before:]
            self.settle()


# --- the words of a command -----------------------------------------------------------------------


def _parts(words: list[str]) -> list[list[str]]:
    """The words between bars."""
    return [part.split() for part in " ".join(words).split("|")]


def _alteration(words: list[str]) -> ConfigAlteration:
    kind, _, name = words[0].partition(":")
    changes = tuple(map(_change, words[1:]))
    return ConfigAlteration(ConfigResource(ResourceType[kind], name), changes)


def _change(word: str) -> ConfigChange:
    if word.endswith("!"):
        return ConfigChange(word.removesuffix("!"), AlterOperation.DELETE)
    name, _, value = word.partition("=")
    operation = {"+": AlterOperation.APPEND, "-": AlterOperation.SUBTRACT}.get(name[-1])
    if operation is None:
        return ConfigChange(name, AlterOperation.SET, value)
    return ConfigChange(name[:-1], operation, value)


def _quotas(words: list[str]) -> QuotaAlteration:
    entity = (part.partition("=") for part in words[0].split(","))
    parts = tuple(EntityPart(kind, name if is_named else None) for kind, is_named, name in entity)
    return QuotaAlteration(parts, tuple(map(_quota, words[1:])))


def _quota(word: str) -> QuotaOp:
    if word.endswith("!"):
        return QuotaOp(word.removesuffix("!"), remove=True)
    key, _, value = word.partition("=")
    return QuotaOp(key, float(value))


def _rule(who: str, operation: Operation, resource: str) -> Rule:
    kind, _, name = resource.partition(":")
    is_topic = ResourceKind[kind] is ResourceKind.TOPIC
    return Rule(
        frozenset({f"User:{who}"}),
        frozenset({operation}),
        topic_resource(name.removesuffix("*")) if is_topic else CLUSTER,
        is_prefix=name.endswith("*"),
    )


# --- output ---------------------------------------------------------------------------------------


def shown(thing: Any) -> str:  # noqa: ANN401 - requests, replies and records, and all that is in them
    """As it would be made, without what is left at its default; ids by their number."""
    match thing:
        case Enum():
            return thing.name
        case bytes() if len(thing) == ID_BYTES:
            return f"#{int.from_bytes(thing[1:])}"
        case tuple() | list():
            return f"[{', '.join(map(shown, thing))}]"
        case _ if is_dataclass(thing):
            parts = [
                f"{item.name}={shown(value)}"
                for item in fields(thing)
                if item.name not in UNTOLD
                and (value := getattr(thing, item.name)) != _default(item)
            ]
            return f"{type(thing).__name__}({', '.join(parts)})"
        case _:
            return str(thing)


def _default(item: Any) -> object:  # noqa: ANN401 - a field of any type
    return item.default if item.default_factory is MISSING else item.default_factory()


def play(told: str) -> str:
    """The story as it goes now: its head, and under the rule what the controller does."""
    head = told.partition(f"\n{RULE}\n")[0].rstrip("\n")
    cluster = Told()
    for line in head.split("\n"):
        if line and not line.startswith("#"):
            cluster.tell(line)
    return "\n".join([head, RULE, *cluster.lines, ""])
