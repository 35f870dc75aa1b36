"""Key stores of the parties of a test, and the clock by which their files are looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.rpc.security.tls_files import POLL_S, TlsFiles
from quorate.settings.tls import ClientAuth, TlsSettings
from tests.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

    from tests.certificates import Leaf


@dataclass
class Stores:
    """A folder with a trust store for all and a key store for each party."""

    folder: Path
    authority: Authority = field(default_factory=Authority)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.trust(self.authority)

    @property
    def truststore(self) -> Path:
        return self.folder / "ca.pem"

    def keystore(self, party: str) -> Path:
        return self.folder / f"{party}.pem"

    def trust(self, *authorities: Authority) -> None:
        """Let all parties trust these from now on."""
        replace(self.truststore, b"".join(one.pem for one in authorities))

    def give(self, party: str, leaf: Leaf | None = None) -> Path:
        """Put a certificate in place, by default a new one of the authority; its path."""
        replace(self.keystore(party), (leaf or self.authority.leaf(party)).pem)
        return self.keystore(party)

    def settings(
        self, party: str | None, client_auth: ClientAuth = ClientAuth.REQUIRED
    ) -> TlsSettings:
        """Those of a party, or of a client that has no certificate."""
        store = "" if party is None else str(self.keystore(party))
        return TlsSettings(
            certificate_chain_file=store,
            key_file=store,
            ca_file=str(self.truststore),
            client_auth=client_auth,
        )

    def files(self, party: str | None) -> TlsFiles:
        """The files that `settings` name; looked at again after `look_again`."""
        return TlsFiles(self.settings(party), monotonic_s=lambda: self.seconds)

    def look_again(self) -> None:
        """Let the time pass after which files are read again."""
        self.seconds += POLL_S


def replace(path: Path, data: bytes) -> None:
    """Write atomically, as every rotation of certificates has to."""
    new = path.with_suffix(".new")
    new.write_bytes(data)
    new.rename(path)
