"""Few cases of many: each pair of levels is met, and the rest is marked ``full``.

A fault that hangs on two levels at once (this solver on that loss) is found by some case
of the cover. `make test` runs the cover, `make test-full` all other cases.
"""

import itertools

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks


def cover(cases, strength=2):
    """Indices of cases that meet all that any `strength` positions hold in `cases`.

    Cases are tuples of hashable levels. Greedy, and the same in every process: xdist
    compares what its workers collect.
    """
    places = list(itertools.combinations(range(len(cases[0])), strength))
    meets = [{(p, *(case[i] for i in p)) for p in places} for case in cases]
    missing, chosen = set().union(*meets), []
    gains = [len(met) for met in meets]
    while missing:
        best = max(range(len(cases)), key=gains.__getitem__)
        gain = len(meets[best] & missing)
        if gain < gains[best]:  # gains only fall: what was found before is a bound
            gains[best] = gain
            continue
        chosen.append(best)
        missing -= meets[best]
        gains[best] = 0
    return sorted(chosen)


def rest_is_full(cases, few):
    """All cases as parameters; those that are not of the few indices are `full`."""
    few = set(few)
    return [
        case if k in few else pytest.param(*case, marks=pytest.mark.full)
        for k, case in enumerate(cases)
    ]


def pairwise(names, cases, strength=2, **options):
    """`parametrize` over tuples: a cover of them in every run, the rest marked full."""
    cases = [tuple(case) for case in cases]
    few = cover(cases, strength)
    return pytest.mark.parametrize(names, rest_is_full(cases, few), **options)


def product(*, indirect=(), ids=None, **factors):
    """`pairwise` over the product of the levels of some factors."""
    cases = itertools.product(*factors.values())
    return pairwise(tuple(factors), cases, indirect=indirect, ids=ids)


def checks_by_turns(estimators):
    """scikit-learn's checks: all of the first instance, and each of another one too.

    The other instances take turns, such that each meets its share of the checks. What
    is left of their product is marked full.
    """
    marked = parametrize_with_checks(estimators)
    names, cases = marked.args
    place = {id(estimator): k for k, estimator in enumerate(estimators)}
    few, met, others = [], [0] * len(estimators), len(estimators) - 1
    for k, (estimator, _) in enumerate(cases):
        i = place[id(estimator)]
        if i == 0 or (met[i] - i) % others == 0:
            few.append(k)
        met[i] += 1
    return pytest.mark.parametrize(names, rest_is_full(cases, few), **marked.kwargs)
