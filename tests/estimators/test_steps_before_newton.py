"""Few dense rows of many columns: pair steps on their products come before Newton's."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from widemargin import SVC, LinearSVC, LinearSVR
from widemargin.estimators import batch, linear_choice, solving
from widemargin.estimators.linear_choice import Before
from widemargin.solution import Status


@pytest.fixture
def asked(monkeypatch):
    """What fits ask for: steps at most, and the problems that are left for Newton's."""
    found = []
    steps, newton = batch.solve_by_products, batch._by_newton

    def by_products(training, chosen, before=None):
        found.append(("steps", before and before[0]))
        return steps(training, chosen, before)

    def by_newton(training, chosen, few=0):
        if few:
            found.append(("few", few))
        elif chosen:
            found.append(("newton", list(chosen)))
        return newton(training, chosen, few)

    monkeypatch.setattr(batch, "solve_by_products", by_products)
    monkeypatch.setattr(batch, "_by_newton", by_newton)
    return found


def rows(m=200, n=110, classes=2, seed=3):
    return make_classification(
        m,
        n,
        n_informative=8,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        flip_y=0.05,
        random_state=seed,
    )


def apart(m=200, n=110, classes=2):
    """Classes with a margin between them, of which half of the columns tell."""
    return make_classification(
        m,
        n,
        n_informative=n // 2,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        flip_y=0.0,
        class_sep=1.5,
        random_state=1,
    )


