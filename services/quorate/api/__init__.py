"""Shared by all servers of an API: callers and their permissions, handlers, and errors."""
