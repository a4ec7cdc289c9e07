"""Optimization problems: objectives, feasible points, certificates."""
