from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.authorization.authorizer import Caller
from quorate.rpc.convert import controller as convert
from quorate.sim.cluster import Cluster
from quorate.sim.engine.quorum_setup import build
from quorate.sim.fuzz.invalid_requests import (
    invalid_client_request,
    invalid_peer_request,
    is_client_served,
    is_peer_served,
)
from quorate.sim.fuzz.message_mutation import mutated, received
from quorate.sim.fuzz.peer_requests import mutated_peer_request
from quorate.sim.randomness import RandomSource
from quorate.sim.sim_options import FleetOptions, WorldOptions
from quorate.sim.workload.random_requests import RandomRequests

if TYPE_CHECKING:
    import asyncio

    from quorate.api.handlers import ControllerApiError
    from quorate.controller.request_types import WriteReply
    from quorate.raft.messages import Request, Response
    from quorate.sim.engine.node import SimulatedNode

TRIES = 400
SETTLED_MS = 5000
SOMEBODY = Caller("User:somebody")


def submit(node: SimulatedNode, request: Request, answers: list[asyncio.Future[Response]]) -> None:
    answers.append(node.driver.submit(request)[1])


def settled() -> tuple[Cluster, SimulatedNode]:
    """A quorum that nothing disturbs, and its leader."""
    world = Cluster(1, WorldOptions(fleet=FleetOptions(brokers=1)))
    build(world)
    world.run(SETTLED_MS)
    leader = world.leader()
    assert leader is not None
    return world, leader


def test_no_client_is_served_with_what_has_to_be_refused() -> None:
    world, leader = settled()
    end, draws = leader.log.end, RandomSource(1, "clients")
    told: list[WriteReply | ControllerApiError | None] = []
    for _ in range(TRIES):
        leader.application.ask(invalid_client_request(draws), SOMEBODY, told.append)
        world.run(world.now_ms + 50)
    assert len(told) == TRIES
    assert not any(map(is_client_served, told))
    assert leader.log.end == end


def test_no_peer_is_served_with_what_has_to_be_refused() -> None:
    world, leader = settled()
    draws = RandomSource(1, "peers")
    states = {node.node_id: (node.log.end, node.progress) for node in world.running()}
    for _ in range(TRIES):
        node = draws.choice(world.running())
        answers: list[asyncio.Future[Response]] = []
        request = invalid_peer_request(draws, node)
        node.host.loop.run(submit, node, request, answers)
        world.run(world.now_ms + 50)
        assert not is_peer_served(answers[0].result()), request
    assert states == {node.node_id: (node.log.end, node.progress) for node in world.running()}
    assert world.leader() is leader


def test_a_request_with_a_few_fields_changed_ends_nothing_but_itself() -> None:
    world, leader = settled()
    draws = RandomSource(1, "mutations")
    drawn, sent = RandomRequests(draws), 0
    told: list[WriteReply | ControllerApiError | None] = []
    for _ in range(TRIES):
        message = mutated(convert.write_request(drawn.one(leader.image)), draws)
        request = received(message, lambda each: convert.request_in(each, "request"))
        if request is not None:
            sent += 1
            leader.application.ask(request, SOMEBODY, told.append)
            world.run(world.now_ms + 50)
    assert len(told) == sent > TRIES / 2
    assert world.leader() is leader


def test_a_request_of_a_peer_with_a_few_fields_changed_moves_nobody() -> None:
    world, leader = settled()
    draws = RandomSource(1, "garbled peers")
    answers: list[asyncio.Future[Response]] = []
    states = {node.node_id: (node.log.end, node.progress) for node in world.running()}
    kinds: dict[type[Request], int] = {}
    for _ in range(TRIES):
        node = draws.choice(world.running())
        request = mutated_peer_request(draws, node)
        if request is not None:
            kinds[type(request)] = kinds.get(type(request), 0) + 1
            node.host.loop.run(submit, node, request, answers)
            world.run(world.now_ms + 50)
    assert all(answer.done() for answer in answers)
    assert len(kinds) == 5
    assert sum(kinds.values()) > TRIES / 4
    assert states == {node.node_id: (node.log.end, node.progress) for node in world.running()}
    assert world.leader() is leader
