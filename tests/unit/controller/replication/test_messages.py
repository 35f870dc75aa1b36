from __future__ import annotations

from quorate.controller.authorization.authorizer import CLUSTER, Operation
from quorate.controller.replication.messages import AlterPartition, ElectionType, ElectLeaders


def test_numbers_are_those_of_kafkas_protocol() -> None:
    assert {kind.name: kind.value for kind in ElectionType} == {"PREFERRED": 0, "UNCLEAN": 1}


def test_brokers_change_isrs_and_operators_elect() -> None:
    altering, electing = AlterPartition.permission, ElectLeaders.permission
    assert (altering.operation, altering.on) == (Operation.CLUSTER_ACTION, (CLUSTER,))
    assert (electing.operation, electing.on) == (Operation.ALTER, (CLUSTER,))
