"""Sends requests that must be rejected, and mutated requests.

`salt` and the state of the node at that time determine the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.brokers.messages import BrokerHeartbeat
from quorate.controller.configs.messages import IncrementalAlterConfigs
from quorate.records.value_types import keyword_value_type
from quorate.rpc.convert import controller as convert
from quorate.sim.action_runner import LEADER
from quorate.sim.fuzz.invalid_requests import invalid_client_request, invalid_peer_request
from quorate.sim.fuzz.message_mutation import mutated, received
from quorate.sim.fuzz.peer_requests import mutated_peer_request
from quorate.sim.randomness import RandomSource
from quorate.sim.workload.random_requests import RandomRequests

if TYPE_CHECKING:
    from quorate.api.handlers import ControllerApiError
    from quorate.controller.request_types import WriteReply
    from quorate.sim.action_runner import Action, ActionRunner

SOMEBODY: Final = Caller("User:somebody")


@keyword_value_type
class SendInvalidPeerRequest:
    """A request of a peer or an operator that every replica must reject."""

    who: int
    salt: int

    def run(self, action_runner: ActionRunner) -> None:
        node, world = action_runner.find_running(self.who), action_runner.cluster
        if node is None:
            return
        request = invalid_peer_request(RandomSource(self.salt, "peers"), node)
        world.log(f"node {node.node_id} gets an invalid {type(request).__name__}")
        token = world.next_token()
        world.watch.before_invalid_peer_request(token)
        node.receive(token, request)


@keyword_value_type
class SendInvalidClientRequest:
    """A request of a client or a broker that every controller must reject."""

    salt: int
    who: int = LEADER

    def run(self, action_runner: ActionRunner) -> None:
        node, watch = action_runner.find_running(self.who), action_runner.cluster.watch
        if node is None:
            return
        request = invalid_client_request(RandomSource(self.salt, "clients"))
        watch.before_invalid_client_request(request)

        def told(answer: WriteReply | ControllerApiError | None) -> None:
            watch.on_client_reply(request, answer)

        node.application.ask(request, SOMEBODY, told)


@keyword_value_type
class SendMutatedClientRequest:
    """A request of a client or a broker with mutated fields.

    In a cluster with simulated brokers, only kinds that change neither brokers nor topics are sent.
    """

    salt: int
    who: int = LEADER

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is None:
            return
        draws = RandomSource(self.salt, "garbled")
        sound = RandomRequests(draws).one(node.image)
        request = received(
            mutated(convert.write_request(sound), draws),
            lambda message: convert.request_in(message, "request"),
        )
        has_fleet = action_runner.cluster.options.fleet.brokers > 0
        if request is None or (has_fleet and not isinstance(request, _HARMLESS)):
            return
        node.application.ask(request, SOMEBODY, _forget)


@keyword_value_type
class SendMutatedPeerRequest:
    """A request of a peer with mutated fields."""

    who: int
    salt: int

    def run(self, action_runner: ActionRunner) -> None:
        node, world = action_runner.find_running(self.who), action_runner.cluster
        request = (
            None
            if node is None
            else mutated_peer_request(RandomSource(self.salt, "garbled peers"), node)
        )
        if node is not None and request is not None:
            world.log(f"node {node.node_id} gets a garbled {type(request).__name__}")
            node.receive(world.next_token(), request)


_HARMLESS: Final = (BrokerHeartbeat, IncrementalAlterConfigs)


def _forget(answer: WriteReply | ControllerApiError | None) -> None:
    """Ignore the reply: any is allowed, as long as the node survives and all replicas agree."""
    del answer


KINDS: Final[dict[str, type[Action]]] = {
    "ask-garbled": SendMutatedPeerRequest,
    "ask-peer-in-vain": SendInvalidPeerRequest,
    "write-in-vain": SendInvalidClientRequest,
    "write-garbled": SendMutatedClientRequest,
}
