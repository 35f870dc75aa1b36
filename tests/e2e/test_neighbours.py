"""Two installations in one namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster


def test_two_quorums_do_not_disturb_each_other(cluster: Cluster) -> None:
    one, other = cluster.release("one"), cluster.release("other")
    one.install()
    other.install()
    one.await_voters(0, 1, 2)
    other.await_voters(0, 1, 2)

    one.set_value("e2e.who", "one")
    other.set_value("e2e.who", "other")
    assert one.status()["ClusterId"] != other.status()["ClusterId"]
    assert one.value("e2e.who") == "one"

    one.uninstall()
    epoch = other.status()["LeaderEpoch"]
    other.set_value("e2e.after", "here")
    assert other.value("e2e.who") == "other"
    assert other.value("e2e.after") == "here"
    assert other.status()["LeaderEpoch"] == epoch
