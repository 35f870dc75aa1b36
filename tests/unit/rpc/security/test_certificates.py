"""The content of a certificate, refused certificates, and the time of expiry warnings."""

from __future__ import annotations

import base64
import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from quorate.rpc.security.certificates import (
    CertificateError,
    ExpiryWatch,
    check_dates,
    expiry_threshold,
    format_time,
    principal_of,
    read_certificates,
    read_pair,
)
from tests.certificates import COMMON_NAME, DAY, UNREADABLE, Authority

AUTHORITY = Authority()
END = dt.datetime(2026, 12, 24, 12, tzinfo=dt.UTC)


def encrypted(key: bytes, password: bytes) -> bytes:
    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )


def test_a_principal_is_the_subject_as_rfc_2253_writes_it() -> None:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Übersee, Söhne + Co"),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "quorate"),
            x509.NameAttribute(NameOID.COMMON_NAME, "controller-1"),
        ]
    )
    leaf = AUTHORITY.leaf(subject)
    principal = r"User:CN=controller-1,OU=quorate,O=Übersee\, Söhne \+ Co,C=DE"
    assert principal_of(leaf.certificate) == principal
    assert read_pair(leaf.certificate, leaf.key).principal == principal


@pytest.mark.parametrize("after", UNREADABLE)
def test_a_subject_that_is_no_text_names_nobody(after: bytes) -> None:
    leaf = AUTHORITY.patched(AUTHORITY.leaf("Mxller"), COMMON_NAME, after)
    words = "the subject of the certificate cannot be read as text .* of UTF8String"
    for _ in range(2):
        with pytest.raises(CertificateError, match=words):
            principal_of(leaf.certificate)
    with pytest.raises(CertificateError, match=words):
        read_pair(leaf.certificate, leaf.key)


def test_what_is_no_certificate_names_nobody() -> None:
    with pytest.raises(CertificateError, match="the certificate cannot be read: "):
        principal_of(b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")


def test_chain_and_key_may_share_a_file_and_are_told_apart() -> None:
    leaf = AUTHORITY.leaf("a")
    both = leaf.key + leaf.certificate + AUTHORITY.pem
    pair = read_pair(both, both)
    assert pair.chain_pem == leaf.certificate + AUTHORITY.pem
    assert pair.key_pem == leaf.key
    assert pair.not_before < pair.not_after


def test_an_encrypted_key_is_opened_with_its_password() -> None:
    leaf = AUTHORITY.leaf("a")
    locked = encrypted(leaf.key, b"open sesame")
    assert read_pair(leaf.certificate, locked, "open sesame").key_pem == leaf.key
    # A password that is not needed does no harm.
    assert read_pair(leaf.certificate, leaf.key, "open sesame").key_pem == leaf.key


def test_what_is_no_pair_is_refused_with_the_remedy() -> None:
    one, another = AUTHORITY.leaf("a"), AUTHORITY.leaf("b")
    locked = encrypted(one.key, b"x")
    cases = [
        (b"", one.key, "", "BEGIN CERTIFICATE"),
        (one.certificate, b"", "", "BEGIN PRIVATE KEY"),
        (one.certificate, one.certificate, "", "BEGIN PRIVATE KEY"),
        (one.certificate, another.key, "", "does not belong to the private key"),
        (AUTHORITY.pem + one.certificate, one.key, "", "put the own certificate first"),
        (one.certificate, locked, "", "set ssl.key.password"),
        (one.certificate, locked, "y", "check ssl.key.password"),
    ]
    for chain, key, password, words in cases:
        with pytest.raises(CertificateError, match=words):
            read_pair(chain, key, password)


def test_a_certificate_of_an_unknown_kind_is_refused() -> None:
    leaf = AUTHORITY.leaf("a")
    known, unknown = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d03017f")
    der = x509.load_pem_x509_certificate(leaf.certificate).public_bytes(serialization.Encoding.DER)
    assert known in der
    altered = base64.encodebytes(der.replace(known, unknown)).decode()
    pem = f"-----BEGIN CERTIFICATE-----\n{altered}-----END CERTIFICATE-----\n".encode()
    with pytest.raises(CertificateError, match="the certificate is of no use"):
        read_pair(pem, leaf.key)


def test_a_trust_store_holds_every_certificate_of_its_file() -> None:
    assert len(read_certificates(AUTHORITY.pem + Authority("b").pem)) == 2
    with pytest.raises(CertificateError, match="no certificate in it"):
        read_certificates(b"-----BEGIN CERTIFICATE-----\n")


def test_a_certificate_holds_from_its_first_moment_to_its_last() -> None:
    leaf = AUTHORITY.leaf("a")
    pair = read_pair(leaf.certificate, leaf.key)
    check_dates(pair, pair.not_before)
    check_dates(pair, pair.not_after - dt.timedelta(seconds=1))
    with pytest.raises(CertificateError, match=rf"User:CN=a expired on {pair.not_after:%F}.*renew"):
        check_dates(pair, pair.not_after)
    with pytest.raises(CertificateError, match=r"not valid before .*check the clock"):
        check_dates(pair, pair.not_before - dt.timedelta(seconds=1))


def test_times_are_written_in_utc() -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    assert format_time(dt.datetime(2026, 1, 1, 1, tzinfo=east)) == "2025-12-31T23:00:00Z"


@pytest.mark.parametrize(
    ("left", "threshold"),
    [
        (15 * DAY, None),
        (14 * DAY + dt.timedelta(seconds=1), None),
        (14 * DAY, 14),
        (8 * DAY, 14),
        (7 * DAY, 7),
        (1.5 * DAY, 7),
        (DAY, 1),
        (dt.timedelta(seconds=1), 1),
        (dt.timedelta(0), 0),
        (-DAY, 0),
    ],
)
def test_the_end_is_near_by_thresholds(left: dt.timedelta, threshold: int | None) -> None:
    assert expiry_threshold(END, END - left) == threshold


def test_each_threshold_of_a_certificate_is_told_once() -> None:
    watch = ExpiryWatch()
    days_left = [20, 14, 13, 7, 7, 2, 1, 0.5, 0, -1]
    told = [watch.check(END, END - left * DAY) for left in days_left]
    assert told == [None, 14, None, 7, None, None, 1, None, 0, None]
    # A renewed certificate starts over, also one that ends soon.
    assert watch.check(END + 6 * DAY, END) == 7
