"""Identity of peers, logs and quorums: cloned voters, and other quorums of the same cluster."""
