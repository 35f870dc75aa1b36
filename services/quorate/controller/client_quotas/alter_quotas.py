"""AlterClientQuotas (KIP-546)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quorate.controller.client_quotas.messages import AlterClientQuotasReply, AlteredEntity
from quorate.controller.client_quotas.quota_entities import key_of, limits_of, value_problem
from quorate.controller.client_quotas.records import quota_records
from quorate.controller.decision import Context, Outcome, Proposal, too_large
from quorate.controller.errors import RefusedError
from quorate.controller.features.levels import metadata_version
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.controller.client_quotas.messages import (
        AlterClientQuotas,
        QuotaAlteration,
    )
    from quorate.controller.image import View
    from quorate.controller.slices import Slices


def alter_quotas_in_slices(context: Context, request: AlterClientQuotas) -> Slices[Outcome]:
    """Change entities one by one, each atomically."""
    level = metadata_version(context.view.features)
    proposal = Proposal(level)
    asked = Counter(key_of(alteration.entity) for alteration in request.entries)
    results: list[AlteredEntity] = []
    for index, alteration in enumerate(request.entries):
        if index:
            yield
        is_repeated = asked[key_of(alteration.entity)] > 1
        try:
            _propose(proposal, context.view, alteration, is_repeated=is_repeated)
        except RefusedError as refused:
            results.append(AlteredEntity(alteration.entity, refused.error, refused.message))
        else:
            results.append(AlteredEntity(alteration.entity))
    reply = AlterClientQuotasReply(tuple(results))
    return Outcome(Proposal(level) if request.validate_only else proposal, reply)


def _propose(
    proposal: Proposal, view: View, alteration: QuotaAlteration, *, is_repeated: bool
) -> None:
    """Propose the records of one entity. Raises RefusedError."""
    if is_repeated:
        message = "The entity occurs twice in the request; name it once."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    limits = limits_of(alteration.entity)
    key = key_of(alteration.entity)
    before = view.client_quotas.of(key)
    after: dict[str, float | None] = {}
    for op in alteration.ops:
        if op.key in after:
            message = f"The quota {op.key!r} occurs twice; change it once."
            raise RefusedError(ErrorCode.INVALID_REQUEST, message)
        problem = None if op.remove else value_problem(limits, op.key, op.value)
        if problem is not None:
            raise RefusedError(ErrorCode.INVALID_REQUEST, problem)
        # Any quota may be removed, whatever its key: an earlier release may have set it.
        after[op.key] = None if op.remove else op.value
    changes = [(name, value) for name, value in after.items() if value != before.get(name)]
    if not proposal.add(quota_records(key, changes)):
        what = "The change of an entity's quotas"
        raise RefusedError(ErrorCode.POLICY_VIOLATION, too_large(what))
