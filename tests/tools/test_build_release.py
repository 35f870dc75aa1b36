"""Contents of a release; two builds of one commit are byte for byte the same."""

from __future__ import annotations

import json
import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
import yaml

import quorate
from tests.chart.rendering import CHART
from tests.lacking import lack
from tools import build_release, sbom

if TYPE_CHECKING:
    from pathlib import Path

VERSION = quorate.__version__
JUNK = ("tests/", "__pycache__", ".pyc", "conftest")


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two builds of one commit."""
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    for folder in (first, second):
        build_release.build(folder, [], is_draft=True)
    return first, second


def committed(folder: str) -> list[str]:
    """The files of the last commit below a folder."""
    return build_release.run("git", "ls-tree", "-r", "--name-only", "HEAD", folder).decode().split()


def test_one_commit_gives_the_same_bytes(releases: tuple[Path, Path]) -> None:
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in releases
    )
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []


def test_checksums_are_those_of_all_files(releases: tuple[Path, Path]) -> None:
    folder, _ = releases
    sums = [line.split("  ") for line in (folder / build_release.SUMS).read_text().splitlines()]
    assert {name for _, name in sums} == {
        f"quorate-{VERSION}{end}"
        for end in ("-notes.md", ".cdx.json", ".tar.gz", ".tgz", "-py3-none-any.whl")
    }
    assert all(build_release.checksum(folder / name) == digest for digest, name in sums)


def test_packages_hold_the_sources_and_no_junk(releases: tuple[Path, Path]) -> None:
    folder, _ = releases
    with zipfile.ZipFile(folder / f"quorate-{VERSION}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
    with tarfile.open(folder / f"quorate-{VERSION}.tar.gz") as sdist:
        sources = sdist.getnames()
    tracked = committed("services")
    modules = {path.removeprefix("services/") for path in tracked if path.endswith(".py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert f"quorate-{VERSION}/LICENSE" in sources
    assert [name for name in names + sources if any(part in name for part in JUNK)] == []


def test_the_chart_holds_what_helm_packs(releases: tuple[Path, Path]) -> None:
    with tarfile.open(releases[0] / f"quorate-{VERSION}.tgz") as chart:
        names = chart.getnames()
        head = chart.extractfile("quorate/Chart.yaml")
        assert head is not None
        assert yaml.safe_load(head)["version"] == VERSION
    tracked = committed(build_release.CHART)
    inside = [path.removeprefix(f"{build_release.CHART}/") for path in tracked]
    assert sorted(names) == sorted(f"quorate/{path}" for path in inside if path[:3] != "ci/")


def test_the_chart_has_the_version_of_the_package() -> None:
    head = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert head["version"] == head["appVersion"] == VERSION


def test_the_bill_lists_what_the_lock_pins(releases: tuple[Path, Path]) -> None:
    bill = json.loads((releases[0] / f"quorate-{VERSION}.cdx.json").read_text())
    lock = build_release.run("git", "show", f"HEAD:{build_release.LOCK}").decode()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == VERSION
    components = bill["components"]
    pinned = [line.split()[0] for line in lock.splitlines() if line[:1].strip() not in ("", "#")]
    assert [f"{it['name']}=={it['version']}" for it in components] == pinned
    assert sum(len(it["hashes"]) for it in components) == lock.count("--hash=sha256:")
    assert len({it["bom-ref"] for it in components}) == len(components)
    licenses = {it["name"]: it.get("licenses") for it in components}
    assert licenses["pyyaml"] == [{"license": {"name": "MIT"}}]


def test_a_pin_without_hash_is_refused() -> None:
    with pytest.raises(ValueError, match="numpy has no hash"):
        list(sbom.read_pins("numpy==2.4.6\n"))


def test_notes_are_the_section_of_the_version() -> None:
    changelog = "# C\n\n## [Unreleased]\n\n## [0.2.0] - d\n\n- new\n\n## [0.1.0] - d\n\n- old\n"
    assert build_release.find_notes(changelog, "0.2.0") == "- new\n"
    assert build_release.find_notes(changelog, "0.1.0") == "- old\n"
    with pytest.raises(build_release.ReleaseError, match=r"add a section \[0.3.0\]"):
        build_release.find_notes(changelog, "0.3.0")


def test_this_version_has_notes() -> None:
    changelog = (build_release.ROOT / "CHANGELOG.md").read_text()
    assert "- " in build_release.find_notes(changelog, VERSION)


def test_uncommitted_changes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: S607
    (tmp_path / "changed").touch()
    monkeypatch.setattr(build_release, "ROOT", tmp_path)
    with pytest.raises(build_release.ReleaseError, match=r"uncommitted changes(.|\n)*changed"):
        build_release.build(tmp_path / "dist", [])
    assert not (tmp_path / "dist").exists()


def test_images_need_a_builder_that_saves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("QUORATE_IMAGE_BUILDER", raising=False)
    with pytest.raises(build_release.ReleaseError, match="make release IMAGES="):
        build_release.build(tmp_path / "dist", ["quorate"])
    monkeypatch.setenv("QUORATE_IMAGE_BUILDER", "my builder")
    with pytest.raises(build_release.ReleaseError, match="my cannot save an image"):
        build_release.build(tmp_path / "dist", ["quorate"])


def test_an_image_is_built_and_saved(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    docker.chmod(0o755)
    build_release.save_image("pipeline", VERSION, [str(docker), "build"], tmp_path)
    tag, target = f"quorate-pipeline:{VERSION}", tmp_path / f"quorate-pipeline-image-{VERSION}.tar"
    built, saved = (tmp_path / "calls").read_text().splitlines()
    assert f"--tag {tag}" in built
    assert saved == f"save --output {target} {tag}"


def test_helm_reads_the_packed_chart(releases: tuple[Path, Path]) -> None:
    package = releases[0] / f"quorate-{VERSION}.tgz"
    try:
        shown = build_release.run("helm", "show", "chart", str(package)).decode()
    except FileNotFoundError:
        lack("helm is needed in PATH: go install helm.sh/helm/v3/cmd/helm@latest")
    assert yaml.safe_load(shown)["appVersion"] == VERSION
