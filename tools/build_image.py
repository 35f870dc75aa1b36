"""Build a container image with whatever of docker, podman and buildah is there.

    python tools/build_image.py --tag quorate:dev
    python tools/build_image.py --of pipeline --tag quorate-pipeline:dev
    python tools/build_image.py --tag quorate:dev --builder 'COMMAND'

A builder is a command that takes what `docker build` takes: a context, --file, --tag, --build-arg.
QUORATE_IMAGE_BUILDER names one, too. The times in the image are that of the last commit, so that
the same tree gives the same content.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The folders below, each with a Dockerfile: the services, and the jobs with Spark.
FOLDER = "deploy/images"
IMAGES = ("quorate", "pipeline")
VARIABLE = "QUORATE_IMAGE_BUILDER"
# How to see that a program can build, and how it does.
PROGRAMS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("docker", "info"), ("docker", "build")),
    (("podman", "info"), ("podman", "build")),
    (("buildah", "info"), ("buildah", "build")),
)


def main() -> int:
    """Build; the exit status is the builder's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--of", choices=IMAGES, default=IMAGES[0], help=f"which image ({IMAGES[0]})"
    )
    parser.add_argument("--tag", default="quorate:dev", help="name of the image (quorate:dev)")
    parser.add_argument(
        "--builder", default=os.environ.get(VARIABLE, ""), help=f"a command, or {VARIABLE}"
    )
    parser.add_argument("--base", help="base image instead of the Dockerfile's")
    arguments = parser.parse_args()
    builder = shlex.split(arguments.builder) or find_builder()
    if not builder:
        names = ", ".join(probe[0] for probe, _ in PROGRAMS)
        parser.exit(1, f"none of {names} works here: install one, or name one in {VARIABLE}\n")
    command = build_command(builder, arguments.of, arguments.tag, arguments.base, last_commit_s())
    print(shlex.join(command), flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def find_builder() -> list[str]:
    """The first program that is there and answers, [] for none."""
    for probe, build in PROGRAMS:
        if shutil.which(probe[0]) is None:
            continue
        asked = subprocess.run(probe, capture_output=True, check=False)
        if asked.returncode == 0:
            return list(build)
    return []


def build_command(
    builder: list[str], image: str, tag: str, base: str | None, time_s: int
) -> list[str]:
    """The command that builds the image, for the root of the checkout."""
    values = {"SOURCE_DATE_EPOCH": str(time_s)} | ({} if base is None else {"BASE_IMAGE": base})
    words = [word for key, value in values.items() for word in ("--build-arg", f"{key}={value}")]
    return [*builder, "--file", f"{FOLDER}/{image}/Dockerfile", "--tag", tag, *words, "."]


def last_commit_s() -> int:
    """The time of the last commit in seconds, 0 outside a repository."""
    asked = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],  # noqa: S607 - the developer's git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(asked.stdout.strip() or 0) if asked.returncode == 0 else 0


if __name__ == "__main__":
    raise SystemExit(main())
