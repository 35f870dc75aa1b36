"""The disk: segments, snapshots, election state, recovery, behind a port that can be failed."""
