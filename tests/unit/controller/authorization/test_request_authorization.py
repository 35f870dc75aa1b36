"""Requests of callers that may not have all of them done."""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.controller import request_types
from quorate.controller.authorization import authorizer
from quorate.controller.authorization.authorizer import (
    CLUSTER,
    WILDCARD,
    Caller,
    Operation,
    topic_resource,
)
from quorate.controller.authorization.config_authorizer import ConfigAuthorizer, Rule
from quorate.controller.brokers.messages import ListBrokers, UnregisterBroker
from quorate.controller.configs.messages import (
    AlteredResource,
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    DescribeConfigs,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.errors import RefusedError
from quorate.controller.features import messages as features
from quorate.controller.message_registry import REQUESTS
from quorate.controller.reads import answer_in_slices
from quorate.controller.request_types import ReadRequest, WriteRequest
from quorate.controller.slices import run_to_end
from quorate.controller.topics.messages import (
    CreatedTopic,
    CreateTopics,
    DeleteTopics,
    DescribedTopic,
    DescribeTopics,
    ListTopics,
    NewTopic,
)
from quorate.records import ids
from quorate.records.errors import ErrorCode
from tests.unit.controller.conftest import CALLER, Cluster, answer

if TYPE_CHECKING:
    from quorate.controller.authorization.authorizer import Rights

ALICE: Final = Caller("User:alice")
REFUSED: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def guarded(*rules: tuple[Operation, str]) -> Cluster:
    """A cluster where alice may do these to topics that begin so; the tests themselves anything."""
    identities = ConfigAuthorizer(
        frozenset({CALLER.principal}),
        {},
        [
            Rule(
                frozenset({ALICE.principal}),
                frozenset({operation}),
                CLUSTER if beginning == WILDCARD else topic_resource(beginning),
                is_prefix=beginning != WILDCARD,
            )
            for operation, beginning in rules
        ],
    )
    cluster = Cluster(authorizer=identities)
    cluster.start_brokers(1)
    return cluster


def needs(operation: Operation, resource: str) -> str:
    return f"User:alice may not do this: it needs {operation} on {resource}."


def rights_in(cluster: Cluster) -> Rights:
    decides = cluster.controller._settings.authorizer
    assert decides is not None
    return decides.rights(cluster.image, ALICE)


def asks(cluster: Cluster, request: ReadRequest) -> Any:  # noqa: ANN401 - each has its own reply
    return answer(cluster.image, request, rights_in(cluster))


def test_what_may_be_created_is_and_the_rest_is_refused_in_its_place() -> None:
    cluster = guarded((Operation.CREATE, "a"))
    cluster.create("there", (1,))
    # The words are the same for what is there and for what is not.
    reply = cluster.ask(CreateTopics(tuple(map(NewTopic, ("there", "a1", "new", "a2")))), ALICE)
    assert [topic.error for topic in reply.topics] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]
    for topic in (reply.topics[0], reply.topics[2]):
        message = needs(Operation.CREATE, f"Topic:{topic.name}")
        assert topic == CreatedTopic(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
    assert sorted(cluster.image.topics.ids) == ["a1", "a2", "there"]


def test_others_have_turns_while_many_items_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.controller.authorization.request_authorization.SLICE_ITEMS", 2)
    cluster = guarded((Operation.DELETE, "a"))
    slices = cluster.controller.decide_in_slices(DeleteTopics(tuple("bcdef")), ALICE, 0)
    next(slices)
    # No other decision comes between its parts.
    assert cluster.controller.is_deciding
    assert sum(1 for _ in slices) == 1


def test_create_on_the_cluster_is_create_on_every_topic() -> None:
    cluster = guarded((Operation.CREATE, WILDCARD))
    assert cluster.ask(CreateTopics((NewTopic("x"),)), ALICE).topics[0].error is ErrorCode.NONE


def test_a_similar_name_is_told_to_those_who_may_describe_it() -> None:
    cluster = guarded((Operation.CREATE, "a"), (Operation.DESCRIBE, "a.c"))
    for name in ("a.b", "a.c"):
        cluster.create(name, (1,))
    reply = cluster.ask(CreateTopics((NewTopic("a_b"), NewTopic("a_c"))), ALICE)
    assert [topic.error for topic in reply.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 2
    hidden, told = (topic.message for topic in reply.topics)
    assert "a.b" not in hidden
    assert "'a.c'" in told


def test_a_deletion_tells_of_what_is_missing_where_the_caller_may_look() -> None:
    cluster = guarded((Operation.DELETE, "a"), (Operation.DESCRIBE, "b"))
    for name in ("a1", "b1", "c1"):
        cluster.create(name, (1,))
    names = ("a1", "a2", "b1", "b2", "c1", "c2")
    reply = cluster.ask(DeleteTopics(names), ALICE)
    assert [topic.name for topic in reply.topics] == list(names)
    assert [topic.error for topic in reply.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]
    assert sorted(cluster.image.topics.ids) == ["b1", "c1"]


def test_configs_of_topics_and_of_the_cluster_are_told_apart() -> None:
    cluster = guarded((Operation.ALTER_CONFIGS, "a"))
    cluster.create("a", (1,))
    change = (ConfigChange("retention.ms", AlterOperation.SET, "1"),)
    topic, other, broker = (
        ConfigResource(ResourceType.TOPIC, "a"),
        ConfigResource(ResourceType.TOPIC, "b"),
        ConfigResource(ResourceType.BROKER, ""),
    )
    alterations = tuple(ConfigAlteration(each, change) for each in (broker, topic, other))
    assert cluster.ask(IncrementalAlterConfigs(alterations), ALICE).resources == (
        AlteredResource(
            broker,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            needs(Operation.ALTER_CONFIGS, "Cluster:kafka-cluster"),
        ),
        AlteredResource(topic),
        AlteredResource(
            other,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            needs(Operation.ALTER_CONFIGS, "Topic:b"),
        ),
    )
    # What may be changed may be looked at.
    described = asks(cluster, DescribeConfigs((other, topic, broker))).resources
    assert [each.error for each in described] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ]
    assert [entry.value for entry in described[1].entries] == ["1"]


def test_topics_that_may_not_be_described_are_not_listed() -> None:
    cluster = guarded((Operation.DESCRIBE, "a"))
    for name in ("a1", "b1", "a2", "b2"):
        cluster.create(name, (1,))
    assert [topic.name for topic in asks(cluster, ListTopics()).topics] == ["a1", "a2"]
    first = asks(cluster, ListTopics(response_topic_limit=1))
    assert first.next_cursor.topic_name == "a2"
    assert [topic.name for topic in asks(cluster, DescribeTopics()).topics] == ["a1", "a2"]
    reply = asks(cluster, DescribeTopics(("b1", "a3", "c", "a1")))
    assert [topic.error for topic in reply.topics] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    ]
    hidden = needs(Operation.DESCRIBE, "Topic:b1")
    assert reply.topics[0] == DescribedTopic("b1", ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden)


