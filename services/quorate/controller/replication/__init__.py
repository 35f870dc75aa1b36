"""ISRs that leaders change, and leaders that operators elect."""
