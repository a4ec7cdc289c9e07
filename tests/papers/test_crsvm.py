"""The reproduction of CRSVM at reduced size: its parts, and what holds at any size."""

import json
from pathlib import Path

import numpy as np
import pytest

from papers import measure
from papers.__main__ import main
from papers.crsvm import datasets, libsvm, lowrank, methods
from papers.crsvm.paper import Options
from papers.crsvm.parts import (
    approximation,
    gaussian,
    iterations,
    printed,
    rules,
    sweeps,
    toy,
)
from widemargin import Problem, load_svmlight, save_svmlight

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "examples" / "data" / "a9a.svm.bz2"


def small_adult():
    X, y = load_svmlight(SHIPPED, n_features=123)
    return datasets.Dataset("a9a", X[::32], y[::32], 123)


SETS = {"ellipse": lambda: datasets.ellipse(1000)[1], "adult": small_adult}


@pytest.fixture(scope="module", params=SETS, ids=str)
def data(request):
    return SETS[request.param]()


@pytest.fixture(scope="module")
def found(data):
    return methods.compare(data, rules.solvers(), repeat=1, tol=methods.TIGHT)


@pytest.mark.one_of(2)
def test_all_variants_that_end_find_the_same_objective(found):
    for label in (rules.ALL, "omega", "omega, repaired", "default"):
        assert found[label]["status"] == "solved"  # others may not: see claim.md
    assert methods.disagreement(list(found.values())) <= 1e-6


def test_rule_2_ends_with_the_patterns_on_the_boundary(data, found):
    _, (on, plus, minus) = methods.support_vectors(data)
    assert on == plus + minus
    assert on / 2 <= found["omega"]["active_last"] <= 2 * on


def test_rule_1_ends_with_all_support_vectors(data, found):
    (support, _, _), _ = methods.support_vectors(data)
    assert support / 2 <= found["one-sided"]["active_last"] <= 2 * support


def test_reduction_uses_fewer_patterns_on_average(data, found):
    m = len(data.y)
    assert found[rules.ALL]["active_mean"] == m
    assert found["omega"]["active_mean"] < 0.7 * m
    assert found["omega"]["active_last"] < found["one-sided"]["active_last"]


def test_each_run_draws_another_first_set_and_failures_are_counted():
    data = small_adult()
    solvers = {"": methods.published(share=0.1), rules.ALL: methods.unreduced()}
    found = methods.runs(data, solvers, repeat=3)
    first = {s.trace[1].details["mu"] for s in found[""][0]}
    assert len(first) == 3
    assert len({s.trace[1].details["mu"] for s in found[rules.ALL][0]}) == 1
    reduced, whole = (methods.record(*found[label]) for label in solvers)
    failed = sum(s.status != "solved" for s in found[""][0])
    assert failed > 0
    assert reduced["unsolved"] == failed
    assert methods.marks(reduced) == "!" * failed
    assert reduced["status"] != "solved"
    assert (whole["unsolved"], whole["status"]) == (0, "solved")
    (beside,) = methods.beside([whole], {"seconds": 1.0, "patterns": 10 * len(data.y)})
    assert beside["work"] == pytest.approx((whole["iterations"] + 1) / 10, rel=1e-3)


def test_the_algorithm_as_printed_solves_the_same_problem():
    _, data = datasets.ellipse(1000)
    found = printed.measured(Problem(data.X, data.y), methods.published())
    ours = methods.compare(data, {"": methods.unreduced()}, repeat=1)[""]
    assert found["mu"] <= 1e-8
    assert found["gap"] <= 1e-6
    assert abs(found["primal"] - ours["primal"]) <= 1e-5 * ours["primal"]
    assert found["active_last"] < 0.1 * len(data.y)


@pytest.mark.parametrize("slope", [1.0, 1.5, 2.2])
def test_growth_exponent(slope):
    sizes = np.array([100.0, 300.0, 1000.0, 5000.0])
    found = measure.growth_exponent(sizes, 3e-6 * sizes**slope)
    assert found == pytest.approx(slope)


@pytest.mark.parametrize(("inputs", "columns"), [(22, 276), (40, 861), (16, 153)])
def test_the_polynomial_map_has_the_printed_size_and_kernel(inputs, columns):
    x = np.random.default_rng(0).normal(size=(5, inputs))
    mapped = datasets.polynomial(x)
    assert mapped.shape == (5, columns)
    np.testing.assert_allclose(mapped @ mapped.T, (x @ x.T + 1.0) ** 2)


