"""Subjects that nothing here decides on: ACLs, quotas, credentials, tokens, producer ids."""
