"""Training runs of the paper's networks."""
