"""Reasons become Kubernetes' words: of Events, conditions and labels."""

from __future__ import annotations

import re

from quorate.autojoin.actions import StepCause, WaitReason


def test_reasons_are_words_as_kubernetes_wants_them() -> None:
    words = [each.value for each in (*StepCause, *WaitReason)]
    assert all(re.fullmatch(r"[A-Z][A-Za-z]{0,127}", word) for word in words)
    assert len(set(words)) == len(words)
