"""Authorization of requests and their items."""
