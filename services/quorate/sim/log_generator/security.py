"""ACLs, quotas, credentials, tokens and producer ids.

Quorate's controller has no requests for them yet: the records are those of Kafka's controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from quorate.records.ids import format_uuid
from quorate.records.metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EntityData,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.sim.log_generator.options import DAY_MS
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from quorate.sim.log_generator.brokers import WeekBrokers
    from quorate.sim.log_generator.leader import LogLeader
    from quorate.sim.log_generator.options import WeekOptions

T = TypeVar("T")
# Kafka's codes: resources topic and group; patterns literal and prefixed; operations read to
# describe; allow.
_RESOURCES: Final = (2, 3)
_PATTERNS: Final = (3, 4)
_OPERATIONS: Final = (3, 4, 5, 6, 8)
_ALLOW: Final = 3
_SCRAM_SHA_256: Final = 1
_SCRAM_SHA_512: Final = 2
_ITERATIONS: Final = 8192
_PRODUCER_IDS: Final = 1000
_SERVICES: Final = ("billing", "catalog", "fraud", "iot", "orders", "payments", "search", "users")
_KINDS: Final = (("acl", 0.4), ("quota", 0.15), ("scram", 0.1), ("token", 0.1), ("producers", 0.25))
# The number of grants for new services.
_NEW: Final = 40
# Quota keys and the units of their values: bytes per second, percent of a thread.
_QUOTAS: Final = (
    ("producer_byte_rate", 1_048_576),
    ("consumer_byte_rate", 1_048_576),
    ("request_percentage", 5),
)


class Security:
    """The current grants, some of which are revoked later."""

    def __init__(self, options: WeekOptions, leading: LogLeader, brokers: WeekBrokers) -> None:
        self._leading = leading
        self._brokers = brokers
        self._random_source = RandomSource(options.seed, "security")
        self._acls: list[bytes] = []
        self._users: list[tuple[str, int]] = []
        self._tokens: list[str] = []
        self._producer_id = 0

    def grant(self) -> None:
        """Grant what new services need; called on the first day and at the end."""
        for kind, weight in _KINDS:
            for _ in range(round(_NEW * weight)):
                self._change(kind, is_removal=False)

    def take_back(self) -> None:
        """Revoke one grant of each kind, as when a user leaves."""
        for kind, _ in _KINDS:
            self._change(kind, is_removal=True)

    def change(self) -> None:
        """Make one change of a random kind; one in three revokes a grant, if it can."""
        self._change(
            self._random_source.weighted(_KINDS), is_removal=self._random_source.chance(1 / 3)
        )

    def _change(self, kind: str, *, is_removal: bool) -> None:
        match kind:
            case "acl" if is_removal and self._acls:
                self._leading.take([RemoveAccessControlEntryRecord(id=self._taken(self._acls))])
            case "acl":
                self._leading.take([self._acl()])
            case "quota":
                self._leading.take([self._quota(is_removal=is_removal)])
            case "scram" if is_removal and self._users:
                name, mechanism = self._taken(self._users)
                record = RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
                self._leading.take([record])
            case "scram":
                self._leading.take([self._credential()])
            case "token" if is_removal and self._tokens:
                token_id = self._taken(self._tokens)
                self._leading.take([RemoveDelegationTokenRecord(token_id=token_id)])
            case "token":
                self._leading.take([self._token()])
            case _:
                self._leading.take([self._producer_ids()])

    def _taken(self, granted: list[T]) -> T:
        return granted.pop(self._random_source.between(0, len(granted) - 1))

    def _user(self) -> str:
        return (
            f"{self._random_source.random.choice(_SERVICES)}-{self._random_source.between(1, 40)}"
        )

    def _acl(self) -> AccessControlEntryRecord:
        acl_id = self._random_source.uuid()
        self._acls.append(acl_id)
        choice = self._random_source.random.choice
        return AccessControlEntryRecord(
            id=acl_id,
            resource_type=choice(_RESOURCES),
            resource_name=f"{choice(_SERVICES)}.",
            pattern_type=choice(_PATTERNS),
            principal=f"User:{self._user()}",
            host="*",
            operation=choice(_OPERATIONS),
            permission_type=_ALLOW,
        )

    def _quota(self, *, is_removal: bool) -> ClientQuotaRecord:
        key, unit = self._random_source.random.choice(_QUOTAS)
        return ClientQuotaRecord(
            entity=(EntityData(entity_type="user", entity_name=self._user()),),
            key=key,
            value=0.0 if is_removal else float(self._random_source.between(1, 100) * unit),
            remove=is_removal,
        )

    def _credential(self) -> UserScramCredentialRecord:
        name = self._user()
        mechanism = self._random_source.random.choice((_SCRAM_SHA_256, _SCRAM_SHA_512))
        if (name, mechanism) not in self._users:
            self._users.append((name, mechanism))
        size = 32 if mechanism == _SCRAM_SHA_256 else 64
        random = self._random_source.random
        return UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=random.randbytes(24),
            stored_key=random.randbytes(size),
            server_key=random.randbytes(size),
            iterations=_ITERATIONS,
        )

    def _token(self) -> DelegationTokenRecord:
        token_id = format_uuid(self._random_source.uuid())
        self._tokens.append(token_id)
        owner, now_ms = f"User:{self._user()}", self._leading.now_ms
        return DelegationTokenRecord(
            owner=owner,
            requester=owner,
            renewers=(),
            issue_timestamp=now_ms,
            max_timestamp=now_ms + 7 * DAY_MS,
            expiration_timestamp=now_ms + DAY_MS,
            token_id=token_id,
        )

    def _producer_ids(self) -> ProducerIdsRecord | None:
        """The record of AllocateProducerIds: a broker requests the next thousand ids."""
        able = sorted(self._brokers.able)
        if not able:
            return None
        broker = self._random_source.random.choice(able)
        self._producer_id += _PRODUCER_IDS
        return ProducerIdsRecord(
            broker_id=broker,
            broker_epoch=self._brokers.epoch_of(broker),
            next_producer_id=self._producer_id,
        )
