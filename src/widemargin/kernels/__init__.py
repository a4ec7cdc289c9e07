"""Kernels, what computes their values, and sums of them."""
