"""The setting that chooses who speaks gRPC."""

from __future__ import annotations

import pytest

from quorate.settings.properties import ConfigError, Settings
from quorate.settings.transport import DEFAULT_TRANSPORT, Transport, read_transport


def test_the_own_one_is_the_default() -> None:
    assert read_transport(Settings({}, {})) is DEFAULT_TRANSPORT is Transport.H2


def test_the_other_one_is_chosen_by_its_name() -> None:
    assert read_transport(Settings({"grpc.transport": "grpcio"}, {})) is Transport.GRPCIO


def test_another_name_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"grpc\.transport is 'h3'.*h2, grpcio"):
        read_transport(Settings({"grpc.transport": "h3"}, {}))
