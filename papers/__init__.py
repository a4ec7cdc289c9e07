"""The papers behind the solvers, measured again: `python -m papers NAME`."""
