"""LIBSVM's model files: read as LIBSVM means them, written so that it reads them."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    SVC,
    SVR,
    LinearSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load_model,
    save_model,
)
from widemargin.models.libsvm import read_libsvm, write_libsvm
from widemargin.models.model import Decision, Model

KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid"}
KERNELS |= {"precomputed": "precomputed"}
THEIRS = {ours: theirs for theirs, ours in KERNELS.items()}
PEERS = {
    "c_svc": svm.SVC,
    "nu_svc": lambda **options: svm.NuSVC(nu=0.2, **options),
    "one_class": lambda **options: svm.OneClassSVM(nu=0.2, **options),
    "epsilon_svr": svm.SVR,
    "nu_svr": svm.NuSVR,
}
LABELS = {"two": [-1, 1], "reversed": [7, 3], "three": [5, -3, 2], "sorted": [0, 1, 2]}
CASES = [
    (kind, labels)
    for kind in PEERS
    for labels in (LABELS if kind.endswith("svc") else ["two"])
]
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module")
def libsvm():
    """The C functions of LIBSVM: its Python face fails for three classes of nu_svc."""
    return pytest.importorskip(
        "libsvm.svm", reason="LIBSVM is not installed: pip install libsvm-official"
    )


def data(kernel, kind, labels):
    """Rows, or their kernel values, and labels in an order of their own; or targets."""
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    X, y = (X - X.mean(axis=0))[order], y[order]
    wanted = np.array(LABELS[labels])[y % len(LABELS[labels])]
    if not kind.endswith("svc"):
        wanted = X @ [1.0, -2.0, 0.3, 1.0]
    return (X @ X.T if kernel == "precomputed" else X), wanted


def fitted(kernel, kind, labels):
    """A model of scikit-learn, which is one of LIBSVM, and its data."""
    X, y = data(kernel, kind, labels)
    options = {"kernel": kernel, "gamma": 0.3, "coef0": 0.5, "degree": 2}
    return PEERS[kind](**options).fit(X, y), X


def text_of(peer, kind, order=None):
    """A model of scikit-learn in the words of ``svm_save_model`` of LIBSVM.

    LIBSVM has the classes in the order in which they come in the data: ``order``.
    """
    classes = getattr(peer, "classes_", None)
    has_classes = classes is not None
    sign = -1.0 if has_classes and len(classes) == 2 else 1.0
    coefficients, rho = sign * peer.dual_coef_, -sign * np.ravel(peer.intercept_)
    if sparse.issparse(coefficients):
        coefficients = coefficients.toarray()
    kernel = THEIRS[peer.kernel]
    lines = [f"svm_type {kind}", f"kernel_type {kernel}"]
    if kernel == "polynomial":
        lines.append(f"degree {peer.degree}")
    if kernel in ("polynomial", "rbf", "sigmoid"):
        lines.append(f"gamma {peer.gamma:.17g}")
    if kernel in ("polynomial", "sigmoid"):
        lines.append(f"coef0 {peer.coef0:.17g}")
    c = len(classes) if has_classes else 2
    lines += [f"nr_class {c}", f"total_sv {len(peer.support_)}"]
    lines.append("rho " + " ".join(f"{r:.17g}" for r in rho))
    if has_classes:
        lines.append("label " + " ".join(str(int(label)) for label in classes))
        lines.append("nr_sv " + " ".join(map(str, peer.n_support_)))
    lines.append("SV")
    for place, own in zip(range(len(peer.support_)), coefficients.T, strict=True):
        entries = [f"0:{peer.support_[place] + 1}"]
        if kernel != "precomputed":
            row = peer.support_vectors_[place]
            entries = [f"{j}:{x:.17g}" for j, x in enumerate(row, start=1) if x]
        lines.append(" ".join([*(f"{a:.17g}" for a in own), *entries]) + " ")
    return "\n".join(lines) + "\n"


def values_of(model, X):
    """Decision values of all decisions, a column each."""
    pairs = dataclasses.replace(model, shape="ovo") if model.scheme == "ovo" else model
    values = pairs.decision_function(X)
    return values.reshape(X.shape[0], -1)


# -- reading ---------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "labels"), CASES)
@pytest.mark.parametrize("kernel", KERNELS.values())
def test_a_file_predicts_as_scikit_learn_does(kernel, kind, labels, tmp_path):
    peer, X = fitted(kernel, kind, labels)
    (tmp_path / "m").write_text(text_of(peer, kind))
    model = read_libsvm(tmp_path / "m")
    X_ours = X[:, : model.n_features]  # of kernel values: to the last support vector
    assert model.meta["svm_type"] == kind
    if len(getattr(peer, "classes_", ())) > 2:
        peer.decision_function_shape = "ovo"
    values = peer.predict(X) if model.is_regression else peer.decision_function(X)
    size = np.abs(peer.dual_coef_).max()
    off = 1e-12 * max(1.0, size)
    found = values_of(model, X_ours)
    np.testing.assert_allclose(found, values.reshape(len(X), -1), rtol=1e-12, atol=off)
    np.testing.assert_allclose(model.predict(X_ours), peer.predict(X), atol=off)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_classes_may_come_in_any_order(kernel, tmp_path):
    peer, X = fitted(kernel, "c_svc", "three")
    text = text_of(peer, "c_svc")
    (tmp_path / "m").write_text(text)
    expected = values_of(read_libsvm(tmp_path / "m"), X)
    for order in itertools.permutations(range(3)):
        (tmp_path / "m").write_text(reordered(text, order))
        model = read_libsvm(tmp_path / "m")
        assert model.classes.tolist() == [-3, 2, 5]
        np.testing.assert_allclose(values_of(model, X), expected, **EXACT)
        np.testing.assert_array_equal(model.predict(X), peer.predict(X))


def reordered(text, order):
    """The file of three classes that LIBSVM writes where they come in another order."""
    head, _, tail = text.partition("SV\n")
    words = {line.split()[0]: line.split()[1:] for line in head.splitlines()}
    counts = [int(n) for n in words["nr_sv"]]
    lines, starts = tail.splitlines(), np.cumsum([0, *counts])
    pairs = list(itertools.combinations(range(3), 2))
    rho = []
    for i, j in pairs:
        a, b = order[i], order[j]
        value = float(words["rho"][pairs.index((min(a, b), max(a, b)))])
        rho.append(repr(value if a < b else -value))
    rows = []
    for i, a in enumerate(order):
        for line in lines[starts[a] : starts[a + 1]]:
            own = [float(word) for word in line.split()[:2]]
            against = {
                b: (own[b - (b > a)] * (1 if a < b else -1)) for b in order if b != a
            }
            new = [
                repr(against[b] * (1 if i < j else -1))
                for j, b in enumerate(order)
                if b != a
            ]
            rows.append(" ".join([*new, *line.split()[2:]]))
    words["rho"] = rho
    words["label"] = [words["label"][a] for a in order]
    words["nr_sv"] = [str(counts[a]) for a in order]
    top = "\n".join(
        " ".join([name, *values]) for name, values in words.items() if name != "SV"
    )
    return f"{top}\nSV\n" + "\n".join(rows) + "\n"


def test_columns_and_probabilities(tmp_path):
    path = tmp_path / "m"
    path.write_text(GOOD.replace("nr_sv", "probA -1.5\nprobB 0.25\nnr_sv"))
    model = read_libsvm(path)
    assert (model.n_features, model.meta["index_base"]) == (3, 1)
    assert read_libsvm(path, n_features=7).n_features == 7
    path.write_text(GOOD.replace("1:0.5", "0:0.5"))
    model = read_libsvm(path)
    assert (model.n_features, model.meta["index_base"]) == (4, 0)
    with pytest.raises(ValueError, match="n_features must be at least 4. Got 3"):
        read_libsvm(path, n_features=3)
    path.write_text(GOOD)
    with pytest.raises(
        ValueError, match="line 10, column 9: expected an index of at m"
    ):
        read_libsvm(path, n_features=2)


def test_a_model_without_support_vectors(tmp_path):
    text = "svm_type epsilon_svr\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 0\nrho -3\nSV\n"
    (tmp_path / "m").write_text(text)
    model = read_libsvm(tmp_path / "m", n_features=2)
    assert model.predict([[1.0, 2.0]]).tolist() == [3.0]
    write_libsvm(model, tmp_path / "again")
    assert (tmp_path / "again").read_text() == text.replace(
        "gamma 1", "gamma 1.0"
    ).replace("rho -3", "rho -3.0")


# -- writing ---------------------------------------------------------------------------


def read_plainly(path, X, K=None):
    """Decision values as ``svm_predict_values`` of LIBSVM makes them, from the text."""
    head, _, tail = path.read_text().partition("SV\n")
    words = {line.split()[0]: line.split()[1:] for line in head.splitlines()}
    lines = [line.split() for line in tail.splitlines()]
    width = max(1, len(words.get("label", ())) - 1)
    W = np.array([[float(word) for word in line[:width]] for line in lines])
    kernel = KERNELS[words["kernel_type"][0]]
    entries = [[word.split(":") for word in line[width:]] for line in lines]
    if kernel == "precomputed":
        K = X[:, [int(value) - 1 for ((_, value),) in entries]]
    else:
        Z = np.zeros((len(lines), X.shape[1]))
        for z, own in zip(Z, entries, strict=True):
            for index, value in own:
                z[int(index) - 1] = float(value)
        known = {"gamma": float, "coef0": float, "degree": int}
        options = {
            name: kind(words[name][0]) for name, kind in known.items() if name in words
        }
        K = pairwise_kernels(X, Z, metric=kernel, **options)
    rho = [float(word) for word in words["rho"]]
    if width == 1:
        return words, (K @ W)[:, :1] - rho[0]
    starts = np.cumsum([0, *map(int, words["nr_sv"])])
    columns = []
    for p, (i, j) in enumerate(itertools.combinations(range(width + 1), 2)):
        of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        value = K[:, of_i] @ W[of_i, j - 1] + K[:, of_j] @ W[of_j, i]
        columns.append(value - rho[p])
    return words, np.column_stack(columns)


@pytest.mark.cover(2)
@pytest.mark.filterwarnings("ignore:The kernel is not positive semidefinite")
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    "options", [{}, {"rank": 30, "random_state": 0}, {"solver": "irwls"}]
)
@pytest.mark.parametrize("kernel", KERNELS.values())
def test_what_is_written_is_what_our_classifiers_decide(
    kernel, options, labels, tmp_path
):
    if kernel in ("precomputed", "linear") and "rank" in options:
        options = {}
    X, y = data(kernel, "c_svc", labels)
    clf = SVC(kernel=kernel, gamma=0.3, coef0=0.5, degree=2, **options).fit(X, y)
    write_libsvm(clf, tmp_path / "m")
    words, values = read_plainly(tmp_path / "m", X)
    assert words["svm_type"] == ["c_svc"]
    assert [int(label) for label in words["label"]] == sorted(LABELS[labels])
    assert words["label"][0] != str(max(LABELS[labels]))
    sign = -1.0 if len(LABELS[labels]) == 2 else 1.0  # there positive for the first
    expected = values_of(clf.model_, X)
    off = 1e-11 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(sign * values, expected, rtol=1e-11, atol=off)
    back = read_libsvm(tmp_path / "m", n_features=X.shape[1])
    np.testing.assert_allclose(values_of(back, X), expected, rtol=1e-11, atol=off)
    np.testing.assert_array_equal(back.predict(X), clf.predict(X))


@pytest.mark.cover(2)
@pytest.mark.parametrize(("kind", "labels"), CASES)
@pytest.mark.parametrize("kernel", KERNELS.values())
def test_a_file_that_is_read_and_written_says_the_same(kernel, kind, labels, tmp_path):
    peer, X = fitted(kernel, kind, labels)
    (tmp_path / "m").write_text(text_of(peer, kind))
    model = read_libsvm(tmp_path / "m", n_features=X.shape[1])
    write_libsvm(model, tmp_path / "again")
    again = read_libsvm(tmp_path / "again", n_features=X.shape[1])
    assert again.meta == model.meta
    np.testing.assert_array_equal(values_of(again, X), values_of(model, X))
    save_model(model, tmp_path / "m.wm")
    loaded = load_model(tmp_path / "m.wm")
    np.testing.assert_array_equal(values_of(loaded, X), values_of(model, X))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed"])
def test_our_regressions_are_written(kernel, tmp_path):
    X, y = data(kernel, "epsilon_svr", "two")
    svr = SVR(kernel=kernel, gamma=0.3, degree=2).fit(X, y)
    write_libsvm(svr, tmp_path / "m")
    words, values = read_plainly(tmp_path / "m", X)
    assert words["svm_type"] == ["epsilon_svr"]
    assert words["nr_class"] == ["2"]
    assert "label" not in words
    expected = svr.predict(X)
    np.testing.assert_allclose(values[:, 0], expected, rtol=1e-11, atol=1e-11)
    found = read_libsvm(tmp_path / "m", n_features=X.shape[1]).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


NU_CASES = [
    (kind, labels)
    for kind, labels in CASES
    if kind in ("nu_svc", "nu_svr", "one_class")
]


def our_nu_machine(kernel, kind, labels, **options):
    """Our machine with nu, fitted; its rows and its decision values."""
    X, y = data(kernel, kind, labels)
    machine = {"nu_svc": NuSVC, "nu_svr": NuSVR, "one_class": OneClassSVM}[kind]
    machine = machine(nu=0.2, kernel=kernel, gamma=0.3, degree=2, coef0=0.5, **options)
    machine.fit(X, y)
    return machine, X, values_of(machine.model_, X)


@pytest.mark.filterwarnings("ignore:The optimum is zero")  # of the linear ones
@pytest.mark.parametrize("options", [{}, {"rank": 30, "random_state": 0}])
@pytest.mark.parametrize(("kind", "labels"), NU_CASES)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed"])
def test_our_nu_machines_are_written(kernel, kind, labels, options, tmp_path):
    if kernel == "linear":
        options = {}
    machine, X, expected = our_nu_machine(kernel, kind, labels, **options)
    write_libsvm(machine, tmp_path / "m")
    words, values = read_plainly(tmp_path / "m", X)
    assert words["svm_type"] == [kind]
    sign = -1.0 if machine.model_.scheme == "binary" else 1.0
    off = 1e-11 * max(1.0, np.abs(expected).max())
    values = sign * values.reshape(expected.shape)
    np.testing.assert_allclose(values, expected, rtol=1e-11, atol=off)
    back = read_libsvm(tmp_path / "m", n_features=X.shape[1])
    assert back.scheme == machine.model_.scheme
    np.testing.assert_allclose(values_of(back, X), expected, rtol=1e-11, atol=off)
    answers, clear = machine.predict(X), np.abs(expected.reshape(len(X), -1)).min(1)
    if kind == "nu_svr":
        np.testing.assert_allclose(back.predict(X), answers, rtol=1e-11, atol=off)
    else:
        some = clear > off
        np.testing.assert_array_equal(back.predict(X)[some], answers[some])


def test_sparse_rows_and_small_integers(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 20), density=0.2, rng=rng, format="csr")
    X.data = np.rint(9 * X.data)
    for rows in (X, X.astype(np.int16), X.astype(np.float32), X.toarray()):
        clf = SVC(gamma=0.1).fit(rows, np.arange(60) % 3)
        write_libsvm(clf, tmp_path / "m")
        back = read_libsvm(tmp_path / "m", n_features=20)
        assert sparse.issparse(back.kernels.vectors)
        np.testing.assert_array_equal(
            values_of(back, rows), values_of(clf.model_, rows)
        )


def refusals():
    """Models that LIBSVM has no words for, and the reasons."""
    X, y = load_iris(return_X_y=True)
    decision = (Decision(np.array([1.0]), 0.0),)
    yield SVC(kernel="laplacian").fit(X, y), "has no kernel 'laplacian'"
    yield SVC(kernel=lambda A, B: A @ B.T).fit(X, y), "has no kernel that is a callable"
    yield SVC(multi_class="ovr").fit(X, y), "has no scheme 'ovr'"
    yield SVC(multi_class="dag").fit(X, y), "has no scheme 'dag'"
    yield LinearSVC().fit(X, y), "has no scheme 'ovr'"
    yield SVC(break_ties=True).fit(X, y), "has no break_ties"
    yield make_pipeline(StandardScaler(), SVC()).fit(X, y), "no scaling of the columns"
    yield SVC(rank=9, approximation="fourier").fit(X, y), "no features of a kernel"
    yield Model(np.array(["a", "b"]), "binary", decision), "be whole numbers .* Got 'a'"
    yield Model(np.array([0.5, 1]), "binary", decision), "be whole numbers .* Got 0.5"


@pytest.mark.parametrize("number", range(10))
def test_what_libsvm_cannot_say_is_refused(number, tmp_path):
    model, words = list(refusals())[number]
    with pytest.raises(ValueError, match=words):
        write_libsvm(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_scaled_linear_pipeline_is_written(tmp_path):
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(X, y)
    write_libsvm(pipeline, tmp_path / "m")
    np.testing.assert_array_equal(
        read_libsvm(tmp_path / "m").predict(X), pipeline.predict(X)
    )


# -- together with LIBSVM --------------------------------------------------------------


def predicted(libsvm, path, X, is_kernel):
    """Labels and decision values of LIBSVM for the model in a file, and its labels."""
    model = libsvm.toPyModel(libsvm.libsvm.svm_load_model(str(path).encode()))
    c = model.get_nr_class()
    buffer, labels, values = (libsvm.c_double * (c * (c - 1) // 2))(), [], []
    for i, row in enumerate(X):
        entries = {j + 1: x for j, x in enumerate(row.tolist())}
        entries |= {0: i + 1} if is_kernel else {}
        nodes, _ = libsvm.gen_svm_nodearray(entries, isKernel=is_kernel)
        labels.append(libsvm.libsvm.svm_predict_values(model, nodes, buffer))
        values.append(list(buffer))
    return np.array(labels), np.array(values), model.get_labels()


@pytest.mark.parametrize(("kind", "labels"), CASES)
@pytest.mark.parametrize("kernel", KERNELS.values())
def test_libsvm_and_we_predict_alike_both_ways(kernel, kind, labels, libsvm, tmp_path):
    X, y = data(kernel, kind, labels)
    is_kernel = kernel == "precomputed"
    rows = [dict(enumerate(row.tolist(), start=1)) for row in X]
    if is_kernel:
        rows = [{0: i + 1} | row for i, row in enumerate(rows)]
    problem = libsvm.svm_problem(y.tolist(), rows, isKernel=is_kernel)
    numbers = f"-s {list(PEERS).index(kind)} -t {list(KERNELS.values()).index(kernel)}"
    asked = libsvm.svm_parameter(f"{numbers} -g 0.3 -r 0.5 -d 2 -n 0.2 -q")
    asked.gamma = 0.3
    trained = libsvm.libsvm.svm_train(problem, asked)
    libsvm.libsvm.svm_save_model(str(tmp_path / "m").encode(), trained)
    model = read_libsvm(tmp_path / "m", n_features=X.shape[1])
    for name in ("m", "again"):
        found, values, order = predicted(libsvm, tmp_path / name, X, is_kernel)
        ours = values_of(model, X)
        if model.scheme == "binary":
            ours = ours if order[0] > order[1] else -ours
        if model.scheme == "ovo":
            ours = in_order(ours, model.classes.tolist(), order)
        off = 1e-11 * max(1.0, np.abs(values).max())
        if kind == "nu_svc":  # coefficients of any size, whose sum is small
            off = 1e-7
        np.testing.assert_allclose(ours, values, rtol=1e-11, atol=off)
        answers = model.predict(X)
        clear = np.abs(values).min(axis=1) > off
        if len(order) < 3 and not model.is_regression:
            np.testing.assert_array_equal(answers[clear], found[clear])
        elif model.is_regression:
            np.testing.assert_allclose(answers, found, rtol=1e-11, atol=off)
        write_libsvm(model, tmp_path / "again")


@pytest.mark.filterwarnings("ignore:The optimum is zero")  # of the linear ones
@pytest.mark.parametrize(("kind", "labels"), NU_CASES)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed"])
def test_libsvm_predicts_by_our_nu_machines(kernel, kind, labels, libsvm, tmp_path):
    machine, X, expected = our_nu_machine(kernel, kind, labels)
    write_libsvm(machine, tmp_path / "m")
    found, values, order = predicted(libsvm, tmp_path / "m", X, kernel == "precomputed")
    if machine.model_.scheme == "binary" and order[0] < order[1]:
        expected = -expected
    expected = expected.reshape(len(X), -1)
    off = 1e-11 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(values, expected, rtol=1e-11, atol=off)
    if kind == "nu_svr":
        np.testing.assert_allclose(found, machine.predict(X), rtol=1e-11, atol=off)
    else:
        clear = np.abs(expected).min(axis=1) > off
        np.testing.assert_array_equal(found[clear], machine.predict(X)[clear])


def in_order(values, classes, order):
    """Values of pairs of sorted classes as those of pairs in another order."""
    pairs = list(itertools.combinations(range(len(classes)), 2))
    columns = []
    for i, j in pairs:
        a, b = classes.index(order[i]), classes.index(order[j])
        column = values[:, pairs.index((min(a, b), max(a, b)))]
        columns.append(column if a < b else -column)
    return np.column_stack(columns)


# -- malformed files -------------------------------------------------------------------

GOOD = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:0.5 3:2
-1 2:-1e-3
"""
KERNEL = """svm_type one_class
kernel_type precomputed
nr_class 2
total_sv 1
rho 0.25
SV
1 0:3
"""


