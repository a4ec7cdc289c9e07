"""Objective and accuracy over the rank, on a3a: beyond the paper."""

from papers.crsvm.parts import gaussian

NAME = "ranks"
SET = "a3a"
RANKS = (64, 150, 300, 600)


def run(options):
    """A record for each approximation, rank and solver."""
    cases = [(name, rank) for name in ("EIGS", "CHOL") for rank in RANKS]
    return gaussian.records(options, [SET], cases)


table = gaussian.table


def draw(records, folder):
    """No picture."""
