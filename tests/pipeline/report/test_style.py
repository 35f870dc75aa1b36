"""The look of the page comes from the page."""

from __future__ import annotations

import re

from quorate.pipeline.report.style import STYLE


def test_nothing_is_loaded_and_print_and_phones_are_thought_of() -> None:
    assert not re.search(r"url\(|@import|@font-face|https?:|<", STYLE)
    assert "@media print" in STYLE
    assert "@media screen and (max-width" in STYLE
    assert STYLE.count("{") == STYLE.count("}")
