"""Recovery at startup: scan, decide, repair or refuse."""
