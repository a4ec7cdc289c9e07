"""Small fits beside other packages: their gaps, the table and the picture."""

import json
from argparse import Namespace
from itertools import combinations

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import widemargin
from benchmarks.kernel import small, small_sets, small_tables

# scikit-learn has one of tol=1e-3, and LIBLINEAR's coordinate descent one of 1e-4.
LARGEST = 2e-2


@pytest.fixture
def options(tmp_path):
    return Namespace(
        sets=["iris", "moons-100"],
        kinds=list(small.KINDS),
        C=[1.0, 10.0],
        jobs=[2, 1],
        data=None,
        rounds=1,
        limit=1.0,
        output=tmp_path,
        peers=[small.OURS, "sklearn"],
    )


def test_every_fit_is_measured_and_certified(options):
    runs = list(small.measure(options))
    fits = {small_tables.key_of(run) for run in runs}
    # Iris by the kernel and two linear losses, the moons by the kernel only.
    assert len(fits) == len(runs) == (3 + 1) * 2 * 3
    for run in runs:
        assert run["seconds"] > 0.0
        assert -1e-6 <= run["gap"] <= LARGEST, run
        if run["peer"] == small.OURS:
            assert run["gap"] <= run["claimed"] + 1e-9 <= small.TOL + 1e-9


def test_the_table_and_the_picture(options):
    runs = small.in_order(small.measure(options))
    about = {"cpu": "one", "cores": 1, "load": 0.0, "versions": {}}
    file = options.output / "small.json"
    file.write_text(small.as_json(about, runs))
    lines = small_tables.write_results(options.output)
    assert json.loads(file.read_text())["runs"] == runs
    assert sum(line.startswith("iris") for line in lines) == 6
    assert any(line.startswith("rbf, ours 2 / sklearn: geometric") for line in lines)
    assert any(line.startswith("linear, ours 1 / sklearn") for line in lines)
    assert (options.output / "small.png").stat().st_size > 1000


def test_means_leave_out_what_was_not_measured():
    def run(peer, jobs, seconds, m, name):
        about = {"set": name, "kind": "rbf", "C": 1.0, "m": m}
        return {**about, "peer": peer, "jobs": jobs, "seconds": seconds}

    runs = [
        run(small.OURS, 2, 1.0, 100, "a"),
        run("sklearn", 1, 2.0, 100, "a"),
        run(small.OURS, 2, 1.0, 1000, "b"),
        run("sklearn", 1, 8.0, 1000, "b"),
        run(small.OURS, 2, 1.0, 1000, "c"),
    ]
    (line,) = small_tables.means(runs)
    assert "mean 4.00 of 2" in line
    assert "rows on 8.00 of 1; least 2.00" in line


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_coefficients_of_a_pair_make_its_decisions(classes, kind):
    """K c + b is what LIBSVM says of every pair of classes, for either package."""
    X, y = make_blobs(120, centers=classes, cluster_std=4.0, random_state=0)
    K = rbf_kernel(X, gamma=0.1)
    theirs = sklearn.svm.SVC(gamma=0.1, tol=1e-8, decision_function_shape="ovo")
    ours = widemargin.SVC(gamma=0.1, tol=1e-8)
    expected = theirs.fit(kind(X), y).decision_function(kind(X)).reshape(len(y), -1)
    pairs = list(combinations(range(classes), 2))
    assert expected.shape[1] == len(pairs)
    for model, atol in ((theirs, 1e-10), (ours.fit(kind(X), y), 1e-3)):
        for k, pair in enumerate(pairs):
            scores = K @ small.of_pair(model, y, pair) + model.intercept_[k]
            np.testing.assert_allclose(scores, expected[:, k], atol=atol)


def test_a_worse_answer_has_a_larger_gap():
    X, y = make_blobs(90, centers=3, cluster_std=4.0, random_state=0)
    good = sklearn.svm.SVC(gamma=0.1, tol=1e-6).fit(X, y)
    bad = sklearn.svm.SVC(gamma=0.1, tol=0.5).fit(X, y)
    gaps = small.certified(X, y, "rbf", 1.0, 0.1, {"good": good, "bad": bad})
    assert gaps["good"] < 1e-4 < 1e-2 < gaps["bad"]


def test_gamma_of_scale_is_that_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(50, 3)) + 1.0
    y = np.arange(50) % 2
    model = sklearn.svm.SVC(gamma="scale").fit(X, y)
    by_number = sklearn.svm.SVC(gamma=small.width(X, "scale")).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), by_number.decision_function(X), rtol=1e-10
    )
    assert small.width(sparse.csr_matrix(X), "scale") == small.width(X, "scale")
    assert small.width(X, 0.5) == 0.5


def test_a_package_over_the_limit_has_one_fit():
    X, y = make_blobs(60, random_state=0)
    models = {"only": sklearn.svm.SVC()}
    _, times = small.in_turns(models, X, y, rounds=3, limit=0.0)
    assert len(times["only"]) == 1


def test_sets_without_a_folder_are_left_out(options, capsys):
    options.sets = ["usps"]
    assert list(small.measure(options)) == []
    assert "usps: left out, usps needs --data FOLDER" in capsys.readouterr().out


def test_drawn_sets_are_as_large_as_they_say():
    X, y = small_sets.SETS["satellite"].read(None)
    assert X.shape == (4435, 36)
    assert len(np.unique(y)) == 6
