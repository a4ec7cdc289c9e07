"""Linear algebra of dense and sparse rows, roots, and bounds of rounding."""
