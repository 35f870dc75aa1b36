"""The metadata state machine: decide on requests, replay records, hand out immutable images."""
