"""Kernel machines beside other packages."""