def expect(text, message, path):
    """The file is refused with this message."""
    path.write_text(text)
    with pytest.raises(ValueError, match="line") as caught:
        read_libsvm(path)
    assert str(caught.value).startswith(f"{path}, {message}")
    assert "\n" not in str(caught.value)


def test_good_files(tmp_path):
    for text in (GOOD, GOOD.replace("\n", " \r\n"), GOOD + "\n \n", GOOD[:-1]):
        (tmp_path / "m").write_bytes(text.encode())
        model = read_libsvm(tmp_path / "m")
        assert model.classes.tolist() == [-1, 1]
        assert model.kernels.b.tolist() == [-0.25]
        assert model.kernels.weights.tolist() == [[-1.0, 1.0]]
    (tmp_path / "m").write_text(KERNEL)
    assert read_libsvm(tmp_path / "m").predict([[9, 9, 0.2], [9, 9, 1]]).tolist() == [
        -1,
        1,
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "c_svc",
            "d_svc",
            "line 1, column 10: expected a type of LIBSVM (c_svc, nu_svc",
        ),
        (
            "svm_type c_svc\n",
            "",
            'line 8, column 1: expected "svm_type" and "kernel_type"',
        ),
        ("type rbf", "type chi2", "line 2, column 13: expected a kernel of LIBSVM"),
        (
            "gamma 0.5",
            "gamma",
            "line 3, column 6: expected a positive number, found the",
        ),
        ("gamma 0.5", "gamma -1", "line 3, column 7: expected a positive number"),
        ("gamma 0.5\n", "", 'line 8, column 1: expected "gamma" before "SV", as c_svc'),
        (
            "gamma 0.5",
            "gamme 0.5",
            "line 3, column 1: expected one of svm_type, kernel",
        ),
        ("gamma 0.5", "gamma 1\ngamma 2", "line 4, column 1: expected one of svm_type"),
        ("gamma 0.5", "degree 0", "line 3, column 8: expected an integer from 1 to"),
        (
            "class 2",
            "class 1",
            "line 4, column 10: expected an integer from 2 to 46341",
        ),
        (
            "class 2",
            "class 3",
            "line 6, column 9: expected a finite number, found the e",
        ),
        (
            "nr_class 2\n",
            "",
            'line 5, column 1: expected "nr_class" before what there is',
        ),
        (
            "total_sv 2",
            "total_sv 3",
            'line 9, column 1: expected numbers after "nr_sv"',
        ),
        (
            "total_sv 2",
            "total_sv -1",
            "line 5, column 10: expected an integer from 0 to",
        ),
        ("rho 0.25", "rho nan", "line 6, column 5: expected a finite number, found"),
        ("rho 0.25", "rho 1 2", "line 6, column 7: expected the end of the line"),
        ("label 1 -1", "label 1 1", "line 7, column 9: expected a label that was not"),
        (
            "label 1 -1",
            "label 1 a",
            "line 7, column 9: expected an integer from -21474",
        ),
        (
            "nr_sv 1 1",
            "nr_sv 1 2",
            'line 9, column 1: expected numbers after "nr_sv" th',
        ),
        ("SV\n", "SV 1\n", "line 9, column 4: expected the end of the line"),
        ("SV\n", "", "line 9, column 1: expected one of svm_type"),
        ("1 1:0.5", "x 1:0.5", "line 10, column 1: expected a finite number"),
        ("1:0.5", "1:x", 'line 10, column 3: expected "index:value" with a finite'),
        ("1:0.5", "1:inf", 'line 10, column 3: expected "index:value" with a finite'),
        ("1:0.5", "1;5", 'line 10, column 3: expected "index:value" with a finite'),
        ("1:0.5", "-1:0.5", 'line 10, column 3: expected "index:value"'),
        ("1:0.5", "3:0.5", "line 10, column 9: expected an index larger than the one"),
        ("3:2", "2147483648:2", 'line 10, column 9: expected "index:value"'),
        (
            "-1 2:-1e-3\n",
            "",
            "line 11, column 1: expected 2 support vectors, found the",
        ),
        (
            "-1e-3\n",
            "-1e-3\n1 1:1\n",
            "line 12, column 1: expected the end of the line",
        ),
    ],
)
def test_malformed_files(old, new, message, tmp_path):
    assert old in GOOD
    expect(GOOD.replace(old, new), message, tmp_path / "m")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0:3", "0:0", 'line 7, column 3: expected one "0:number" of a row, from 1 to'),
        ("0:3", "0:2.5", 'line 7, column 3: expected one "0:number" of a row'),
        ("0:3", "1:3", 'line 7, column 3: expected one "0:number" of a row'),
        ("0:3", "0:3 1:1", 'line 7, column 3: expected one "0:number" of a row'),
        ("0:3", "", 'line 7, column 2: expected one "0:number" of a row'),
        ("0:3", "0:99999999999", 'line 7, column 3: expected one "0:number" of a row'),
        ("nr_class 2", "nr_class 3", "line 5, column 9: expected a finite number"),
        ("total_sv 1", "total_sv 9", "line 8, column 1: expected 9 support vectors"),
    ],
)
def test_malformed_files_of_kernel_values(old, new, message, tmp_path):
    expect(KERNEL.replace(old, new), message, tmp_path / "m")


@given(data=st.data())
@settings(deadline=None, max_examples=4 * settings().max_examples)
def test_damaged_files_are_refused_or_read(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "damaged.model"
    content = bytearray(data.draw(st.sampled_from([GOOD, KERNEL])).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        action = data.draw(st.sampled_from(["change", "remove", "double", "cut"]))
        if action == "change":
            content[place] = data.draw(st.integers(0, 255))
        elif action == "remove":
            del content[place : place + data.draw(st.integers(1, 9))]
        elif action == "double":
            content[place:place] = content[place : place + 12]
        else:
            del content[place:]
        content = content or bytearray(b" ")
    path.write_bytes(bytes(content))
    try:
        model = read_libsvm(path)
    except ValueError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(f"{path}, line ")
    else:
        if model.n_features < 1_000_000:  # no index grew by many digits
            model.predict(np.ones((2, model.n_features)))
