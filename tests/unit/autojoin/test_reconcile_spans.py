"""The traces of passes: their names, calls and links, and the passes that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.api.admin_api import AdminError
from quorate.autojoin.actions import Decision, Wait, WaitReason
from quorate.autojoin.decision import decide
from quorate.autojoin.reconcile_spans import SPAN, ReconcileSpans, name_of
from quorate.autojoin.reconciler import ClusterError, ConflictError
from quorate.autojoin.state import PersistedState
from quorate.autojoin.wait_warnings import PATIENCE_MS
from quorate.records.errors import ErrorCode
from quorate.records.ids import format_uuid
from quorate.telemetry import tracing
from quorate.telemetry.span_names import KIND
from quorate.telemetry.tracer import LINK
from tests.recorded_spans import Recorded, attributes_of, recorded
from tests.unit.autojoin.looks import (
    NOW_MS,
    dead,
    desired,
    key,
    look,
    pod,
    pods,
    quorum,
    state,
)
from tests.unit.autojoin.test_reconciler import MS, Fake, fake, reconciler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from quorate.autojoin.reconciler import StatefulSet
    from quorate.autojoin.state import Pod

# Of calls before the decision, and of some after it.
TAKES_MS = {"look": 20, "ask": 300, "describe": 120, "add": 60, "tell": 7, "event": 5}


@pytest.fixture(autouse=True)
def found() -> Iterator[Recorded]:
    """The recorded spans."""
    with recorded() as spans:
        yield spans


def passes(found: Recorded) -> list[ReadableSpan]:
    """The spans of passes, whatever they are called, in their order."""
    return [span for span in found.spans if (span.attributes or {}).get(KIND) == SPAN]


def only(found: Recorded) -> ReadableSpan:
    (span,) = passes(found)
    return span


def times(span: ReadableSpan) -> tuple[int, int]:
    """Its begin and end in milliseconds of the wall clock since the beginning of the test."""
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time // MS - NOW_MS, span.end_time // MS - NOW_MS


def calls(found: Recorded, parent: ReadableSpan) -> dict[str, tuple[int, int]]:
    """The calls of a pass, with their times."""
    return {span.name: times(span) for span in children(found, parent)}


def children(found: Recorded, parent: ReadableSpan) -> list[ReadableSpan]:
    return [
        span
        for span in found.spans
        if span.parent is not None and span.parent.span_id == parent.context.span_id
    ]


def names(found: Recorded, parent: ReadableSpan) -> list[str]:
    return [span.name for span in children(found, parent)]


def previous(found: Recorded) -> list[str | None]:
    """To the name of which pass each one links; none of them has another link."""
    by_id = {span.context.span_id: span.name for span in passes(found)}
    told = []
    for span in passes(found):
        assert all(dict(link.attributes or {}) == {LINK: "previous_pass"} for link in span.links)
        linked = [by_id[link.context.span_id] for link in span.links]
        assert len(linked) <= 1
        told.append(linked[0] if linked else None)
    return told


def joining() -> Fake:
    """A cluster in which node 2 is to become a voter."""
    return fake(view=quorum(0, 1, observers=(2,)))


# --- what a pass tells ----------------------------------------------------------------------------


async def test_an_action_is_a_trace_from_the_first_look_on(found: Recorded) -> None:
    await reconciler(joining()).run()
    span = only(found)
    added, directory_id = key(2), key(2).directory_id
    assert directory_id is not None
    assert span.name == "add voter 2"
    assert dict(span.attributes or {}) == {
        "kraft.span": "kraft.operator.reconcile",
        "k8s.statefulset.name": "q",
        "kraft.operator.replicas": 3,
        "kraft.operator.action": "AddVoter",
        "kraft.operator.reason": "ScaleUp",
        "kraft.operator.text": attributes_of(span)["kraft.operator.text"],
        "kraft.node.id": added.node_id,
        "kraft.directory.id": format_uuid(directory_id),
    }
    assert str(attributes_of(span)["kraft.operator.text"]).startswith("adds voter 2")
    assert span.start_time == NOW_MS * MS
    assert span.parent is None
    assert span.status.is_unset


@pytest.mark.parametrize(
    ("world", "name"),
    [
        (fake(view=quorum(0), record=None), "write bootstrap record"),
        (fake(pod(3), view=quorum(0, 1, 2, observers=(3,)), replicas=4), "add voter 3"),
        (fake(pod(4), view=quorum(0, 1, 2, 4)), "remove voter 4"),
        (fake(pod(0, revision="old"), view=quorum(0, 1, 2)), "hand over to 1"),
        (fake(pod(2, revision="old"), view=quorum(0, 1, 2)), "delete pod q-2"),
        (fake(view=None), "wait: NoLeader"),
        (fake(view=quorum(0, 1, 2)), "in step"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_the_name_of_a_pass_is_what_it_did(found: Recorded, world: Fake, name: str) -> None:
    await reconciler(world).run()
    assert only(found).name == name


@pytest.mark.parametrize("why", WaitReason)
def test_the_name_of_a_wait_is_its_reason_without_its_words(why: WaitReason) -> None:
    wanted = "in step" if why is WaitReason.IN_STEP else f"wait: {why.value}"
    assert name_of(Wait(why, "q-3: no such name")) == wanted


async def test_a_pass_names_the_namespace_of_its_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.namespace.name=kafka")
    with recorded() as found:
        await reconciler(fake(view=None)).run()
        assert only(found).name == "wait: NoLeader in namespace kafka"


def test_the_name_of_a_change_holds_no_directory_id() -> None:
    seen = look(pods(3, pod(2, disk=7)), quorum(0, 1, observers=(state(2, disk=7),)))
    assert name_of(decide(desired(3), seen).step) == "add voter 2"


async def test_a_pod_that_is_deleted_is_named(found: Recorded) -> None:
    await reconciler(fake(pod(2, revision="old"), view=quorum(0, 1, 2))).run()
    assert attributes_of(only(found))["k8s.pod.name"] == "q-2"


async def test_what_is_not_done_is_an_error_with_the_reason(found: Recorded) -> None:
    world = joining()
    world.fails["add"] = AdminError("VOTER_LAGGING", ErrorCode.REQUEST_TIMED_OUT, "it lags")
    await reconciler(world).run()
    span = only(found)
    assert (span.name, span.status.description) == ("add voter 2", "VOTER_LAGGING: it lags")


async def test_waiting_is_told_once_for_each_reason(found: Recorded) -> None:
    world = fake(view=None)
    operator = reconciler(world)
    await operator.run()
    await operator.run()
    span = only(found)
    assert attributes_of(span)["kraft.operator.action"] == "Wait"
    assert attributes_of(span)["kraft.operator.reason"] == "NoLeader"
    assert [dict(event.attributes or {})["reason"] for event in span.events] == ["NoLeader"]
    world.view = quorum(0, 1, 2)
    await operator.run()
    await operator.run()
    assert [span.name for span in passes(found)] == ["wait: NoLeader", "in step"]


# --- what a pass calls ----------------------------------------------------------------------------


async def test_calls_before_and_after_the_decision_have_their_times(found: Recorded) -> None:
    world = joining()
    world.takes_ms |= TAKES_MS
    await reconciler(world).run()
    span = only(found)
    assert calls(found, span) == {
        "look at StatefulSet": (0, 20),
        "ask pods": (20, 320),
        "describe quorum": (320, 440),
        "write conditions": (440, 447),
        # The change is a call to a sidecar, whose client makes a span of it.
        "post Event": (507, 512),
    }
    assert times(span) == (0, 512)


async def test_a_second_look_is_a_call_of_its_own(found: Recorded) -> None:
    """The operator takes back its predecessor's conditions before it decides anything."""
    world = fake(view=quorum(0, 1, 2))
    await reconciler(world).run()
    world.takes_ms |= TAKES_MS
    await reconciler(world).run()
    doubted = children(found, passes(found)[1])[:4]
    assert [(span.name, *times(span)) for span in doubted] == [
        ("look at StatefulSet", 0, 20),
        ("write conditions", 20, 27),
        ("look at StatefulSet", 27, 47),
        ("ask pods", 47, 347),
    ]


