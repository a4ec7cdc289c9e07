"""The command line on data that stay in their files."""

import errno
import json
import os
import re

import numpy as np
import pandas as pd
import pytest

from tests.cases.cli import refused
from tests.cases.problems import PROBLEMS
from widemargin import LinearSVC, load_model, save_svmlight
from widemargin.cli import main, stored
from widemargin.estimators.progress import Printer


def make_people(path, m=200, jobs=("clerk", "smith", "none"), seed=0, **more):
    """Parquet of numbers and categories, with words as labels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(18, 80, m)})
    table["job"] = pd.Categorical(rng.choice(jobs, m), jobs)
    rich = table["age"] / 20 + (table["job"] == "smith") + rng.normal(0, 0.1, m) > 3
    table["rich"] = np.where(rich, "yes", "no")
    table.assign(**more).to_parquet(path, index=False)
    return table


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with data of all kinds in it."""
    monkeypatch.chdir(tmp_path)
    X, y = PROBLEMS["breast_cancer"]()
    np.save("X.npy", X[:400])
    np.save("y.npy", y[:400].astype(np.int8))
    np.save("whole.npy", np.column_stack([y, X])[:400])
    os.mkdir("shards")
    for k, part in enumerate(np.array_split(np.arange(400), 3)):
        np.save(f"shards/X-{k}.npy", X[part])
        np.save(f"shards/y-{k}.npy", y[part].astype(np.int8))
    make_people("people.parquet")
    save_svmlight(X[:400], y[:400], "train.svm")
    return tmp_path


def ran(capsys, command, status=0):
    """Standard output and error of a command."""
    assert main(command.split()) == status
    return capsys.readouterr()


def kept(here):
    """All names in the current folder."""
    return sorted(str(path.relative_to(here)) for path in here.rglob("*"))


# -- train and predict -----------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "train X.npy m.wm --label y.npy --test X.npy --test-label y.npy",
        "train whole.npy m.wm --label 0 --test whole.npy",
        "train whole.npy m.wm --label -31 --test X.npy --test-label y.npy",
        "train shards m.wm --test shards",
        "train shards/ m.wm --test shards --memory-limit 100M",
        "train shards m.wm --test X.npy --test-label y.npy --jobs 1",
    ],
)
def test_arrays(here, capsys, command):
    out, err = ran(capsys, command)
    assert ": 400 rows x 30 features, 2 classes\nSolved to" in out
    assert re.search(r"accuracy 9\d\.\d\d % on .* \(400 rows\)", out)
    assert err == ""
    X, y = np.load("X.npy"), np.load("y.npy")
    model = load_model("m.wm")
    np.testing.assert_array_equal(model.predict(X), LinearSVC().fit(X, y).predict(X))
    out, _ = ran(capsys, "predict m.wm X.npy")
    np.testing.assert_array_equal(np.array(out.split(), int), model.predict(X))
    if " --test whole.npy" in command:
        assert ran(capsys, "predict m.wm whole.npy --label 0").out == out
        assert model.meta["label"] == "0"


def test_a_model_of_arrays_counts_columns_as_they_do(here, capsys):
    ran(capsys, "train whole.npy m.wm --label 0")
    names = load_model("m.wm").meta["feature_names"]
    assert names == [str(j) for j in range(1, 31)]
    ran(capsys, "train shards m.wm")
    assert "columns counted from 0" in ran(capsys, "inspect m.wm").out


def test_weights(here, capsys):
    X, y = np.load("X.npy"), np.load("y.npy")
    weights = np.arange(400) % 3
    np.save("w.npy", weights)
    clf = LinearSVC(tol=1e-6).fit(X, y, weights)
    ran(capsys, "train X.npy m.wm --label y.npy --weight w.npy --tol 1e-6")
    w = load_model("m.wm").decisions[0].w
    np.testing.assert_allclose(w, clf.coef_[0], rtol=1e-2, atol=1e-4)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)])
    table.assign(y=y, w=weights).to_parquet("t.parquet")
    ran(capsys, "train t.parquet p.wm --label y --weight w --tol 1e-6 --test t.parquet")
    assert load_model("p.wm").n_features == 30
    w = load_model("p.wm").decisions[0].w
    np.testing.assert_allclose(w, clf.coef_[0], rtol=1e-2, atol=1e-4)
    assert ran(capsys, "predict p.wm t.parquet").err == ""


