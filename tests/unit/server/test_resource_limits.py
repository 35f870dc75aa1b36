"""Warnings about disk space and file descriptors."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest

from quorate.server.resource_limits import (
    DESCRIPTORS_MIN,
    DiskSpace,
    access_warning,
    check_descriptors,
    descriptor_warning,
)
from quorate.storage.reserved_descriptors import spare_of

if TYPE_CHECKING:
    from pathlib import Path


def test_few_descriptors_are_warned_about() -> None:
    assert descriptor_warning(DESCRIPTORS_MIN) is None
    assert descriptor_warning(resource.RLIM_INFINITY) is None
    assert "may open 100 files" in (descriptor_warning(100) or "")


def test_the_limit_is_raised_up_to_what_is_kept_for_files() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        check_descriptors()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert (hard - soft, hard) == (spare_of(hard), before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_little_space_warns_before_it_is_exhausted(tmp_path: Path) -> None:
    space = DiskSpace(str(tmp_path), 100)
    assert (space.evaluate(400), space.is_exhausted) == (None, False)
    assert "getting low" in (space.evaluate(399) or "")
    assert not space.is_exhausted
    assert "too little to lead" in (space.evaluate(99) or "")
    assert space.is_exhausted


def test_the_disk_of_the_directory_is_measured(tmp_path: Path) -> None:
    space = DiskSpace(str(tmp_path), 0)
    assert space.measure() is None
    assert space.free_bytes > 0


@pytest.mark.parametrize("mode", [0o700, 0o2770, 0o2750])
def test_a_directory_for_its_user_or_its_volumes_group_is_no_warning(
    tmp_path: Path, mode: int
) -> None:
    tmp_path.chmod(mode)
    assert access_warning(str(tmp_path)) is None
    assert access_warning(str(tmp_path / "missing")) is None


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o2775, 0o777])
def test_a_directory_that_others_may_enter_is_warned_about(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    warning = access_warning(str(tmp_path))
    assert warning is not None
    assert f"has mode {mode:04o}" in warning
    assert warning.endswith(f"chmod 700 {tmp_path}")
