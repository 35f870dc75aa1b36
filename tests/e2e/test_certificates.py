"""The certificate of a quorum with mutual TLS is exchanged while a client commits all the time."""

from __future__ import annotations

import base64
import datetime as dt
import json
import logging
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.e2e.cluster import wait_for
from tests.e2e.committing import Committing
from tests.e2e.operating import installed

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster, Release

pytestmark = pytest.mark.weekly
log = logging.getLogger(__name__)
# A kubelet brings a Secret to its pods within its period of a minute and what it caches; sooner to
# a pod of which an annotation has changed.
ROTATED_WITHIN_S = 600.0
PORTS = (9094, 9095)
# What servers show to their clients: a serial number a line.
SHOWN = """
import ssl, sys
context = ssl.create_default_context(cafile="/etc/quorate/tls/ca.crt")
context.load_cert_chain("/etc/quorate/tls/tls.crt", "/etc/quorate/tls/tls.key")
import socket
for server in sys.argv[1:]:
    host, _, port = server.partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        with context.wrap_socket(raw, server_hostname=host) as connection:
            print(int(connection.getpeercert()["serialNumber"], 16))
"""


def read_secret(cluster: Cluster, name: str) -> dict[str, bytes]:
    """The content of a Secret."""
    data = cluster.get("secrets", name)["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}


def successor(current: bytes, authority: dict[str, bytes]) -> tuple[x509.Certificate, bytes]:
    """Another certificate for the same names, of the same authority; and its key."""
    old = x509.load_pem_x509_certificate(current)
    issuer = x509.load_pem_x509_certificate(authority["tls.crt"])
    issuers_key = serialization.load_pem_private_key(authority["tls.key"], None)
    assert isinstance(issuers_key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=30))
    )
    for found in old.extensions:
        builder = builder.add_extension(found.value, critical=found.critical)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return builder.sign(issuers_key, hashes.SHA256()), pem


def shown(release: Release) -> dict[str, int]:
    """The serial numbers of what all pods present at each port."""
    headless = f"{release.fullname}-headless.{release.cluster.namespace}.svc"
    hosts = [f"{release.fullname}-{ordinal}.{headless}" for ordinal in range(3)]
    servers = [f"{host}:{port}" for host in hosts for port in PORTS]
    text = release.execute("/opt/quorate/bin/python", "-c", SHOWN, *servers)
    return dict(zip(servers, map(int, text.split()), strict=True))


def test_a_new_certificate_is_taken_without_a_restart(cluster: Cluster) -> None:
    release, operator = installed(cluster, "tls.enabled=true")
    before = release.status()
    pods = release.pod_uids()
    secret = f"{release.fullname}-tls"
    authority = read_secret(cluster, f"{release.fullname}-ca")
    certificate, key = successor(read_secret(cluster, secret)["tls.crt"], authority)

    with Committing(release) as committing:
        new = {"tls.crt": certificate.public_bytes(serialization.Encoding.PEM), "tls.key": key}
        data = {name: base64.b64encode(value).decode() for name, value in new.items()}
        cluster.kubectl("patch", "secret", secret, "--patch", json.dumps({"data": data}))
        cluster.kubectl("annotate", "pod", "--selector", release.controllers, "e2e=rotated")

        def all_show_it() -> bool | str:
            serials = shown(release)
            old = [where for where, it in serials.items() if it != certificate.serial_number]
            return not old or f"old at {old}"

        took_s = wait_for("the new certificate", ROTATED_WITHIN_S, all_show_it)
        log.info(f"all six ports present the new certificate after {took_s:.1f} s")
        # The operator, the load and the command line call with it.
        operator.await_rest(0, 1, 2)

    log.info(f"longest time without a commit: {committing.judge():.2f} s")
    after = release.status()
    assert release.pod_uids() == pods
    assert (after["LeaderId"], after["LeaderEpoch"]) == (before["LeaderId"], before["LeaderEpoch"])
    assert all(
        status["restartCount"] == 0
        for pod in release.pods()
        for status in pod["status"]["containerStatuses"]
    )
