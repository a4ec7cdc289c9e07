"""Schemes of several classes: a class for every row, by its decisions."""

import itertools

import numpy as np
import pytest

from tests.models.test_kernel_models import change, forge, parts
from widemargin import load_model, save_model
from widemargin.models.liblinear import write_liblinear
from widemargin.models.model import Decision, Model
from widemargin.models.votes import drops, votes


def walk(values, c):
    """The graph of Platt, Cristianini and Shawe-Taylor, row by row: the drops in turn."""
    pairs = {pair: k for k, pair in enumerate(itertools.combinations(range(c), 2))}
    for row in values:
        classes, dropped = list(range(c)), []
        while len(classes) > 1:
            first, last = classes[0], classes[-1]
            speaks_for_first = row[pairs[first, last]] >= 0
            dropped.append(classes.pop(-1 if speaks_for_first else 0))
        yield [*dropped, *classes]


def values_of(c, kind):
    random = np.random.default_rng(c)
    values = random.standard_normal((200, c * (c - 1) // 2))
    return np.sign(np.rint(values)) if kind == "ties" else values


@pytest.mark.parametrize("kind", ["numbers", "ties"])
@pytest.mark.parametrize("c", [3, 4, 7])
def test_a_walk_drops_a_class_each_time(c, kind):
    values = values_of(c, kind)
    scores = drops(values, c)
    assert scores.shape == (200, c)
    found = np.argsort(np.rint(scores), axis=1, kind="stable")
    np.testing.assert_array_equal(found, list(walk(values, c)))
    np.testing.assert_array_equal(scores.argmax(axis=1), found[:, -1])


def test_scores_of_a_walk_have_the_part_that_votes_have():
    values = values_of(5, "numbers")
    by_walk, by_votes = drops(values, 5), votes(values, 5)
    np.testing.assert_allclose(
        by_walk - np.rint(by_walk), by_votes - np.rint(by_votes), atol=1e-15
    )


def test_a_class_that_wins_all_its_pairs_wins_the_walk():
    values = values_of(6, "numbers")
    clear = votes(values, 6).max(axis=1) > 4.5
    assert 0 < clear.sum() < 200
    np.testing.assert_array_equal(
        drops(values, 6)[clear].argmax(axis=1), votes(values, 6)[clear].argmax(axis=1)
    )


def model(scheme="ovo", **options):
    """Three classes, in a circle of votes for x = 0: all of them have one."""
    W = np.array([[1.0, 0.5], [0.25, -1.0], [-0.5, 2.0]])
    b = (0.5, -1.0, 0.75)
    return Model(np.arange(3), scheme, tuple(map(Decision, W, b)), **options)


ZERO = np.zeros((1, 2))


def test_values_of_pairs():
    pairs = model(shape="ovo")
    np.testing.assert_array_equal(pairs.decision_function(ZERO), [[0.5, -1.0, 0.75]])
    X = np.random.default_rng(0).standard_normal((300, 2))
    for scheme in ("ovo", "dag"):
        by_class, by_pair = model(scheme), model(scheme, shape="ovo")
        np.testing.assert_array_equal(by_class.predict(X), by_pair.predict(X))


def test_a_tie_of_votes():
    assert model().predict(ZERO) == [0]  # the first of the classes
    broken = model(break_ties=True)
    sums = [0.5 - 1.0, -0.5 + 0.75, 1.0 - 0.75]
    assert broken.predict(ZERO) == [np.argmax(sums)] == [1]
    assert model("dag").predict(ZERO) == [1]  # (0, 2) drops 0, and (1, 2) drops 2


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("ovr", {"shape": "ovo"}),
        ("ovo", {"shape": "pairs"}),
        ("ovo", {"shape": "ovo", "break_ties": True}),
        ("dag", {"break_ties": True}),
        ("ovr", {"break_ties": True}),
    ],
)
def test_what_a_scheme_cannot_have(scheme, options):
    with pytest.raises(ValueError, match=f"A model of scheme '{scheme}' cannot have"):
        model(scheme, **options)


DECIDING = [
    ("dag", {}),
    ("dag", {"shape": "ovo"}),
    ("ovo", {"shape": "ovo"}),
    ("ovo", {"break_ties": True}),
]


@pytest.mark.parametrize(("scheme", "options"), DECIDING)
def test_model_files(scheme, options, tmp_path):
    path, saved = tmp_path / "m.wm", model(scheme, **options)
    save_model(saved, path)
    assert path.read_bytes()[8] == 4
    loaded = load_model(path)
    assert (loaded.scheme, loaded.shape, loaded.break_ties) == (
        scheme,
        saved.shape,
        saved.break_ties,
    )
    X = np.random.default_rng(0).standard_normal((50, 2))
    np.testing.assert_array_equal(
        loaded.decision_function(X), saved.decision_function(X)
    )
    np.testing.assert_array_equal(loaded.predict(X), saved.predict(X))


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_other_models_are_written_as_before(scheme, tmp_path):
    save_model(model(scheme), tmp_path / "m.wm")
    assert (tmp_path / "m.wm").read_bytes()[8] == {"ovo": 2, "ovr": 1}[scheme]


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("shape",), "pairs", "cannot have the shape 'pairs'"),
        (("shape",), 3, "'shape' of the header must be of type str"),
        (("break_ties",), True, "cannot have break_ties"),
        (("break_ties",), 1, "'break_ties' of the header must be of type bool"),
        (("scheme",), "binary", "cannot have 3 decision"),
        (("more",), 1, "must be an object with the keys"),
    ],
)
def test_hostile_headers(keys, value, words, tmp_path):
    path = tmp_path / "m.wm"
    save_model(model("dag"), path)
    header, body = parts(path)
    forge(path, change(header, *keys, value=value), body, version=4)
    with pytest.raises(ValueError, match=f"is not a usable model file: .*{words}"):
        load_model(path)


def test_an_older_version_has_no_such_scheme(tmp_path):
    path = tmp_path / "m.wm"
    save_model(model("ovo"), path)
    header, body = parts(path)
    forge(path, change(header, "scheme", value="dag"), body, version=2)
    with pytest.raises(ValueError, match="its version has no scheme 'dag'"):
        load_model(path)


def test_liblinear_refuses_pairs(tmp_path):
    with pytest.raises(ValueError, match="one against one.*multi_class='ovr'"):
        write_liblinear(model("dag"), tmp_path / "m.model")
    assert not list(tmp_path.iterdir())
