"""What runs a solver: limits, the best point, checkpoints, messages."""
