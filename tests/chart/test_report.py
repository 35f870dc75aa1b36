"""The CronJob of `pipeline.report`: what it runs, and what it leaves on the volume."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.chart.rendering import CHART, ROOT, Helm, one

if TYPE_CHECKING:
    from pathlib import Path

ON: Final = ("--set", "pipeline.report.enabled=true")
VALUES: Final = yaml.safe_load((CHART / "values.yaml").read_text())
# Stands in for the command: it writes its arguments, and fails if it is set to.
QUORATE: Final = """#!/bin/sh
echo "$@" >> "$SAID"
[ -z "$FAILS" ] || exit 1
while [ "$1" != --html ]; do shift; done
echo "<html>" > "$2"
"""


def pod_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    job = one(objects, "CronJob", "q-quorate-report")["spec"]["jobTemplate"]["spec"]
    found: dict[str, Any] = job["template"]["spec"]
    return found


def run(helm: Helm, folder: Path, *values: str, fails: str = "") -> tuple[int, list[str]]:
    """Run the container's command, with a folder as its volumes; its status, and the arguments."""
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    program = folder / "quorate"
    program.write_text(QUORATE)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    said = folder / "said"
    said.unlink(missing_ok=True)
    (container,) = pod_of(helm.objects(*ON, *values))["containers"]
    words = [
        word.replace("/tmp/", f"{folder}/").replace("/reports/", f"{pages}/")  # noqa: S108
        for word in container["command"]
    ]
    done = subprocess.run(
        words,
        env={"PATH": f"{folder}:{os.environ['PATH']}", "SAID": str(said), "FAILS": fails},
        capture_output=True,
        check=False,
    )
    return done.returncode, said.read_text().split()


def test_it_is_off_unless_asked_for(helm: Helm) -> None:
    assert not [each for each in helm.objects() if each["metadata"]["name"].endswith("-report")]


def test_a_page_is_kept_and_the_oldest_go(helm: Helm, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    old = [pages / f"2020010{day}T000000Z.html" for day in (1, 2, 3)]
    for page in (*old, pages / "notes.txt"):
        page.touch()
    left = pages / ".killed.part"
    left.touch()
    os.utime(left, (0, 0))

    status, words = run(helm, tmp_path, "--set", "pipeline.report.keep=2")

    assert status == 0
    assert words[:4] == [
        *("pipeline", "report", "--bootstrap-controller"),
        "q-quorate.default.svc:9094",
    ]
    names = sorted(path.name for path in pages.iterdir())
    assert names[0] == old[-1].name
    assert re.fullmatch(r"\d{8}T\d{6}Z\.html", names[1])
    assert names[2:] == ["notes.txt"]


def test_a_report_that_fails_leaves_the_pages_alone(helm: Helm, tmp_path: Path) -> None:
    status, _ = run(helm, tmp_path, "--set", "pipeline.report.keep=1", fails="yes")

    assert status != 0
    assert not list((tmp_path / "pages").iterdir())


def test_further_words_come_as_they_are(helm: Helm, tmp_path: Path) -> None:
    values = "pipeline.report.arguments={--starting-offsets,2026-11-20 08:00}"
    status, words = run(helm, tmp_path, "--set", values)

    assert status == 0
    assert words[-3:] == ["--starting-offsets", "2026-11-20", "08:00"]


def test_with_tls_it_shows_the_certificate_of_clients(helm: Helm, tmp_path: Path) -> None:
    words = run(helm, tmp_path, "--set", "tls.enabled=true")[1]
    pod = pod_of(helm.objects(*ON, "--set", "tls.enabled=true"))

    assert words[4:6] == ["--command-config", "/etc/quorate/config/client.properties"]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["tls"] == "/etc/quorate/tls"
    assert mounts["config"] == "/etc/quorate/config"


def test_with_tls_it_may_show_a_certificate_of_its_own(helm: Helm) -> None:
    def secrets(*values: str) -> dict[str, str]:
        """The Secret that is mounted where client.properties looks for it, of each pod."""
        words = [word for value in ("tls.enabled=true", *values) for word in ("--set", value)]
        objects = helm.objects(*ON, *words)
        controllers = one(objects, "StatefulSet", "q-quorate")["spec"]["template"]["spec"]
        pods = {"report": pod_of(objects), "controllers": controllers}
        return {
            name: volume["secret"]["secretName"]
            for name, pod in pods.items()
            for volume in pod["volumes"]
            if volume["name"] == "tls"
        }

    assert secrets() == {"report": "q-quorate-tls", "controllers": "q-quorate-tls"}
    own = secrets("pipeline.report.existingSecret=reader")
    assert own == {"report": "reader", "controllers": "q-quorate-tls"}


def test_the_image_is_the_one_with_spark_of_the_same_tag(helm: Helm) -> None:
    def image(*values: str) -> str:
        words = [word for value in values for word in ("--set", value)]
        return str(pod_of(helm.objects(*ON, *words))["containers"][0]["image"])

    assert image("image.registry=r.example", "image.tag=v3") == "r.example/quorate-pipeline:v3"
    assert image("image.tag=v3", "pipeline.image.tag=v4") == "quorate-pipeline:v4"
    digest = f"sha256:{'a' * 64}"
    assert image(f"pipeline.image.digest={digest}") == f"quorate-pipeline@{digest}"


def test_pages_outlive_the_release_unless_the_claim_is_of_others(helm: Helm) -> None:
    claim = one(helm.objects(*ON), "PersistentVolumeClaim", "q-quorate-report")
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"

    objects = helm.objects(*ON, "--set", "pipeline.report.existingClaim=own")
    assert not [each for each in objects if each["kind"] == "PersistentVolumeClaim"]
    volumes = {volume["name"]: volume for volume in pod_of(objects)["volumes"]}
    assert volumes["reports"]["persistentVolumeClaim"]["claimName"] == "own"


def test_a_run_is_bounded_in_time_memory_cores_and_disk(helm: Helm) -> None:
    objects = helm.objects(*ON)
    spec = one(objects, "CronJob", "q-quorate-report")["spec"]
    pod = pod_of(objects)

    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 3600
    assert set(pod["containers"][0]["resources"]["limits"]) == {"cpu", "memory"}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["scratch"]["emptyDir"]["sizeLimit"]


def test_the_pod_of_the_example_sees_the_pages(helm: Helm) -> None:
    template = pod_of(helm.objects(*ON))
    pod = yaml.safe_load((ROOT / "deploy" / "examples" / "report-pod.yaml").read_text())["spec"]

    assert pod["securityContext"] == template["securityContext"]
    assert pod["containers"][0]["securityContext"] == VALUES["securityContext"]
    volumes = {volume["name"]: volume for volume in template["volumes"]}
    assert pod["volumes"] == [volumes["reports"]]
