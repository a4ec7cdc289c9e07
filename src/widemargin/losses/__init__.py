"""Losses of single rows, and norms of all of them."""
