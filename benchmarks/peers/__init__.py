"""Packages to compare with: one file a peer, with `INTERCEPTS` and `fit`."""
