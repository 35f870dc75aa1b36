"""files/issue.py, as its Job runs it: certificates are made once, kept, and renewed in time."""

from __future__ import annotations

import base64
import datetime as dt
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

from tests.chart.api_server import ApiServer
from tests.chart.rendering import CHART, Helm, one

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CRT, CA = "tls.crt", "ca.crt"


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[ApiServer]:
    with ApiServer(tmp_path) as server:
        yield server


@pytest.fixture
def environment(helm: Helm) -> dict[str, str]:
    """The environment of the Job's container."""
    objects = helm.objects("--values", CHART / "ci" / "tls-values.yaml")
    container = one(objects, "Job", "q-quorate-issuer")["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "/etc/quorate/issuer/issue.py"]
    return {each["name"]: each["value"] for each in container["env"]}


def issue(server: ApiServer, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHART / "files" / "issue.py"],
        env={**environment, **server.environment, "ACCOUNT": str(server.account)},
        capture_output=True,
        text=True,
        check=False,
    )


def held(secret: dict[str, Any], key: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"][key]))


def test_what_is_missing_is_made(api_server: ApiServer, environment: dict[str, str]) -> None:
    done = issue(api_server, environment)

    assert done.returncode == 0, done.stderr
    assert set(api_server.secrets) == {"q-quorate-ca", "q-quorate-tls"}
    own, authority = api_server.secrets["q-quorate-tls"], api_server.secrets["q-quorate-ca"]
    assert own["type"] == "kubernetes.io/tls"
    assert own["metadata"]["labels"]["app.kubernetes.io/instance"] == "q"
    certificate = held(own, CRT)
    certificate.verify_directly_issued_by(held(authority, CRT))
    assert held(own, CA) == held(authority, CRT)
    assert "tls.key" in own["data"]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == json.loads(environment["DNS_NAMES"])
    assert certificate.subject.rfc4514_string() == "CN=q-quorate"
    valid_for = certificate.not_valid_after_utc - dt.datetime.now(dt.UTC)
    assert dt.timedelta(days=3649) < valid_for < dt.timedelta(days=3650)


def test_what_is_there_stays(api_server: ApiServer, environment: dict[str, str]) -> None:
    issue(api_server, environment)
    kept = dict(api_server.secrets)
    api_server.calls.clear()

    done = issue(api_server, environment)

    assert done.returncode == 0, done.stderr
    assert api_server.secrets == kept
    assert [call.split()[0] for call in api_server.calls] == ["GET"]


@pytest.mark.parametrize("why", ["it ends soon", "it lacks a name"])
def test_a_certificate_is_replaced_by_one_of_the_same_authority(
    api_server: ApiServer, environment: dict[str, str], why: str
) -> None:
    # An hour has gone when it begins, so of one day less than two thirds are left after 15 hours:
    # one that is good for no day has ended.
    validity = {"VALIDITY_DAYS": "0"} if why == "it ends soon" else {"DNS_NAMES": '["localhost"]'}
    issue(api_server, environment | validity)
    authority = api_server.secrets["q-quorate-ca"]
    before = held(api_server.secrets["q-quorate-tls"], CRT)

    done = issue(api_server, environment)

    assert "q-quorate-tls is replaced" in done.stdout, done.stderr
    after = held(api_server.secrets["q-quorate-tls"], CRT)
    assert after.serial_number != before.serial_number
    after.verify_directly_issued_by(held(authority, CRT))
    assert api_server.secrets["q-quorate-ca"] == authority


def names_below(*domains: str) -> list[str]:
    """The names in a certificate of a revision with these domains."""
    heads = ("*.q-quorate-headless", "q-quorate-headless", "q-quorate")
    return [f"{head}.default.svc.{domain}" for domain in domains for head in heads]


@pytest.mark.parametrize(
    ("domains", "expected"),
    [
        (["a", "b"], ["b", "a"]),
        (["a", "cluster.local"], ["cluster.local", "a"]),
        (["a", "b", "a"], ["b", "a"]),
        (["a", "b", "a", "c"], ["c", "b", "a"]),
        (["a", "b", "c", "d"], ["d", "c", "b"]),
    ],
)
def test_names_that_pods_still_have_stay_in_the_certificate(
    api_server: ApiServer, environment: dict[str, str], domains: list[str], expected: list[str]
) -> None:
    """A change of the domain takes a while, and may be taken back before it is complete."""
    for domain in domains:
        wanted = [*names_below(domain), "localhost"]
        done = issue(api_server, environment | {"DNS_NAMES": json.dumps(wanted)})
        assert done.returncode == 0, done.stderr

    certificate = held(api_server.secrets["q-quorate-tls"], CRT)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == {"localhost", *names_below(*expected)}


def test_names_of_nothing_of_this_release_go(
    api_server: ApiServer, environment: dict[str, str]
) -> None:
    for name in ("q-quorate.other.svc.a", "gone.example", "q-quorate.default.svc"):
        issue(api_server, environment | {"DNS_NAMES": json.dumps([name])})

    certificate = held(api_server.secrets["q-quorate-tls"], CRT)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["q-quorate.default.svc"]


def test_without_its_authority_a_certificate_is_not_replaced(
    api_server: ApiServer, environment: dict[str, str]
) -> None:
    issue(api_server, environment | {"VALIDITY_DAYS": "0"})
    kept = api_server.secrets["q-quorate-tls"]
    del api_server.secrets["q-quorate-ca"]

    done = issue(api_server, environment)

    assert done.returncode == 1
    assert "q-quorate-ca, which issued it, is gone" in done.stderr
    assert api_server.secrets == {"q-quorate-tls": kept}


def test_the_job_may_make_secrets_and_touch_its_own_two_only(helm: Helm) -> None:
    objects = helm.objects("--values", CHART / "ci" / "tls-values.yaml")

    rules = one(objects, "Role", "q-quorate-issuer")["rules"]
    allowed = {(verb, *rule.get("resourceNames", ())) for rule in rules for verb in rule["verbs"]}
    assert allowed == {
        ("get", "q-quorate-tls", "q-quorate-ca"),
        ("update", "q-quorate-tls"),
        ("create",),
    }
    for kind in ("Job", "Role", "RoleBinding", "ServiceAccount", "ConfigMap"):
        hook = one(objects, kind, "q-quorate-issuer")["metadata"]["annotations"]
        assert hook["helm.sh/hook"] == "pre-install,pre-upgrade"
    # Nothing is drawn while a chart is rendered: two renderings are the same.
    assert not [each for each in objects if each["kind"] == "Secret"]
