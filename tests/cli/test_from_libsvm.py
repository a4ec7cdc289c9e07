"""What docs/guides/from_libsvm.md promises to users of LIBSVM and LIBLINEAR."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as LibSVC
from sklearn.svm import SVR as LibSVR
from sklearn.svm import LinearSVC as LibLinear
from sklearn.svm import LinearSVR as LibLinearSVR

from tests.cases.cli import refused
from widemargin import LinearSVC, as_rows, load_model, save_svmlight
from widemargin.cli import main
from widemargin.cli.options import parse

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "from_libsvm.md"
# Options of their commands, by the sections of the guide.
OPTIONS = {
    "svm-train": "s t d g r c n p m e h b wi v q W",
    "svm-predict": "b q",
    "svm-scale": "l u y s r",
    "grid.py": "log2c log2g v out gnuplot resume svmtrain",
    "train of LIBLINEAR": "s c p n e B R wi W M v C m q",
}


def sections():
    parts = re.split(r"^## (.*)$", GUIDE.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", OPTIONS)
def test_the_guide_has_every_option(name):
    left = " ".join(line.split("|")[1] for line in sections()[name].splitlines()
                    if line.startswith("|"))  # fmt: skip
    shown = set(re.findall(r"`-(\w+)", left))
    assert set(OPTIONS[name].split()) <= shown


def commands():
    text = GUIDE.read_text(encoding="utf-8")
    found = set(re.findall(r"`widemargin ((?:train|predict) [^`]*)`", text))
    return sorted(one for one in found if not re.search(r"MODEL|TEST|\.\.\.", one))


def test_the_guide_shows_what_is_printed(capsys):
    typed, printed = re.search(
        r"^    \$ widemargin (.*)\n    (.*\n)", GUIDE.read_text(), re.M
    ).groups()
    assert refused(capsys, *shlex.split(typed)) == printed


def test_there_are_commands():
    assert len(commands()) >= 8


@pytest.mark.parametrize("command", commands())
def test_the_commands_can_be_typed(command):
    assert parse(shlex.split(command)).command in ("train", "predict")


def test_the_options_of_ours_exist():
    text = GUIDE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(--[a-z0-9-]+)", text))
    cli = Path(__file__).parents[2] / "src/widemargin/cli"
    files = ("options.py", "train_options.py", "shared_options.py")
    known = "".join((cli / name).read_text() for name in files)
    assert len(named) > 15
    assert {name for name in named if f'"{name}"' not in known} == set()


@pytest.fixture
def wine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    save_svmlight(X, y, "a.svm")
    return X, y


THEIRS = {
    "svm-train -c 10 -g 0.05": LibSVC(C=10.0, gamma=0.05, class_weight={1: 2.0}),
    "svm-train a.svm": LibSVC(gamma="auto"),
    "svm-train -t 0": LibSVC(kernel="linear"),
    "`train a.svm": LibLinear(fit_intercept=False),
    "train -s 3 -B 1": LibLinear(loss="hinge"),
    "svm-train -s 3 -p 0.2": LibSVR(gamma="auto", epsilon=0.2),
    "train -s 11": LibLinearSVR(
        loss="squared_epsilon_insensitive", epsilon=0.1, fit_intercept=False
    ),
    "train -s 13 -B 1": LibLinearSVR(epsilon=0.1),
}


@pytest.mark.parametrize("theirs", THEIRS)
def test_the_commands_train_their_machines(wine, theirs):
    X, y = wine
    lines = [line for line in GUIDE.read_text().splitlines() if theirs in line]
    ours = re.search(r"\| `widemargin (train [^`]*)`", lines[0])[1]
    machine, more = THEIRS[theirs], []
    machine.set_params(tol=1e-8, max_iter=10**6)
    if not isinstance(machine, LibSVR):
        machine.set_params(random_state=0)
    if isinstance(machine, LibSVC):
        machine.set_params(decision_function_shape="ovo")
        more = ["--decision-shape", "ovo"]
    assert main([*shlex.split(ours), "--tol", "1e-9", *more]) == 0
    found = load_model("a.wm").scores(as_rows(X))
    machine.fit(X, y)
    known = getattr(machine, "decision_function", machine.predict)(X)
    np.testing.assert_allclose(found, known, atol=1e-3)


def test_an_instance_weight_is_a_factor_of_c(wine):
    X, y = wine
    w = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    np.savetxt("w.txt", w)
    assert main(["train", "a.svm", "a.wm", "--weight", "w.txt", "--tol", "1e-9"]) == 0
    known = LinearSVC(tol=1e-9).fit(X, y, sample_weight=w)
    found = load_model("a.wm").scores(as_rows(X))
    np.testing.assert_allclose(found, known.decision_function(X), atol=1e-4)


def both_sides():
    """Commands of theirs that the guide has, and the command there."""
    rows = re.findall(r"^\| `(?:svm-)?((?:train|predict) [^`]*)` \| `(widemargin [^`]*)` \|",
                      GUIDE.read_text(encoding="utf-8"), re.M)  # fmt: skip
    several = [(a, b) for a, b in rows if len(re.findall(r" -[a-zA-Z]", a)) > 1]
    assert len(several) > 2
    return several


MORE = [
    (
        "train -s 0 -t 2 -v 5 -b 1 a.svm",
        "train a.svm a.wm --kernel rbf --gamma auto --cv 5 --cv-seed 0 -C 1 "
        "--probability",
    ),
    (
        "train -s 2 -t 3 -n 0.1 -h 0 a.svm a.model",
        "train a.svm a.wm --type one-class --kernel sigmoid --gamma auto --nu 0.1",
    ),
    (
        "train -t 0 -g 3 -c 2 a.svm",
        "train a.svm a.wm --loss hinge --multi-class ovo -C 2",
    ),
    (
        "train -s 2 -B 1 -R -M 1 a.svm",
        "train a.svm a.wm --intercept free --multi-class ovo",
    ),
    (
        "predict -b 1 -q t.svm a.wm o.txt",
        "predict a.wm t.svm --probability --output o.txt",
    ),
    ("predict -q t.svm a.model o.txt", "predict a.model t.svm --output o.txt"),
    ("predict t.svm a.model o.txt", "predict a.model t.svm --output o.txt"),
    ("train -t 2 a.svm", "train a.svm a.wm --kernel rbf --gamma auto"),
    ("train -b 0 a.svm", "train a.svm a.wm --kernel rbf --gamma auto"),
    ("train -C -s 2 a.svm", "train a.svm a.wm --intercept none --cv 5 --cv-seed 0"),
    (
        "train -s 13 a.svm",
        "train a.svm a.wm --type regress --epsilon 0.1 --intercept none",
    ),
    (
        "train -m 4 -B 1 a.svm",
        "train a.svm a.wm --intercept penalized --jobs 4",
    ),
    (
        "train -W w.txt -g 2 a.svm",
        "train a.svm a.wm --kernel rbf --gamma 2 --weight w.txt",
    ),
    (
        "train -s 1 -t 2 -b 0 a.svm",
        "train a.svm a.wm --type nu --kernel rbf --gamma auto",
    ),
    (
        "train -s 1 -t 2 -b 1 -n 0.3 -v 5 -w1 2 a.svm",
        "train a.svm a.wm --type nu --kernel rbf --gamma auto --nu 0.3 --probability",
    ),
]


@pytest.mark.parametrize(("theirs", "ours"), both_sides() + MORE)
def test_several_options_of_theirs_are_answered_with_our_command(capsys, theirs, ours):
    said = refused(capsys, *shlex.split(theirs))
    found = re.search(r"write `widemargin ([^`]*)`", said)[1]
    given, meant = (vars(parse(shlex.split(x.removeprefix("widemargin "))))
                    for x in (found, ours))  # fmt: skip
    assert {**given, "parser": None} == {**meant, "parser": None}


@pytest.mark.parametrize(
    ("typed", "of_libsvm", "of_liblinear"),
    [
        ("-w-1 3 a.svm", "a.wm --kernel rbf --gamma auto --class-weight=-1:3",
         "a.wm --intercept none --class-weight=-1:3"),
        ("-s 2 a.svm", "a.wm --type one-class --kernel rbf --gamma auto",
         "a.wm --intercept none"),
        ("-s 3 a.svm", "a.wm --type regress --kernel rbf --gamma auto",
         "a.wm --loss hinge --intercept none"),
    ],
)  # fmt: skip
def test_an_option_of_both_alone_is_answered_with_both_commands(
    capsys, typed, of_libsvm, of_liblinear
):
    said = refused(capsys, "train", *typed.split())
    found = re.search(
        r"of LIBSVM: write `([^`]*)`; of LIBLINEAR: write `([^`]*)`", said
    )
    for line, ours in zip(found.groups(), (of_libsvm, of_liblinear), strict=True):
        words = shlex.split(line)
        assert words[:3] == ["widemargin", "train", "a.svm"]
        given, meant = (
            vars(parse(x)) for x in (words[1:], ["train", "a.svm", *ours.split()])
        )
        assert {**given, "parser": None} == {**meant, "parser": None}


def test_a_machine_of_one_of_both_alone(capsys):
    said = refused(capsys, "train", "-s", "0", "a.svm")
    assert "-s of LIBSVM: write `widemargin train a.svm a.wm --kernel rbf" in said
    assert "; of LIBLINEAR: logistic regression is in sklearn" in said


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("train -t 4 -c 3 a.svm a.wm", ["-t, -c of LIBSVM: kernel values are for Python"]),
        ("train -s 5 -c 1 a.svm", ["of LIBLINEAR: an L1 penalty is in sklearn.svm.Lin"]),
        ("train -s 7 a.svm", ["-s of LIBLINEAR: logistic regression is in sklearn"]),
        ("train -s 1 -b 1 -w1 2 -v 3 a.svm", ["; -w1 has no counterpart with --type nu; -v"]),
        ("train -t 2 -c 3 --scale minmax a b", ["-t of LIBSVM", "; -c of LIBSVM"]),
        ("train -s 0 -e 0.1 a.svm", ["; -e has no counterpart: --tol"]),
        ("train -s 2 -b 1 a.svm", ["-b has no counterpart with --type one-class"]),
        ("train -c 3 a.svm", ["-c of LIBSVM: write -C"]),
        ("train -B 2 -c 1 a.svm", ["--intercept penalized for -B 1", "; -c of"]),
    ],
)  # fmt: skip
def test_what_has_no_command_is_explained_option_by_option(capsys, typed, words):
    said = refused(capsys, *typed.split())
    assert all(word in said for word in words)


def test_help_is_help_beside_their_options(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "-s", "0", "-h"])
    assert stop.value.code == 0
    assert "usage: widemargin train" in capsys.readouterr().out


def test_the_answer_in_the_guide_is_the_one_that_comes(capsys):
    typed, said = re.search(
        r"^    \$ (.*)\n    (.*)$", GUIDE.read_text(), re.M
    ).groups()
    assert refused(capsys, *shlex.split(typed)[1:]).startswith(said)
