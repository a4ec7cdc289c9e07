"""Kernel models of few support vectors."""
