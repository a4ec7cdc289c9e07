"""A first look: SVMs on Adult, their certificates, the same problems elsewhere.

Run by ``make demo``. Writes demo-report.html and demo.wm into the current folder.
"""

import argparse
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn.svm

import widemargin
from widemargin import SVC, LinearSVC, Problem, load_svmlight, save_model, solve
from widemargin.report import write_report

DATA = Path(__file__).parent / "data"


def main() -> None:
    """Train, compare, report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--no-peers", action="store_true", help="skip LIBSVM and LIBLINEAR"
    )
    peers = not options.parse_args().no_peers
    X, y = load_svmlight(DATA / "a9a.svm.bz2")
    test = load_svmlight(DATA / "a9a.test.svm.bz2", n_features=X.shape[1])
    share = X.nnz / np.prod(X.shape)
    print(
        f"widemargin {widemargin.__version__} · Adult a9a · {X.shape[0]:,} rows x "
        f"{X.shape[1]} features, {100 * share:.0f} % nonzero, 2 classes"
    )
    name = "linear hinge, C = 1, {} intercept"
    free = LinearSVC(loss="hinge", intercept="free")
    penalized = LinearSVC(loss="hinge", intercept="penalized")
    for ours in (free, penalized):
        _train(name.format(ours.intercept), ours, X, y, test)
    _train("rbf, C = 1, gamma = 0.05", SVC(gamma=0.05), X, y, test)
    notes = _peers(X, y, test, free, penalized) if peers else []
    save_model(free, "demo.wm")
    write_report(
        "demo-report.html",
        free,
        X,
        y,
        test=test,
        title="Adult a9a",
        notes=[*notes, ("Machine", f"{platform.processor() or platform.machine()}")],
    )
    print("model: demo.wm · report: demo-report.html (open it in a browser)")


def _train(name: str, classifier: LinearSVC | SVC, X, y, test) -> None:
    """Train, and say how good the answer is."""
    begin = time.perf_counter()
    classifier.fit(X, y)
    seconds = time.perf_counter() - begin
    certificate = classifier.solution_.certificate
    print(
        name.ljust(44, ".") + f" {classifier.solution_.solver} {seconds:7.2f} s"
        f"   objective {certificate.primal:.4f}   gap {classifier.dual_gap_:.1e}"
        f"   accuracy {100 * classifier.score(*test):.2f} %"
    )


def _peers(X, y, test, free: LinearSVC, penalized: LinearSVC) -> list[tuple[str, str]]:
    """The linear problems in scikit-learn."""
    print("the linear ones elsewhere (LIBSVM takes half a minute or more):")
    liblinear = sklearn.svm.LinearSVC(loss="hinge", max_iter=10_000)
    libsvm = sklearn.svm.SVC(kernel="linear", cache_size=1000)
    return [
        _peer("LIBLINEAR", liblinear, X, y, test, penalized),
        _peer("LIBSVM", libsvm, X, y, test, free),
    ]


def _peer(name: str, peer, X, y, test, ours: LinearSVC) -> tuple[str, str]:
    """Train a peer on the problem that ``ours`` solved, and score it by our bounds."""
    for data in (X, test[0]):  # scikit-learn's wrappers take 32-bit indices only
        data.indices, data.indptr = data.indices.astype("i4"), data.indptr.astype("i4")
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says how good the answer is
        peer.fit(X, y)
    seconds = time.perf_counter() - begin
    problem = Problem(X, y, intercept=ours.intercept)
    w = np.asarray(
        peer.coef_.todense() if hasattr(peer.coef_, "todense") else peer.coef_
    )
    primal = problem.primal(w.ravel(), float(peer.intercept_[0]))
    best = solve(problem, tol=1e-8).certificate.dual
    gap = (primal - best) / primal
    text = (
        f"{seconds:.2f} s, objective {primal:.4f}, gap {gap:.1e}, "
        f"accuracy {100 * peer.score(*test):.2f} % ({ours.intercept} intercept)"
    )
    print(f"  {name}: {text}")
    return name, text


if __name__ == "__main__":
    main()
