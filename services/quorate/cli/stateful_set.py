"""The API server's objects that a pod reads and creates before it formats its disk."""

from __future__ import annotations

import json
import urllib.error
from typing import TYPE_CHECKING, Any, Final

from quorate.admin.kube_api import words_of
from quorate.admin.statefulset import GONE, REFUSED, ordinals_of
from quorate.autojoin.bootstrap_record import decode_record, encode_record, labels_of, record_name
from quorate.cli.output import CommandError
from quorate.records.value_types import keyword_value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.admin.statefulset import StatefulSetAddress
    from quorate.autojoin.bootstrap_record import BootstrapRecord

FLAG: Final = "--statefulset"
_CONFLICT: Final = 409


@keyword_value_type
class StatefulSetSeen:
    """The ordinals that a StatefulSet wants and may still have, and its labels for the record."""

    wanted: range
    ordinals: range
    labels: Mapping[str, str]


@keyword_value_type
class StatefulSetObjects:
    """One StatefulSet and the ConfigMap with its bootstrap record.

    Every method raises CommandError that says what the API server answered and what helps.
    """

    address: StatefulSetAddress

    @property
    def name(self) -> str:
        """The name of the StatefulSet."""
        return self.address.name

    @property
    def record_name(self) -> str:
        """The name of the ConfigMap."""
        return record_name(self.name)

    def look(self) -> StatefulSetSeen:
        """Read the StatefulSet as it is now."""
        found = self._call(f"StatefulSet {self.name} cannot be read", self.address.path)
        try:
            labels = found["metadata"].get("labels") or {}
            wanted = ordinals_of(found)
            # Pods that are scaled down or ending count until they no longer exist.
            present = int((found.get("status") or {}).get("replicas") or 0)
            return StatefulSetSeen(
                wanted=wanted,
                ordinals=range(wanted.start, max(wanted.stop, wanted.start + present)),
                labels=labels_of(labels),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CommandError(f"{FLAG}: {self.address} is no StatefulSet: {error!r}") from error

    def read_record(self) -> BootstrapRecord | None:
        """The bootstrap record; None if it does not exist."""
        path = f"{self._config_maps}/{self.record_name}"
        what = f"ConfigMap {self.record_name} cannot be read"
        found = self._call(what, path, none_if=GONE)
        if found is None:
            return None
        try:
            return decode_record(found.get("data") or {}, self.record_name)
        except (ValueError, TypeError, AttributeError) as error:
            raise CommandError(
                f"{FLAG}: {error}: it needs the key clusterId. Delete it and create it again, with"
                " the id of the quorum that there is"
            ) from error

    def create_record(self, record: BootstrapRecord, labels: Mapping[str, str]) -> bool:
        """Create the record permanently; False if it exists already.

        It has no owner, so that it outlives StatefulSet and release.
        """
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "immutable": True,
            "metadata": {"name": self.record_name, "labels": dict(labels)},
            "data": encode_record(record),
        }
        what = f"ConfigMap {self.record_name} cannot be created"
        return self._call(what, self._config_maps, body=body, none_if=_CONFLICT) is not None

    @property
    def _config_maps(self) -> str:
        return f"/api/v1/namespaces/{self.address.namespace}/configmaps"

    def _call(
        self,
        what: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        none_if: int | None = None,
    ) -> Any:  # noqa: ANN401 - an object of Kubernetes
        server = self.address.server
        try:
            return json.loads(server.get(path) if body is None else server.post(path, body))
        except urllib.error.HTTPError as error:
            if error.code == none_if:
                return None
            why = words_of(error)
            helps = (
                f"Give the pod's account the rights `get` on StatefulSet {self.name} and ConfigMap"
                f" {self.record_name}, and `create` on ConfigMaps, as the chart's Role has them"
                if error.code in REFUSED
                else "See to the API server"
            )
        except OSError as error:
            why = words_of(error)
            helps = (
                "See that the pod has the token of its account and may reach the API server"
                f" ({server.url}): a NetworkPolicy has to allow that egress"
            )
        except (ValueError, RecursionError) as error:
            why, helps = f"the answer is no JSON ({error})", "See to the API server"
        raise CommandError(f"{FLAG}: {what} ({why}). {helps}")
