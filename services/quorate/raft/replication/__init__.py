"""Log replication: leader and follower, Fetch, high watermark, linearizable reads."""
