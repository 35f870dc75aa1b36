"""tools/build_image.py: the program that builds, and its arguments."""

from __future__ import annotations

import importlib.util
import re
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from types import ModuleType

    import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_image", ROOT / "tools" / "build_image.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(folder: Path, name: str, status: int) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_first_program_that_answers_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "docker", 1)  # a client without a daemon
    program(tmp_path, "buildah", 0)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert load().find_builder() == ["buildah", "build"]


def test_without_a_program_there_is_no_builder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert load().find_builder() == []


def test_the_builder_is_told_dockerfile_tag_and_time() -> None:
    builder, base = ["my", "builder"], "python:3.12-slim"
    for image in load().IMAGES:
        assert load().build_command(builder, image, "quorate:x", base, 17) == [
            *("my", "builder", "--file", f"deploy/images/{image}/Dockerfile", "--tag", "quorate:x"),
            *("--build-arg", "SOURCE_DATE_EPOCH=17", "--build-arg", f"BASE_IMAGE={base}", "."),
        ]


def test_every_image_can_be_built() -> None:
    folders = {path.parent.name for path in (ROOT / "deploy/images").glob("*/Dockerfile")}
    assert set(load().IMAGES) == folders


def test_the_image_has_what_the_dockerfile_promises() -> None:
    text = (ROOT / "deploy/images/quorate/Dockerfile").read_text()
    final = text.rpartition("\nFROM ")[2]

    # What the final image takes away is in no layer of it.
    assert final.startswith("scratch\n")
    assert "RUN" not in final
    assert text.count("ARG BASE_IMAGE=python:3.13-slim\n") == 1
    assert "--require-hashes" in text
    assert 'ENTRYPOINT ["quorate-init", "quorate"]' in final
    assert "USER 65532:65532" in final
    assert "HEALTHCHECK" not in text
    assert not re.search(r"apt|gcc|curl", text)
    assert_that_sources_are_there(text)


def test_the_image_with_spark_has_what_its_dockerfile_promises() -> None:
    text = (ROOT / "deploy/images/pipeline/Dockerfile").read_text()
    final = text.rpartition("\nFROM ")[2]

    assert final.startswith("scratch\n")
    assert "RUN" not in final
    assert text.count("ARG BASE_IMAGE=") == 1
    assert text.count("FROM ${BASE_IMAGE} AS") == 2
    # PySpark alone has no wheel; its sources are checked as all else is.
    assert text.count("--require-hashes") == text.count("--only-binary :all:") == 2
    assert re.findall(r"--no-binary (\S+)", text) == ["pyspark"]
    installed = re.findall(r"apt-get install[^&]*", text)
    assert len(installed) == 1
    assert installed[0].replace("\\", "").split()[-2:] == ["openjdk-17-jre-headless", "tini"]
    assert "USER 185:185" in final
    assert not re.search(r"gcc|jdk-headless|curl|JAVA_HOME", text)
    assert_that_sources_are_there(text)


def test_users_of_the_image_with_spark_have_names() -> None:
    text = (ROOT / "deploy/images/pipeline/Dockerfile").read_text()
    chart = yaml.safe_load((ROOT / "deploy/helm/quorate/values.yaml").read_text())

    named = {int(number) for number in re.findall(r'"\w+:x:(\d+):\d+:\S+" >> /etc/passwd', text)}
    assert named == {185, chart["podSecurityContext"]["runAsUser"]}


def assert_that_sources_are_there(text: str) -> None:
    """Files that a Dockerfile copies exist, and are not kept from the builder."""
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists(), source
            assert any(f"!{place}" in kept for place in (source, *parents(source))), source


def parents(source: str) -> list[str]:
    return [str(path) for path in PurePosixPath(source).parents]
