"""Build a release into dist/: sdist, wheel, chart, images, notes, bill of materials, checksums.

    python -m tools.build_release
    python -m tools.build_release --images ''     without docker, podman or buildah

All but the images is made from the last commit, with its time, so that the same commit gives the
same bytes. The wheel is built from the sdist, which shows that nothing is missing there.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import yaml

from tools import build_image, sbom

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = build_image.ROOT
CHART = "deploy/helm/quorate"
# What the files of a release are made of.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "services", CHART, "CHANGELOG.md")
LOCK = "requirements.lock"
SUMS = "SHA256SUMS"


class ReleaseError(Exception):
    """A release cannot be built; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """The files of one commit."""

    folder: Path
    time_s: int

    def read(self, path: str) -> str:
        return (self.folder / path).read_text(encoding="utf-8")

    @property
    def version(self) -> str:
        path = "services/quorate/__init__.py"
        found = re.search(r'^__version__ = "(.+)"$', self.read(path), re.MULTILINE)
        if found is None:
            raise ReleaseError(f"{path}: __version__ is missing: add it")
        return found[1]


def main() -> int:
    """Build, and print each file; 1 with a reason where that is not possible."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder (dist)")
    parser.add_argument(
        "--images",
        default=" ".join(build_image.IMAGES),
        help=f"images to build and save, '' for none ({' '.join(build_image.IMAGES)})",
    )
    parser.add_argument(
        "--draft",
        action="store_true",
        help="build the last commit even with uncommitted changes or without notes",
    )
    arguments = parser.parse_args()
    try:
        paths = build(arguments.output, arguments.images.split(), is_draft=arguments.draft)
    except ReleaseError as error:
        parser.exit(1, f"{error}\n")
    for path in paths:
        print(path)
    return 0


def build(output: Path, images: Sequence[str], *, is_draft: bool = False) -> list[Path]:
    """Build all files into a folder and return their paths. Raises ReleaseError."""
    saver = find_saver() if images else []
    if not is_draft and (changes := run("git", "status", "--porcelain").decode().rstrip()):
        raise ReleaseError(f"uncommitted changes: commit or stash them, or --draft:\n{changes}")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        source = export(Path(name) / "source")
        check_chart(source)
        version = source.version
        notes = output / f"quorate-{version}-notes.md"
        notes.write_text(find_notes(source.read("CHANGELOG.md"), version, is_draft=is_draft))
        bill = output / f"quorate-{version}.cdx.json"
        bill.write_text(sbom.write_sbom(source.read(LOCK), version, source.time_s))
        paths = [*build_packages(source, output), pack_chart(source, output), notes, bill]
    paths += [save_image(image, version, saver, output) for image in images]
    sums = output / SUMS
    sums.write_text("".join(f"{checksum(path)}  {path.name}\n" for path in sorted(paths)))
    return [*sorted(paths), sums]


def run(
    *command: str, folder: Path | None = None, variables: Mapping[str, str] | None = None
) -> bytes:
    """Return the output of a command. Raises ReleaseError with its errors where it fails."""
    done = subprocess.run(
        command,
        cwd=folder or ROOT,
        env=os.environ | (variables or {}),
        capture_output=True,
        umask=0o022,
        check=False,
    )
    if done.returncode != 0:
        raise ReleaseError(f"{shlex.join(command)} failed:\n{done.stderr.decode().rstrip()}")
    return done.stdout


def export(folder: Path) -> Source:
    """Write the files of the last commit into a folder."""
    archive = run("git", "archive", "--format=tar", "HEAD", *SOURCES, LOCK)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar.getmembers():
            member.mode = clean_mode(member)
            tar.extract(member, folder, filter="tar")
    return Source(folder, build_image.last_commit_s())


def clean_mode(member: tarfile.TarInfo) -> int:
    """Permissions that depend on no umask."""
    return 0o755 if member.isdir() or member.mode & 0o100 else 0o644


def check_chart(source: Source) -> None:
    """The chart has the version of the package. Raises ReleaseError."""
    head = yaml.safe_load(source.read(f"{CHART}/Chart.yaml"))
    for key in ("version", "appVersion"):
        if head[key] != source.version:
            raise ReleaseError(
                f"{CHART}/Chart.yaml: {key} is {head[key]}, quorate.__version__ {source.version}:"
                " make them equal"
            )


def find_notes(changelog: str, version: str, *, is_draft: bool = False) -> str:
    """The section of a version without its heading. Raises ReleaseError where it is missing."""
    section = rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |^\[[^\]]+\]: |\Z)"
    found = re.search(section, changelog, re.MULTILINE | re.DOTALL)
    if found is not None:
        return found[1].strip() + "\n"
    if is_draft:
        return f"A draft: CHANGELOG.md has no section of {version}.\n"
    raise ReleaseError(f"CHANGELOG.md: add a section [{version}] with what changed, or --draft")


def build_packages(source: Source, output: Path) -> list[Path]:
    """The source distribution, and the wheel that is built from it."""
    made = call_backend("sdist", source.folder, output, source.time_s)
    with tarfile.open(made) as tar:
        contents = {
            member.name: (clean_mode(member), read_member(tar, member))
            for member in tar.getmembers()
            if member.isfile()
        }
    pack(contents, made, source.time_s)
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(made) as tar:
            tar.extractall(name, filter="tar")
        (folder,) = Path(name).iterdir()
        return [made, call_backend("wheel", folder, output, source.time_s)]


def call_backend(kind: str, folder: Path, output: Path, time_s: int) -> Path:
    """Have setuptools build a distribution of a folder."""
    statements = (
        "import sys; from setuptools import build_meta",
        f"name = build_meta.build_{kind}(sys.argv[1])",
        "print(); print(name)",
    )
    program = "; ".join(statements)
    variables = {"SOURCE_DATE_EPOCH": str(time_s), "PYTHONHASHSEED": "0"}
    command = (sys.executable, "-c", program, str(output.resolve()))
    said = run(*command, folder=folder, variables=variables)
    return output / said.decode().splitlines()[-1]


def pack_chart(source: Source, output: Path) -> Path:
    """The chart as `helm package` packs it, with the same bytes each time."""
    folder = source.folder / CHART
    ignored = source.read(f"{CHART}/.helmignore").splitlines()
    patterns = [line.rstrip("/") for line in ignored if line and not line.startswith("#")]
    contents = {}
    for path in folder.rglob("*"):
        inside = PurePosixPath(path.relative_to(folder))
        is_ignored = any(fnmatch(part, pattern) for part in inside.parts for pattern in patterns)
        if path.is_file() and not is_ignored:
            contents[f"quorate/{inside}"] = (0o644, path.read_bytes())
    target = output / f"quorate-{source.version}.tgz"
    pack(contents, target, source.time_s)
    return target


def read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The content of a regular file."""
    file = tar.extractfile(member)
    assert file is not None
    return file.read()