def test_parquet_with_words_as_labels(here, capsys):
    out, err = ran(capsys, "train people.parquet m.wm --label rich --json")
    facts = json.loads(out)
    assert (facts["classes"], facts["features"]) == (["no", "yes"], 4)
    assert facts["nonzero"] is None
    assert load_model("m.wm").meta["label"] == "rich"
    out, err = ran(capsys, "predict m.wm people.parquet")
    right = np.array(out.split()) == pd.read_parquet("people.parquet")["rich"]
    assert err == ""
    assert right.mean() > 0.9
    scores = ran(capsys, "predict m.wm people.parquet --scores").out.split()
    assert {(float(s) >= 0, w) for s, w in zip(scores, out.split(), strict=True)} == {
        (True, "yes"),
        (False, "no"),
    }
    assert "job=smith (+" in ran(capsys, "inspect m.wm").out


def test_columns_are_found_by_their_names(here, capsys):
    """Of another order, with other categories, and with columns that were not there."""
    table = make_people("t.parquet", jobs=("king", "smith", "clerk"), seed=1)
    table["name"] = "x"
    table[["name", "rich", "job", "age"]].to_parquet("test.parquet", index=False)
    out, err = ran(capsys, "train people.parquet m.wm --label rich --test test.parquet")
    assert err == (
        "widemargin: test.parquet: ignored 1 category that the model has never seen "
        "(job=king)\n"
        "widemargin: test.parquet: ignored 1 column(s) that the model has never seen "
        "(name)\n"
    )
    model = load_model("m.wm")
    weight = dict(zip(model.meta["feature_names"], model.decisions[0].w, strict=True))
    scores = weight["age"] * table["age"] + model.decisions[0].b
    scores += (
        table["job"]
        .map({k: weight.get(f"job={k}", 0) for k in set(table["job"])})
        .astype(float)
    )
    guesses = np.where(scores >= 0, "yes", "no")
    share = np.mean(guesses == table["rich"])
    assert f"accuracy {100 * share:.2f} % on test.parquet (200 rows)" in out
    out, _ = ran(capsys, "predict m.wm test.parquet --output labels.txt")
    assert (here / "labels.txt").read_text().split() == guesses.tolist()


def test_chosen_columns(here, capsys):
    table = make_people("wide.parquet", name=[f"x{k}" for k in range(200)])
    command = "train wide.parquet m.wm --label rich --test wide.parquet"
    message = refused(capsys, *command.split())
    assert message.endswith(
        "(pandas: astype('category')), or leave it out (--columns)\n"
    )
    out, err = ran(capsys, f"{command} --columns job,age")
    assert load_model("m.wm").meta["feature_names"][-1] == "age"
    assert err == ""
    table.drop(columns="rich").to_parquet("new.parquet")
    assert ran(capsys, "predict m.wm new.parquet").err == ""


def test_a_folder_of_parquet(here, capsys):
    os.mkdir("parts")
    for k in range(2):
        make_people(f"parts/{k}.parquet", seed=k)
    out, _ = ran(capsys, "train parts m.wm --label rich --test parts --report r.html")
    assert "parts: 400 rows x 4 features, 2 classes" in out
    assert "job=smith" in (here / "r.html").read_text()


def test_a_model_without_names_takes_parquet_by_position(here, capsys):
    X = np.load("X.npy")
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)])
    table.assign(y=np.load("y.npy")).to_parquet("t.parquet")
    ran(capsys, "train shards m.wm --test t.parquet --test-label y")
    message = refused(capsys, "predict", "m.wm", "t.parquet")
    assert message == (
        "widemargin: t.parquet: expected 30 columns as in the training data, found 31; "
        "--label leaves one out\n"
    )
    out, _ = ran(capsys, "predict m.wm t.parquet --label y")
    assert out == ran(capsys, "predict m.wm shards").out


NOTE = (
    "widemargin: {}: too large for a quarter of --memory-limit; converting it once, to "
    "temporary files\n"
)