@pytest.mark.parametrize(
    ("world", "called"),
    [
        (fake(view=quorum(0), record=None), ["write conditions", "write record", "post Event"]),
        (
            fake(pod(2, revision="old"), view=quorum(0, 1, 2)),
            ["write conditions", "delete pod", "post Event"],
        ),
        (
            fake(pod(2, disk=1), view=quorum(0, 1, dead(2), observers=(state(2, 1),))),
            ["write memory", "write conditions", "post Event"],
        ),
    ],
)
async def test_what_a_pass_writes_is_a_call(
    found: Recorded, world: Fake, called: list[str]
) -> None:
    await reconciler(world).run()
    looks = ["look at StatefulSet", "ask pods", "describe quorum"]
    assert names(found, only(found)) == [*looks, *called]


async def test_claims_are_looked_for_and_told_within_the_pass(found: Recorded) -> None:
    world = fake(view=quorum(0, 1, 2))
    world.claims = ("data-q-3",)
    await reconciler(world).run()
    assert names(found, only(found))[-3:] == ["list claims", "write claims", "post Event"]


async def test_a_pass_without_news_makes_no_spans_whatever_it_calls(found: Recorded) -> None:
    world = fake(view=quorum(0, 1))
    operator = reconciler(world)
    await operator.run()
    before = found.spans
    world.now_ms += PATIENCE_MS
    await operator.run()
    assert world.events[-1] == ("ObserverNotSeen", True)
    assert found.spans == before


