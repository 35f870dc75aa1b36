"""Parties of these tests, and what each may do."""

from __future__ import annotations

from typing import Final

from quorate.controller.authorization.authorizer import Operation
from quorate.controller.authorization.config_authorizer import ConfigAuthorizer

# Peers vote, brokers register, operators change the cluster, viewers look, readers get the log;
# outsiders have a certificate only.
PARTIES: Final = (
    "controller",
    "root",
    "peer",
    "broker",
    "operator",
    "viewer",
    "reader",
    "creator",
    "admin",
    "stranger",
)
VOTER_IDS: Final = frozenset({1, 2, 3})
IDENTITIES: Final = ConfigAuthorizer(
    frozenset({"User:CN=root"}),
    {
        Operation.QUORUM_ACTION: frozenset({"User:CN=peer", "User:CN=controller"}),
        Operation.CLUSTER_ACTION: frozenset({"User:CN=broker"}),
        Operation.ALTER: frozenset({"User:CN=operator"}),
        Operation.DESCRIBE: frozenset({"User:CN=viewer"}),
        Operation.READ: frozenset({"User:CN=reader"}),
        Operation.CREATE: frozenset({"User:CN=creator"}),
    },
)
