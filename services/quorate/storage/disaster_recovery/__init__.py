"""Backup, restore, and recovery from loss of quorum."""
