"""Voter-set changes, kraft.version upgrade, leadership transfer, shutdown permits."""
