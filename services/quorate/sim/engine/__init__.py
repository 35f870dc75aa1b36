"""Simulation engine: event queue, event loop, machines, processes, network."""