def test_a_heartbeat_that_is_refused_is_no_sign_of_life() -> None:
    cluster = guarded((Operation.CREATE, "a"))
    heartbeat = cluster.heartbeat(1)
    assert not cluster.controller.hear(heartbeat, ALICE, 8000)
    assert cluster.controller.wake_at_ms == 9000
    assert cluster.controller.hear(heartbeat, CALLER, 8000)
    assert cluster.controller.wake_at_ms == 17_000


def test_what_has_no_items_is_refused_as_a_whole() -> None:
    cluster = guarded((Operation.ALTER, "a"))
    with pytest.raises(RefusedError, match="needs Alter on Cluster:kafka-cluster") as refused:
        cluster.ask(UnregisterBroker(1), ALICE)
    assert refused.value.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(RefusedError, match="needs Describe on Cluster:kafka-cluster"):
        asks(cluster, ListBrokers())
    # Nothing is left half done: others are decided on.
    assert cluster.ask(UnregisterBroker(1)).error is ErrorCode.NONE


def instances(shape: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - any dataclass
    """Values of a dataclass, with few items in its lists."""
    modules = (ids, request_types, authorizer, features, sys.modules[shape.__module__])
    names = {name: each for module in modules for name, each in vars(module).items()}
    hints = get_type_hints(shape, names)
    return st.builds(shape, **{field.name: values(hints[field.name]) for field in fields(shape)})


def values(hint: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - any annotation
    parts = get_args(hint)
    if get_origin(hint) is tuple and parts[-1] is Ellipsis:
        return st.lists(values(parts[0]), max_size=3).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(values, parts))
    if parts:
        return st.one_of(*map(values, parts))
    return instances(hint) if is_dataclass(hint) else st.from_type(hint)


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_caller_without_rights_gets_nothing_of_any_request(
    kind: type[WriteRequest | ReadRequest], data: st.DataObject
) -> None:
    cluster = guarded((Operation.CREATE, "only-these-"))
    cluster.create("there", (1,))
    request: Any = data.draw(instances(kind))
    results = results_of(cluster, request)
    assert all(result.error in REFUSED for result in results)
    if kind.permission.items and issubclass(kind, WriteRequest):
        assert len(results) == len(getattr(request, kind.permission.items))


def results_of(cluster: Cluster, request: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of any kind
    """The result of each item for alice; an error where it covers the whole request."""
    try:
        if isinstance(request, WriteRequest):
            decision = cluster.controller.decide(request, ALICE, 0)
            assert not decision.values
            reply: Any = decision.reply
        else:
            reply = run_to_end(answer_in_slices(cluster.image, request, rights_in(cluster)))
    except RefusedError as refused:
        # A question may be invalid for every caller.
        return () if refused.error is ErrorCode.INVALID_REQUEST else (refused,)
    lists = [getattr(reply, field.name) for field in fields(reply)]
    (results,) = (each for each in lists if isinstance(each, tuple))
    return results
