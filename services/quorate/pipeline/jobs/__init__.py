"""Questions about the past of a quorum, each a module of functions from DataFrame to DataFrame."""
