from __future__ import annotations

from quorate.controller.errors import RefusedError, ReplayError, UnsupportedMetadataVersionError
from quorate.records.errors import ErrorCode


def test_a_log_that_is_too_new_is_a_log_that_cannot_be_replayed() -> None:
    assert issubclass(UnsupportedMetadataVersionError, ReplayError)


def test_a_refusal_carries_code_and_message() -> None:
    refused = RefusedError(ErrorCode.INVALID_CONFIG, "set it")
    assert (refused.error, refused.message, str(refused)) == (
        ErrorCode.INVALID_CONFIG,
        "set it",
        "set it",
    )
