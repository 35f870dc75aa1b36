"""Taking, loading and verifying snapshots."""
