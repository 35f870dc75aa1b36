"""The core takes any message of a peer, or it is refused before, in every role.

See rule `input_bounds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.control import encode_control_batch
from quorate.records.ids import Millis
from quorate.rpc.convert import describe, membership
from quorate.rpc.convert import raft as convert
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from quorate.rpc.raft.unary_calls import CALLS_BY_METHOD
from quorate.storage.quorum_state import encode_quorum_state
from tests.unit.raft import cores
from tests.unit.rpc import extremes

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from quorate.raft.core import RaftCore

READERS: Final[dict[str, Callable[[Any], m.Request]]] = {
    "Fetch": convert.fetch_request,
    "FetchOnce": convert.fetch_request,
    **{name: call.read for name, call in CALLS_BY_METHOD.items() if name != "ApiVersions"},
}
METHODS: Final = [
    (name, descriptor)
    for service, name, descriptor in extremes.methods()
    # What ApiVersions answers is the same for all callers, and its request is not looked at.
    if service == "Raft" and name != "ApiVersions"
]
LATER_MS: Final = 5_000


def prospective() -> RaftCore:
    core = cores.unattached(1)
    core.step(api.TimerFired(), Millis(2000))
    return core


def candidate() -> RaftCore:
    core = cores.unattached(1)
    update = core.step(api.TimerFired(), Millis(2000))
    call, _ = next(iter(cores.calls(update).values()))
    cores.answer(core, call, cores.granted(0), now_ms=2000)
    return core


def resigned() -> RaftCore:
    core = cores.grown_up_leader(1, 2, 3)
    core.step(api.ResignRequested("a test"), Millis(4500))
    return core


def observer() -> RaftCore:
    return cores.follower(4)


ROLES: Final[dict[str, tuple[int, Callable[[], RaftCore]]]] = {
    "unattached": (1, cores.unattached),
    "prospective": (1, prospective),
    "candidate": (1, candidate),
    "leader": (1, cores.grown_up_leader),
    "follower": (2, cores.follower),
    "resigned": (1, resigned),
    "observer": (4, observer),
}


def check(core: RaftCore, update: api.Update) -> None:
    """All that a driver would do with these effects can be done: every value fits where it goes."""
    for effect in update.effects:
        match effect:
            case api.SaveElection():
                encode_quorum_state(effect.state, effect.kraft_version, effect.voters)
            case api.AppendToLog(payload=api.ControlBatch(records=records)):
                encode_control_batch(
                    records,
                    timestamp_ms=0,
                    base_offset=effect.base_offset,
                    epoch=effect.end.epoch,
                )
            case api.SendReply(response=m.VoteResponse() as response):
                convert.pb_vote_response(response)
            case api.SendReply(response=m.BeginQuorumEpochResponse() as response):
                convert.pb_begin_response(response)
            case api.SendReply(response=m.EndQuorumEpochResponse() as response):
                convert.pb_end_response(response)
            case api.SendReply(response=m.DescribeQuorumResponse() as response):
                describe.pb_describe_response(response)
            case api.SendReply(response=m.MembershipResponse() as response):
                pb.AddRaftVoterResponse(**membership.answer_fields(response))
            case api.SendRequest(request=m.VoteRequest() as request):
                convert.pb_vote_request(request)
            case api.SendRequest(request=m.FetchRequest() as request):
                convert.pb_fetch_request(request)
            case _:
                pass
    assert core.replica.log.end.offset >= 0


def send(role: str, method: str, message: Message) -> None:
    _, make = ROLES[role]
    core = make()
    try:
        request = READERS[method](message)
    except ValueError:
        return
    check(core, cores.ask(core, request, now_ms=4_600, token=7))
    # Once more, and then the timers that it has set.
    check(core, cores.ask(core, request, now_ms=4_601, token=8))
    check(core, core.step(api.TimerFired(), Millis(4_600 + LATER_MS)))
    check(core, cores.ask(core, m.DescribeQuorumRequest(), now_ms=4_600 + LATER_MS, token=9))


def test_every_method_of_the_service_is_tried() -> None:
    assert READERS.keys() == {name for name, _ in METHODS}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "descriptor"), METHODS, ids=[name for name, _ in METHODS])
def test_one_field_at_an_extreme_ends_no_core(role: str, method: str, descriptor: Any) -> None:  # noqa: ANN401
    for message in extremes.sound(descriptor, ROLES[role][0]):
        for path, changed in extremes.single(message):
            try:
                send(role, method, changed)
            except Exception as error:
                raise AssertionError(f"{method} with {path} at a {role}") from error


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_several_fields_at_their_extremes_end_no_core(data: st.DataObject) -> None:
    role = data.draw(st.sampled_from(sorted(ROLES)))
    method, descriptor = data.draw(st.sampled_from(METHODS))
    (message,) = extremes.sound(descriptor, ROLES[role][0])
    send(role, method, data.draw(extremes.anything(message)))


def test_a_new_voter_whose_versions_no_record_holds_is_not_appended() -> None:
    for path, changed in extremes.single(
        pb.ApiVersionsResponse(
            cluster_id=cores.CLUSTER,
            node=pb.ReplicaKey(id=4, directory_id=bytes([4]) * 16),
            supported_features=[
                pb.SupportedFeature(name="kraft.version", min_version=0, max_version=1)
            ],
        )
    ):
        core = cores.grown_up_leader()
        cores.ask(core, cores.fetch(4, 3, 1), now_ms=4_500, token=5)
        request = m.AddRaftVoterRequest(
            cluster_id=cores.CLUSTER,
            voter=cores.key(4),
            listeners=cores.endpoints(4),
            timeout_ms=Millis(0),
            force=True,
        )
        update = cores.ask(core, request, now_ms=4_510, token=6)
        ((call, _),) = cores.calls(update).values()
        answer: m.ApiVersionsResponse | api.RequestFailure
        try:
            assert isinstance(changed, pb.ApiVersionsResponse)
            answer = describe.api_versions_response(changed)
        except ValueError:
            answer = api.RequestFailure.TIMED_OUT
        try:
            check(core, cores.answer(core, call, answer, now_ms=4_520))
        except Exception as error:
            raise AssertionError(f"ApiVersions is answered with {path}") from error
