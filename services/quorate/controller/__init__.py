"""The metadata state machine: decides requests, replays records, publishes immutable images."""
