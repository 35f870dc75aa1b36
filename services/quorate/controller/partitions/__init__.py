"""State, storage, placement and leader election of partitions."""
