"""Measurements: time, memory and accuracy, beside other packages and other choices."""
