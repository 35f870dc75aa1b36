"""Metadata records for security: ACLs, SCRAM credentials, delegation tokens."""

from __future__ import annotations

from typing import Annotated

from quorate.records.codec.schema import Tagged, Wire, message


@message(api_key=18)
class AccessControlEntryRecord:
    """An ACL was created; the types and the operation are Kafka's codes."""

    id: Annotated[bytes, Wire("uuid")]
    resource_type: Annotated[int, Wire("int8")]
    resource_name: Annotated[str, Wire("string")]
    pattern_type: Annotated[int, Wire("int8")]
    principal: Annotated[str, Wire("string")]
    host: Annotated[str, Wire("string")]
    operation: Annotated[int, Wire("int8")]
    permission_type: Annotated[int, Wire("int8")]
    tagged: Tagged = ()


@message(api_key=19)
class RemoveAccessControlEntryRecord:
    """The ACL of that id was removed."""

    id: Annotated[bytes, Wire("uuid")]
    tagged: Tagged = ()


@message(api_key=11)
class UserScramCredentialRecord:
    """A user's SCRAM credential was set; `mechanism` is 1 for SHA-256, 2 for SHA-512."""

    name: Annotated[str, Wire("string")]
    mechanism: Annotated[int, Wire("int8")]
    salt: Annotated[bytes, Wire("bytes")]
    stored_key: Annotated[bytes, Wire("bytes")]
    server_key: Annotated[bytes, Wire("bytes")]
    iterations: Annotated[int, Wire("int32")]
    tagged: Tagged = ()


@message(api_key=22)
class RemoveUserScramCredentialRecord:
    """A user's SCRAM credential was removed."""

    name: Annotated[str, Wire("string")]
    mechanism: Annotated[int, Wire("int8")]
    tagged: Tagged = ()


@message(api_key=10)
class DelegationTokenRecord:
    """A delegation token was issued or renewed; times are wall-clock milliseconds."""

    owner: Annotated[str, Wire("string")]
    requester: Annotated[str, Wire("string")]
    renewers: Annotated[tuple[str, ...], Wire("[]string")]
    issue_timestamp: Annotated[int, Wire("int64")]
    max_timestamp: Annotated[int, Wire("int64")]
    expiration_timestamp: Annotated[int, Wire("int64")]
    token_id: Annotated[str, Wire("string")]
    tagged: Tagged = ()


@message(api_key=26)
class RemoveDelegationTokenRecord:
    """A delegation token was removed."""

    token_id: Annotated[str, Wire("string")]
    tagged: Tagged = ()
