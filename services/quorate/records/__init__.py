"""The bytes of Kafka's metadata log as values: batches, control records, metadata records, ids."""
