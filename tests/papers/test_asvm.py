"""The reproduction of ASVM at reduced size: its parts, and what holds at any size."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from papers.__main__ import main
from papers.asvm import apart, conic, datasets, methods, others
from papers.asvm.paper import Options
from papers.asvm.parts import faces, growth, ndc, quadratic, sweeps, uci
from papers.crsvm.datasets import Dataset
from widemargin import load_svmlight, make_ndc, save_svmlight

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "examples" / "data" / "a9a.svm.bz2"


def small_adult():
    X, y = load_svmlight(SHIPPED, n_features=123)
    return Dataset("a9a", X[::16], y[::16], 123)


@pytest.fixture(scope="module", params=[0.01, 1.0])
def found(request):
    X, y = make_ndc(60_000)
    return methods.compare(X, y, request.param, methods.SOLVERS, repeat=1)


def test_on_clusters_a_few_steps_are_exact_without_safeguards(found):
    published = found[methods.PUBLISHED]
    assert published["status"] == "solved"
    assert published["safeguards"] == 0
    assert published["iterations"] <= 7


def test_all_methods_find_the_same_objective(found):
    primal = [numbers["primal"] for numbers in found.values()]
    assert {numbers["status"] for numbers in found.values()} == {"solved"}
    assert max(primal) - min(primal) <= 2e-8 * min(primal)


def test_a_sample_as_start_saves_sweeps_of_all_rows(found):
    assert found[methods.DEFAULT]["sweeps"] < found[methods.ZERO]["sweeps"]


def test_the_steps_do_not_grow_with_the_rows():
    steps = []
    for m in (10_000, 100_000):
        X, y = make_ndc(m)
        answer = methods.compare(X, y, methods.NU, [methods.PUBLISHED], repeat=1)
        steps.append(answer[methods.PUBLISHED]["iterations"])
    assert max(steps) <= min(steps) + 2


@pytest.mark.parametrize("storage", [np.int16, np.float32])
def test_the_storage_of_integers_changes_nothing(storage):
    X, y = make_ndc(20_000)
    primal = [
        methods.compare(rows, y, methods.NU, [methods.DEFAULT], repeat=1)
        for rows in (X, X.astype(storage))
    ]
    first, second = (p[methods.DEFAULT]["primal"] for p in primal)
    assert second == pytest.approx(first, rel=1e-8)


def test_the_problem_is_that_of_liblinear():
    """C = nu / 2, b = -gamma."""
    data = small_adult()
    nu = 0.3
    other = LinearSVC(C=nu / 2, loss="squared_hinge", dual=False, tol=1e-10)
    other.fit(data.X, data.y)
    problem = methods.as_problem(data.X, data.y, nu)
    ours = methods.compare(data.X, data.y, nu, [methods.PUBLISHED], repeat=1)
    theirs = problem.primal(other.coef_[0], other.intercept_[0])
    assert ours[methods.PUBLISHED]["primal"] == pytest.approx(theirs, rel=1e-7)


def test_where_the_short_form_is_exact():
    """It is with a small nu; with a large one on nearly separable rows it is not."""
    data = next(d for d in datasets.small() if d.name.startswith("digits"))
    small, large = (faces._behavior(data, nu) for nu in (1e-2, 1e2))
    assert faces.exact(small)
    assert small["safeguards"] == 0
    assert not faces.exact(large)
    assert large["safeguards"] > 0
    assert large["status"] == "solved"
    assert large["left"] == 0


def test_memory_and_passes_are_measured_in_a_process_apart():
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is read from /proc")
    record = apart.measured(
        rows=50_000, dtype="int16", method=methods.DEFAULT, nu=methods.NU, repeat=1
    )
    assert record["status"] == "solved"
    assert record["pass_by"] == "rows.matvec"
    assert 0 < record["passes_made"] + record["passes_stepped"] < record["passes"]
    assert record["vectors"] > 0
    assert 80 < record["train"] <= 100
    assert 80 < record["test"] <= 100


def test_folds_are_a_partition():
    parts = list(uci.folds(103, uci.FOLDS))
    tests = np.concatenate([test for _, test in parts])
    assert sorted(tests) == list(range(103))
    for train, test in parts:
        assert len(train) + len(test) == 103
        assert not set(train) & set(test)


def test_the_cells_of_tic_tac_toe():
    np.testing.assert_array_equal(
        datasets.crosses(np.array([[0.0, 1.0, 2.0]])), [[0.0, -1.0, 1.0]]
    )


def test_packages_reach_the_gap_on_the_same_problem():
    data = small_adult()
    said = []
    ladders = others.ladders(said.append)
    assert any("sklearnex" in line for line in said)
    problem = methods.as_problem(data.X, data.y, 0.1)
    race = others.Race(problem, data.X, data.y, 0.05, goal=1e-5, limit=10.0)
    for label in ("LIBLINEAR, primal", "LIBLINEAR (scikit-learn), dual"):
        answer = race.run(ladders[label])
        assert -1e-9 < answer.gap <= 1e-5, label


@pytest.mark.parametrize("problem", [methods.as_problem, methods.ordinary])
def test_a_quadratic_program_has_the_same_answer(problem):
    data = small_adult()
    X, y, nu = data.X.toarray(), data.y, 0.1
    C = problem(X, y, nu).C[0]
    race = others.Race(problem(X, y, nu), X, y, C, goal=1e-6, limit=30.0)
    assert -1e-9 < race.run((conic.fit, conic.LADDER)).gap <= 1e-6


def test_a_peer_that_is_too_slow_is_asked_no_finer():
    data = small_adult()
    problem = methods.as_problem(data.X, data.y, 0.1)
    race = others.Race(problem, data.X, data.y, 0.05, goal=0.0, limit=0.0)
    ladder = others.ladders(lambda _: None)["LIBLINEAR, primal"]
    assert race.run(ladder).gap > 1e-9  # the first setting


def test_cross_validation_gives_every_method_a_record(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    data = Dataset("toy", rng.normal(size=(60, 3)) + y[:, None], y, 3)
    monkeypatch.setattr(Options, "sets", lambda self, names: [data])
    monkeypatch.setattr(uci, "NUS", np.array([0.1, 1.0]))
    records = uci.run(Options(ROOT, quick=True, repeat=1))
    found = {r["method"]: r for r in records}
    assert {methods.PUBLISHED, methods.DEFAULT, uci.ORDINARY} <= set(found)
    for label in (methods.PUBLISHED, methods.DEFAULT):
        assert found[label]["gap"] <= uci.GOAL
    assert found[methods.PUBLISHED]["test"] == found[methods.DEFAULT]["test"]
    assert len(list(uci.table(records))) == 1 + len(records)


def test_quadratic_programs_have_the_folds_of_the_others(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    data = Dataset("toy", rng.normal(size=(60, 3)) + y[:, None], y, 3)
    monkeypatch.setattr(Options, "sets", lambda self, names: [data])
    monkeypatch.setattr(uci, "NUS", np.array([0.1, 1.0]))
    records = quadratic.run(Options(ROOT, quick=True))
    found = {(r["problem"], r["method"]): r for r in records}
    assert len(found) == len(records) == 6
    for label in ("(7)", "(2)"):
        ours, theirs = found[label, methods.DEFAULT], found[label, quadratic.CLARABEL]
        assert max(ours["gap"], theirs["gap"]) <= uci.GOAL
        assert ours["nu"] == theirs["nu"]
        assert ours["test"] == theirs["test"]
    assert len(list(quadratic.table(records))) == 1 + len(records)


def test_growth_exponents():
    records = [
        {"dtype": "float64", "rows": m, "method": "x", "seconds": 1e-6 * m**1.2}
        | {"pass": 1e-9 * m, "iterations": 3, "status": "solved"}
        for m in (1000, 10_000, 100_000)
    ]
    slopes = growth.exponents(records)
    assert slopes["float64", "x"] == pytest.approx(1.2)
    assert slopes["float64", "one pass"] == pytest.approx(1.0)
    assert "1.20" in list(growth.table(records))[-1]


@pytest.mark.parametrize(
    "more", [(), pytest.param(("growth",), marks=pytest.mark.full)]
)
def test_the_script_runs_and_says_what_it_skips(more, tmp_path, capsys, monkeypatch):
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is read from /proc")
    monkeypatch.setattr(ndc, "DTYPES", ("int16",))
    monkeypatch.setattr(growth, "DTYPES", ("float64",))
    monkeypatch.setattr(growth, "METHODS", (methods.DEFAULT,))
    small = {"sizes": (4000,), "growth": (500, 1000), "repeat": 1}
    monkeypatch.setattr(Options, "QUICK", small)
    folder, output = tmp_path / "data", tmp_path / "output"
    (folder / "a1a").mkdir(parents=True)
    X, y = load_svmlight(SHIPPED, n_features=123)
    save_svmlight(X[::16], y[::16], folder / "a1a" / "train.svm")
    line = [
        "asvm",
        "--quick",
        "--data",
        str(folder),
        "--parts",
        ",".join(["ndc", *more, "sweeps", "uci", "adult"]),
    ]
    main([*line, "--output", str(output)])
    said = capsys.readouterr().out
    assert "a2a is skipped: there is no a2a/train.svm[.bz2|.xz] in" in said
    assert "uci is skipped: it has no data." in said
    written = {f.name for f in output.iterdir()}
    pictures = {f"{part}.png" for part in ("sweeps", "adult", *more)}
    assert {"ndc.json", "adult.txt", *pictures} <= written
    records = json.loads((output / "adult.json").read_text())["records"]
    assert {r["set"] for r in records} == {"a1a"}
    again = (output / "ndc.txt").read_text()
    main(["asvm", "--redraw", "--parts", "ndc", "--output", str(output)])
    assert (output / "ndc.txt").read_text() == again


def test_sweeps_are_counted_until_a_gap():
    record = {"sweeps": [1, 3, 4], "gap": [0.5, 1e-3, 1e-9]}
    assert sweeps._reached(record, 1e-2) == 3
    assert sweeps._reached(record, 1e-12) == "-"


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["asvm", "--parts", "table_2"])
    assert "there is no part table_2" in capsys.readouterr().err
