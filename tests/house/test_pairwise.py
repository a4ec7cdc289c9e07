"""The cover that stands for full products in `make test`."""

import itertools
from types import SimpleNamespace

import pytest
from sklearn.svm import SVC, SVR

from tests.cases.pairwise import checks_by_turns, cover, mark_the_rest, product


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


def test_each_check_meets_one_instance_and_these_take_turns():
    estimators = [SVC(), SVC(C=2.0), SVR(), SVC(C=3.0)]
    _, cases = checks_by_turns(estimators).args
    of_one, others = (
        [e.C for e, _ in few(cases) if isinstance(e, kind)] for kind in (SVC, SVR)
    )
    assert len(cases) == 3 * len(of_one) + len(others)
    shares = [of_one.count(C) for C in (1.0, 2.0, 3.0)]
    assert max(shares) - min(shares) <= 1


class Item:
    """A case of a test, as much of it as is asked for."""

    def __init__(self, mark, **params):
        self.nodeid, self.marks = f"test_a.py::test_a[{params}]", [mark.mark]
        self.callspec = SimpleNamespace(params=params)

    def iter_markers(self):
        return self.marks

    def get_closest_marker(self, name):
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark):
        self.marks.append(mark.mark)

    @property
    def is_full(self):
        return self.get_closest_marker("full") is not None


@pytest.mark.parametrize(("strength", "left"), [(1, 4), (2, 12), (3, 24)])
def test_a_cover_of_stacked_lists_stays(strength, left):
    mark = pytest.mark.cover(strength)
    lists = itertools.product("abcd", (1.0, 2.0, 3.0), (None, True))
    items = [Item(mark, x=x, y=y, z=z) for x, y, z in lists]
    mark_the_rest(items)
    stay = [tuple(i.callspec.params.values()) for i in items if not i.is_full]
    assert len(stay) == left
    assert {x for x, _, _ in stay} == set("abcd")
    assert {y for _, y, _ in stay} == {1.0, 2.0, 3.0}
    assert {z for _, _, z in stay} == {None, True}


def test_one_of_some_cases_stays():
    items = [Item(pytest.mark.one_of(3), k=k) for k in range(8)]
    items[4].add_marker(pytest.mark.full)  # counts for nothing
    mark_the_rest(items)
    assert [i.callspec.params["k"] for i in items if not i.is_full] == [0, 3, 7]
    (alone,) = [Item(pytest.mark.one_of(3), k=7)]
    mark_the_rest([alone])
    assert not alone.is_full
