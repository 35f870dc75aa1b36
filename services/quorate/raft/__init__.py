"""The consensus core: pure, one event in, effects out."""