def targets(m=250, n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    t = X[:, :10] @ rng.normal(size=10) + 0.3 * rng.normal(size=m)
    return X, t / t.std()


def most(m, n):
    return int(n * n * (m + n / 1.5) / 1000)


def most_in_float32(m, n):
    return 2 * (30 * m + n**3 // (5 * m))


@pytest.mark.parametrize("machine", [LinearSVC(loss="hinge"), SVC(kernel="linear")])
def test_steps_that_suffice_are_all(machine, asked):
    X, y = rows()
    machine.fit(X, y)
    assert asked == [("steps", most_in_float32(200, 110))]
    assert (machine.status_, machine.solution_.solver) == ("solved", "batch")


@pytest.mark.parametrize(("few", "left"), [(1, [0, 1, 2, 3, 4]), (1500, [0, 1, 4])])
def test_problems_that_steps_do_not_solve_are_newtons(few, left, asked, monkeypatch):
    X, y = rows(classes=5)
    options = {"loss": "hinge", "C": 100.0, "tol": 1e-6}
    monkeypatch.setattr(batch, "steps_before_newton", lambda training, m: Before(0))
    alone = LinearSVC(**options).fit(X, y)
    assert asked == [("newton", [0, 1, 2, 3, 4])]
    asked.clear()
    monkeypatch.setattr(batch, "steps_before_newton", lambda training, m: Before(few))
    clf = LinearSVC(**options).fit(X, y)
    assert clf.status_ == "solved"
    assert asked == [("steps", few), ("newton", left)]
    for k, (one, other) in enumerate(
        zip(clf.solutions_, alone.solutions_, strict=True)
    ):
        gap = one.certificate.primal - other.certificate.dual
        assert -1e-9 <= gap / one.certificate.primal <= 2e-6, k
    np.testing.assert_allclose(
        clf.coef_, alone.coef_, atol=5e-3 * np.abs(alone.coef_).max()
    )


@pytest.mark.parametrize(
    ("m", "n", "loss"),
    [
        (200, 99, "hinge"),  # fewer columns
        (1201, 120, "hinge"),  # too small a share
        (200, 99, "squared_hinge"),
        (601, 120, "squared_hinge"),
    ],
)
def test_others_begin_by_newtons_method(m, n, loss, asked):
    LinearSVC(loss=loss).fit(*rows(m, n))
    assert [name for name, _ in asked] == ["newton"]


@pytest.mark.parametrize("m", [700, 1100])
def test_fewer_columns_leave_few_steps_where_few_rows_move(m, asked):
    clf = SVC(kernel="linear", C=10.0).fit(*apart(m))
    assert asked == [("steps", 3 * m)]
    assert (clf.status_, clf.solution_.solver) == ("solved", "batch")
    asked.clear()
    rng = np.random.default_rng(0)
    clf.fit(rng.normal(size=(m, 110)), rng.integers(0, 2, m))
    assert asked == [("steps", 3 * m), ("newton", [0])]
    assert clf.status_ == "solved"


@pytest.mark.parametrize(
    "machine", [SVC(kernel="linear"), LinearSVC(multi_class="ovo")]
)
def test_pairs_with_a_margin_are_solved_by_products(machine, monkeypatch):
    X, y = apart(1500, 200, classes=3)
    newton = []
    solve_pair = batch._solve_pair

    def counted(training, k, few):
        newton.append(few)
        return solve_pair(training, k, few)

    monkeypatch.setattr(batch, "_solve_pair", counted)
    machine.set_params(C=100.0).fit(X, y)
    assert newton == ([5, 5, 5] if isinstance(machine, LinearSVC) else [])
    assert (machine.status_, machine.solution_.solver) == ("solved", "batch")
    for one in machine.solutions_:
        assert "steps" in one.extras
    monkeypatch.setattr(batch, "steps_before_newton", lambda training, m: Before(0))
    gaps = [one.certificate for one in machine.solutions_]
    for one, other in zip(gaps, machine.fit(X, y).solutions_, strict=True):
        apart_by = one.primal - other.certificate.dual
        assert -1e-9 <= apart_by / one.primal <= 2e-4


def test_pairs_that_newtons_method_is_not_for_are_left_to_others(asked):
    """Its five steps tell which of them products are for: there are none."""
    X, y = apart(1400, 300, classes=2)
    clf = LinearSVC(multi_class="ovo").fit(X, np.where(np.arange(1400) % 3, y, 2))
    assert asked == []
    assert clf.status_ == "solved"


@pytest.mark.parametrize("classes", [2, 5])
def test_newtons_steps_leave_a_margin_to_products(classes, asked, monkeypatch):
    """They took 50 to 190 of them where fewer rows than columns have a loss."""
    X, y = apart(classes=classes)
    clf = LinearSVC(C=30.0, tol=1e-6).fit(X, y)
    assert asked == [("few", 5), ("steps", 30 * 200)]
    assert (clf.status_, clf.solution_.solver) == ("solved", "batch")
    assert "steps" in clf.solution_.extras
    monkeypatch.setattr(batch, "steps_before_newton", lambda training, m: Before(0))
    alone = LinearSVC(C=30.0, tol=1e-6).fit(X, y)
    assert max(one.extras["newton_steps"] for one in alone.solutions_) > 20
    for one, other in zip(clf.solutions_, alone.solutions_, strict=True):
        gap = one.certificate.primal - other.certificate.dual
        assert -1e-9 <= gap / one.certificate.primal <= 2e-6


def test_some_of_newtons_steps_are_all_where_classes_overlap(asked):
    rng = np.random.default_rng(0)
    clf = LinearSVC().fit(rng.normal(size=(500, 120)), rng.integers(0, 2, 500))
    assert asked == [("few", 5)]
    assert clf.solution_.extras["newton_steps"] < 20


def test_a_margin_that_products_leave_is_newtons(asked, monkeypatch):
    before = Before(1, newton=5)
    monkeypatch.setattr(batch, "steps_before_newton", lambda training, m: before)
    clf = LinearSVC(C=30.0).fit(*apart(classes=3))
    assert asked == [("few", 5), ("steps", 1), ("newton", [0, 1, 2])]
    assert clf.status_ == "solved"


@pytest.mark.parametrize("n", [250, 300])
@pytest.mark.parametrize("C", [100.0, 1e4])
def test_steps_in_float64_suffice_where_float32_is_too_rough(n, C):
    clf = LinearSVC(loss="hinge", C=C).fit(*rows(1000, n))
    assert (clf.status_, clf.solution_.solver) == ("solved", "batch")


@pytest.mark.parametrize(("C", "tol"), [(1.0, 1e-4), (1e4, 1e-3)])
def test_columns_far_from_zero_leave_newtons_steps_their_work(C, tol):
    # No variable is free where float32 ends.
    rng = np.random.default_rng(1300)
    X = rng.normal(size=(1000, 300)) + 30.0
    y = (X[:, :2] + 0.3 * rng.normal(size=(1000, 2))).argmax(axis=1)
    clf = LinearSVC(loss="hinge", C=C, tol=tol).fit(X, y)
    assert (clf.status_, clf.solution_.solver) == ("solved", "batch")


def test_newtons_steps_end_where_they_take_long(asked, monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 110))
    y = np.arange(400) % 2
    for work in (1e9, linear_choice.FACED_WORK):
        monkeypatch.setattr(linear_choice, "FACED_WORK", work)
        assert LinearSVC(loss="hinge", C=1e4).fit(X, y).status_ == "solved"
    assert [name for name, _ in asked] == ["steps", "steps", "newton"]


def test_tubes_of_a_width_begin_by_steps(asked):
    X, t = targets()
    machine = LinearSVR(epsilon=0.1, C=0.01).fit(X, t)
    assert asked == [("steps", most(250, 200))]
    assert (machine.status_, machine.solution_.solver) == ("solved", "batch")


@pytest.mark.parametrize("case", ["narrow", "columns", "sizes", "squared"])
def test_other_regressions_begin_by_newtons_method(case, asked):
    X, t = targets(n=199 if case == "columns" else 200)
    X[:, 3] *= 6.0 if case == "sizes" else 1.0
    epsilon = 0.04 if case == "narrow" else 0.1
    loss = "squared_epsilon_insensitive" if case == "squared" else "epsilon_insensitive"
    LinearSVR(epsilon=epsilon, C=0.1, loss=loss).fit(X, t)
    assert "newton" in [name for name, _ in asked]
    assert not any(name == "steps" and number for name, number in asked)


def test_columns_of_one_value_and_equal_targets_are_no_fault(asked):
    X, t = targets()
    X[:, :3] = 2.0
    assert LinearSVR(epsilon=0.1).fit(X, t).status_ == "solved"
    assert LinearSVR(epsilon=0.1).fit(np.ones_like(X), t).status_ == "solved"
    assert LinearSVR(epsilon=0.1).fit(X, np.ones(len(t))).status_ == "solved"


def test_after_ctrl_c_newtons_method_does_not_begin(asked, monkeypatch):
    """One problem is stalled, and another one interrupted."""
    X, y = rows(classes=5)
    steps = batch.solve_by_products

    def interrupted(training, chosen, brief=None):
        found = list(
            steps(training, chosen, Before(1100).brief)
        )  # all but 3 are stalled
        found[3] = found[3].changed(status=Status.INTERRUPTED)
        return dict(enumerate(found))

    monkeypatch.setattr(batch, "solve_by_products", interrupted)
    training = []
    solve = batch.solve_linear_batch
    monkeypatch.setattr(
        solving, "solve_linear_batch", lambda t: training.append(solve(t)) or {}
    )
    LinearSVC(loss="hinge", C=100.0, tol=1e-6).fit(X, y)
    assert "newton" not in [name for name, _ in asked]
    ended = [training[0][k].status for k in range(5)]
    assert ended[3] is Status.INTERRUPTED
    assert ended.count(Status.STALLED) == 4


def near(m, n):
    """Three classes that overlap, of m rows a pair."""
    X, y = rows(3 * m // 2, n, classes=3)
    y[::5] = (y[::5] + 1) % 3
    return X, y


@pytest.mark.parametrize(
    ("m", "n", "steps"),
    [
        (200, 10, 40**2 // 4 + 375_000 // 450),
        (400, 60, 90**2 // 4 + 375_000 // 650),
        (400, 90, None),  # a fifth as many columns as rows: as many as they take
        (90, 10, None),  # few rows
    ],
)
def test_pairs_have_as_many_steps_as_newton_takes_time(m, n, steps, asked, monkeypatch):
    X, y = near(m, n)
    pairs, solve = [], batch._solve_pair

    def by_newton(training, k, few):
        pairs.append(k)
        return solve(training, k, few)

    monkeypatch.setattr(batch, "_solve_pair", by_newton)
    fit = SVC(kernel="linear", C=100.0).fit(X, y)
    ((_, found),) = asked
    assert found == steps or abs(found - steps) <= 20  # classes are not quite even
    assert pairs == ([0, 1, 2] if steps else [])
    assert fit.status_ == "solved"
    monkeypatch.setattr(batch, "steps_of_pairs", lambda training: None)
    whole = SVC(kernel="linear", C=100.0).fit(X, y)
    for one, other in zip(fit.solutions_, whole.solutions_, strict=True):
        value = one.certificate.primal
        assert abs(value - other.certificate.primal) <= 2e-4 * value
