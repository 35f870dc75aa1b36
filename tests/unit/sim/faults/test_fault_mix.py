from __future__ import annotations

import random

from quorate.sim.faults.fault_mix import draw_options
from quorate.sim.sim_options import ProcessOptions, WorldOptions


def test_a_seed_draws_one_mix() -> None:
    assert draw_options(random.Random(7)) == draw_options(random.Random(7))


def test_seeds_draw_different_mixes() -> None:
    mixes = {str(draw_options(random.Random(seed))) for seed in range(50)}
    assert len(mixes) == 50


def test_a_mix_prints_what_is_on_and_leaves_out_what_is_off() -> None:
    text = str(WorldOptions(processes=ProcessOptions(kill_every_ms=500)))
    assert "kill_every_ms=500" in text
    assert "wipe_every_ms" not in text
