"""Client quotas: what users, clients and addresses may use of the brokers."""
