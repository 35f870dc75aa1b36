from __future__ import annotations

from quorate.controller.authorization.authorizer import CLUSTER, Operation
from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    DescribeClientQuotas,
    MatchType,
)


def test_numbers_are_those_of_kafkas_protocol() -> None:
    assert {kind.name: kind.value for kind in MatchType} == {
        "EXACT": 0,
        "DEFAULT": 1,
        "SPECIFIED": 2,
    }


def test_quotas_are_configurations_of_the_cluster() -> None:
    altering, describing = AlterClientQuotas.permission, DescribeClientQuotas.permission
    assert (altering.operation, altering.on) == (Operation.ALTER_CONFIGS, (CLUSTER,))
    assert (describing.operation, describing.on) == (Operation.DESCRIBE_CONFIGS, (CLUSTER,))
