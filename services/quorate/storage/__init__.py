"""Storage: log segments, snapshots, election state and recovery, on a replaceable file system."""
