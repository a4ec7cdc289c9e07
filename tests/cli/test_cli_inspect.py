"""``widemargin inspect``: what a model is, and what a file cannot make it say."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from widemargin import SVC, save_model, save_svmlight
from widemargin.cli import main
from widemargin.models.model import Decision, Model


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def inspected(capsys, model, *options):
    """What is printed of a model."""
    save_model(model, "m.wm")
    assert main(["inspect", "m.wm", *options]) == 0
    return capsys.readouterr().out


def binary(*weights, **meta):
    decision = Decision(np.array(weights, float), 0.5)
    return Model(np.array([-1.0, 1.0]), "binary", (decision,), meta)


def multiclass(**meta):
    rows = [[0, 0, -3], [1, -2, 0], [0, 0, 0.5]]
    decisions = tuple(Decision(np.array(w, float), 0.0) for w in rows)
    return Model(np.array(["a", "b", "c"]), "ovr", decisions, meta)


def test_weights_keep_their_signs(here, capsys):
    out = inspected(capsys, binary(0.5, -1.056, 0.0, index_base=1))
    line = "largest weights  for 1: 2 (-1.06), 1 (+0.5); columns counted from 1\n"
    assert line in out


def test_weights_of_more_classes_name_their_class(here, capsys):
    assert (
        "largest weights  for a: z (-3)\n"
        "                 for b: y (-2), x (+1)\n"
        "                 for c: z (+0.5)\n"
    ) in inspected(capsys, multiclass(feature_names=["x", "y", "z"]))


def test_classes_are_named_as_predict_writes_them(here, capsys):
    for classes, said in (([-1.0, 1.0], "-1, 1"), (["no", "yes"], "no, yes")):
        model = replace(binary(1.0), classes=np.array(classes))
        assert re.search(f"^classes +{said}$", inspected(capsys, model), re.MULTILINE)


def test_what_rounding_left_is_no_weight(here, capsys):
    said = inspected(capsys, multiclass())
    assert "nonzero weights  3\n" in said
    assert "nonzero weights  2\n" in inspected(capsys, binary(0.5, -1e-17, 1e-9))
    scaled = binary(0.5, 1e-17, scale="standard", column_scales=[1.0, 1e17])
    assert "nonzero weights  2\n" in inspected(capsys, scaled)


def test_no_weights(here, capsys):
    assert "largest weights  none\n" in inspected(capsys, binary(0.0, 0.0))


def test_json_holds_the_weights(here, capsys):
    facts = json.loads(inspected(capsys, multiclass(index_base=1), "--json"))
    assert facts["largest_weights"] == [
        {"class": "a", "feature": 3, "weight": -3.0},
        {"class": "b", "feature": 2, "weight": -2.0},
        {"class": "b", "feature": 1, "weight": 1.0},
        {"class": "c", "feature": 3, "weight": 0.5},
    ]
    named = binary(*range(30), feature_names=[f"n{j}" for j in range(30)])
    weights = json.loads(inspected(capsys, named, "--json"))["largest_weights"]
    assert [entry["feature"] for entry in weights] == [f"n{29 - j}" for j in range(10)]
    assert weights[0] == {"class": 1.0, "feature": "n29", "weight": 29.0}


def test_json_has_no_infinite_gap(here, capsys):
    """As that of train; the word Infinity is no JSON."""
    out = inspected(capsys, binary(1.0, dual_gap=np.inf), "--json")
    assert "Infinity" not in out
    assert json.loads(out)["dual_gap"] is None


def test_a_model_file_cannot_forge_what_inspect_computes(here, capsys):
    meta = {
        "classes": "forged",
        "nonzero weights": "forged",
        "largest_weights": "forged",
        "feature_names": ["\x1b[31mred", "x\ny"],
        "a\nb": "\x1b[2J\u202e",
    }
    decision = Decision(np.array([1.0, 2.0]), 0.5)
    save_model(Model(np.array(["no", "y\n"]), "binary", (decision,), meta), "m.wm")
    assert main(["inspect", "m.wm"]) == 0
    out = capsys.readouterr().out
    assert "forged" not in out
    assert out.replace("\n", "").isprintable()
    assert "largest weights  for y\\n: x\\ny (+2), \\x1b[31mred (+1)\n" in out
    assert "a\\nb             \\x1b[2J\\u202e\n" in out
    assert len(out.splitlines()) == 8
    assert main(["inspect", "m.wm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["no", "y\n"]
    (here / "two.svm").write_text("1 1:1\n")
    assert main(["predict", "m.wm", "two.svm"]) == 0
    assert capsys.readouterr().out == "y\\n\n"


def test_names_of_features_that_do_not_fit_are_left_out(here, capsys):
    model = Model(np.array([0, 1]), "binary", (Decision(np.array([1.0, 2.0]), 0.5),))
    for names in (["one"], "ab", 7, None):
        save_model(replace(model, meta={"feature_names": names}), "m.wm")
        assert main(["inspect", "m.wm"]) == 0
        assert (
            "for 1: 1 (+2), 0 (+1); columns counted from 0\n" in capsys.readouterr().out
        )


def test_a_gap_that_is_no_proof_says_so(here, capsys):
    X = np.random.default_rng(0).normal(size=(90, 3))
    for classes in (2, 3):
        save_svmlight(X, np.arange(90) % classes, "d.svm")
        words = ["train", "d.svm", "m.wm", "--kernel", "sigmoid", "--gamma", "1"]
        assert main([*words, "--coef0", "3"]) in (0, 1)
        out, err = capsys.readouterr()
        assert "tationary, but not proved to be best" in out
        assert "not positive semidefinite" in err
        assert main([*words, "--coef0", "3", "--json"]) in (0, 1)
        assert json.loads(capsys.readouterr().out)["is_convex"] is False
        assert main(["inspect", "m.wm"]) == 0
        said = capsys.readouterr().out
        assert re.search(
            r"^dual gap +\S+\n +no proof, as the kernel is not", said, re.M
        )
        assert "is convex" not in said
        assert main(["inspect", "m.wm", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["is_convex"] is False
    assert main(["train", "d.svm", "m.wm", "--kernel", "rbf", "--json"]) == 0
    assert "is_convex" not in json.loads(capsys.readouterr().out)


def test_a_kernel_model_shows_its_features(here, capsys):
    X, y = np.eye(60), np.arange(60) % 2
    model = SVC(gamma=1.0).fit(X, y).model_
    names = [f"column{j}" for j in range(60)]
    said = inspected(capsys, replace(model, meta={"feature_names": names}))
    assert "feature names  " in said
    assert "column0, column1, column2" in said
    assert said.count("column") == 50
    assert "column49 and 10 more" in said


def test_how_a_fit_ended_is_told_of_every_machine(here, capsys):
    X = np.random.default_rng(0).normal(size=(300, 3))
    save_svmlight(X, np.arange(300) % 2, "d.svm")
    few = ["--max-iter", "1", "--tol", "1e-9"]
    for more in (["--loss", "hinge"], ["--kernel", "rbf", "-C", "1e6"]):
        more = [*few, "--solver", "irwls" if "rbf" in more else "interior_point", *more]
        words = ["train", "d.svm", "m.wm", *more]
        assert main(words) == 1
        capsys.readouterr()
        assert main(["inspect", "m.wm"]) == 0
        said = capsys.readouterr().out
        assert re.search(r"^status +max_iter: not solved to the gap", said, re.M)
        assert re.search(r"^dual gap +\d", said, re.M)
    assert re.search(
        r"^status +solved$", inspected(capsys, binary(1, status="solved")), re.M
    )
    told = inspected(capsys, binary(1))
    assert "status           unknown: it comes from another program, or" in told
