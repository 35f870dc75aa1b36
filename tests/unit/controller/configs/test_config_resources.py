from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.configs.config_resources import allows_unclean_election
from tests.unit.controller.configs.conftest import ALL_BROKERS, alter, put

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_unclean_election_is_the_topics_choice_before_the_clusters(topic: Cluster) -> None:
    assert not allows_unclean_election(topic.image, "a")
    topic.ask(alter(put("unclean.leader.election.enable", "true"), resource=ALL_BROKERS))
    assert allows_unclean_election(topic.image, "a")
    topic.ask(alter(put("unclean.leader.election.enable", "false")))
    assert not allows_unclean_election(topic.image, "a")
