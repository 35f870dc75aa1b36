"""Creates the CA and the certificate of a quorum as Secrets, and renews the certificate.

    python issue.py

It runs before an installation and before an upgrade. The Secret NAME-tls holds the certificate that
all controllers, sidecars and the operator present. The Secret NAME-ca holds the CA that issues it,
its successors and the certificates of clients. Existing Secrets are kept. Only a certificate in the
last third of its validity, or one that lacks a name, is replaced. The same CA issues the new one,
so all processes load it without a restart.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ACCOUNT = Path(os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
TIMEOUT_S = 10
AUTHORITY_FOR = dt.timedelta(days=3650)
# A certificate is valid from this long before it is issued: the clock of a peer may be behind.
EARLIER = dt.timedelta(hours=1)
NOT_FOUND = 404
# Former cluster domains whose names a certificate keeps: the previous one, and the one before it,
# since a rolling update to the previous one may not have ended.
OLDER_DOMAINS = 2
Pair = dict[str, bytes]


class Secrets:
    """Reads and writes the Secrets of one namespace by the API server."""

    def __init__(self, namespace: str, labels: dict[str, str]) -> None:
        host, port = (os.environ[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
        server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._url = f"https://{server}/api/v1/namespaces/{namespace}/secrets"
        self._labels = labels
        self._tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))

    def _call(self, method: str, path: str, body: dict[str, object] | None = None) -> dict:
        headers = {
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._tls) as answer:
            return json.load(answer)

    def read(self, name: str) -> tuple[Pair, str]:
        """The data of a Secret and its resource version; ({}, "") if it does not exist."""
        try:
            found = self._call("GET", f"/{name}")
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND:
                return {}, ""
            raise
        data = {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}
        return data, found["metadata"]["resourceVersion"]

    def write(self, name: str, data: Pair, version: str) -> None:
        """Create a Secret, or replace it if it still has this version; "" creates it.

        Raises HTTPError if another client has created or changed it.
        """
        metadata: dict[str, object] = {"name": name, "labels": self._labels}
        if version:
            metadata["resourceVersion"] = version
        body: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": metadata,
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        self._call("PUT" if version else "POST", f"/{name}" if version else "", body)


def name_of(text: str) -> x509.Name:
    """A subject with a common name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def pem_of(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    """A certificate and its key as PEM, with the keys of a Secret of type kubernetes.io/tls."""
    own = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {"tls.crt": certificate.public_bytes(serialization.Encoding.PEM), "tls.key": own}


def make_authority(name: str) -> Pair:
    """A certificate that vouches for others, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        begun(name_of(name), name_of(name), key, AUTHORITY_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage_of(vouches=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return pem_of(certificate, key)


def issue(authority: Pair, name: str, dns_names: list[str], valid_for: dt.timedelta) -> Pair:
    """A certificate for servers and clients, its key, and the authority that vouches for it."""
    issuer = x509.load_pem_x509_certificate(authority["tls.crt"])
    # A user may have created the CA, with an RSA key.
    issuers_key = serialization.load_pem_private_key(authority["tls.key"], None)
    key = ec.generate_private_key(ec.SECP256R1())
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    names = [*(x509.DNSName(each) for each in dns_names), loopback]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        begun(name_of(name), issuer.subject, key, valid_for)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(usage_of(vouches=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), critical=False
        )
        .sign(issuers_key, hashes.SHA256())
    )
    return pem_of(certificate, key) | {"ca.crt": authority["tls.crt"]}


def begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid_for: dt.timedelta,
) -> x509.CertificateBuilder:
    """A builder with the fields that certificates of a CA and of a controller have in common."""
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + valid_for)
    )


def usage_of(*, vouches: bool) -> x509.KeyUsage:
    """The key usage of a CA, which signs certificates, or else of a peer in TLS handshakes."""
    return x509.KeyUsage(
        digital_signature=not vouches,
        key_cert_sign=vouches,
        crl_sign=vouches,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def names_in(certificate: bytes) -> list[str]:
    """The DNS names of a certificate, in their order in it."""
    found = x509.load_pem_x509_certificate(certificate)
    named = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return named.get_values_for_type(x509.DNSName)


def is_good(certificate: bytes, dns_names: list[str]) -> bool:
    """True if a certificate is in the first two thirds of its validity and has all these names."""
    found = x509.load_pem_x509_certificate(certificate)
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    is_young = dt.datetime.now(dt.UTC) < ends - (ends - begins) / 3
    return is_young and set(names_in(certificate)) >= set(dns_names)


def older_names(kept: list[str], wanted: list[str], name: str, namespace: str) -> list[str]:
    """DNS names in former cluster domains: peers call pods by them until they have restarted."""
    begin = f"{name}.{namespace}.svc."
    heads = [f"*.{name}-headless", f"{name}-headless", name]
    domains = [each.removeprefix(begin) for each in kept if each.startswith(begin)]
    older = [domain for domain in domains if f"{begin}{domain}" not in wanted][:OLDER_DOMAINS]
    names = [f"{head}.{namespace}.svc.{domain}" for domain in older for head in heads]
    return [each for each in names if each not in wanted]


def main() -> int:
    """Create what is missing; 1 if the certificate must be replaced but its CA does not exist."""
    name = os.environ["NAME"]
    dns_names = json.loads(os.environ["DNS_NAMES"])
    secrets = Secrets(os.environ["NAMESPACE"], json.loads(os.environ["LABELS"]))
    kept, version = secrets.read(f"{name}-tls")
    if "tls.crt" in kept and is_good(kept["tls.crt"], dns_names):
        print(f"{name}-tls is good, and stays as it is")
        return 0
    authority, _ = secrets.read(f"{name}-ca")
    if version and not authority:
        print(
            f"{name}-tls has to be replaced, and {name}-ca, which issued it, is gone: restore it,"
            f" or delete {name}-tls, too, and give every client the new ca.crt",
            file=sys.stderr,
        )
        return 1
    if not authority:
        authority = make_authority(f"{name}-ca")
        secrets.write(f"{name}-ca", authority, "")
        print(f"{name}-ca is new")
    if "tls.crt" in kept:
        # During a rolling update, pods of the previous revision still use the previous names.
        known = names_in(kept["tls.crt"])
        dns_names += older_names(known, dns_names, name, os.environ["NAMESPACE"])
    valid_for = dt.timedelta(days=int(os.environ["VALIDITY_DAYS"]))
    secrets.write(f"{name}-tls", issue(authority, name, dns_names, valid_for), version)
    print(f"{name}-tls is {'replaced' if version else 'new'}, and good for {valid_for.days} days")
    return 0


if __name__ == "__main__":
    sys.exit(main())
