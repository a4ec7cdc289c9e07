"""Estimators on rows that stay in their files."""

import errno
import os
import pickle
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import LinearSVC, load_model, open_rows, save_model
from widemargin.estimators import labels
from widemargin.models import model
from widemargin.report import run, write_report


@pytest.fixture
def shards(binary, tmp_path):
    """The folder of a binary problem in three shards, with int8 labels."""
    X, y = binary
    folder = tmp_path / "shards"
    folder.mkdir()
    for k, part in enumerate(np.array_split(np.arange(len(y)), 3)):
        np.save(folder / f"X-{k}.npy", X[part])
        np.save(folder / f"y-{k}.npy", y[part].astype(np.int8))
    return folder


@pytest.fixture
def people(tmp_path):
    """Parquet with numbers, categories and words as labels."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 80, 300)})
    table["job"] = pd.Categorical(rng.choice(["clerk", "smith"], 300))
    rich = table["age"] / 20 + (table["job"] == "smith") + rng.normal(0, 0.1, 300) > 3
    table["rich"] = np.where(rich, "yes", "no")
    table.to_parquet(tmp_path / "people.parquet")
    return open_rows(tmp_path / "people.parquet", label="rich")


def test_the_fit_is_that_of_the_same_rows_in_memory(binary, shards):
    X, y = binary
    rows = open_rows(shards)
    stored = LinearSVC(tol=1e-8).fit(rows, rows.vector("label"))
    plain = LinearSVC(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(stored.coef_, plain.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(stored.predict(rows), plain.predict(X))
    np.testing.assert_allclose(
        stored.decision_function(rows), stored.decision_function(X), rtol=1e-12
    )
    assert stored.n_support_.sum() == len(stored.support_)
    assert stored.dual_coef_.shape == (1, len(stored.support_))
    w = stored.dual_coef_[0] @ rows.take(stored.support_)
    np.testing.assert_allclose(w, stored.coef_[0], atol=1e-3)


def test_support_vectors_stay_where_they_are(binary, shards, tmp_path):
    X, y = binary
    rows = open_rows(shards)
    clf = LinearSVC().fit(X, y)
    assert clf.support_vectors_.shape == (len(clf.support_), X.shape[1])
    clf.fit(rows, y)
    assert not hasattr(clf, "support_vectors_")
    words = r"rows that are not in memory; rows.take\(support_\) reads them\.$"
    with pytest.raises(AttributeError, match=words):
        clf.support_vectors_
    with pytest.raises(AttributeError, match="it has not been fitted"):
        LinearSVC().support_vectors_
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.coef_, clf.coef_)
    save_model(clf, tmp_path / "m.wm")
    np.testing.assert_array_equal(
        load_model(tmp_path / "m.wm").predict(rows), clf.predict(rows)
    )


def test_names_are_those_of_the_columns(people):
    y = people.vector("label")
    clf = LinearSVC().fit(people, y)
    assert clf.feature_names_in_.tolist() == ["age", "job=clerk", "job=smith"]
    assert clf.n_features_in_ == 3
    assert clf.classes_.tolist() == ["no", "yes"]
    assert clf.model_.meta["feature_names"] == ["age", "job=clerk", "job=smith"]
    assert clf.score(people, y) > 0.95
    clf.fit(np.arange(4.0)[:, np.newaxis], [0, 0, 1, 1])
    assert not hasattr(clf, "feature_names_in_")


def test_advice_uses_the_names(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((50, 3)), columns=["a", "b", "c"])
    table["b"] *= 1e6
    table["y"] = rng.integers(0, 2, 50)
    table.to_parquet(tmp_path / "t.parquet")
    rows = open_rows(tmp_path / "t.parquet", label="y")
    with pytest.warns(ConvergenceWarning, match=r"Feature\(s\) b are up to"):
        LinearSVC(loss="hinge", max_iter=1).fit(rows, rows.vector("label"))
    table["c"] = np.nan
    table.to_parquet(tmp_path / "n.parquet")
    with pytest.raises(ValueError, match="expected a value in column 'c'"):
        LinearSVC().fit(open_rows(tmp_path / "n.parquet", label="y"), table["y"])


def test_columns_of_a_matrix_keep_their_numbers(binary, tmp_path):
    X, y = binary
    X = np.column_stack([y, X])
    X[7, 3] = np.inf
    np.save(tmp_path / "X.npy", X)
    rows = open_rows(tmp_path / "X.npy", label=0)
    with pytest.raises(ValueError, match="Got infinity at row 7, column '3' instead"):
        LinearSVC().fit(rows, rows.vector("label"))


def test_rows_of_other_columns_are_refused(people, shards, tmp_path):
    clf = LinearSVC().fit(people, people.vector("label"))
    with pytest.raises(ValueError, match=r"^X has 30 features, but the model expects"):
        clf.predict(open_rows(shards))
    table = pd.read_parquet(tmp_path / "people.parquet")
    table = table.rename(columns={"age": "years"})
    table.to_parquet(tmp_path / "years.parquet")
    words = "^X must have the columns of the training data, in their order. Got 'years'"
    with pytest.raises(ValueError, match=words):
        clf.predict(open_rows(tmp_path / "years.parquet", label="rich"))


def test_weights_and_classes_are_those_of_rows_in_memory(shards, iris, tmp_path):
    X, y = iris
    np.save(tmp_path / "X.npy", X)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"class_weight": "balanced", "tol": 1e-6}
    rows = open_rows(tmp_path / "X.npy")
    stored = LinearSVC(**options).fit(rows, y, weights)
    plain = LinearSVC(**options).fit(X, y, weights)
    np.testing.assert_allclose(stored.coef_, plain.coef_, rtol=1e-2, atol=1e-3)
    np.testing.assert_array_equal(stored.predict(rows), plain.predict(X))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float64", "bool", "U2"])
def test_labels_are_read_in_parts(monkeypatch, dtype):
    monkeypatch.setattr(labels, "_CHUNK", 7)
    monkeypatch.setattr(model, "_CHUNK", 7)
    X = np.arange(60.0)[:, np.newaxis]
    y = (X[:, 0] > 29).astype(int).astype(dtype)
    clf = LinearSVC(loss="hinge").fit(X, y, np.ones(60))
    assert clf.classes_.tolist() == np.unique(y).tolist()
    assert clf.classes_.dtype == y.dtype
    np.testing.assert_array_equal(clf.predict(X), y)


def test_labels_of_a_regression_are_refused_wherever_they_are(monkeypatch):
    monkeypatch.setattr(labels, "_CHUNK", 7)
    y = np.arange(20.0) % 2
    y[18] = 0.5
    with pytest.raises(ValueError, match="continuous"):
        LinearSVC().fit(np.arange(20.0)[:, np.newaxis], y)


def test_classes_of_bytes_take_few_bytes_a_row():
    y = (np.arange(4_000_000) % 2).astype(np.int8)
    check = labels.Checker("fit")
    weights = labels.as_weights(check, None, len(y))
    tracemalloc.start()
    classes, index = labels.find_classes(check, labels.as_labels(check, y, len(y)),
                                         weights)  # fmt: skip
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert classes.tolist() == [0, 1]
    assert index.dtype == np.uint8
    assert most < 10 * len(y)  # the index, and what a part of the rows needs


def test_scores_are_all_that_predicting_takes(tmp_path):
    m = 500_000
    X = np.random.default_rng(0).integers(-9, 9, (m, 40)).astype(np.int8)
    np.save(tmp_path / "X.npy", X)
    clf = LinearSVC().fit(X[:200], X[:200, 0] > 0)
    rows = open_rows(tmp_path / "X.npy", n_jobs=1)
    tracemalloc.start()
    scores = clf.decision_function(rows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert scores.flags.writeable
    assert most < scores.nbytes + X.nbytes / 4 + 80e6  # a few blocks, as float64 too
    np.testing.assert_allclose(scores[:9], clf.decision_function(X[:9]))


def test_scores_may_be_in_files(binary, shards):
    X, _ = binary
    rows = open_rows(shards)
    rows._room = 0  # as where memory_limit leaves none
    clf = LinearSVC().fit(X, binary[1])
    scores = clf.decision_function(rows)
    scores += 1.0  # the caller's own
    np.testing.assert_allclose(scores - 1.0, clf.decision_function(X), rtol=1e-9)


# -- what goes wrong -------------------------------------------------------------------


def touched_later(folder, change):
    """A callback that changes the files of a folder once, between two sweeps."""

    def callback(step):
        if step.iteration == 1:
            change(folder / "X-1.npy")

    return callback


def rewrite(path):
    np.save(path, np.load(path) + 1.0)
    os.utime(path, ns=(1, 1))


def cut(path):
    os.truncate(path, 100)


@pytest.mark.parametrize("change", [rewrite, cut, os.unlink])
def test_a_file_that_changes_between_sweeps(shards, change):
    rows = open_rows(shards)
    clf = LinearSVC(callback=touched_later(shards, change))
    words = "(was changed while it was read|was there, but cannot be read any more)$"
    with pytest.raises(OSError, match=f"^{re.escape(str(shards))}/X-1.npy {words}"):
        clf.fit(rows, rows.vector("label"))
    assert not hasattr(clf, "coef_")


def test_a_disk_without_room(shards, monkeypatch, tmp_path):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    rows = open_rows(shards)
    rows._room = 0
    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    words = r"^no room for [\d,]+ bytes of row vectors in .*; set TMPDIR"
    with pytest.raises(OSError, match=words):
        LinearSVC().fit(rows, rows.vector("label"))
    assert [file.name for file in tmp_path.iterdir()] == ["shards"]


# -- the report ------------------------------------------------------------------------


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sample", [100, 1 << 18])
def test_the_report_of_rows_in_files(binary, shards, tmp_path, monkeypatch, sample):
    monkeypatch.setattr(run, "SAMPLE", sample)
    monkeypatch.setattr("widemargin.report.SAMPLE", sample)
    monkeypatch.setattr(run, "_CHUNK", 37)
    X, y = binary
    rows = open_rows(shards)
    clf = LinearSVC().fit(rows, y)
    write_report(tmp_path / "r.html", clf, rows, y, test=(rows, y))
    stored = (tmp_path / "r.html").read_text()
    write_report(tmp_path / "r.html", clf, X, y, test=(X, y))
    plain = (tmp_path / "r.html").read_text()
    right = re.findall(r"[\d,]+ of 569 test rows are right", plain)
    assert right == re.findall(r"[\d,]+ of 569 test rows are right", stored)
    assert ("Drawn are <span>100</span> rows" in stored) == (sample == 100)
    assert ("not counted in more than 100 rows in files" in stored) == (sample == 100)


def test_the_report_of_some_of_the_rows(binary, shards, tmp_path):
    X, y = binary
    mask = np.arange(len(y)) % 3 > 0
    chosen = open_rows(shards).select(mask)
    clf = LinearSVC().fit(chosen, y[mask])
    np.testing.assert_allclose(
        clf.decision_function(chosen), clf.decision_function(X[mask]), rtol=1e-9
    )
    write_report(tmp_path / "r.html", clf, chosen, y[mask])
    right = np.count_nonzero(clf.predict(X[mask]) == y[mask])
    assert f"{right} of {mask.sum()} training rows" in re.sub(
        "</?span>", "", (tmp_path / "r.html").read_text()
    )


def test_room_for_classes_and_weights_is_asked_for(tmp_path):
    """Each class has dual variables of its own; the limit that is named suffices."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 3)), rng.integers(0, 40, 100_000)
    np.save(tmp_path / "X.npy", X)
    limit = 17 << 20
    rows = open_rows(tmp_path / "X.npy", memory_limit=limit)
    with pytest.raises(ValueError, match="bytes, for 40 classes. Got ") as refused:
        LinearSVC(C=1e-3).fit(rows, y)
    enough = int(
        str(refused.value).split("at least ")[1].split(" ")[0].replace(",", "")
    )
    rows = open_rows(tmp_path / "X.npy", memory_limit=enough)
    LinearSVC(C=1e-3, tol=1.0).fit(rows, y)
    weights = rng.random(100_000).round(0)
    rows = open_rows(tmp_path / "X.npy", memory_limit=limit)
    with pytest.raises(ValueError, match="bytes, for weights of the rows. Got "):
        LinearSVC().fit(rows, y == 1, weights)
