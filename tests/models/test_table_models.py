"""Pipelines that make numbers of words: their models read tables as they come."""

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    StandardScaler,
)

from widemargin import SVC, LinearSVC, LinearSVR, load_model, save_model
from widemargin.cli import main


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    m = 60
    return pandas.DataFrame(
        {
            "age": rng.integers(18, 80, m),
            "job": rng.choice(["clerk", "smith", "a=b"], m),
            "height": rng.normal(170.0, 10.0, m),
            "rooms": rng.integers(1, 4, m),
            "bought": rng.choice(["yes", "no"], m),
        }
    )


PARTS = {
    "all": ((StandardScaler(), ["height", "age"]), (OneHotEncoder(), ["job", "rooms"])),
    "passed": (("passthrough", ["age"]), (OneHotEncoder(), ["job"])),
    "by place": ((MaxAbsScaler(), slice(0, 1)), (OneHotEncoder(), [1])),
    "mask": ((OneHotEncoder(), np.array([False, True, False, False])),),
    "to a name": ((OneHotEncoder(), ["job"]), (MaxAbsScaler(), slice("height", None))),
    "left out": (("drop", ["age"]), (MaxAbsScaler(), []), (OneHotEncoder(), ["job"])),
    "no words": ((OneHotEncoder(), []), (OneHotEncoder(), slice("job", "job"))),
}
MACHINES = [LinearSVC(), SVC(gamma=0.1)]


def trained(people, parts, machine, *steps, **options):
    columns = make_column_transformer(*parts, **options)
    X, y = people.drop(columns="bought"), people["bought"]
    return make_pipeline(columns, *steps, machine).fit(X, y), X


@pytest.mark.cover(2)
@pytest.mark.parametrize("read", [pandas.DataFrame, polars.from_pandas])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("parts", PARTS)
def test_a_model_reads_the_table_as_the_pipeline(
    parts, machine, read, people, tmp_path
):
    pipeline, X = trained(people, PARTS[parts], machine)
    save_model(pipeline, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    known = pipeline.decision_function(X)
    turned = read(X[X.columns[::-1]])
    np.testing.assert_allclose(model.decision_function(turned), known, atol=1e-9)
    assert list(model.predict(turned)) == list(pipeline.predict(X))
    encoded = pipeline[0].transform(X)
    assert model.n_features == encoded.shape[1]


def test_what_is_left_and_steps_after_it(people, tmp_path):
    parts = [(OneHotEncoder(), ["job"])]
    after = StandardScaler(with_mean=False)
    pipeline, X = trained(people, parts, LinearSVC(), after, remainder="passthrough")
    save_model(pipeline, tmp_path / "m.wm")
    found = load_model(tmp_path / "m.wm").decision_function(X)
    np.testing.assert_allclose(found, pipeline.decision_function(X), atol=1e-9)


def test_the_command_line_reads_the_table_too(people, tmp_path, capsys):
    parts = (StandardScaler(), ["age", "height"]), (OneHotEncoder(), ["job"])
    pipeline, X = trained(people, parts, LinearSVC())
    save_model(pipeline, tmp_path / "m.wm")
    people.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "m.wm"), str(tmp_path / "new.csv")]) == 0
    assert capsys.readouterr().out.split() == list(pipeline.predict(X))


def test_words_that_are_new_are_told(people, tmp_path):
    parts = [(OneHotEncoder(handle_unknown="ignore"), ["job"])]
    pipeline, X = trained(people, parts, LinearSVC())
    save_model(pipeline, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    X.loc[:1, "job"] = ["cook", "maid"]
    with pytest.warns(UserWarning, match="'job' has words .* none: 'cook', 'maid'"):
        found = model.decision_function(X)
    known = pipeline.decision_function(X)
    np.testing.assert_allclose(found, known, atol=1e-9)


def test_a_missing_column_is_named(people, tmp_path):
    parts = (StandardScaler(), ["age"]), (OneHotEncoder(), ["job"])
    pipeline, X = trained(people, parts, LinearSVC())
    save_model(pipeline, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    for column, name in ("job", "job=a=b"), ("age", "age"):
        with pytest.raises(ValueError, match=f"{name}"):
            model.predict(X.drop(columns=column))
    with pytest.raises(ValueError, match="an entry that is no number .*'old'"):
        model.predict(X.assign(age="old"))


def log():
    return FunctionTransformer(np.log)


def test_other_parts_are_refused(people, tmp_path):
    for words, parts in (
        ("a step FunctionTransformer", [(log(), ["age"])]),
        (
            "no OneHotEncoder with min_frequency",
            [(OneHotEncoder(min_frequency=5), ["job"])],
        ),
        (
            "no OneHotEncoder with drop",
            [(OneHotEncoder(drop="first"), ["job"])],
        ),
        ("a step Pipeline", [(make_pipeline(StandardScaler()), ["age"])]),
    ):
        pipeline, _ = trained(people, parts, LinearSVC())
        with pytest.raises(ValueError, match=words):
            save_model(pipeline, tmp_path / "m.wm")


def test_weights_of_parts_are_refused(people, tmp_path):
    parts = [("job", OneHotEncoder(), ["job"])]
    columns = ColumnTransformer(parts, transformer_weights={"job": 3.0})
    pipeline = make_pipeline(columns, LinearSVC()).fit(people, people["bought"])
    with pytest.raises(ValueError, match="no ColumnTransformer with transformer_wei"):
        save_model(pipeline, tmp_path / "m.wm")


@pytest.mark.parametrize("other", ["job=a", "job=smith"])
def test_a_feature_of_two_readings_is_refused(other, people, tmp_path):
    table = people.assign(**{other: people["rooms"]})  # "job=a=b": of "job", or "job=a"
    parts = [(OneHotEncoder(), ["job"]), ("passthrough", [other])]
    pipeline, _ = trained(table, parts, LinearSVC())
    with pytest.raises(ValueError, match="one reading of each feature .* 'job="):
        save_model(pipeline, tmp_path / "m.wm")


def test_a_table_without_names_is_refused(tmp_path):
    X = np.arange(20.0).reshape(10, 2) % 7
    columns = make_column_transformer((OneHotEncoder(), [0]), (StandardScaler(), [1]))
    pipeline = make_pipeline(columns, LinearSVR()).fit(X, X[:, 1])
    with pytest.raises(ValueError, match="be fitted on a table with names"):
        save_model(pipeline, tmp_path / "m.wm")
    pipeline = make_pipeline(clone(columns), LinearSVR())
    pipeline.steps[-1] = ("last", LinearSVR().fit(X, X[:, 1]))
    with pytest.raises(ValueError, match="a ColumnTransformer that is not"):
        save_model(pipeline, tmp_path / "m.wm")


def test_a_missing_column_of_words_is_named(people, tmp_path):
    pipeline, X = trained(people, PARTS["all"], LinearSVC())
    save_model(pipeline, tmp_path / "m.wm")
    words = "Got no 'job=a=b' and no column 'job'"
    with pytest.raises(ValueError, match=words):
        load_model(tmp_path / "m.wm").predict(X.drop(columns="job"))


def test_steps_inside_a_refused_step_are_named(people, tmp_path):
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    pipeline, _ = trained(people, [(filled, ["age", "height"])], LinearSVC())
    words = (
        r"Got a step Pipeline \(SimpleImputer, StandardScaler\) instead. Save pipeline"
        r"\[-1\] alone, .* or fill what is missing in the table, before the pipeline"
    )
    with pytest.raises(ValueError, match=words):
        save_model(pipeline, tmp_path / "m.wm")
