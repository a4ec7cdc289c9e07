"""What tolerances of other packages are as gaps.

    python -m benchmarks.kernel.tolerances --data FOLDER

Certifies answers of LIBSVM (scikit-learn's SVC) with an rbf kernel, and of LIBSVM,
LIBLINEAR and widemargin with linear machines, at several settings. Writes two tables of
Markdown, pages/tolerances.md and pages/tolerances-linear.md, which the documentation
includes, after a line on the machine, kernel/tolerances.txt. No times: gaps do not
depend on what else runs.
"""

import argparse
from typing import Any

import numpy as np
import sklearn.svm

from benchmarks.datasets import find
from benchmarks.environment import RESULTS, machine
from benchmarks.pages import PAGES, table
from widemargin import Kernel, LinearSVC, Problem, load_svmlight, solve

TOLS = (1e-2, 1e-3, 1e-4)
# Name, file, rows from the first on, C, gamma.
SETS = [
    ("Adult a6a", "a6a", None, 1.0, 0.05),
    ("Web w5a", "w5a", None, 5.0, 0.05),
    ("ijcnn1", "ijcnn1", 12_000, 8.0, 2.0),
]


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the sets")
    folder = parser.parse_args().data
    head = ["data", *(f"`tol={tol:.0e}`" for tol in TOLS)]
    made = {
        "tolerances.md": table(head, [of_kernel(folder, *one) for one in SETS]),
        "tolerances-linear.md": table(
            ["package", "its setting", "relative gap it reaches"], of_linear(folder)
        ),
    }
    for name, text in made.items():
        (PAGES / name).write_text(text, "utf-8")
        print(text)
    here = machine({})
    versions = here["versions"] | {"scikit-learn": sklearn.__version__}
    said = f"{here['cpu']}; {versions}\n"
    (RESULTS / "kernel" / "tolerances.txt").write_text(said)


def rows_of(folder: Any, name: str, rows: int | None) -> tuple[Any, Any]:
    """The first rows of a set, labels 1 and -1."""
    X, y = load_svmlight(find(folder, name, "train.svm*"))
    return X[:rows], np.where(y[:rows] > 0, 1.0, -1.0)


def of_kernel(
    folder: Any, title: str, name: str, rows: int | None, C: float, gamma: float
) -> list[str]:
    """The gaps of LIBSVM's answers to one problem."""
    X, y = rows_of(folder, name, rows)
    problem = Problem(X, y, C, kernel=Kernel("rbf", gamma=gamma))
    best = solve(problem, tol=1e-9).certificate.dual
    line = [f"{title}, {X.shape[0]:,} rows, `C={C:g}`, `gamma={gamma:g}`"]
    for tol in TOLS:
        clf = sklearn.svm.SVC(C=C, gamma=gamma, tol=tol, cache_size=1000).fit(X, y)
        c = np.zeros(len(y))
        c[clf.support_] = clf.dual_coef_.toarray().ravel()
        primal = problem.certify(np.abs(c), c, float(clf.intercept_[0])).primal
        line.append(f"{(primal - best) / primal:.1e}")
    return line


def of_linear(folder: Any) -> list[list[str]]:
    """The gaps of linear machines with the hinge on Adult a9a, C = 1."""
    X, y = rows_of(folder, "a9a", None)
    lines = []
    for title, setting, model, intercept in [
        ("LIBSVM, `SVC(kernel=\"linear\")` (rbf: [below](#kernel-problems))",
         "`tol=1e-3` (default)",
         sklearn.svm.SVC(kernel="linear", cache_size=1000), "free"),
        ("LIBLINEAR, `LinearSVC(loss=\"hinge\")`", "`tol=1e-4` (default)",
         sklearn.svm.LinearSVC(loss="hinge", max_iter=100_000, random_state=0),
         "penalized"),
        ("widemargin, `LinearSVC(loss=\"hinge\")`", "`tol=1e-4` (default)",
         LinearSVC(loss="hinge", intercept="penalized"), "penalized"),
    ]:  # fmt: skip
        model.fit(X, y)
        problem = Problem(X, y, 1.0, "hinge", intercept)
        best = solve(problem, tol=1e-10).certificate.dual
        w = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
        primal = problem.primal(np.ravel(w), float(np.ravel(model.intercept_)[0]))
        lines.append([title, setting, f"{(primal - best) / primal:.1e}"])
    lines[-1][-1] = f"at most 1e-4, proved; here {lines[-1][-1]}"
    return lines


if __name__ == "__main__":
    main()
