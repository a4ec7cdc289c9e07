"""Data: where rows come from and where they are kept."""
