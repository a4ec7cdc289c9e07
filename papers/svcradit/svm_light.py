"""SVM-light, the program that the paper compares with, where it is at hand.

Its sources come with the package `svmlight` of the registry (pysvmlight, for Python 2);
the program itself compiles as it is: ``gcc -O3 -fcommon lib/svm_learn_main.c
lib/svm_learn.c lib/svm_common.c lib/svm_hideo.c -lm -o svm_learn``. Its license allows
non-commercial use only.
"""

import math
import re
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from papers import measure
from papers.svcradit import methods
from widemargin import save_svmlight

CACHE = 200  # MB


def _limited(seconds):
    """What gives a process that begins no more processor seconds."""
    limits = (math.ceil(seconds), math.ceil(seconds))
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, limits)


def svm_light(program, row, X, y, limit):
    """A record of one run with the paper's q, scored by `Problem.certify`.

    Seconds are those that it reports: of the processor, without reading.
    """
    with tempfile.TemporaryDirectory() as name:
        data, model, alpha = (Path(name, part) for part in ("data", "model", "alpha"))
        save_svmlight(X, y, data)
        options = f"-t 2 -g {row.gamma} -c {row.C} -q {row.q_light} -m {CACHE}".split()
        command = [program, *options, "-a", alpha, data, model]
        ran = subprocess.run(
            command, capture_output=True, text=True, preexec_fn=_limited(limit)
        )
        if ran.returncode != 0:
            return {"seconds": limit, "status": "time_limit", "gap": 1.0}
        seconds = float(re.search(r"Runtime in cpu-seconds: ([\d.]+)", ran.stdout)[1])
        b = -float(re.search(r"(\S+) # threshold b", model.read_text())[1])
        c = np.loadtxt(alpha)
    found = methods.as_problem(row, X, y).certify(np.abs(c), c, b)
    return {
        "seconds": measure.rounded(seconds),
        "status": "solved",
        "gap": float(f"{found.relative_gap:.3g}"),
        "primal": found.primal,
        "vectors": int(np.count_nonzero(c)),
    }
