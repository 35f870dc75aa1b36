"""What all tests share: Hypothesis without a deadline, because a busy machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("quorate", deadline=None)
settings.load_profile("quorate")
