"""Few cases of many: each pair of levels is met, and the rest is marked ``full``.

A fault that hangs on two levels at once (this solver on that loss) is found by some case
of the cover. `make test` runs the cover, `make test-full` all other cases.
"""

import heapq
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
    most = [(-len(met), k) for k, met in enumerate(meets)]
    heapq.heapify(most)
    while missing:
        known, best = most[0]
        gain = len(meets[best] & missing)
        if gain < -known:  # gains only fall: what was found before is a bound
            heapq.heapreplace(most, (-gain, best))
            continue
        heapq.heappop(most)
        chosen.append(best)
        missing -= meets[best]
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


def checks_by_turns(estimators, without=None):
    """scikit-learn's checks, each of one instance of a class: these take turns.

    So each class meets all checks, and each instance its share of them. What is left of
    their product is marked full. ``without`` names checks that mean nothing for a
    class: a dict of class and names.
    """
    marked = parametrize_with_checks(estimators)
    names, cases = marked.args
    if without:
        cases = [
            (estimator, check)
            for estimator, check in cases
            if check.func.__name__ not in without.get(type(estimator), ())
        ]
    own = {type(estimator): [] for estimator in estimators}
    for estimator in estimators:
        own[type(estimator)].append(id(estimator))
    few, met = [], dict.fromkeys(map(id, estimators), 0)
    for k, (estimator, _) in enumerate(cases):
        peers, i = own[type(estimator)], id(estimator)
        if (met[i] - peers.index(i)) % len(peers) == 0:
            few.append(k)
        met[i] += 1
    ids = marked.kwargs["ids"]
    own_ids = {id(estimator): ids(estimator) for estimator in estimators}  # made once
    return pytest.mark.parametrize(
        names,
        rest_is_full(cases, few),
        ids=lambda value: own_ids.get(id(value)) or ids(value),
    )


def mark_the_rest(items):
    """Mark cases ``full`` that ``cover`` and ``one_of`` leave out of `make test`.

    ``cover(strength)`` is for a test of several parameters: some case has each level of
    each of them, or each pair of levels. ``one_of(n)`` is for a single list of cases.
    A case that is asked for by its name is the only one, and runs.
    """
    tests = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & {"cover", "one_of"} and "full" not in marks:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        few = set(_few(cases))
        for k, item in enumerate(cases):
            if k not in few:
                item.add_marker(pytest.mark.full)


def _few(items):
    """Indices of the cases of one test that run."""
    one_of = items[0].get_closest_marker("one_of")
    if one_of:
        return range(0, len(items), one_of.args[0])
    (strength,) = items[0].get_closest_marker("cover").args
    # Stacked lists hand the same objects to all cases.
    levels = [tuple(map(id, item.callspec.params.values())) for item in items]
    return cover(levels, min(strength, len(levels[0])))