async def test_calls_of_a_pass_without_news_are_not_those_of_the_next(found: Recorded) -> None:
    world = fake(view=None)
    operator = reconciler(world)
    await operator.run()
    await operator.run()
    world.view = quorum(0, 1, observers=(2,))
    await operator.run()
    assert names(found, passes(found)[1]).count("ask pods") == 1


async def test_without_tracing_nothing_is_noted(found: Recorded) -> None:
    tracing.use(None)
    world = joining()

    def read() -> int:
        reads.append(world.passed_ms)
        return world.passed_ms

    reads: list[int] = []
    story = ReconcileSpans(lambda: NOW_MS * MS, read)
    before = len(reads)
    assert await story.timed("look", world.observe()) is world.found
    with story.span(desired(3), Decision(Wait(WaitReason.NO_LEADER, ""), (), PersistedState())):
        await story.timed("write conditions", world.publish_conditions(""))
    assert len(reads) == before
    assert (await reconciler(world).run()).has_acted
    assert found.spans == []


# --- passes of one piece of work ------------------------------------------------------------------


async def test_passes_link_to_the_one_before_until_all_is_in_step(found: Recorded) -> None:
    world = fake(view=quorum(0, 1))
    operator = reconciler(world)
    await operator.run()
    world.view = quorum(0, 1, observers=(2,))
    await operator.run()
    world.view = quorum(0, 1, 2)
    for _ in range(3):
        await operator.run()
    world.view = None
    await operator.run()
    assert [span.name for span in passes(found)] == [
        *("wait: ObserverNotSeen", "add voter 2", "in step"),
        "wait: NoLeader",
    ]
    assert previous(found) == [None, "wait: ObserverNotSeen", "add voter 2", None]
    assert len({span.context.trace_id for span in passes(found)}) == 4


async def test_what_was_not_recorded_is_passed_over_by_links(found: Recorded) -> None:
    world = fake(view=None)
    operator = reconciler(world)
    for _ in range(3):
        await operator.run()
    world.view = quorum(0, 1, observers=(2,))
    await operator.run()
    assert previous(found) == [None, "wait: NoLeader"]


async def test_one_that_begins_anew_links_to_nothing_and_tells_what_it_waits_for(
    found: Recorded,
) -> None:
    operator = reconciler(fake(view=None))
    await operator.run()
    operator.begin()
    await operator.run()
    assert [span.name for span in passes(found)] == ["wait: NoLeader"] * 2
    assert previous(found) == [None, None]


# --- what goes wrong ------------------------------------------------------------------------------


