from __future__ import annotations

import pytest

from quorate.records.ids import NodeId
from quorate.sim.engine.network import Hold, Network, NetworkOptions, PartitionShape
from quorate.sim.randomness import RandomStreams

NODES = [NodeId(1), NodeId(2), NodeId(3), NodeId(4)]


def a_network(options: NetworkOptions | None = None, seed: int = 0) -> Network:
    return Network(options or NetworkOptions(delay_us=100), RandomStreams(seed))


def cut_links(network: Network) -> set[tuple[int, int]]:
    return {
        (int(a), int(b)) for a in NODES for b in NODES if a != b and not network.can_reach(a, b)
    }


def test_a_message_arrives_once_after_its_delay() -> None:
    assert a_network().deliveries(NODES[0], NODES[1]) == [100]


def test_messages_are_lost_and_doubled_as_often_as_the_options_say() -> None:
    network = a_network(NetworkOptions(delay_us=100, loss_rate=0.2, duplication_rate=0.5))
    copies = [len(network.deliveries(NODES[0], NODES[1])) for _ in range(2000)]
    assert 300 < copies.count(0) < 500
    assert 650 < copies.count(2) < 950


def test_jitter_lets_a_later_message_overtake() -> None:
    network = a_network(NetworkOptions(delay_us=100, jitter_us=1000))
    delays = [network.delay(NODES[0], NODES[1]) for _ in range(50)]
    assert delays != sorted(delays)


@pytest.mark.parametrize(
    ("shape", "both_ways", "links"),
    [
        (PartitionShape.ISOLATE, True, 6),
        (PartitionShape.LINK, True, 2),
        (PartitionShape.DEAF, False, 3),
        (PartitionShape.MUTE, False, 3),
        (PartitionShape.ONE_WAY_LINK, False, 1),
    ],
)
def test_a_partition_cuts_what_its_shape_says(
    shape: PartitionShape, *, both_ways: bool, links: int
) -> None:
    network = a_network()
    network.split(shape, NODES[:2], NODES)
    cut = cut_links(network)
    assert len(cut) == links
    assert ({(b, a) for a, b in cut} == cut) is both_ways


def test_halves_reach_nobody_on_the_other_side() -> None:
    network = a_network()
    network.split(PartitionShape.HALVES, NODES[1:], NODES)
    cut = cut_links(network)
    assert len(cut) == 6
    assert {(b, a) for a, b in cut} == cut


def test_a_connection_needs_both_directions() -> None:
    network = a_network()
    network.blocked[NODES[0], NODES[1]] = None
    assert network.can_reach(NODES[1], NODES[0])
    assert not network.is_open(NODES[1], NODES[0])


def test_a_calm_network_loses_nothing() -> None:
    network = a_network(NetworkOptions(delay_us=100, loss_rate=1.0))
    network.isolate(NODES[0], NODES)
    network.calm_down()
    assert network.deliveries(NODES[0], NODES[1]) == [100]


def test_what_is_held_back_arrives_when_its_hold_is_released() -> None:
    network, arrived = a_network(), list[str]()
    network.holds.append(hold := Hold(NODES[0], (str,), left=1))
    assert not network.holds_back(NODES[1], NODES[0], "of somebody else", lambda: None)
    assert not network.holds_back(NODES[0], NODES[1], 17, lambda: None)
    assert network.holds_back(NODES[0], NODES[1], "late", lambda: arrived.append("late"))
    assert not network.holds_back(NODES[0], NODES[1], "one too many", lambda: None)
    assert not arrived
    network.release(hold)
    assert arrived == ["late"]
    assert not network.holds


def test_whoever_judges_takes_a_way_for_cut_whose_messages_are_held_back() -> None:
    network = a_network()
    network.holds.append(hold := Hold(NODES[0], (str,), left=1))
    network.holds_back(NODES[0], NODES[1], "late", lambda: None)
    assert list(network.take_cut()) == [(NODES[0], NODES[1])]
    assert not network.take_cut()
    network.release(hold)
    assert list(network.take_cut()) == [(NODES[0], NODES[1])]
