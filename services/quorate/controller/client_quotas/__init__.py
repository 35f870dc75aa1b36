"""Client quotas of users, client ids and IP addresses."""
