"""Packages to compare with, one file each.

A peer has

* ``DISTRIBUTION``: what pip installs, for its version;
* ``INTERCEPTS``: loss -> intercepts, the problems that it solves *exactly as stated*
  by `widemargin.Problem`; anything else is not compared;
* ``ladders(loss, intercept)``: lists of settings, each from coarse to fine, so that
  after one that takes too long the finer ones need no try;
* ``fit(X, y, C, loss, intercept, **setting)``: w and b, and if it has a proof its dual
  objective. X is a C-contiguous array or a CSR matrix with 32-bit indices, both
  float64; what a package needs besides (copies, columns of ones) is its own time.
"""
