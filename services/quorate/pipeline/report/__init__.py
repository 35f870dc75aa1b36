"""The HTML page of job `report`, a single self-contained file."""