def test_normalized_and_homogeneous():
    x = np.random.default_rng(1).normal(size=(6, 2))
    X = datasets.homogeneous(x)
    np.testing.assert_allclose(X @ X.T, (x @ x.T) ** 2)
    for signed in (X, -X):
        assert np.abs(datasets.normalized(signed)).max() == 1.0


def test_the_toy_has_as_many_points_as_the_paper():
    x, data = datasets.ellipse()
    assert x.shape == (1727, 2)
    assert data.X.shape == (1727, 3)


def test_the_patterns_of_the_picture_are_those_of_the_solver():
    _, data = datasets.ellipse(1000)
    steps = list(toy.history(Problem(data.X, data.y)))
    for step in steps[:-1]:
        assert len(step["patterns"]) == step["active"]
    sizes = [step["active"] for step in steps]
    assert sizes[0] == len(data.y)
    assert sizes == sorted(sizes, reverse=True)


def test_libsvm_solves_the_same_problem():
    data = small_adult()
    _, c, b = libsvm.fit_libsvm(data.X, data.y, kernel="linear")
    theirs = Problem(data.X, data.y).certify(abs(c), data.X.T @ c, b)
    ours = methods.compare(data, {"": methods.unreduced()}, repeat=1)[""]
    assert theirs.relative_gap < 0.01
    assert abs(theirs.primal - ours["primal"]) <= 1e-3 * ours["primal"]


@pytest.fixture(scope="module")
def low_rank():
    """Small Adult, the Gaussian kernel's matrix, a map of EIGS and one of CHOL."""
    data = small_adult()
    maps = [lowrank.approximation(data, name, 40, 1)[0] for name in lowrank.METHODS]
    K = lowrank.kernel(data)(data.X, data.X)
    return data, K, maps


def test_errors_are_largest_row_sums_of_all_rows(low_rank, monkeypatch):
    data, K, maps = low_rank
    monkeypatch.setattr(
        lowrank, "TILE", 100 * len(data.y)
    )  # several tiles, the last short
    found = lowrank.errors(data, maps)
    for error, z in zip(found, maps, strict=True):
        rest = K - z.features @ z.features.T
        expected = np.linalg.norm(rest, np.inf) / np.linalg.norm(K, np.inf)
        assert error == pytest.approx(expected, rel=1e-9)
        assert error == pytest.approx(z.error, rel=1e-9)
    assert found[0] < found[1]  # EIGS is nearer at equal rank


def test_scores_with_the_kernel(low_rank):
    data, K, _ = low_rank
    c = np.random.default_rng(2).normal(size=len(data.y))
    c[::3] = 0.0
    found = lowrank.scores(data, data.X[:20], c, 0.5)
    np.testing.assert_allclose(found, K[:20] @ c + 0.5, rtol=0, atol=1e-9)
    assert lowrank.accuracy(np.array([-1.0, 0.0, 2.0, 3.0]), [-1, 1, 1, -1]) == 75.0


def test_libsvm_solves_the_same_gaussian_problem(low_rank):
    data, _, _ = low_rank
    kernel = lowrank.kernel(data)
    _, c, b = libsvm.fit_libsvm(data.X, data.y, kernel="rbf", gamma=kernel.gamma)
    certificate = Problem(data.X, data.y, kernel=kernel).certify(abs(c), c, b)
    assert certificate.relative_gap < 1e-3


@pytest.fixture
def small_pairs(monkeypatch):
    X, y = load_svmlight(SHIPPED, n_features=123)
    pair = [datasets.Dataset("a9a", X[k::32], y[k::32], 123) for k in (0, 1)]
    monkeypatch.setattr(Options, "pairs", lambda self, names: [pair])
    monkeypatch.setattr(Options, "sets", lambda self, names: pair[:1])


