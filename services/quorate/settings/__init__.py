"""Settings of every process: Kafka properties files, overridden by the environment."""
