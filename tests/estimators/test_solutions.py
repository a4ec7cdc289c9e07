"""Solutions of many problems: as columns, and each as an object when it is asked for."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC, SVR, LinearSVC, LinearSVR, NuSVC
from widemargin.solution import Solution, Status
from widemargin.solutions import Solutions, columns_of, dual_variables, first_of


def data(classes, each=4):
    rng = np.random.default_rng(classes)
    y = np.repeat(np.arange(classes), each)
    return rng.normal(size=(len(y), 3)) + y[:, np.newaxis], y


@pytest.fixture
def fitted():
    return SVC(C=2.0).fit(*data(7))


def test_a_fit_makes_no_more_objects_than_it_shows(fitted, monkeypatch):
    made = []
    monkeypatch.setattr(Solutions, "__getitem__", lambda self, k: made.append(k))
    with pytest.raises(AttributeError):  # `solution_` is the only one it asks for
        SVC().fit(*data(7))
    assert made == [0]


def test_a_solution_is_made_once(fitted):
    solutions = fitted.solutions_
    assert isinstance(solutions, Solutions)
    assert len(solutions) == 21
    assert solutions[3] is solutions[3]
    assert solutions[-1] is solutions[20]
    assert solutions[2:4] == [solutions[2], solutions[3]]
    assert list(solutions) == solutions[:]
    with pytest.raises(IndexError):
        solutions[21]
    assert repr(solutions[:2]) in f"{repr(solutions)[: len(repr(solutions[:2])) - 1]}]"


@pytest.mark.parametrize(
    "machine",
    [
        SVC(C=2.0),
        SVC(kernel="sigmoid", gamma=9.0),
        SVC(C=1e5, max_iter=1, solver="irwls"),
        LinearSVC(multi_class="ovo"),
        LinearSVC(),
    ],
    ids=["solved", "curved", "ended early", "pairs", "classes"],
)
def test_columns_are_those_of_the_objects(machine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solutions = machine.fit(*data(5, 9)).solutions_
    one, other = columns_of(solutions), columns_of(list(solutions))
    assert one.b.tolist() == other.b.tolist() == machine.intercept_.tolist()
    assert one.proofs.tolist() == other.proofs.tolist()
    assert one.iterations.tolist() == other.iterations.tolist()
    assert one.statuses == other.statuses
    assert one.is_convex.tolist() == other.is_convex.tolist()
    assert one.seconds == pytest.approx(other.seconds)
    assert one.solvers == other.solvers
    gaps = [s.certificate.relative_gap for s in solutions]
    assert one.gaps.tolist() == gaps
    assert machine.dual_gap_ == max(gaps)
    alphas = np.concatenate([s.alpha for s in solutions])
    assert dual_variables(solutions).tolist() == alphas.tolist()


def test_the_worst_is_one_that_is_not_solved(fitted):
    solved = list(fitted.solutions_)
    gaps = [s.certificate.relative_gap for s in solved]
    assert columns_of(solved).worst == int(np.argmax(gaps))
    best = int(np.argmin(gaps))
    solved[best] = solved[best].changed(status=Status.STALLED, message="no further")
    assert columns_of(solved).worst == best
    assert first_of(solved).together["message"] == "no further"
    assert first_of(solved).together["status"] == {"solved": 20, "stalled": 1}


def test_unsolved_ones_say_so():
    machine = SVC(kernel="sigmoid", gamma=9.0, C=100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        machine.fit(*data(5, 9))
    said = {s.message for s in machine.solutions_ if not s.is_convex}
    assert all("not positive semidefinite" in message for message in said)
    assert said


@pytest.mark.parametrize("keep", [False, True])
def test_pickles_have_a_list(fitted, keep):
    loaded = pickle.loads(pickle.dumps(fitted.keep_training_data(keep)))
    assert type(loaded.solutions_) is list
    assert all(type(solution) is Solution for solution in loaded.solutions_)
    assert [s.b for s in loaded.solutions_] == fitted.intercept_.tolist()
    assert hasattr(loaded.solutions_[0], "alpha") == keep


def test_copies_have_all(fitted):
    other = copy.deepcopy(fitted).solutions_
    assert [s.alpha.tolist() for s in other] == [
        s.alpha.tolist() for s in fitted.solutions_
    ]


def test_who_changes_attributes_leaves_the_solutions(fitted):
    b = [solution.b for solution in fitted.solutions_]
    fitted.intercept_ *= 2.0
    assert [solution.b for solution in copy.deepcopy(fitted.solutions_)] == b
    linear = LinearSVC(multi_class="ovo").fit(*data(5))
    w = linear.solutions_[3].w.tolist()
    linear.coef_ *= 3.0
    assert linear.solutions_[3].w.tolist() == w


def test_solutions_know_how_many_are_at_their_bound(fitted):
    for solution in fitted.solutions_:
        assert solution.at_bound == np.count_nonzero(solution.alpha >= fitted.C)
    assert SVC(loss="squared_hinge").fit(*data(4)).solutions_[1].at_bound is None


def test_pairs_without_a_margin_are_not_divided():
    X, y = data(3, 6)
    X[y == 1] = X[y == 0]  # the same rows in two classes
    machine = NuSVC(nu=0.9, kernel="linear")
    with pytest.warns(ConvergenceWarning, match="For . of 3 pairs of classes"):
        machine.fit(X, y)
    ended = [solution.status for solution in machine.solutions_]
    assert ended[0] is Status.NO_MARGIN
    assert Status.SOLVED in ended
    own = machine.solutions_[0]
    assert machine.intercept_[0] == own.b
    k = ended.index(Status.SOLVED)
    assert machine.intercept_[k] == machine.solutions_[k].b / machine.solutions_[k].rho


@pytest.mark.parametrize(
    "machine",
    [
        LinearSVR(epsilon=0.0, solver="interior_point"),
        LinearSVR(epsilon=0.0, solver="augmented_lagrangian"),
        SVR(epsilon=0.0),
    ],
    ids=str,
)
def test_a_regression_has_no_more_support_vectors_than_rows(machine):
    """Both rows of the problem for a row of the data were counted."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    machine.fit(X, 2.0 * X[:, 0])
    assert f"support vectors {len(machine.support_)} (" in str(machine.solution_)
    assert machine.solution_.n_support == len(machine.support_) <= 400