def test_large_text_is_converted(here, capsys, monkeypatch):
    command = "train train.svm m.wm --tol 1e-8 --test train.svm --memory-limit 100M"
    plain, err = ran(capsys, command)
    assert err == ""
    w = load_model("m.wm").decisions[0].w
    monkeypatch.setattr(stored, "_SHARE", 1 << 20)
    out, err = ran(capsys, command)
    assert err == 2 * NOTE.format("train.svm")
    assert out.splitlines()[0] == plain.splitlines()[0]
    assert out.splitlines()[-2:] == plain.splitlines()[-2:]
    model = load_model("m.wm")
    assert model.meta["index_base"] == 1
    np.testing.assert_allclose(model.decisions[0].w, w, rtol=1e-3, atol=1e-5)


def test_text_is_large_from_a_quarter_of_the_limit_on(here):
    size = os.path.getsize("train.svm")
    assert not stored.is_stored("train.svm", None)
    assert not stored.is_stored("train.svm", 4 * size)
    assert stored.is_stored("train.svm", 4 * size - 1)
    os.rename("train.svm", "train.svm.gz")
    assert stored.is_stored("train.svm.gz", 4 * size)
    os.mkfifo("pipe")
    assert not stored.is_stored("pipe", 1)


@pytest.mark.parametrize("n", [28, 33])
def test_converted_text_of_another_width(here, capsys, monkeypatch, n):
    X, y = np.load("X.npy"), np.load("y.npy")
    save_svmlight(np.column_stack([X, X])[:, :n], y, "test.svm")
    ran(capsys, "train train.svm m.wm")
    plain, _ = ran(capsys, "predict m.wm test.svm --scores")
    monkeypatch.setattr(stored, "_SHARE", 1 << 20)
    out, err = ran(capsys, "predict m.wm test.svm --scores --memory-limit 100M")
    assert err.startswith(NOTE.format("test.svm"))
    assert ("never seen (indices 31 to 33)" in err) == (n > 30)
    np.testing.assert_allclose(
        np.array(out.split(), float), np.array(plain.split(), float), rtol=1e-12
    )


# -- what is refused -------------------------------------------------------------------


def shorten(path):
    os.truncate(path, os.path.getsize(path) - 8)


def save(path, array):
    return lambda: np.save(path, array)


