"""Bytes of the records about ACLs, credentials and tokens."""

from __future__ import annotations

from quorate.records.codec.compiler import codec_of
from quorate.records.record_types.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

ID = b"i" * 16
ISSUED = "id"


def test_an_acl_is_removed_by_its_id() -> None:
    created = AccessControlEntryRecord(
        id=ID,
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=4,
        permission_type=1,
    )
    assert codec_of(AccessControlEntryRecord, 0).encode(created) == (
        ID + b"\x02\x02t\x03\x07User:a\x02*\x04\x01\0"
    )
    removed = RemoveAccessControlEntryRecord(id=ID)
    assert codec_of(RemoveAccessControlEntryRecord, 0).encode(removed) == ID + b"\0"


def test_a_credential_is_removed_by_user_and_mechanism() -> None:
    created = UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"", iterations=4096
    )
    assert codec_of(UserScramCredentialRecord, 0).encode(created) == (
        b"\x02a\x01\x02s\x02k\x01\x00\x00\x10\x00\0"
    )
    removed = RemoveUserScramCredentialRecord(name="a", mechanism=1)
    assert codec_of(RemoveUserScramCredentialRecord, 0).encode(removed) == b"\x02a\x01\0"


def test_a_token_is_removed_by_its_id() -> None:
    created = DelegationTokenRecord(
        owner="o",
        requester="r",
        renewers=("x", "y"),
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
        token_id=ISSUED,
    )
    assert codec_of(DelegationTokenRecord, 0).encode(created) == (
        b"\x02o\x02r\x03\x02x\x02y" + bytes(7) + b"\x01" + bytes(7) + b"\x02" + bytes(7) + b"\x03"
        b"\x03id\0"
    )
    removed = RemoveDelegationTokenRecord(token_id=ISSUED)
    assert codec_of(RemoveDelegationTokenRecord, 0).encode(removed) == b"\x03id\0"
