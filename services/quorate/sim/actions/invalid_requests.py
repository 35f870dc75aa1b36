"""Sends requests that must be rejected, and mutated requests.

The request is chosen by `salt` and by the state of the node at that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.brokers.messages import BrokerHeartbeat
from quorate.controller.configs.messages import IncrementalAlterConfigs
from quorate.records.value_types import keyword_value_type
from quorate.rpc.convert import controller as convert
from quorate.sim.action_runner import LEADER
from quorate.sim.fuzz.invalid_requests import of_client, of_peer
from quorate.sim.fuzz.message_mutation import mutated, received
from quorate.sim.fuzz.peer_requests import garbled
from quorate.sim.randomness import Draws
from quorate.sim.workload.random_requests import DrawnRequests

if TYPE_CHECKING:
    from quorate.api.handlers import ControllerApiError
    from quorate.controller.request_types import WriteReply
    from quorate.sim.action_runner import Deed, Stage

SOMEBODY: Final = Caller("User:somebody")


@keyword_value_type
class AskPeerInVain:
    """A request of a peer or an operator that nobody may grant."""

    who: int
    salt: int

    def do(self, stage: Stage) -> None:
        node, world = stage.find_running(self.who), stage.world
        if node is None:
            return
        request = of_peer(Draws(self.salt, "peers"), node)
        world.remark(f"node {node.node_id} is asked in vain for {type(request).__name__}")
        token = world.next_token()
        world.watch.asking_in_vain(token)
        node.receive(token, request)


@keyword_value_type
class WriteInVain:
    """A request of a client or a broker that nobody may grant."""

    salt: int
    who: int = LEADER

    def do(self, stage: Stage) -> None:
        node, watch = stage.find_running(self.who), stage.world.watch
        if node is None:
            return
        request = of_client(Draws(self.salt, "clients"))
        watch.writing_in_vain(request)

        def told(answer: WriteReply | ControllerApiError | None) -> None:
            watch.told(request, answer)

        node.application.ask(request, SOMEBODY, told)


@keyword_value_type
class WriteGarbled:
    """A request of a client or a broker of which some fields say something else than they did.

    Where there are brokers that count, their number and the topics on them stay as they are.
    """

    salt: int
    who: int = LEADER

    def do(self, stage: Stage) -> None:
        node = stage.find_running(self.who)
        if node is None:
            return
        draws = Draws(self.salt, "garbled")
        sound = DrawnRequests(draws).one(node.image)
        request = received(
            mutated(convert.write_request(sound), draws),
            lambda message: convert.request_in(message, "request"),
        )
        has_fleet = stage.world.options.fleet.brokers > 0
        if request is None or (has_fleet and not isinstance(request, _HARMLESS)):
            return
        node.application.ask(request, SOMEBODY, _forget)


@keyword_value_type
class AskGarbled:
    """A request of a peer of which some fields say something else than they did."""

    who: int
    salt: int

    def do(self, stage: Stage) -> None:
        node, world = stage.find_running(self.who), stage.world
        request = None if node is None else garbled(Draws(self.salt, "garbled peers"), node)
        if node is not None and request is not None:
            world.remark(f"node {node.node_id} gets a garbled {type(request).__name__}")
            node.receive(world.next_token(), request)


_HARMLESS: Final = (BrokerHeartbeat, IncrementalAlterConfigs)


def _forget(answer: WriteReply | ControllerApiError | None) -> None:
    """Nobody knows what should come of it; the node lives, and all see the same."""
    del answer


KINDS: Final[dict[str, type[Deed]]] = {
    "ask-garbled": AskGarbled,
    "ask-peer-in-vain": AskPeerInVain,
    "write-in-vain": WriteInVain,
    "write-garbled": WriteGarbled,
}
