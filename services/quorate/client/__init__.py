"""Asking a quorum from outside: who leads, metadata calls, changes of the voters, the admin API."""
