"""How long Ctrl-C takes: seconds from the signal to KeyboardInterrupt being handled."""

import signal
import statistics
import subprocess
import sys
import textwrap
import time

import numpy as np

HEAD = "import numpy as np\nfrom widemargin import LinearSVC, load_svmlight\n"
FIT = """
    rng = np.random.default_rng(0)
    X = rng.normal(size=({m}, {n}))
    y = rng.integers(0, {classes}, len(X))
    task = lambda: LinearSVC(loss="hinge", tol=1e-12).fit(X, y)
"""
WORK = {
    "fit, 400,000 x 40, 2 classes": FIT.format(m=400_000, n=40, classes=2),
    "fit, 400,000 x 40, 4 classes": FIT.format(m=400_000, n=40, classes=4),
    "fit, 20,000 x 1,000, 2 classes": FIT.format(m=20_000, n=1000, classes=2),
    "fit, 3,000 x 3,000, 3 classes": FIT.format(m=3000, n=3000, classes=3),
}
RUN = """
    print("ready", flush=True)
    try:
        while True:
            task()
    except KeyboardInterrupt:
        print("done", flush=True)
"""


def latency(work, wait):
    """Seconds from a signal after ``wait`` seconds of work to its end."""
    code = HEAD + textwrap.dedent(work) + textwrap.dedent(RUN)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(wait)
        begin = time.perf_counter()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "done\n"
        return time.perf_counter() - begin


def main():
    """Print the median and the largest of ten."""
    rng = np.random.default_rng(0)
    for name, work in WORK.items():
        found = [latency(work, wait) for wait in rng.uniform(0.1, 3.0, 10)]
        print(
            f"{name:34} median {statistics.median(found):.2f} s, "
            f"largest {max(found):.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
