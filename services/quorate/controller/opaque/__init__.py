"""Subjects that nothing here decides on, and whose records are kept."""
