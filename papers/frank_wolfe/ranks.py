"""Section 5.6: the tests of Friedman and of Wilcoxon over the data sets."""

import numpy as np
from scipy import stats

from papers.frank_wolfe.datasets import CVM, FW, METHODS, MFW

# Table 5 and 6: (FW against CVM, MFW against CVM, FW against MFW, all), statistics and
# p-values.
PRINTED = {
    "time": ((17, 20, 159, 14.858), (3.085e-06, 5.528e-06, 0.6893, 1.72e-05)),
    "accuracy": ((19, 48.5, 63.5, 11.879), (4.977e-06, 3.21e-04, 1.23e-03, 1.20e-04)),
}
DIGITS = 9  # of a difference
# Pair of methods -> what the first is held against the second to be, of times and of
# accuracies: Table 4.
PAIRS = (
    ((FW, CVM), {"time": "less", "accuracy": "less"}),
    ((MFW, CVM), {"time": "less", "accuracy": "less"}),
    ((FW, MFW), {"time": "two-sided", "accuracy": "less"}),
)


def tests(values, kind):
    """[(name, statistic, p, sets)] of values[method], a number for each data set.

    Wilcoxon's W is the smaller sum of ranks, Friedman's F that of Iman and Davenport.
    nan is a missing value.
    """
    found = []
    for (one, other), alternatives in PAIRS:
        a, b = _known(values, (one, other))
        name = f"{one}, {other}"
        found.append((name, *wilcoxon(a, b, alternatives[kind]), len(a)))
    table = _known(values, METHODS)
    return [*found, ("all", *friedman(table), table.shape[1])]


def _known(values, methods):
    """A row for each method, without the sets of which one is not known."""
    table = np.array([values[m] for m in methods], dtype=float)
    return table[:, ~np.isnan(table).any(axis=0)]


def wilcoxon(a, b, alternative):
    """The smaller sum of signed ranks, and p, with zeros ranked too (Pratt).

    Exact where there are no ties, as the paper has it.
    """
    difference = np.round(a - b, DIGITS)  # ties are lost by rounding
    if not difference.any():  # also of no sets
        return 0.0, 1.0
    ranks = stats.rankdata(np.abs(difference))
    sums = ranks[difference < 0].sum(), ranks[difference > 0].sum()
    p = stats.wilcoxon(difference, zero_method="pratt", alternative=alternative).pvalue
    return float(min(sums)), float(p)


def friedman(table):
    """F of Iman and Davenport for methods (rows) on data sets (columns), and p."""
    k, n = table.shape
    if n < 2:
        return np.nan, np.nan
    chi = stats.friedmanchisquare(*table).statistic
    below = n * (k - 1) - chi
    F = (n - 1) * chi / below if below > 0 else np.inf
    return float(F), float(stats.f.sf(F, k - 1, (k - 1) * (n - 1)))