BAD = {
    "half-written shard": (
        lambda: shorten("shards/X-1.npy"),
        "train shards m.wm",
        r"shards/X-1.npy: expected [\d,]+ bytes for an array .* was it written to the end\?",
    ),
    "no array": (
        lambda: open("shards/X-1.npy", "w").close(),
        "train shards m.wm",
        "shards/X-1.npy: expected a .npy array, found something else",
    ),
    "shard of another width": (
        save("shards/X-1.npy", np.zeros((3, 4))),
        "train shards m.wm",
        "shards/X-1.npy: expected 30 columns of float64 as in shards/X-0.npy, found 4 "
        "columns of float64",
    ),
    "labels of another length": (
        save("y.npy", np.zeros(7)),
        "train X.npy m.wm --label y.npy",
        "y.npy: expected 400 numbers, one a row, found 7",
    ),
    "labels of shards of another length": (
        lambda: os.unlink("shards/y-2.npy"),
        "train shards m.wm",
        "shards: expected 400 numbers, one a row, found 267",
    ),
    "no labels": (
        None,
        "train X.npy m.wm",
        r"X.npy: expected labels: --label NUMBER \(a column, from 0\) or --label FILE.npy",
    ),
    "no labels in the folder": (
        lambda: [os.unlink(f"shards/y-{k}.npy") for k in range(3)],
        "train shards m.wm",
        "shards: expected labels: --label NUMBER .*, or files y-.* in the folder",
    ),
    "no labels of the test data": (
        None,
        "train X.npy m.wm --label y.npy --test X.npy",
        "X.npy: expected labels: --test-label NUMBER .* or --test-label FILE.npy",
    ),
    "no label of parquet": (
        None,
        "train people.parquet m.wm",
        "people.parquet: expected --label NAME, the column of the labels: age, job, rich",
    ),
    "unknown label": (
        None,
        "train people.parquet m.wm --label rch",
        r"people.parquet: expected a column 'rch', found none .* \(did you mean 'rich'\?\)",
    ),
    "a column that is not there": (
        None,
        "train whole.npy m.wm --label 31",
        "whole.npy: expected a label column from -31 to 30, found 31",
    ),
    "a label that is neither a column nor a file": (
        None,
        "train X.npy m.wm --label income",
        r"X.npy: expected the number of a column \(from 0\) or a .npy file as the label, "
        "found 'income'",
    ),
    "the label among the columns": (
        None,
        "train people.parquet m.wm --label rich --columns age,rich",
        "--columns must not hold 'rich', which is the label.",
    ),
    "negative weights": (
        save("w.npy", np.r_[np.ones(399), -1.0]),
        "train X.npy m.wm --label y.npy --weight w.npy",
        "X.npy: --weight must be finite and nonnegative. Got -1.0 at row 399 instead.",
    ),
    "no weight": (
        save("w.npy", np.zeros(400)),
        "train X.npy m.wm --label y.npy --weight w.npy",
        "X.npy: expected a positive --weight in some row, found none",
    ),
    "missing numbers": (
        lambda: make_people("people.parquet", height=[np.nan, *np.ones(199)]),
        "train people.parquet m.wm --label rich",
        "people.parquet: expected a value in column 'height', found none in row 0 .*",
    ),
    "NaN": (
        save("X.npy", np.full((400, 30), np.nan)),
        "train X.npy m.wm --label y.npy",
        "X.npy: X must hold finite numbers only .* Got NaN at row 0, column 0 instead.",
    ),
    "no parquet": (
        lambda: shorten("people.parquet"),
        "train people.parquet m.wm --label rich",
        "people.parquet: expected a Parquet file, found damage or another format .*",
    ),
    "one class": (
        save("y.npy", np.ones(400)),
        "train X.npy m.wm --label y.npy",
        r"X.npy: expected at least two classes, found one \(1\)",
    ),
    "labels that are no classes": (
        save("y.npy", np.arange(400) / 2),
        "train X.npy m.wm --label y.npy",
        r"X.npy, row 1 of the data \(counted from 0\): expected a whole number as the label, found 0.5; "
        "--type regress predicts such numbers",
    ),
    "too little memory": (
        None,
        "train shards m.wm --memory-limit 16K",
        r"shards: expected a --memory-limit of at least [\d,]+ bytes for 400 rows x 30 .*",
    ),
    "missing column": (
        lambda: make_people("t.parquet").drop(columns="age").to_parquet("t.parquet"),
        "train people.parquet m.wm --label rich --test t.parquet",
        r"t.parquet: expected a column 'age', found none of that name \(.*job.*\)",
    ),
    "missing categories": (
        lambda: make_people("t.parquet").drop(columns="job").to_parquet("t.parquet"),
        "train people.parquet m.wm --label rich --test t.parquet",
        r"t.parquet: expected a column 'job', found none of that name \(.*age.*\)",
    ),
    "numbers for categories": (
        lambda: make_people("t.parquet", job=1),
        "train people.parquet m.wm --label rich --test t.parquet",
        "t.parquet: expected categories in column 'job' as in the training data, found "
        "numbers",
    ),
    "categories for numbers": (
        lambda: make_people("t.parquet", age=pd.Categorical([3] * 200)),
        "train people.parquet m.wm --label rich --test t.parquet",
        "t.parquet: expected numbers in column 'age' as in the training data, found "
        "categories",
    ),
    "test data of another kind": (
        None,
        "train shards m.wm --test train.svm",
        "train.svm: expected CSV, arrays or Parquet as shards, found svmlight text",
    ),
    "test data of another width": (
        save("t.npy", np.zeros((2, 9))),
        "train shards m.wm --test t.npy --test-label 0",
        "t.npy: expected 30 columns as in the training data, found 8",
    ),
    "a label of text": (
        None,
        "train train.svm m.wm --label 3",
        "train.svm: expected no --label for svmlight text, which has its labels, found 3",
    ),
    "columns of arrays": (
        None,
        "train X.npy m.wm --label y.npy --columns a",
        "X.npy: expected no --columns for what is no table, found a",
    ),
    "no such file": (
        None,
        "train poeple.parquet m.wm --label rich",
        r"no such file: poeple.parquet \(did you mean people.parquet\?\)",
    ),
    "convert": (
        None,
        "convert people.parquet people.svm",
        "people.parquet: expected a model or svmlight text, found .*",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(here, capsys, name):
    spoil, command, words = BAD[name]
    if spoil is not None:
        spoil()
    before = kept(here)
    message = refused(capsys, *command.split())
    assert re.fullmatch(f"widemargin: {words}\n", message)
    assert kept(here) == before


@pytest.mark.parametrize(
    ("label", "why"), [("age", "the model needs it"), ("wealth", "age, .*")]
)
def test_predict_leaves_out_no_column_that_is_needed_or_missing(
    here, capsys, label, why
):
    assert main(["train", "people.parquet", "p.wm", "--label", "rich"]) == 0
    capsys.readouterr()
    message = refused(capsys, "predict", "p.wm", "people.parquet", "--label", label)
    said = f"expected a column to leave out as --label, found '{label}' \\({why}\\)\n"
    assert re.fullmatch(f"widemargin: people.parquet: {said}", message)
    assert main(["predict", "p.wm", "people.parquet", "--label", "rich"]) == 0


def test_a_folder_that_may_not_be_read(here, capsys, monkeypatch):
    # Not by chmod: the tests may run as a user who may read everything.
    def forbidden(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", forbidden)
    message = refused(capsys, "train", "shards", "m.wm")
    assert message == "widemargin: no permission to read shards\n"


@pytest.mark.parametrize("data", ["shards", "people.parquet"])
def test_a_file_that_is_rewritten_between_sweeps(here, capsys, monkeypatch, data):
    name = "shards/X-1.npy" if data == "shards" else data

    def rewrite(printer, step):
        if step.iteration == 1:
            content = (here / name).read_bytes()
            (here / name).write_bytes(content)
            os.utime(name, ns=(1, 1))

    monkeypatch.setattr(Printer, "__call__", rewrite)
    before = kept(here)
    label = [] if data == "shards" else ["--label", "rich"]
    message = refused(capsys, "train", data, "m.wm", *label)
    assert message == f"widemargin: {name} was changed while it was read\n"
    assert kept(here) == before


def test_a_disk_without_room(here, capsys, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.mkdir("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(here / "scratch"))
    monkeypatch.setattr(os, "posix_fallocate", full)
    # Every row vector in a file.
    monkeypatch.setattr(
        "widemargin.data.outofcore.stored._spare", lambda *_: (1.0, None)
    )
    before = kept(here)
    message = refused(capsys, "train", "shards", "m.wm", "--memory-limit", "1G")
    assert re.fullmatch(
        r"widemargin: no room for [\d,]+ bytes of row vectors in .*scratch; set TMPDIR "
        "to a folder with more room\n",
        message,
    )
    assert kept(here) == before


def test_bad_data_to_predict_write_nothing(here, capsys):
    ran(capsys, "train shards m.wm")
    X = np.load("X.npy")
    X[399, 2] = np.inf
    np.save("bad.npy", X)
    message = refused(capsys, "predict", "m.wm", "bad.npy")
    assert message == (
        "widemargin: bad.npy: X must hold finite numbers only (no NaN, no inf). "
        "Got infinity at row 399, column 2 instead.\n"
    )
    message = refused(
        capsys, *["train", "shards", "n.wm", "--test", "bad.npy", "--test-label", "0"]
    )
    assert message.startswith("widemargin: bad.npy: expected 30 columns")
    message = refused(capsys, "predict", "m.wm", "bad.npy", "--output", "l.txt")
    assert not (here / "l.txt").exists()


def test_outputs_among_the_data_are_refused(tmp_path, capsys):
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "X-0.npy", np.arange(20.0).reshape(10, 2))
    np.save(folder / "y-0.npy", np.repeat([0, 1], 5))
    before = {f.name: f.read_bytes() for f in folder.iterdir()}
    for name in ("y-0.npy", "X-1.npy", "new.parquet"):
        assert main(["train", str(folder), str(folder / name)]) == 2
        assert "would overwrite the input" in capsys.readouterr().err
    assert main(["train", str(folder), str(tmp_path / "a.wm")]) == 0
    capsys.readouterr()
    output = str(folder / "X-0.npy")
    model = str(tmp_path / "a.wm")
    assert main(["predict", model, str(folder), "--output", output]) == 2
    assert "would overwrite the input" in capsys.readouterr().err
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == before


def test_labels_may_be_words_in_a_file(tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.arange(20.0).reshape(10, 2))
    np.save(tmp_path / "y.npy", np.repeat(["no", "yes"], 5))
    model = str(tmp_path / "a.wm")
    label = str(tmp_path / "y.npy")
    assert main(["train", str(tmp_path / "X.npy"), model, "--label", label]) == 0
    capsys.readouterr()
    assert main(["predict", model, str(tmp_path / "X.npy")]) == 0
    assert capsys.readouterr().out.split() == ["no"] * 5 + ["yes"] * 5


def test_words_in_parquet_are_categories_as_in_csv(tmp_path, monkeypatch, capsys):
    """Those of a DataFrame as pandas writes it; they were refused."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=90), "job": rng.choice([*"abc"], 90)})
    frame["y"] = np.where(frame.age + (frame.job == "b") > 0.4, "yes", "no")
    new = frame.drop(columns="y").assign(job=["d", *frame.job[1:]])
    for name, table in (("t", frame), ("new", new)):
        table.to_parquet(f"{name}.parquet")
        table.to_csv(f"{name}.csv", index=False)
    told = []
    for kind in ("parquet", "csv"):
        ran(capsys, f"train t.{kind} {kind}.wm --label y --kernel rbf")
        assert load_model(f"{kind}.wm").n_features == 4
        told += [
            ran(capsys, f"predict {kind}.wm new.{to}") for to in ("csv", "parquet")
        ]
    assert len({labels for labels, _ in told}) == 1
    assert all("ignored 1 category that the model has" in said for _, said in told)


def test_text_wider_than_the_names_of_a_model_is_refused(here, capsys):
    (here / "t.csv").write_text("age,pay,y\n1,2,a\n3,1,b\n2,9,a\n5,1,b\n")
    (here / "wide.svm").write_text("1 1:2 5:1\n")
    ran(capsys, "train t.csv named.wm --label y")
    said = refused(capsys, "predict", "named.wm", "wide.svm")
    assert (
        "wide.svm: expected at most 2 features, those of the model (age, pay)" in said
    )
    (here / "narrow.svm").write_text("1 1:9\n")
    labels, said = ran(capsys, "predict named.wm narrow.svm")
    assert labels == "b\n"
    assert "in their order (age, pay), and all but the first 1 as 0" in said


# -- rows of text by their lines -------------------------------------------------------

LINES = {
    "inf,2,1": "Got infinity at line 9, column 'a' instead",
    "-inf,2,1 --kernel rbf": "Got -infinity at line 9, column 'a' instead",
    "1,2,0.5": "line 9: expected a whole number as the label, found 0.5",
    "1,2,inf --type regress": "line 9: expected a finite number as the target, found inf",
    "1,-2,1 --weight b": "--weight must be finite and nonnegative. Got -2.0 at line 9 in",
    "1,x,1": "expected numbers in column 'b', as in 30 of 31 rows, found 'x' in line 9;",
    "1,,1": "expected a value in column 'b', found none in line 9;",
    "1,2": "found 2 instead of 3 values in line 9: 1,2",
}


@pytest.mark.parametrize("bad", LINES)
def test_a_row_of_csv_is_told_by_its_line(here, capsys, bad):
    row, *options = bad.split()
    good = [f"{i}.5,{i % 3},{i % 2}" for i in range(30)]
    lines = ["a,b,y", "", *good[:6], row, *good[6:], ""]
    (here / "t.csv").write_text("\n".join(lines))
    assert main(["train", "t.csv", "m.wm", "--label", "y", *options]) == 2
    assert LINES[bad] in capsys.readouterr().err


def test_a_row_of_csv_to_predict_is_told_by_its_line(here, capsys):
    good = [f"{i}.5,{i % 3},{i % 2}" for i in range(30)]
    (here / "t.csv").write_text("\n".join(["a,b,y", *good, ""]))
    (here / "new.csv").write_text("\n".join(["a,b", "1.5,2", "", "inf,2", ""]))
    ran(capsys, "train t.csv m.wm --label y --max-iter 3")
    assert "infinity at line 4, column 'a'" in refused(
        capsys, "predict", "m.wm", "new.csv"
    )


def test_a_row_of_svmlight_text_is_told_by_its_line(here, capsys):
    (here / "t.svm").write_text("# two rows\n\n1 1:2\n# and\n-1 1:3\n")
    np.save("w.npy", [1.0, -1.0])
    said = refused(capsys, "train", "t.svm", "m.wm", "--weight", "w.npy")
    assert "Got -1.0 at line 5 instead." in said
