"""Certificates are read at the start, reloaded when they change, and kept when that fails."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import pytest

from quorate.rpc.security.tls_files import TlsFiles
from quorate.settings.tls import TlsError, TlsSettings
from tests.certificates import DAY, Authority, Leaf

if TYPE_CHECKING:
    from pathlib import Path

AUTHORITY = Authority()


@dataclass
class Clocks:
    """Both clocks, moved by hand."""

    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    monotonic_s: float = 0.0

    def watch(self, settings: TlsSettings) -> TlsFiles:
        return TlsFiles(settings, now=lambda: self.now, monotonic_s=lambda: self.monotonic_s)


@dataclass
class Store:
    """The files of one party."""

    folder: Path

    @property
    def settings(self) -> TlsSettings:
        keystore = str(self.folder / "tls.pem")
        return TlsSettings(
            certificate_chain_file=keystore, key_file=keystore, ca_file=str(self.folder / "ca.pem")
        )

    def put(self, leaf: Leaf, authorities: bytes = AUTHORITY.pem) -> None:
        self.folder.mkdir(exist_ok=True)
        leaf.write(self.folder / "tls.pem")
        (self.folder / "ca.pem").write_bytes(authorities)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    one = Store(tmp_path / "tls")
    one.put(AUTHORITY.leaf("a"))
    return one


def names(files: TlsFiles) -> tuple[int, str | None]:
    material = files.current()
    return material.generation, None if material.pair is None else material.pair.principal


def test_a_change_is_seen_at_the_next_look(store: Store) -> None:
    clocks = Clocks()
    files = clocks.watch(store.settings)
    store.put(AUTHORITY.leaf("b"))
    clocks.monotonic_s = 0.9
    assert names(files) == (1, "User:CN=a")
    clocks.monotonic_s = 1.0
    assert names(files) == (2, "User:CN=b")
    clocks.monotonic_s = 2.0
    assert names(files) == (2, "User:CN=b")


def test_a_new_trust_store_is_a_change_too(store: Store) -> None:
    clocks = Clocks()
    files = clocks.watch(store.settings)
    bundle = AUTHORITY.pem + Authority("next").pem
    (store.folder / "ca.pem").write_bytes(bundle)
    clocks.monotonic_s = 1.0
    assert (files.current().generation, files.current().authorities_pem) == (2, bundle)


def test_a_byte_order_mark_before_a_certificate_is_skipped(store: Store) -> None:
    for name in ("tls.pem", "ca.pem"):
        path = store.folder / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    files = TlsFiles(store.settings)
    assert names(files) == (1, "User:CN=a")
    assert files.current().authorities_pem == AUTHORITY.pem


def test_a_swapped_symbolic_link_is_a_change(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Store(tmp_path / name).put(AUTHORITY.leaf(name))
    mounted, swapped = tmp_path / "tls", tmp_path / "next"
    mounted.symlink_to("a")
    clocks = Clocks()
    files = clocks.watch(Store(mounted).settings)
    swapped.symlink_to("b")
    swapped.rename(mounted)
    clocks.monotonic_s = 1.0
    assert names(files) == (2, "User:CN=b")


@pytest.mark.parametrize("kind", ["no PEM", "another key", "expired", "gone"])
def test_a_broken_pair_is_logged_once_and_the_old_one_stays(
    store: Store, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    clocks = Clocks()
    files = clocks.watch(store.settings)
    a, b = AUTHORITY.leaf("a"), AUTHORITY.leaf("b")
    match kind:
        case "no PEM":
            (store.folder / "tls.pem").write_bytes(b"soon")
        case "another key":
            store.put(Leaf(a.certificate, b.key))
        case "expired":
            store.put(AUTHORITY.leaf("b", valid_for=-DAY))
        case _:
            (store.folder / "tls.pem").unlink()
    with caplog.at_level(logging.INFO):
        for moment in (1.0, 2.0, 3.0):
            clocks.monotonic_s = moment
            assert names(files) == (1, "User:CN=a")
        said = [record.getMessage() for record in caplog.records]
        assert len(said) == 1
        assert f"the old ones stay: ssl.keystore.location {store.folder / 'tls.pem'}: " in said[0]
        store.put(b)
        clocks.monotonic_s = 4.0
        assert names(files) == (2, "User:CN=b")
    assert caplog.records[-1].getMessage() == "certificates were read anew"


def test_unusable_files_are_an_error_at_the_start(store: Store) -> None:
    (store.folder / "ca.pem").write_bytes(b"")
    with pytest.raises(TlsError, match=r"ssl.truststore.location .*ca.pem: there is no certif"):
        TlsFiles(store.settings)
    store.put(AUTHORITY.leaf("late", valid_for=-DAY))
    with pytest.raises(TlsError, match=r"ssl.keystore.location .*tls.pem: .* expired on"):
        TlsFiles(store.settings)
    (store.folder / "tls.pem").unlink()
    with pytest.raises(TlsError, match=r"tls.pem: No such file or directory: name a readable PEM"):
        TlsFiles(store.settings)


def test_errors_of_the_key_name_its_file(tmp_path: Path) -> None:
    chain, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    chain.write_bytes(AUTHORITY.leaf("a").certificate)
    key.write_bytes(b"")
    settings = TlsSettings(certificate_chain_file=str(chain), key_file=str(key))
    with pytest.raises(TlsError, match=r"ssl.keystore.key.location .*tls.key: there is no private"):
        TlsFiles(settings)


def test_a_client_needs_no_certificate_of_its_own() -> None:
    files = TlsFiles(TlsSettings())
    assert names(files) == (1, None)
    assert isinstance(files.channel_credentials(), grpc.ChannelCredentials)
    assert files.expiry_warning() is None


def test_expiry_is_pointed_out_14_7_and_1_days_ahead_and_at_the_end(store: Store) -> None:
    clocks = Clocks()
    store.put(AUTHORITY.leaf("a", valid_for=20 * DAY))
    files = clocks.watch(store.settings)
    pair = files.current().pair
    assert pair is not None
    start, end, told = clocks.now, pair.not_after, []
    for day in range(22):
        clocks.now = start + day * DAY + dt.timedelta(minutes=1)
        warning = files.expiry_warning()
        if warning is not None:
            told.append((day, warning.split(str(store.folder / "tls.pem ") + "")[-1][:18]))
    assert [day for day, _ in told] == [6, 13, 19, 20]
    assert [words for _, words in told] == [
        "expires within 14 ",
        "expires within 7 d",
        "expires within 1 d",
        f"expired on {end:%F}"[:18],
    ]
