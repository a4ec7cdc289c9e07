"""The reproduction of budget SVMs at reduced size: its parts, its SMO, its norms."""

from pathlib import Path

import numpy as np
import pytest

from papers.__main__ import arguments
from papers.budget import digits, methods, norms, paper, platt, smo
from papers.budget.paper import Options
from papers.budget.parts import equivalences, figure_1, stopped, theorems, tuned
from papers.budget.parts import smo as smo_part
from widemargin.losses.norms import BudgetL1, BudgetL2

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def small():
    """Blobs for digits: 60 rows to learn from, 200 to test on."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(260) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(260, 3)) + 0.6 * y[:, np.newaxis]
    return digits.Split(X[:60], y[:60], X[60:], y[60:], 0)


@pytest.fixture
def options(monkeypatch, small):
    monkeypatch.setattr(Options, "problems", lambda self, points=None: [small])
    monkeypatch.setattr(Options, "points", 60)
    return Options(ROOT, quick=True)


@pytest.fixture(scope="module")
def K(small):
    return methods.kernel(small.X, small.X)


def test_a_split_has_five_digits_a_side_and_points_of_mean_length_one(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (600, 28, 28)).astype(np.uint8)
    labels = rng.integers(0, 10, 600)
    (tmp_path / "mnist").mkdir()
    np.savez(tmp_path / "mnist" / "train.npz", X=pixels, y=labels)
    made = digits.split(*digits.read(tmp_path), 3, 200, 300)
    assert made.X.shape == (200, 784)
    assert made.X_test.shape == (300, 784)
    assert np.linalg.norm(made.X, axis=1).mean() == pytest.approx(1.0)
    rows = np.random.default_rng(3)
    positive = set(rows.permutation(10)[:5])
    chosen = labels[rows.permutation(600)[:200]]
    assert [label in positive for label in chosen] == list(made.y > 0)


def test_missing_digits_are_said():
    said = []
    assert not list(Options(ROOT / "none").problems(say=said.append))
    assert "mnist/train.npz" in said[0]


def test_budgets_are_those_of_the_paper():
    assert Options(ROOT, step=20).budgets == list(range(20, 1001, 20))


def test_the_best_pair_of_all_solves_the_L1_problem(small, K):
    found = smo.solve(K, small.y, smo.Limits.of("L1", 10, 1.0), smo.LARGEST_GAIN)
    best = methods.ours("L1", small.X, small.y, 10, C=1.0, tol=1e-9)
    value, optimum = (smo.dual(s.alpha, small.y, K) for s in (found, best))
    assert found.stalled
    assert value == pytest.approx(optimum, rel=1e-9)


def test_the_usual_pair_fills_the_cap_and_stalls(small, K):
    """As many support vectors as the budget, all at C, beside the optimum."""
    C = methods.heuristic("L1", 10)
    found = smo.solve(K, small.y, smo.Limits.of("L1", 10, C))
    best = methods.ours("L1", small.X, small.y, 10, tol=1e-9)
    assert found.stalled
    assert found.gain > 1e-3
    assert methods.counts(found.alpha, C) == {"vectors": 10, "bounded": 10, "free": 0}
    assert smo.dual(found.alpha, small.y, K) < smo.dual(best.alpha, small.y, K) - 0.01


def test_platts_rule_solves_the_usual_SVM(small, K):
    """Without a cap: to its own tolerance, with its own threshold."""
    C, m = 1.0, len(small.y)
    run = platt.Run(K, small.y, smo.Limits.of("L1", m, C)).to(100_000)
    best = methods.ours("L1", small.X, small.y, m, C=C, tol=1e-9)
    value, optimum = (smo.dual(s.alpha, small.y, K) for s in (run, best))
    assert run.ended
    assert optimum * (1 - 1e-3) <= value <= optimum * (1 + 1e-9)
    assert run.b == pytest.approx(best.b, abs=0.01)
    np.testing.assert_allclose(run.f, K @ (small.y * run.alpha), atol=1e-12)


def test_platts_second_choice_is_the_largest_difference_of_errors(small, K):
    run = platt.Run(K, small.y, smo.Limits.of("L1", 20, 0.5)).to(30)
    error, between = run.f - small.y, (run.alpha > 0) & (run.alpha < 0.5)
    assert between.sum() > 1
    row, all_rows = 0, np.ones(len(error), dtype=bool)
    chosen = run._partner(row, all_rows)
    assert between[chosen]
    assert abs(error[chosen] - error[row]) == np.abs(error - error[row])[between].max()
    others = ~between
    assert others[run._partner(row, others)]


@pytest.mark.parametrize("kind", ["L1", "L2"])
def test_platts_steps_rise_within_the_bounds(small, K, kind):
    limits = smo.Limits.of(kind, 20, 0.5)
    run, before = platt.Run(K, small.y, limits), 0.0
    for steps in (1, 10, 50, 200):
        alpha = run.to(steps).alpha
        assert run.steps == steps or run.ended
        assert alpha.min() >= 0
        assert alpha.max() <= limits.box
        assert alpha.sum() <= limits.cap * (1 + 1e-9)
        assert np.linalg.norm(alpha) <= limits.ball * (1 + 1e-9)
        assert small.y @ alpha == pytest.approx(0.0, abs=1e-9)
        assert smo.dual(alpha, small.y, K) >= before
        before = smo.dual(alpha, small.y, K)


@pytest.mark.parametrize("rule", smo.RULES)
@pytest.mark.parametrize("kind", ["L1", "L2"])
def test_steps_stay_within_the_end_points(small, K, kind, rule):
    limits = smo.Limits.of(kind, 20, 0.5)
    alpha = smo.solve(K, small.y, limits, rule, 300).alpha
    assert alpha.min() >= 0
    assert alpha.max() <= limits.box
    assert alpha.sum() <= limits.cap * (1 + 1e-9)
    assert np.linalg.norm(alpha) <= limits.ball * (1 + 1e-9)
    assert small.y @ alpha == pytest.approx(0.0, abs=1e-9)


def test_end_points_are_where_a_bound_is_met():
    """Beyond each finite end a constraint is broken, and before it none is."""
    rng = np.random.default_rng(1)
    y = np.array([1.0, 1.0, -1.0, -1.0])
    for kind in ("L1", "L2"):
        limits = smo.Limits.of(kind, 2.0, 1.0)
        alpha = 0.4 * rng.random(4)
        for k in range(4):
            (low,), (high,) = smo.interval(alpha, y, np.array([k]), limits)
            for other in set(range(4)) - {k}:
                for end in (low[other], high[other]):
                    for share, inside in ((0.999, True), (1.001, False)):
                        moved = alpha.copy()
                        moved[k] += share * end * y[k]
                        moved[other] -= share * end * y[other]
                        held = (
                            moved.min() >= 0
                            and moved.max() <= limits.box
                            and moved.sum() <= limits.cap
                            and np.linalg.norm(moved) <= limits.ball
                        )
                        assert bool(held) == inside


def test_norms_by_programs_of_their_own():
    v = np.array([3.0, -1.0, 0.5, 2.0])
    assert norms.by_linear_program(v, 2) == pytest.approx(5.0)
    assert norms.by_search(v, 1.0, 2.5) == pytest.approx(5.5)
    assert norms.bounds(v, 1.0, 2) == pytest.approx((5.0, 9.0))
    ones = np.ones(4)
    assert BudgetL1(budget=2.5).value(np.abs(v), ones) == pytest.approx(5.5)
    by_search = norms.by_search(v, 2.0, np.sqrt(2.0))
    assert BudgetL2(budget=2.0).value(np.abs(v), ones) == pytest.approx(by_search)


def test_the_printed_dual_is_that_of_slacks_of_either_sign():
    for r in theorems._mahalanobis(6):
        assert r["printed"] == pytest.approx(r["free"], rel=1e-7)
        assert r["ours"] == pytest.approx(r["primal"], rel=2e-6)
        assert (r["primal"] > r["free"] + 1e-3) == (r["correlation"] > 0)


def test_separable_points_have_more_support_vectors_than_the_budget():
    r = theorems._separable()
    assert r["below"] < r["B"] < r["vectors"]


def test_theorem_2_holds_and_its_corollary_does_not(small):
    found = [r for r in theorems._second(small) if r["norm"] == "L1" and r["capped"]]
    assert all(r["beyond"] == 0 for r in found)
    assert all(r["vectors"] >= r["B"] >= r["bounded"] for r in found)
    assert any(r["vectors"] > r["B"] for r in found)


def test_objectives_are_those_of_libsvm(options, small, K):
    records = equivalences.run(options)
    records.append(equivalences._compared("L1", small, K, 60))
    assert {r["form"] for r in records} >= {"C-SVC", "nu-SVC", "nu-SVC + ridge"}
    assert max(r["objective"] for r in records) < 1e-6


def test_pruning_keeps_the_largest(small, K):
    given = methods.problem("L1", small.X, small.y, 20)
    c = np.zeros(60)
    c[[3, 5, 7]] = -2.0, 1.0, 3.0
    (two, test, _), (rest, *_) = methods.pruned(given, (K, K), c, [2, 60])
    assert np.allclose(two, K[:, [3, 7]] @ [-2.0, 3.0])
    assert np.allclose(test, two)
    assert np.allclose(rest, K @ c)


BUDGET_PARTS = (equivalences, figure_1, stopped, tuned, theorems, smo_part)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("part", BUDGET_PARTS, ids=lambda part: part.NAME)
def test_tables_and_pictures(part, options, tmp_path, monkeypatch):
    monkeypatch.setattr(theorems, "CORRELATIONS", (0.5,))
    monkeypatch.setattr(theorems, "VECTORS", 10)
    for other in (theorems, equivalences, smo_part):
        monkeypatch.setattr(other, "BUDGETS", (10, 60))
    monkeypatch.setattr(tuned, "STEPS", (20, 60))
    monkeypatch.setattr(tuned, "BUDGETS", (10,))
    records = part.run(options)
    part.draw(records, tmp_path)
    assert (tmp_path / f"{part.NAME}.png").exists()
    assert len(list(part.table(records))) >= 3


def test_C_is_chosen_without_the_test_points(options, small, monkeypatch):
    """The folds are of the training points, and each row is out of one of them."""
    folds = list(tuned._folds(small))
    assert len(folds) == tuned.FOLDS
    rows = np.concatenate([fold.X_test for fold in folds])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, small.X))
    monkeypatch.setattr(tuned, "STEPS", (20,))
    monkeypatch.setattr(tuned, "BUDGETS", (10,))
    for r in tuned.run(options):
        assert r["best"] <= r["error"]
        assert r["C"] in tuned.FACTORS


def test_without_digits_the_rest_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(theorems, "CORRELATIONS", (0.5,))
    monkeypatch.setattr(theorems, "VECTORS", 10)
    records = theorems.run(Options(tmp_path, quick=True))
    theorems.draw(records, tmp_path)
    assert {r["kind"] for r in records} == {"theorem 1", "dual (4)", "separable"}
    assert figure_1.run(Options(tmp_path)) == []


def test_parts_are_known():
    assert arguments(paper, ["--parts", "smo"]).parts == [smo_part]
    with pytest.raises(SystemExit):
        arguments(paper, ["--parts", "figure_9"])
