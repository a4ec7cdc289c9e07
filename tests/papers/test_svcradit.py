"""The reproduction of IRWLS-SVC at reduced size: its parts, its solvers, its data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.__main__ import arguments
from papers.svcradit import datasets, engines, methods, paper, svm_light
from papers.svcradit.paper import Options
from papers.svcradit.parts import selection, table_1, table_2, table_3
from widemargin import load_svmlight

ROOT = Path(__file__).parents[2]
ROW = datasets.Row("Gauss-M", "gauss", 100, 1, 0, 40, 0, 1.0, 2.0)


@pytest.fixture(scope="module")
def options():
    return Options(ROOT, quick=True, repeat=1, limit=20.0)


@pytest.fixture(scope="module")
def small():
    X, y = datasets.gauss(400)
    return X, y


@pytest.fixture
def only_gauss(monkeypatch):
    few = datasets.gauss(150)
    monkeypatch.setattr(Options, "sets", lambda self, rows: [(next(iter(rows)), *few)])


def test_gamma_is_that_of_platt():
    assert datasets.TABLE_3[0].gamma == 0.005


def test_the_two_gaussians_are_those_of_the_book():
    X, y = datasets.gauss()
    assert X.shape == (4000, 2)
    assert np.allclose(X[y > 0].mean(axis=0), 0.0, atol=0.1)
    assert np.allclose(X[y < 0].mean(axis=0), [2.0, 0.0], atol=0.15)
    assert np.allclose(X[y < 0].var(axis=0), 4.0, atol=0.4)


@pytest.mark.full
def test_every_solver_of_small_problems_ends_at_the_same_objective(small, options):
    found = {}
    names = (engines.PAIRS, engines.REWEIGHTED, engines.DENSE, engines.CLARABEL)
    for name in names:
        engine = engines.Timed(name)
        solver = engines.with_engine(engine, 60)
        found[name] = methods.ours(ROW, *small, solver, options, tol=1e-5)
        assert engine.calls == found[name]["sets"]
    assert {r["status"] for r in found.values()} == {"solved"}
    primal = [r["primal"] for r in found.values()]
    assert max(primal) - min(primal) <= 2e-5 * min(primal)


@pytest.mark.parametrize("q", [40, 100])
def test_the_interior_point_survives_few_rows(q):
    """Slacks stay positive where points come to a bound to rounding."""
    few, options = datasets.gauss(150), Options(ROOT, repeat=1, limit=1e4)
    solver = engines.with_engine(engines.Timed(engines.DENSE), q)
    found = methods.ours(ROW, *few, solver, options, tol=1e-5)
    best = methods.ours(ROW, *few, methods.policy("violation", 0.5), options, tol=1e-5)
    assert found["status"] == "solved"
    assert found["primal"] == pytest.approx(best["primal"], rel=2e-5)


def test_on_equal_problems_all_reach_what_is_asked(small, options):
    _, seen = table_2._whole(ROW, *small, 60, engines.PAIRS, options)
    names = (engines.PAIRS, engines.REWEIGHTED, engines.DENSE)
    for name, numbers in table_2._equal(seen, names).items():
        assert numbers["left"] <= 1.01, name
        assert -1e-9 <= numbers["lost"] < 1, name


def test_carrying_beats_pure_largest_violation_with_a_large_C(small, options):
    sets = {
        carry: methods.ours(
            ROW, *small, methods.policy("violation", carry, 40), options
        )["sets"]
        for carry in (0.0, 0.5)
    }
    assert sets[0.5] < sets[0.0]


def test_libsvm_solves_the_same_problem(small, options):
    mine = methods.ours(ROW, *small, methods.policy("violation", 0.5), options)
    theirs = methods.libsvm(ROW, *small, options)
    assert theirs["gap"] < 1e-3
    assert theirs["primal"] == pytest.approx(mine["primal"], rel=1e-3)
    assert abs(theirs["vectors"] - mine["vectors"]) <= 5


def test_missing_data_are_said_and_left_out():
    said = []
    rows = [r for r, _, _ in Options(ROOT / "none").sets(datasets.TABLE_3, said.append)]
    assert {r.name for r in rows} == {"gauss"}
    assert any("a6a" in line for line in said)


def test_support_vectors_of_adult_1_are_those_of_libsvm():
    """On part of a9a, which is shipped: the counts of two solvers at equal C and sigma."""
    X, y = load_svmlight(ROOT / "examples" / "data" / "a9a.svm.bz2")
    row = datasets.TABLE_3[2]
    options = Options(ROOT, repeat=1, limit=20.0)
    solver = methods.policy("violation", 0.5)
    mine = methods.ours(row, X[:500], y[:500], solver, options, tol=1e-6)
    theirs = methods.libsvm(row, X[:500], y[:500], options, tol=1e-5)
    assert abs(mine["vectors"] - theirs["vectors"]) <= 3


@pytest.mark.one_of(3)
@pytest.mark.parametrize("part", [table_2, selection, table_1, table_3])
def test_tables_and_pictures(part, only_gauss, options, tmp_path, monkeypatch):
    monkeypatch.setattr(table_2, "SIZES", (20, 40))
    monkeypatch.setattr(selection, "CASES", ((ROW, (20, 40)),))
    monkeypatch.setattr(table_1, "PRICES", (0.1,))
    options = replace(options, limit=0.5)
    records = part.run(options)
    assert records
    part.draw(records, tmp_path)
    assert (tmp_path / f"{part.NAME}.png").exists() or part is table_1
    assert len(list(part.table(records))) >= 3


def test_table_1_counts_what_settles_and_how_the_others_end(options, monkeypatch):
    monkeypatch.setattr(table_1, "PRICES", (10.0,))
    records = {(r["C"], r["reading"]): r for r in table_1.run(options)}
    for r in records.values():
        assert len(r["passes"]) + len(r["left"]) == r["problems"] == 2
        assert len(r["periods"]) == len(r["left"])
        assert all(v > table_1.STOP for v in r["left"])
    assert not records[10.0, "as printed"]["passes"]
    assert len(records[10.0, "exact errors"]["passes"]) == 2
    lines = "\n".join(table_1.table(list(records.values())))
    assert "2 change" in lines


def test_the_middle_one_of_the_seeds_is_on_record(small):
    options = Options(ROOT, repeat=1, limit=20.0, seeds=3)
    found = methods.of_seeds(ROW, *small, methods.policy("random", 0.0, 60), options)
    sets = sorted(n for n, _, _ in found["seeds"])
    assert len(sets) == 3
    assert found["sets"] == sets[1]


def test_columns_of_table_2_leave_less_for_the_whole_than_for_the_parts():
    """Our reading of the damaged columns: the optimizer is a part of the whole."""
    for whole, whole_irwls, loqo, irwls in datasets.TABLE_2_SECONDS.values():
        assert loqo < whole
        assert irwls < whole_irwls < whole


def test_svm_light_is_scored_by_the_certificate(small, tmp_path):
    """A program in its place that answers zero, in SVM-light's words."""
    program = tmp_path / "svm_learn"
    program.write_text(
        "#!/bin/sh\n"
        "for last; do model=$data; data=$last; done\n"  # data, model: the last two
        "while [ $1 != -a ]; do shift; done\n"
        'wc -l < "$model" | xargs seq | sed s/.*/0/ > "$2"\n'
        'echo "0.5 # threshold b" > "$data"\n'
        'echo "Runtime in cpu-seconds: 0.25"\n'
    )
    program.chmod(0o755)
    found = svm_light.svm_light(program, ROW, *small, 20.0)
    assert found["seconds"] == 0.25
    assert found["vectors"] == 0
    y = small[1]
    assert found["primal"] == pytest.approx(ROW.C * np.maximum(0, 1 + 0.5 * y).sum())


def test_parts_are_known():
    assert arguments(paper, ["--parts", "table_2"]).parts == [table_2]
    with pytest.raises(SystemExit):
        arguments(paper, ["--parts", "table_9"])