@pytest.mark.full
def test_low_rank_bounds_the_gaussian_problem(small_pairs, tmp_path):
    options = Options(ROOT, repeat=1)
    cases = [("EIGS", 40), ("CHOL", 40), ("CHOL", 200)]
    records = gaussian.records(options, ["a9a"], cases)
    best = next(r for r in records if r["method"] == gaussian.EXACT)
    for r in records:
        assert r["status"] == "solved"
        # K - Z Z' is positive semidefinite: the optimum is above, the exact dual below.
        assert r["dual"] <= best["primal"]
        assert best["dual"] <= r["primal"]
        assert 70 < r["accuracy"] < 100
    primal = {(r["map"], r["rank"]): r["primal"] for r in records}
    assert primal["EIGS", 40] < primal["CHOL", 40] > primal["CHOL", 200]
    assert not any("!" in line for line in gaussian.table(records))
    gaussian.draw(records, tmp_path)
    assert (tmp_path / "figure_5.8.png").stat().st_size > 5_000


@pytest.mark.full
def test_approximations_run_and_draw(small_pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(approximation, "RANKS", (5, 20, 80))
    records = approximation.run(Options(ROOT, repeat=1))
    for name in lowrank.METHODS:
        over_rank = [r for r in records if (r["over"], r["method"]) == ("rank", name)]
        errors = [r["error"] for r in over_rank]
        assert errors == sorted(errors, reverse=True)
    assert len(list(approximation.table(records))) == 1 + len(records)
    approximation.draw(records, tmp_path)
    assert (tmp_path / "figure_5.7.png").stat().st_size > 10_000


def test_pairs_need_their_test_rows(tmp_path):
    X, y = load_svmlight(SHIPPED, n_features=123)
    for name, splits in {"a1a": ("train",), "a2a": ("train", "test")}.items():
        (tmp_path / name).mkdir()
        for k, split in enumerate(splits):
            save_svmlight(X[k::64], y[k::64], tmp_path / name / f"{split}.svm")
    said = []
    options = Options(tmp_path, quick=True)
    ((train, test),) = options.pairs(("a1a", "a2a"), said.append)
    assert train.name == test.name == "a2a"
    np.testing.assert_array_equal(test.y, y[1::64][::8])
    assert said[0].startswith("a1a is skipped: there is no a1a/test.svm")


def test_a_mu_never_reached():
    history = {"mu": [1.0, 1e-3, 1e-5]}
    assert iterations.reached(history, 1e-2) == 1
    assert iterations.reached(history, 1e-9) is None


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sweep", [sweeps.BALANCE, sweeps.ADAPTIVE, sweeps.RULE])
def test_sweeps_run_and_draw(sweep, tmp_path, monkeypatch):
    data = datasets.ellipse(400)[1]
    monkeypatch.setattr(Options, "sets", lambda self, names: [data])
    records = sweep.run(Options(ROOT, quick=True, repeat=1))
    ours = [r for r in records if r["form"] == "repaired"]
    assert {r["status"] for r in ours} == {"solved"}
    assert any("!" not in line for line in sweep.table(records))
    sweep.draw(records, tmp_path)
    assert (tmp_path / f"{sweep.NAME}.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "figures",
    [
        ("figure_5.6",),
        pytest.param(("figure_5.6", "figure_5.9"), marks=pytest.mark.full),
    ],
)
def test_the_script_runs_and_says_what_it_skips(figures, tmp_path, capsys):
    data, output = tmp_path / "data", tmp_path / "output"
    (data / "a1a").mkdir(parents=True)
    X, y = load_svmlight(SHIPPED, n_features=123)
    save_svmlight(X[::16], y[::16], data / "a1a" / "train.svm")
    line = [
        "crsvm",
        "--quick",
        "--data",
        str(data),
        "--parts",
        ",".join(["figure_5.1", *figures]),
    ]
    main([*line, "--output", str(output)])
    said = capsys.readouterr().out
    assert "a5a is skipped: there is no a5a/train.svm[.bz2|.xz] in" in said
    assert "figure_5.1 is skipped: it has no data." in said
    written = {f.name for f in output.iterdir()}
    for name in figures:
        assert {f"{name}.json", f"{name}.png", f"{name}.txt"} <= written
    records = json.loads((output / "figure_5.6.json").read_text())["records"]
    assert {r["set"] for r in records} == {"a1a"}
    assert {r["method"] for r in records} >= {"CRSVM", "all rows", "LIBSVM"}
    assert all(r["above"] <= 1e-2 for r in records)


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["crsvm", "--parts", "figure_5.10"])
    assert "there is no part figure_5.10" in capsys.readouterr().err
