"""Kernel machines of low rank: feature maps, fits, and rows from files."""