async def test_an_action_that_raises_is_an_error_and_the_next_pass_links_to_it(
    found: Recorded,
) -> None:
    world = joining()
    world.fails["add"] = RuntimeError("out of order")
    operator = reconciler(world)
    with pytest.raises(RuntimeError):
        await operator.run()
    span = only(found)
    assert span.status.description == "RuntimeError: out of order"
    assert names(found, span) == [
        "look at StatefulSet",
        "ask pods",
        "describe quorum",
        "write conditions",
    ]
    world.fails.clear()
    await operator.run()
    assert previous(found) == [None, "add voter 2"]
    assert passes(found)[1].status.is_unset


async def test_a_conflict_is_an_error_of_the_pass_and_of_its_call(found: Recorded) -> None:
    world = fake(pod(2, revision="old"), view=quorum(0, 1, 2))
    world.fails["delete"] = ConflictError("409: it has changed")
    await reconciler(world).run()
    assert only(found).status.description == "409: it has changed"
    status = found.one("delete pod").status
    assert status.description == "ConflictError: 409: it has changed"
    assert [span.name for span in found.spans if not span.status.is_unset] == [
        *("delete pod", "delete pod q-2"),
    ]


async def test_a_note_on_what_has_changed_ends_the_pass_and_its_span(found: Recorded) -> None:
    world = fake(view=quorum(0, 1, 2, dead(3)))
    world.fails["note"] = ConflictError("409 Conflict")
    with pytest.raises(ConflictError):
        await reconciler(world).run()
    assert only(found).status.description == "ConflictError: 409 Conflict"
    assert found.one("write memory").status.description == "ConflictError: 409 Conflict"


async def test_a_pass_that_is_cut_off_has_the_spans_of_what_it_called(found: Recorded) -> None:
    world = joining()
    world.fails["event"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        await reconciler(world).run()
    assert names(found, only(found))[-2:] == ["write conditions", "post Event"]


async def test_a_look_that_fails_has_no_trace_and_leaves_the_links(found: Recorded) -> None:
    world = fake(view=None)
    operator = reconciler(world)
    await operator.run()
    world.fails["look"] = ClusterError("no answer")
    with pytest.raises(ClusterError):
        await operator.run()
    world.fails.clear()
    world.view = quorum(0, 1, observers=(2,))
    await operator.run()
    assert previous(found) == [None, "wait: NoLeader"]
    assert names(found, passes(found)[1]).count("look at StatefulSet") == 1


async def test_a_pass_that_loses_the_lease_has_no_trace(found: Recorded) -> None:
    await reconciler(joining(), holds=False).run()
    assert found.spans == []


@pytest.mark.parametrize("call", ["describe", "add_voter"])
async def test_links_end_where_the_lease_was_lost_and_won_within_a_pass(
    found: Recorded, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The lease is renewed in parallel with the passes: another operator may have acted between."""
    world = joining()
    operator = reconciler(world)
    inner = getattr(world, call)

    async def lose_and_win(*given: object) -> object:
        operator.begin()
        return await inner(*given)

    monkeypatch.setattr(world, call, lose_and_win)
    await operator.run()
    await operator.run()
    assert previous(found) == [None, None]
    assert names(found, passes(found)[1])[0] == "look at StatefulSet"


async def test_a_clock_that_is_set_back_between_looks_turns_no_time_round(found: Recorded) -> None:
    world = joining()
    world.takes_ms |= TAKES_MS
    ask, look_on = world.identify_pods, world.observe

    async def looked() -> StatefulSet | None:
        world.now_ms -= 3_600_000
        return await look_on()

    async def asked(pods: Sequence[Pod], service: str) -> tuple[Pod, ...]:
        world.now_ms += 7_200_000
        return await ask(pods, service)

    world.observe, world.identify_pods = looked, asked  # type: ignore[method-assign]
    await reconciler(world).run()
    span = only(found)
    made = calls(found, span)
    assert made["look at StatefulSet"] == (0, 20)
    assert made["ask pods"] == (20, 320)
    assert made["describe quorum"] == (320, 440)
    assert times(span) == (0, 512)
