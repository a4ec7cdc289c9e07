"""The reproduction of the Frank-Wolfe paper at reduced size: data, methods, tests."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers.__main__ import main
from papers.frank_wolfe import datasets, methods, ranks
from papers.frank_wolfe.datasets import CVM, FW, METHODS, MFW, TABLE, Data
from papers.frank_wolfe.paper import PARTS, Options
from papers.frank_wolfe.parts import rates, tables_2_3, tuning
from widemargin import load_svmlight, save_svmlight

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "examples" / "data" / "a9a.svm.bz2"


@pytest.fixture(scope="module")
def adult():
    return load_svmlight(SHIPPED, n_features=123)


@pytest.fixture(scope="module")
def folder(adult, tmp_path_factory):
    """Files in place of three sets: two of a series, and one of several classes."""
    X, y = adult
    made = tmp_path_factory.mktemp("data")
    for k, name in enumerate(("a1a", "a2a", "reuters")):
        (made / name).mkdir()
        for part, split in enumerate(("train", "test")):
            some = np.arange(
                1000 * k + 300 * part, 1000 * k + 300 * part + 150 + 50 * k
            )
            save_svmlight(X[some], y[some], made / name / f"{split}.svm")
    (made / "mnist").mkdir()
    random = np.random.default_rng(0)
    for split in ("train", "test"):
        labels = np.repeat(np.arange(3), 30)
        pixels = random.integers(0, 90, (90, 784)) + 80 * (
            labels[:, None] == np.arange(784) % 3
        )
        np.savez(made / "mnist" / f"{split}.npz", X=pixels.astype(np.uint8), y=labels)
    return made


@pytest.fixture(scope="module")
def options(folder):
    return Options(folder, quick=True, repeat=1, limit=0.3)


def test_statistics_of_the_paper_follow_from_its_tables():
    """W and F of times to the digits printed; accuracies have only two decimals."""
    for kind, values in (("time", "seconds"), ("accuracy", "accuracy")):
        columns = {
            m: [getattr(row, values)[k] for row in TABLE] for k, m in enumerate(METHODS)
        }
        found = [statistic for _, statistic, *_ in ranks.tests(columns, kind)]
        slack = {"time": 1e-3, "accuracy": 0.08}[kind]
        assert found == pytest.approx(ranks.PRINTED[kind][0], rel=slack), kind


def test_equal_methods_are_not_told_apart():
    assert ranks.wilcoxon(np.ones(3), np.ones(3), "less") == (0.0, 1.0)
    F, p = ranks.friedman(np.array([[1.0, 2, 3, 4], [2.0, 1, 4, 3], [1.5, 1.5, 3, 4]]))
    assert 0 <= F < 1
    assert p > 0.3


def test_a_missing_value_leaves_its_set_out():
    values = {
        CVM: [5.0, 6, 7, 8, 9],
        FW: [1.0, 2, 3, 4, np.nan],
        MFW: [2.0, 3, 4, 5, 6],
    }
    found = {name: (w, p) for name, w, p, _ in ranks.tests(values, "time")}
    assert found["FW, CVM"] == (0.0, pytest.approx(1 / 16))
    assert found["MFW, CVM"] == (0.0, pytest.approx(1 / 32))


def test_kdd_has_five_categories_and_the_sizes_of_the_paper(tmp_path):
    codes = np.tile(np.arange(40), 5)
    X = np.zeros((200, 119))
    X[:, 3], X[:, 7] = 1e9, np.arange(200)
    (tmp_path / "kdd99_10pc").mkdir()
    save_svmlight(X, codes, tmp_path / "kdd99_10pc" / "train.svm")
    data = datasets.read(tmp_path, "kdd99_10pc")
    assert set(np.unique(np.concatenate([data.y, data.y_test]))) == {0, 1, 2, 3, 4}
    assert (len(data.y), len(data.y_test)) == (160, 40)
    assert abs(data.X).max() == 1.0


def test_a_part_has_every_class(folder):
    data = datasets.read(folder, "mnist")
    few = data.part(9)
    assert len(few.y) == 9
    assert set(few.y) == {0, 1, 2}
    assert few.X_test.shape == data.X_test.shape


def test_the_C_of_the_paper_weighs_half(folder, options):
    data = datasets.read(folder, "a1a")
    assert methods.rbf(4.0)["C"] == 2.0
    one = methods.train(data, methods.rbf(4.0), methods.by_gap(CVM), 20.0, 1e-6)
    assert one.gap <= 1e-6
    assert not one.over


def test_methods_agree_at_a_small_gap(folder):
    data = datasets.read(folder, "a2a")
    asked = (methods.DEFAULT, CVM, MFW, methods.PAIRWISE)
    primal = [
        methods.train(data, methods.rbf(2.0), methods.by_gap(m), 20.0, 1e-5).primal
        for m in asked
    ]
    assert max(primal) - min(primal) <= 2e-5 * min(primal)


@pytest.mark.parametrize("method", [CVM, MFW])
def test_the_rule_of_the_paper_ends_a_run(folder, method):
    data = datasets.read(folder, "a2a")
    solver = methods.by_paper(method)
    one = methods.train(data, methods.rbf(16.0), solver, 20.0, methods.NO_GAP)
    assert not one.over
    assert (one.balls, one.ended, one.pairs) == (1, 1, 1)
    assert 0 < one.vectors <= one.coreset <= len(data.y)


@pytest.mark.parametrize("method", [CVM, MFW])
@pytest.mark.parametrize(
    ("way", "drawn"),
    [(methods.ONE, (59, False, 1)), (methods.TURNS, (59, True, 7))],
)
def test_what_a_step_looks_at(folder, method, way, drawn):
    data = datasets.read(folder, "a2a")
    solver = methods.by_paper(method, way=way)
    assert (solver.sample, solver.balanced, solver.tries) == drawn
    one = methods.train(data, methods.rbf(16.0), solver, 20.0, methods.NO_GAP)
    assert one.balls == 1
    assert one.gap < 1e-2  # of few rows a sample sees most
    assert methods.by_paper(method, way=methods.ALL).sample is None


def test_a_run_over_its_limit_is_said(folder):
    data = datasets.read(folder, "a2a")
    one = methods.train(data, methods.rbf(64.0), methods.by_gap(FW), 0.05, 1e-9)
    record = methods.summed([one], 0.05)
    assert record["over"]
    assert methods.seconds(record) == "> 0.05"


def test_a_solver_that_does_not_look_is_interrupted():
    with pytest.raises(KeyboardInterrupt), methods.interrupted_after(0.05):
        time.sleep(10.0)


def test_there_is_no_other_run_after_one_over_the_limit(folder, monkeypatch):
    late = methods.Run(9.0, 0.1, 1.0, 90.0, True, 1, 1, 1, 3, 2, 2)
    monkeypatch.setattr(methods, "train", lambda *_: late)
    record = methods.repeated(
        None, None, lambda seed: None, Options(folder, repeat=5, limit=8.0), 1e-3
    )
    assert record["runs"] == 1
    assert methods.seconds(record) == "> 8, 2 of 3"


def test_speed_ups_where_a_method_came_to_no_end():
    r = {"seconds": 2.0, "over": False}
    found = {CVM: {**r, "seconds": 8.0, "over": True}, FW: r, MFW: {**r, "over": True}}
    assert tables_2_3._times_faster(found, FW) == "> 4"
    assert tables_2_3._times_faster(found, MFW) == "-"


def test_missing_data_are_said_and_left_out(folder):
    said = []
    rows = Options(folder).sets([row.name for row in TABLE], said.append)
    assert [row.name for row, _ in rows] == ["a1a", "a2a", "reuters", "mnist"]
    assert any("w8a is skipped" in line for line in said)


def test_validation_rows_are_not_trained_on():
    X = np.arange(100.0)[:, None]
    part = tuning.split(Data(X, np.arange(100), None, None))
    assert len(part.y_test) == 30
    assert not set(part.y) & set(part.y_test)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.NAME)
def test_tables_and_pictures(part, options, tmp_path, monkeypatch):
    options = replace(options, limit=0.03)
    monkeypatch.setattr(tuning, "GRID", (1.0, 4.0, 16.0))
    monkeypatch.setattr(rates, "SETS", ("a1a",))
    records = part.run(options)
    assert records, part.NAME
    part.draw(records, tmp_path)
    assert (tmp_path / f"{part.NAME}.png").exists()
    assert len(list(part.table(records))) >= 3
    assert part is not tables_2_3 or (tmp_path / "tables_2_3_adult.png").exists()


def test_rates_where_no_run_took_a_step(options, tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "SETS", ("a1a",))
    records = rates.run(replace(options, limit=1e-9))
    assert not any(r["steps"] for r in records)
    assert len(list(rates.table(records))) == 2 + len(records)
    rates.draw(records, tmp_path)
    assert (tmp_path / "rates.png").exists()


def test_pictures_where_every_run_was_given_up(folder, tmp_path):
    options = Options(folder, quick=True, repeat=1, limit=1e-4, names=("a1a",))
    records = tables_2_3.run(options)
    assert all(r["over"] for r in records)
    tables_2_3.draw(records, tmp_path)
    assert (tmp_path / "tables_2_3_adult.png").exists()


def test_the_script_takes_names_of_sets(folder, tmp_path, capsys):
    line = ["frank_wolfe", "--quick", "--data", str(folder), "--output", str(tmp_path)]
    main([*line, "--parts", "table_1", "--names", "a1a"])
    assert "a1a" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["frank_wolfe", "--parts", "table_9"])
