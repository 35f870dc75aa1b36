"""Manifests of the chart: safe to restart, to scale and to read, with every ci/*-values.yaml."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.chart.rendering import CASES, CHART, CONFORM, ROOT, Helm, one
from tests.lacking import lack

if TYPE_CHECKING:
    from pathlib import Path

case = pytest.mark.parametrize("values", CASES, ids=lambda path: path.name.partition("-values")[0])


def container(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    spec = one(objects, "StatefulSet")["spec"]["template"]["spec"]
    both = [*spec["initContainers"], *spec["containers"]]
    return next(c for c in both if c["name"] == name)


@case
def test_helm_lint_finds_nothing(helm: Helm, values: Path) -> None:
    done = helm.run("lint", "--strict", CHART, "--values", values)

    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@case
def test_the_manifests_conform_to_the_schemas_of_kubernetes(helm: Helm, values: Path) -> None:
    command = os.environ.get(CONFORM)
    if not command:
        lack(
            f"schemas are needed: {CONFORM}='kubeconform -strict -ignore-missing-schemas -' make"
            " test"
        )
    assert command is not None
    done = subprocess.run(
        shlex.split(command),
        input=helm.render("--values", values),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@case
def test_pods_are_restricted(helm: Helm, values: Path) -> None:
    """As the `restricted` pod security standard wants it, and without an account's token."""
    ours = (
        "format",
        "admin",
        "controller",
        "backup",
        "commit",
        "autojoin",
        "issuer",
        "report",
        "rollback",
    )
    for manifest in helm.objects("--values", values):
        spec = manifest.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        pod = spec if manifest["kind"] == "Pod" else spec.get("template", {}).get("spec")
        if pod is None:
            continue
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for item in [*pod.get("initContainers", []), *pod["containers"]]:
            if item["name"] not in ours:
                continue
            assert item["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert item["resources"]["requests"]


def test_controllers_start_together_and_find_each_other_before_they_are_ready(helm: Helm) -> None:
    objects = helm.objects()

    assert one(objects, "StatefulSet")["spec"]["podManagementPolicy"] == "Parallel"
    headless = one(objects, "Service", "q-quorate-headless")["spec"]
    assert headless["publishNotReadyAddresses"] is True
    assert headless["clusterIP"] == "None"
    assert "publishNotReadyAddresses" not in one(objects, "Service", "q-quorate")["spec"]


def test_each_pod_is_told_its_own_name_and_id(helm: Helm) -> None:
    environment = {e["name"]: e for e in container(helm.objects(), "controller")["env"]}

    index = "metadata.labels['apps.kubernetes.io/pod-index']"
    assert environment["QUORATE_NODE_ID"]["valueFrom"]["fieldRef"]["fieldPath"] == index
    assert environment["QUORATE_ADVERTISED_LISTENERS"]["value"] == (
        "GRPC://$(POD_NAME).q-quorate-headless.default.svc:9094"
    )


def test_the_sidecar_starts_first_and_outlives_the_controller(helm: Helm) -> None:
    spec = one(helm.objects(), "StatefulSet")["spec"]["template"]["spec"]

    assert [c["name"] for c in spec["initContainers"]] == ["format", "admin"]
    assert container(helm.objects(), "admin")["restartPolicy"] == "Always"
    assert "restartPolicy" not in container(helm.objects(), "format")


def test_before_a_controller_stops_its_sidecar_is_asked(helm: Helm) -> None:
    objects = helm.objects("--set", "terminationGracePeriodSeconds=90")

    hook = container(objects, "controller")["lifecycle"]["preStop"]["exec"]["command"]
    assert hook == ["quorate", "prepare-stop", "--timeout-ms=67500"]
    files = one(objects, "ConfigMap", "q-quorate")["data"]
    assert "admin.statefulset=default/q-quorate\n" in files["admin.properties"]


def test_a_pods_account_may_do_no_more_than_format_and_sidecar_need(helm: Helm) -> None:
    objects = helm.objects()

    allowed = [
        (resource, verb, rule.get("resourceNames"))
        for rule in one(objects, "Role", "q-quorate")["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]
    assert allowed == [
        ("statefulsets", "get", ["q-quorate"]),
        ("namespaces", "get", ["default"]),
        ("configmaps", "get", ["q-quorate-bootstrap"]),
        ("configmaps", "create", None),
        ("events", "create", None),
    ]
    subject = one(objects, "RoleBinding", "q-quorate")["subjects"][0]["name"]
    pod = one(objects, "StatefulSet")["spec"]["template"]["spec"]
    assert subject == pod["serviceAccountName"]
    having = [
        c["name"]
        for c in [*pod["initContainers"], *pod["containers"]]
        if "account" in [mount["name"] for mount in c["volumeMounts"]]
    ]
    assert having == ["format", "admin"]


def test_a_pod_is_not_ready_before_it_could_read_its_statefulset(helm: Helm) -> None:
    sidecar = container(helm.objects(), "admin")

    assert sidecar["readinessProbe"]["grpc"] == {"port": 9091, "service": "startup"}
    assert sidecar["livenessProbe"]["grpc"] == {"port": 9091, "service": "liveness"}


@pytest.mark.parametrize("name", ["q-quorate", "q-quorate-autojoin"])
def test_the_way_out_is_closed_only_if_asked_and_not_to_what_pods_need(
    helm: Helm, name: str
) -> None:
    assert one(helm.objects(), "NetworkPolicy", name)["spec"]["policyTypes"] == ["Ingress"]

    collector = '[{"to": [{"podSelector": {}}], "ports": [{"port": 4317}]}]'
    server = '[{"ipBlock": {"cidr": "10.0.0.1/32"}}]'
    spec = one(
        helm.objects(
            *("--set", "networkPolicy.egress.enabled=true"),
            *("--set-json", f"networkPolicy.egress.apiServer={server}"),
            *("--set-json", f"networkPolicy.egress.extra={collector}"),
        ),
        "NetworkPolicy",
        name,
    )["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    names, each_other, api_server, extra = spec["egress"]
    assert names == {"ports": [{"port": 53, "protocol": p} for p in ("UDP", "TCP")]}
    among = each_other["to"][0]["podSelector"]["matchLabels"]
    assert among.items() < spec["podSelector"]["matchLabels"].items()
    assert [port["port"] for port in each_other["ports"]] == [9094, 9095]
    assert api_server == {
        "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
        "ports": [{"port": 443}, {"port": 6443}],
    }
    assert extra["ports"] == [{"port": 4317}]


def test_the_operators_pods_have_a_policy_of_their_own(helm: Helm) -> None:
    objects = helm.objects()
    policy = one(objects, "NetworkPolicy", "q-quorate-autojoin")["spec"]

    deployment = one(objects, "Deployment")["spec"]
    assert policy["podSelector"] == deployment["selector"]
    assert policy["ingress"] == [{"ports": [{"port": "metrics"}]}]
    without = helm.objects("--set", "operator.enabled=false")
    assert one(without, "NetworkPolicy")["metadata"]["name"] == "q-quorate"


def test_scaling_changes_no_pod(helm: Helm) -> None:
    """A list of servers that followed the replicas would make every scaling restart all pods."""
    small = one(helm.objects("--set", "replicaCount=1"), "StatefulSet")["spec"]
    large = one(helm.objects("--set", "replicaCount=7"), "StatefulSet")["spec"]

    assert small.pop("replicas") == 1
    assert large.pop("replicas") == 7
    assert small == large


def test_a_new_setting_restarts_the_pods_and_nothing_else_does(helm: Helm) -> None:
    def checksum(*values: str) -> str:
        words = [word for value in values for word in ("--set", value)]
        template = one(helm.objects(*words), "StatefulSet")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert checksum() == checksum("backup.enabled=true")
    assert checksum() == checksum("pipeline.report.enabled=true")
    assert checksum() != checksum("config.num\\.partitions=3")
    assert checksum("tls.enabled=true") == checksum("tls.enabled=true")


def test_disks_outlive_the_release_and_every_scaling(helm: Helm) -> None:
    objects = helm.objects()

    retention = one(objects, "StatefulSet")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert retention == {"whenScaled": "Retain", "whenDeleted": "Retain"}
    identity = one(objects, "ConfigMap", "q-quorate-cluster")
    assert identity["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_one_disruption_at_a_time(helm: Helm) -> None:
    for replicas in (1, 3, 5):
        budget = one(helm.objects("--set", f"replicaCount={replicas}"), "PodDisruptionBudget")
        assert budget["spec"]["maxUnavailable"] == 1
        assert "unhealthyPodEvictionPolicy" not in budget["spec"]


def test_two_releases_share_no_name(helm: Helm) -> None:
    names = [
        {(o["kind"], o["metadata"]["name"]) for o in helm.objects(release=release)}
        for release in ("one", "two")
    ]

    assert not names[0] & names[1]


def test_names_of_pods_fit_into_labels(helm: Helm) -> None:
    release = "a" * 53
    words = ("--set", "backup.enabled=true,pipeline.report.enabled=true")
    objects = helm.objects(*words, release=release)

    for manifest in objects:
        # Jobs are named after their CronJob, with the minute appended.
        length = 52 if manifest["kind"] == "CronJob" else 63
        assert len(manifest["metadata"]["name"]) <= length
    # A pod's hash of its revision is appended to the name of the set.
    assert len(one(objects, "StatefulSet")["metadata"]["name"]) <= 52


def test_tls_is_on_every_port_but_health_and_metrics(helm: Helm) -> None:
    objects = helm.objects("--set", "tls.enabled=true")

    files = one(objects, "ConfigMap", "q-quorate")["data"]
    assert "listener.security.protocol.map=GRPC:GRPC_SSL" in files["controller.properties"]
    assert "ssl.client.auth=required" in files["controller.properties"]
    assert "security.protocol=SSL" in files["admin.properties"]
    assert "admin.controller=localhost:9094" in files["admin.properties"]
    volumes = one(objects, "StatefulSet")["spec"]["template"]["spec"]["volumes"]
    secret = next(each["secret"] for each in volumes if each["name"] == "tls")
    assert secret["secretName"] == "q-quorate-tls"


def test_a_certificate_of_cert_manager_has_the_same_names(helm: Helm) -> None:
    objects = helm.objects("--values", CHART / "ci" / "cert-manager-values.yaml")

    spec = one(objects, "Certificate")["spec"]
    assert "*.q-quorate-headless.default.svc.cluster.local" in spec["dnsNames"]
    assert "q-quorate.default.svc.cluster.local" in spec["dnsNames"]
    assert "localhost" in spec["dnsNames"]
    assert {"server auth", "client auth"} <= set(spec["usages"])
    assert not [o for o in objects if o["kind"] == "Secret"]
    assert one(objects, "Job")["metadata"]["name"] == "q-quorate-rollback"


TRACED = (
    *("tracing.enabled=true", "tracing.endpoint=http://jaeger:4317"),
    *("tracing.fetchRatio=0.01", "tracing.servicePrefix=prod"),
)


def test_all_three_services_are_told_where_spans_go(helm: Helm) -> None:
    words = [word for value in TRACED for word in ("--set", value)]
    objects = helm.objects(*words)

    deployment = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    for service in (container(objects, "controller"), container(objects, "admin"), deployment):
        environment = {each["name"]: each.get("value") for each in service["env"]}
        assert environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://jaeger:4317"
        assert environment["QUORATE_TRACING_SERVICE_PREFIX"] == "prod"
        assert environment["QUORATE_TRACING_FETCH_RATIO"] == "0.01"
        assert environment["QUORATE_TRACING_WRITE_RATIO"] == "0.01"
        assert environment["OTEL_RESOURCE_ATTRIBUTES"] == (
            "k8s.namespace.name=default,k8s.statefulset.name=q-quorate,k8s.pod.name=$(POD_NAME)"
        )
        # Kubernetes expands only what stands before.
        names = list(environment)
        assert names.index("POD_NAME") < names.index("OTEL_RESOURCE_ATTRIBUTES")


def test_without_tracing_nobody_is_told_anything_of_it(helm: Helm) -> None:
    assert "OTEL" not in helm.render()


def metrics_of(text: str) -> set[str]:
    return set(re.findall(r"\bquorate_[a-z0-9_]+", text))


def documented_metrics() -> set[str]:
    """Every series: a histogram has three."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    names = set()
    for name, kind in re.findall(r"\| `(quorate_\w+)` \| (\w+)", text):
        ends = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        names |= {name + end for end in ends}
    return names


def test_alerts_and_the_dashboard_name_metrics_that_exist(helm: Helm) -> None:
    objects = helm.objects("--values", CHART / "ci" / "monitoring-values.yaml")

    rules = one(objects, "PrometheusRule")["spec"]["groups"][0]["rules"]
    named = metrics_of(" ".join(rule["expr"] for rule in rules))
    named |= metrics_of(one(objects, "ConfigMap", "q-quorate-dashboard")["data"]["quorate.json"])
    assert len(named) > 10
    assert named <= documented_metrics()


def test_every_alert_has_a_runbook_with_four_parts(helm: Helm) -> None:
    objects = helm.objects("--values", CHART / "ci" / "monitoring-values.yaml")

    rules = one(objects, "PrometheusRule")["spec"]["groups"][0]["rules"]
    folder = ROOT / "docs" / "runbooks"
    assert {rule["alert"] for rule in rules} == {path.stem for path in folder.glob("Quorate*.md")}
    for rule in rules:
        text = (folder / f"{rule['alert']}.md").read_text()
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
            *("Meaning", "Impact", "Diagnosis", "Mitigation"),
        ]
        assert rule["annotations"]["runbook_url"].endswith(f"/docs/runbooks/{rule['alert']}.md")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_without_an_operator_controllers_join_and_roll_by_themselves(helm: Helm) -> None:
    objects = helm.objects("--set", "operator.enabled=false")

    assert one(objects, "StatefulSet")["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    settings = one(objects, "ConfigMap", "q-quorate")["data"]["controller.properties"]
    assert "controller.quorum.auto.join.enable=true" in settings
    assert not [each for each in objects if each["kind"] == "Deployment"]


def test_an_operator_alone_changes_the_voters_and_rolls_pods(helm: Helm) -> None:
    objects = helm.objects()

    assert one(objects, "StatefulSet")["spec"]["updateStrategy"] == {"type": "OnDelete"}
    settings = one(objects, "ConfigMap", "q-quorate")["data"]["controller.properties"]
    assert "controller.quorum.auto.join.enable=false" in settings
    deployment = one(objects, "Deployment", "q-quorate-autojoin")["spec"]
    autojoin = deployment["template"]["spec"]["containers"][0]
    environment = {each["name"]: each.get("value") for each in autojoin["env"]}
    assert environment["QUORATE_AUTOJOIN_STATEFULSET"] == "q-quorate"
    # On a busy node it takes its time to start, and must not be killed for it.
    assert autojoin["startupProbe"]["grpc"] == {"port": 9090, "service": "startup"}


def test_the_operator_may_change_only_what_is_its_own(helm: Helm) -> None:
    role = one(helm.objects(), "Role", "q-quorate-autojoin")

    allowed = {
        (resource, verb): rule.get("resourceNames")
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert allowed["statefulsets", "patch"] == ["q-quorate"]
    assert allowed["leases", "update"] == ["q-quorate-autojoin"]
    assert allowed["configmaps", "get"] == ["q-quorate-bootstrap"]
    assert ("configmaps", "delete") not in allowed
    assert ("configmaps", "update") not in allowed
    assert not [resource for resource, _ in allowed if resource in ("secrets", "pods/exec")]


@pytest.mark.parametrize("operator", ["false", "true"])
def test_the_founding_of_the_quorum_is_recorded_with_and_without_an_operator(
    helm: Helm, operator: str
) -> None:
    objects = helm.objects("--set", f"operator.enabled={operator}")

    assert container(objects, "format")["args"] == [
        *("storage", "format", "--config=/etc/quorate/config/controller.properties"),
        *("--cluster-id=$(CLUSTER_ID)", "--statefulset=default/q-quorate"),
    ]


def test_only_format_is_told_where_disks_were_moved_from(helm: Helm) -> None:
    moved = helm.objects("--set", "persistence.movedFrom=prod/q-quorate")

    told = container(moved, "format")["args"]
    assert told == [*container(helm.objects(), "format")["args"], "--moved-from=prod/q-quorate"]
    for name in ("controller", "admin"):
        assert container(moved, name) == container(helm.objects(), name)
