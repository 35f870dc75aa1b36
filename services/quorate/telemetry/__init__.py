"""What a process tells about itself while it runs: structured logs."""
