"""What every door shares: callers and their rights, handlers, and errors that are no reply."""
