"""Dynamic configs of topics and brokers."""
