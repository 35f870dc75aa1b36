"""Settings of every process: Kafka's properties files, overridden by the environment."""
