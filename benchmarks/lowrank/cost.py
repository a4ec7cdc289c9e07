"""What a rank costs: CPU seconds of the map and of the solves, for a row and a rank.

For each set and rank one fit of SVC(rank=...) with one thread, all classes one against
one, or the rest. The seconds for a row, of all binary problems, and a dimension are
those that rank="auto" goes by (src/widemargin/estimators/low_rank.py). Prints a
table.
"""

import argparse
import time
from pathlib import Path

from sklearn.preprocessing import MaxAbsScaler

from benchmarks.environment import list_of
from widemargin import SVC, load_svmlight

# C and gamma.
SETS = {
    "a9a": (1.0, 0.05),
    "ijcnn1": (8.0, 2.0),
    "covtype_20k": (8.0, 1.0),
    "usps": (10.0, 2.0**-7),
    "letter": (16.0, 4.0),
    "shuttle": (10.0, 1.0),
}
HEAD = f"{'set':12}{'rank':>6}{'problems':>9}{'rows':>9}{'seconds':>9}{'each':>9}"


def main():
    """Measure the sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder of sets: NAME/train.svm[.*]")
    add("--sets", type=list_of(tuple(SETS)), default=list(SETS))
    add("--ranks", type=lambda s: [int(v) for v in s.split(",")], default=[100, 300])
    add("--scheme", choices=("ovo", "ovr"), default="ovo")
    options = parser.parse_args()
    print(HEAD)
    for name in options.sets:
        X, y = load_svmlight(next((options.data / name).glob("train.svm*")))
        X = MaxAbsScaler().fit_transform(X)
        for rank in options.ranks:
            print(row(name, X, y, rank, options.scheme), flush=True)


def row(name, X, y, rank, scheme):
    """A line of text."""
    C, gamma = SETS[name]
    clf = SVC(C=C, gamma=gamma, rank=rank, multi_class=scheme, n_jobs=1)
    begin = time.process_time()
    clf.fit(X, y)
    seconds = time.process_time() - begin
    rows = sum(len(s.alpha) for s in clf.solutions_)
    return (
        f"{name:12}{clf.feature_map_.rank:>6}{len(clf.solutions_):>9}{rows:>9}"
        f"{seconds:>9.2f}{seconds / rows / clf.feature_map_.rank:>9.1e}"
    )


if __name__ == "__main__":
    main()
