"""The cover that stands for full products in `make test`."""

import itertools

import pytest
from sklearn.svm import SVC

from tests.cases.pairwise import checks_by_turns, cover, product


def pairs(cases):
    return {
        (i, j, case[i], case[j])
        for case in cases
        for i, j in itertools.combinations(range(len(case)), 2)
    }


@pytest.mark.parametrize("levels", [(2, 2, 2), (5, 3), (12, 5, 4, 3, 2), (34, 11, 3)])
def test_each_pair_of_levels_is_met(levels):
    cases = list(itertools.product(*map(range, levels)))
    few = [cases[k] for k in cover(cases)]
    assert pairs(few) == pairs(cases)
    first, second = sorted(levels)[-2:]
    assert first * second <= len(few) <= 2 * first * second


def test_pairs_that_no_case_has_are_not_wanted():
    cases = [case for case in itertools.product("abc", "xyz", "12") if case[0] != "b"]
    few = [cases[k] for k in cover(cases)]
    assert pairs(few) == pairs(cases)
    assert cover(cases, strength=3) == list(range(len(cases)))


def few(cases):
    """Those of some parameters that are in every run."""
    return [case for case in cases if type(case) is tuple]


def test_the_rest_is_marked_full():
    names, cases = product(a=range(4), b=range(3), c=range(2)).args
    assert names == ("a", "b", "c")
    assert len(few(cases)) == 12
    rest = [case for case in cases if type(case) is not tuple]
    assert [mark.name for case in rest for mark in case.marks] == ["full"] * 12
    values = few(cases) + [case.values for case in rest]
    assert sorted(values) == list(itertools.product(range(4), range(3), range(2)))


def test_each_check_meets_the_first_instance_and_another_one():
    estimators = [SVC(), SVC(C=2.0), SVC(C=3.0)]
    _, cases = checks_by_turns(estimators).args
    met = [(estimator.C, check.func.__name__) for estimator, check in few(cases)]
    first = [name for C, name in met if C == 1.0]
    others = [name for C, name in met if C > 1.0]
    assert len(cases) == 3 * len(first)
    assert sorted(others) == sorted(first)
    assert {C for C, _ in met} == {1.0, 2.0, 3.0}