def pack(contents: Mapping[str, tuple[int, bytes]], target: Path, time_s: int) -> None:
    """Write a .tar.gz of files by name, each with its mode; nothing else depends on the machine."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=time_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, (mode, content) in sorted(contents.items()):
            member = tarfile.TarInfo(name)
            member.mode, member.size, member.mtime = mode, len(content), time_s
            tar.addfile(member, io.BytesIO(content))


def find_saver() -> list[str]:
    """The builder of images, of a kind that can save them. Raises ReleaseError."""
    builder = shlex.split(os.environ.get(build_image.VARIABLE, "")) or build_image.find_builder()
    names = [probe[0] for probe, _ in build_image.PROGRAMS]
    if not builder:
        raise ReleaseError(
            f"none of {', '.join(names)} works here: install one, or build without images"
            " (make release IMAGES=)"
        )
    if Path(builder[0]).name not in names:
        raise ReleaseError(
            f"{build_image.VARIABLE}: {builder[0]} cannot save an image, only {', '.join(names)}"
            " can: name one of these, or build without images (make release IMAGES=)"
        )
    return builder


def save_image(image: str, version: str, builder: Sequence[str], output: Path) -> Path:
    """Build one image and write it as an archive that docker and podman load."""
    name = "quorate" if image == "quorate" else f"quorate-{image}"
    tag, target = f"{name}:{version}", output / f"{name}-image-{version}.tar"
    script = str(ROOT / "tools/build_image.py")
    run(sys.executable, script, "--of", image, "--tag", tag, "--builder", shlex.join(builder))
    target.unlink(missing_ok=True)
    if Path(builder[0]).name == "buildah":
        run(builder[0], "push", tag, f"docker-archive:{target.resolve()}:{tag}")
    else:
        run(builder[0], "save", "--output", str(target.resolve()), tag)
    return target


def checksum(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    raise SystemExit(main())
