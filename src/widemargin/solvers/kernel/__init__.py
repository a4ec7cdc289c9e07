"""Solvers of problems with a kernel."""
