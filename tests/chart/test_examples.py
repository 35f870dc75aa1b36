"""deploy/examples: what the documents tell people to apply fits what the chart installs."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.chart.rendering import CHART, ROOT, Helm, one

EXAMPLES = ROOT / "deploy" / "examples"


def load(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def test_the_pod_for_a_rescue_has_the_disk_and_the_files_of_a_controller(helm: Helm) -> None:
    objects = helm.objects("--values", CHART / "ci" / "tls-values.yaml")
    template = one(objects, "StatefulSet")["spec"]["template"]["spec"]
    controller = template["containers"][0]
    pod = one(load("rescue-pod.yaml"), "Pod")["spec"]

    assert pod["securityContext"] == template["securityContext"]
    rescue = pod["containers"][0]
    assert rescue["securityContext"] == controller["securityContext"]
    paths = {mount["name"]: mount["mountPath"] for mount in controller["volumeMounts"]}
    assert {mount["name"]: mount["mountPath"] for mount in rescue["volumeMounts"]} == paths
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    given = {volume["name"]: volume for volume in template["volumes"]}
    assert volumes["config"] == given["config"]
    assert volumes["tls"]["secret"]["secretName"] == given["tls"]["secret"]["secretName"]
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "data-q-quorate-1"
    told = {each["name"]: each.get("value", "") for each in controller["env"]}
    listeners = told["QUORATE_ADVERTISED_LISTENERS"].replace("$(POD_NAME)", "q-quorate-1")
    assert {each["name"]: each["value"] for each in rescue["env"]} == {
        "QUORATE_NODE_ID": "1",
        "QUORATE_ADVERTISED_LISTENERS": listeners,
    }


def test_spans_find_the_jaeger_of_the_example(helm: Helm) -> None:
    service = one(load("jaeger.yaml"), "Service")
    objects = helm.objects("--values", CHART / "ci" / "tracing-values.yaml")
    controller = one(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    told = {each["name"]: each.get("value") for each in controller["env"]}

    metadata, port = service["metadata"], service["spec"]["ports"][0]["port"]
    address = f"http://{metadata['name']}.{metadata['namespace']}.svc:{port}"
    assert told["OTEL_EXPORTER_OTLP_ENDPOINT"] == address
    assert address in (ROOT / "README.md").read_text()


def test_the_readme_installs_once_jaeger_is_ready() -> None:
    deployment = one(load("jaeger.yaml"), "Deployment")
    jaeger = deployment["spec"]["template"]["spec"]["containers"][0]
    metadata = deployment["metadata"]
    waiting = f"kubectl -n {metadata['namespace']} rollout status deployment/{metadata['name']}"

    ports = {port["name"] for port in jaeger["ports"]}
    assert jaeger["readinessProbe"]["httpGet"]["port"] in ports
    text = (ROOT / "README.md").read_text()
    assert text.index("kubectl apply -f deploy/examples/jaeger.yaml") < text.index(waiting)
    assert text.index(waiting) < text.index("helm install q deploy/helm/quorate")


def test_the_command_of_the_readme_installs(helm: Helm) -> None:
    text = (ROOT / "README.md").read_text()
    found = re.search(
        r"^helm install q deploy/helm/quorate --wait --set (\S+)$", text, re.MULTILINE
    )
    assert found is not None
    objects = helm.objects("--set", found[1])

    # `helm install --wait` waits for the operator, which is ready when the controllers are.
    assert one(objects, "Deployment", "q-quorate-autojoin")
    spec = one(objects, "StatefulSet", "q-quorate")["spec"]
    assert spec["template"]["spec"]["containers"][0]["image"] == "localhost/quorate:dev"
    for word in ("image TAG=localhost/quorate:dev", "kubectl delete pod q-quorate-0"):
        assert word in text
