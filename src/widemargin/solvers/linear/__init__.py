"""Solvers of linear problems."""
