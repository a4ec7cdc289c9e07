"""The command line with kernels."""

import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from tests.cases.cli import folder_with_data, refused
from tests.cases.report_pages import Page, words_only
from widemargin import SVC, load_model, load_svmlight, open_rows
from widemargin.cli import main
from widemargin.cli.datasets import Data, in_memory


@pytest.fixture
def here(tmp_path, monkeypatch):
    return folder_with_data(tmp_path, monkeypatch)


def test_train_inspect_predict(here, capsys):
    command = ["train", "train.svm", "m.wm", "--test", "test.svm", "--report", "r.html"]
    assert main([*command, "--kernel", "rbf", "--gamma", "0.05", "-C", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\nkernel rbf, gamma = 0.05\n" in out
    assert "by batch, because the problem is small (400 rows)" in out
    clf = SVC(gamma=0.05, C=2.0).fit(*load_svmlight("train.svm"))
    model = load_model("m.wm")
    np.testing.assert_array_equal(model.kernels.weights, clf.dual_coef_.toarray())

    assert main(["inspect", "m.wm"]) == 0
    lines = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()
    )
    assert lines["kernel"] == "rbf"
    assert lines["gamma"] == "0.05"
    assert main(["inspect", "m.wm", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["support_vectors"] == len(clf.support_)
    assert facts["support_vectors_by_class"] == clf.n_support_.tolist()

    assert main(["predict", "m.wm", "test.svm"]) == 0
    labels = np.array(capsys.readouterr().out.split(), float)
    X, y = load_svmlight("test.svm", n_features=30)
    np.testing.assert_array_equal(labels, clf.predict(X))
    assert np.mean(labels == y) > 0.95

    page = Page((here / "r.html").read_text())
    assert "An SVM with the kernel rbf (gamma = 0.05, hinge, C = 2) on" in page.text
    assert "Largest weights" not in page.text


def test_more_classes(here, capsys):
    options = ["--kernel", "poly", "--degree", "2", "--coef0", "1", "--json"]
    command = ["train", "three.svm", "m.wm", "--report", "r.html", *options]
    assert main(command) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["kernel"], facts["degree"], facts["coef0"]) == ("poly", 2, 1.0)
    assert len(facts["primal"]) == 3
    page = Page((here / "r.html").read_text())
    assert "pair of classes" in page.text
    assert "each of two classes" in page.text
    assert main(["train", "three.svm", "n.wm", *options[:-1]]) == 0
    out = capsys.readouterr().out
    assert "3 problems, one class against one: solved" in out
    assert re.search(r"\ntraining took [\d.]+ s\n", out)
    assert main(["predict", "m.wm", "three.svm", "--scores", "--output", "s.txt"]) == 0
    X, _ = load_svmlight("three.svm")
    scores = load_model("m.wm").decision_function(X)
    np.testing.assert_array_equal(np.loadtxt("s.txt"), scores)


@pytest.mark.parametrize("kind", [[], ["--kernel", "rbf"], ["--budget", "0.5"]])
def test_schemes_of_several_classes(here, capsys, kind):
    if "--budget" in kind:
        kind = ["--kernel", "rbf", *kind]
    for scheme, words in (("dag", "one"), ("ovo", "one"), ("ovr", "the rest")):
        command = ["train", "three.svm", "m.wm", "--multi-class", scheme, *kind]
        main([*command, "--tol", "0.1"])
        assert f"one class against {words}" in capsys.readouterr().out
        assert load_model("m.wm").scheme == scheme
    main([*command[:3], "--multi-class", "ovo", "--decision-shape", "ovo", *kind])
    assert main(["predict", "m.wm", "three.svm", "--scores", "--output", "s.txt"]) == 0
    X, _ = load_svmlight("three.svm")
    model = load_model("m.wm")
    assert model.shape == "ovo"
    np.testing.assert_array_equal(np.loadtxt("s.txt"), model.decision_function(X))
    main([*command[:3], "--multi-class", "ovo", "--break-ties", *kind])
    assert load_model("m.wm").break_ties
    capsys.readouterr()
    pairs = ["--decision-shape", "ovo"]
    assert main([*command, *pairs]) == 2
    assert "needs --multi-class ovo or dag" in capsys.readouterr().err
    assert main([*command[:3], "--multi-class", "ovo", "--break-ties", *pairs]) == 2
    assert "cannot go together" in capsys.readouterr().err


def test_a_linear_kernel_by_a_kernel_solver(here, capsys):
    command = ["train", "three.svm", "m.wm", "--solver", "irwls", "--report", "r.html"]
    assert main(command) == 0
    capsys.readouterr()
    assert main(["inspect", "m.wm"]) == 0
    out = capsys.readouterr().out
    assert "ovo" in out
    assert "largest weights" not in out


def test_data_in_files_are_read_into_memory(here, capsys):
    X, y = load_svmlight("train.svm")
    table = {f"x{j}": X.toarray()[:, j] for j in range(30)} | {"label": y}
    pyarrow.parquet.write_table(pyarrow.table(table), "train.parquet")
    command = ["train", "train.parquet", "m.wm", "--label", "label", "--kernel", "rbf"]
    assert main(command) == 0
    assert load_model("m.wm").meta["feature_names"][2] == "x2"
    assert main(["predict", "m.wm", "train.parquet"]) == 0
    labels = np.array(capsys.readouterr().out.split()[-400:], float)
    assert np.mean(labels == y) > 0.95
    data = Data("train.parquet", open_rows("train.parquet", label="label"), y)
    with pytest.raises(ValueError, match="at most half of --memory-limit .* 96,000 by"):
        in_memory(SimpleNamespace(memory_limit=150_000, jobs=None), data)


@pytest.mark.parametrize(
    "options",
    [
        "--solver irwls",
        "--solver batch",
        "--solver core_vector --loss squared_hinge --cv 2",
        "--solver irwls --type regress",
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_solvers_of_kernels_read_the_data_into_memory(here, capsys, options, name):
    """They told of a kernel, and of an estimator, that nobody had asked for."""
    X, y = load_svmlight("train.svm")
    table = pd.DataFrame(X.toarray()[:, :4], columns=list("abcd")).assign(y=y)
    {"t.csv": table.to_csv, "t.parquet": table.to_parquet}[name](name, index=False)
    command = ["train", name, "m.wm", "--label", "y", "--tol", "0.01"]
    assert main([*command, *options.split()]) == 0
    assert f" by {options.split()[1]}, " in capsys.readouterr().out
    assert load_model("m.wm").meta["feature_names"] == list("abcd")


def test_a_kernel_that_is_not_positive_semidefinite(here, capsys):
    command = ["train", "train.svm", "m.wm", "--kernel", "sigmoid", "--coef0", "0.5"]
    main(command)
    assert "widemargin: The kernel is not positive semid" in capsys.readouterr().err


def test_numbers_that_a_kernel_has_not_are_refused(here, capsys):
    for options, words in [
        (["--gamma", "1"], "--gamma goes with --kernel poly, rbf, sigmoid, laplacian, chi2, found --kernel linear"),
        (["--kernel", "rbf", "--degree", "2"], "--degree goes with --kernel poly, found --kernel rbf"),
        (["--kernel", "laplacian", "--coef0", "2"], "--coef0 goes with --kernel poly, sigmoid, found --kernel laplacian"),
        (["--kernel", "rbf", "--gamma", "-1"], "found '-1'"),
        (["--kernel", "poly", "--degree", "0"], "expected a positive whole number, found '0'"),
        (["--kernel", "poly", "--coef0", "inf"], "expected a number, found 'inf'"),
        (["--kernel", "rbf", "--solver", "interior_point"], "--solver interior_point is of linear machines"),
        (["--kernel", "precomputed"], "found 'precomputed'"),
    ]:  # fmt: skip
        assert words in refused(capsys, "train", "train.svm", "m.wm", *options)


def test_a_budget_bounds_the_model(here, capsys):
    command = ["train", "train.svm", "m.wm", "--kernel", "rbf", "--gamma", "0.05"]
    assert main([*command, "--budget", "20"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\nkept 20 support vectors: the objective is at most " in out
    assert load_model("m.wm").kernels.vectors.shape[0] == 20
    assert main([*command, "--budget", "0.1", "--norm", "l2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["support_vectors"] == 40
    assert facts["budget"] == 0.1
    assert facts["increase"] > 0


def test_the_machines_of_the_paper(here, capsys):
    command = ["train", "train.svm", "m.wm", "--kernel", "rbf", "--gamma", "0.05"]
    assert main([*command, "--budget", "20", "--method", "norm"]) == 0
    vectors = load_model("m.wm").kernels.vectors.shape[0]
    assert vectors > 20
    said = f"\n{vectors:,} support vectors: --method norm bounds a norm of the losses"
    assert said in capsys.readouterr().out
    options = ["--budget", "20", "--method", "prune", "--norm", "l2", "--json"]
    assert main([*command, *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["support_vectors"] == 20
    assert (facts["method"], facts["norm"]) == ("prune", "l2")


@pytest.mark.parametrize("data", ["train.svm", "three.svm"])
def test_a_budget_that_costs_much_is_told_once(here, capsys, data):
    options = ["--kernel", "rbf", "--gamma", "0.05", "-C", "100", "--budget", "2"]
    assert main(["train", data, "m.wm", *options, "--report", "r.html"]) == 0
    out, err = capsys.readouterr()
    factor = 1.0 + load_model("m.wm").meta["increase"]
    assert factor > 10.0
    words = f"at most {factor:,.0f} times the optimum without a budget"
    assert words in out
    assert (
        f"{words}; a larger budget helps." in Page((here / "r.html").read_text()).text
    )
    assert err.count("widemargin: --budget 2 is small for these data: ") == 1
    assert err.count("\n") == 1
    assert main(["inspect", "m.wm"]) == 0
    assert words in capsys.readouterr().out


def test_an_unsolved_machine_is_no_small_budget(here, capsys):
    options = ["--kernel", "rbf", "-C", "1e6", "--budget", "300", "--max-iter", "1"]
    assert main(["train", "train.svm", "m.wm", *options]) != 0
    assert "is small for these data" not in capsys.readouterr().err
    options = ["--kernel", "rbf", "--budget", "100", "--time-limit", "1e-9", "--json"]
    assert main(["train", "train.svm", "m.wm", *options]) != 0
    out, err = capsys.readouterr()
    assert json.loads(out, parse_constant=pytest.fail)["increase"] is None
    assert "is small for these data" not in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "1", "--kernel", "rbf"], "expected a whole number, 2 or larger"),
        (["--budget", "x", "--kernel", "rbf"], "expected a whole number, 2 or larger"),
        (["--budget", "9"], "--budget needs a kernel other than linear: add"),
        (
            ["--budget", "9", "--kernel", "rbf", "--solver", "irwls"],
            "--budget needs --solver auto",
        ),
        (
            ["--budget", "9", "--kernel", "rbf", "--intercept", "none"],
            "--budget needs --intercept auto or free",
        ),
        (
            ["--budget", "9", "--kernel", "rbf", "--loss", "hinge"],
            "--budget and --loss cannot go together: --norm l1 is of the hinge",
        ),
        (["--method", "prune", "--kernel", "rbf"], "--method needs --budget"),
        (["--norm", "l2", "--kernel", "rbf"], "--norm needs --budget"),
    ],
)
def test_budgets_that_are_refused(here, capsys, options, message):
    assert message in refused(capsys, "train", "train.svm", "m.wm", *options)


def test_a_rank_makes_it_linear(here, capsys):
    command = ["train", "train.svm", "m.wm", "--kernel", "rbf", "--gamma", "0.05"]
    assert main([*command, "--rank", "30", "--certify", "exact"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\nkernel matrix of rank 30 by nystroem: " in out
    assert re.search(
        r"\ntraining took [\d.]+ s, [\d.]+ s of it for the features\n", out
    )
    assert " % of the trace left, error " in out
    assert "\nwith the whole matrix the relative gap is at most " in out
    assert load_model("m.wm").kernels.vectors.shape[0] == 30
    options = ["--rank", "30", "--approximation", "fourier"]
    assert main([*command, *options]) == 0
    assert "of rank 30 by fourier: error " in capsys.readouterr().out
    clf = SVC(gamma=0.05, rank=30, approximation="fourier")
    X, y = load_svmlight("train.svm")
    found = load_model("m.wm").decision_function(X)
    np.testing.assert_array_equal(found, clf.fit(X, y).decision_function(X))
    assert main(["predict", "m.wm", "test.svm"]) == 0
    assert len(capsys.readouterr().out.split()) == load_svmlight("test.svm")[0].shape[0]
    assert main(["inspect", "m.wm", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rank"], facts["approximation"]) == (30, "fourier")
    assert (facts["kernel"], facts["gamma"]) == ("rbf", 0.05)
    assert "nonzero_weights" not in facts
    assert main([*command, "--rank", "0.05", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["approximation"] == "cholesky"
    assert facts["trace_residual"] <= 0.05
    assert 0 < facts["feature_map_seconds"] < facts["seconds"]


@pytest.mark.parametrize("rank", [[], ["--rank", "30"]])
def test_the_exact_gap_is_kept_with_the_model(here, capsys, rank):
    options = ["--kernel", "rbf", "--certify", "exact", *rank]
    assert main(["train", "three.svm", "m.wm", *options, "--json"]) == 0
    gap = json.loads(capsys.readouterr().out)["exact_relative_gap"]
    assert (gap <= 1e-4) == (not rank)
    assert main(["inspect", "m.wm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exact_gap"] == gap
    assert main(["train", "three.svm", "m.wm", *options]) == 0
    assert f"relative gap is at most {gap:.1e}" in capsys.readouterr().out


@words_only
@pytest.mark.parametrize("data", ["train.svm", "three.svm"])
def test_landmarks_are_not_called_support_vectors(here, capsys, data):
    options = ["--kernel", "rbf", "--rank", "30"]
    command = ["train", data, "m.wm", *options, "--report", "r.html"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert " by nystroem: 30 landmarks, " in out
    # Rows with a dual variable, which the solution of one problem says.
    assert ("support vectors" in out) == (data == "train.svm")
    page = Page((here / "r.html").read_text())
    assert "class rows share landmarks recall" in page.text
    assert main(["inspect", "m.wm"]) == 0
    out = capsys.readouterr().out
    assert "support vectors" not in out
    assert re.search(r"^landmarks +30$", out, re.MULTILINE)
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["landmarks"] == 30
    assert "support_vectors" not in facts
    assert main([*command, "--approximation", "fourier", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["support_vectors"] > 30
    assert "landmarks" not in facts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rank", "0", "--kernel", "rbf"], "expected a positive whole number, a sh"),
        (["--rank", "1.5", "--kernel", "rbf"], "expected a positive whole number, a"),
        (["--rank", "9"], "--rank needs a kernel other than linear: add"),
        (["--approximation", "eigen"], "--approximation eigen needs --rank"),
        (["--certify", "exact"], "--certify exact needs a kernel other than linear"),
        (
            ["--certify", "exact", "--kernel", "rbf", "--budget", "5"],
            "--certify exact and --budget cannot go together",
        ),
        (
            ["--rank", "9", "--kernel", "rbf", "--budget", "5"],
            "--rank and --budget cannot go together",
        ),
        (
            ["--rank", "9", "--kernel", "poly", "--approximation", "fourier"],
            "must be 'rbf' or 'laplacian' for approximation='fourier'",
        ),
    ],
)
def test_ranks_that_are_refused(here, capsys, options, message):
    assert message in refused(capsys, "train", "train.svm", "m.wm", *options)


def test_a_rank_leaves_rows_in_their_files(here, capsys, monkeypatch):
    """Only a kernel without a rank, or "eigen", needs them in memory."""
    X, y = load_svmlight("train.svm")
    np.save("X.npy", X.toarray())
    np.save("y.npy", y)
    asked = []

    def noted(options, data):
        asked.append(options.approximation)
        return in_memory(options, data)

    monkeypatch.setattr("widemargin.cli.train.in_memory", noted)
    command = ["train", "X.npy", "m.wm", "--label", "y.npy", "--kernel", "rbf"]
    for name in ("nystroem", "fourier", "cholesky", "eigen"):
        assert main([*command, "--rank", "30", "--approximation", name]) == 0
        assert f"kernel matrix of rank 30 by {name}" in capsys.readouterr().out
    assert asked == ["eigen"]


@pytest.mark.parametrize("rank", ["20", "auto"])
def test_a_kernel_of_low_rank_takes_rows_in_files(here, capsys, rank):
    X, y = load_svmlight("train.svm")
    os.mkdir("shards")
    np.save("shards/X-0.npy", X.toarray())
    np.save("shards/y-0.npy", y.astype(np.int8))
    command = "train shards m.wm --kernel rbf --gamma 0.05 --certify exact --rank "
    assert main([*command.split(), rank]) == 0
    out, err = capsys.readouterr()
    assert ("\nkernel matrix of rank " in out) == (rank == "20")
    assert "\nwith the whole matrix the relative gap is at most " in out
    assert err == ""
    assert np.mean(load_model("m.wm").predict(X) == y) > 0.85
