"""The arguments of ``train``."""

from typing import Any

from widemargin.cli import values
from widemargin.cli.shared_options import (
    FORMATS,
    GUESS,
    add_json,
    add_memory_limit,
    add_reading,
)
from widemargin.kernels.table import GAMMAS, NAMES, having
from widemargin.models.schemes import SCHEMES, SHAPES


def add_train(train: Any) -> None:
    """All of them."""
    _add_machine(train)
    _add_where(train)
    _add_scale(train)
    _add_kernel(train)
    _add_smaller(train)
    _add_approximation(train)
    _add_strength(train)
    _add_loss(train)
    _add_classes(train)
    _add_weights(train)
    _add_columns(train)
    _add_solving(train)
    add_json(train)
    add_reading(train, f"auto: {GUESS}; the test file is read alike")


def _add_machine(train: Any) -> None:
    """The files, and what the labels are to the machine."""
    add = train.add_argument
    add("data", metavar="DATA", help=f"to train on: {FORMATS}")
    add("model", metavar="MODEL", help="file to write the model to")
    # These choices, and the losses below, are in widemargin.cli.machines, which is slow
    # to import.
    add(
        "--type",
        choices=("classify", "regress", "one-class", "nu", "nu-regress"),
        default="classify",
        help="classify: labels are classes; regress: labels are numbers to predict; "
        "one-class: labels are not looked at, predictions are -1 for outliers; nu: "
        "classes, with --nu in the place of C; nu-regress: numbers, with --nu in the "
        "place of --epsilon (classify)",
    )
    add("--test", metavar="DATA", help="of the same kind, to measure the errors on")
    add("--report", metavar="FILE.html", help="write a page with pictures")


def _add_where(train: Any) -> None:
    """Which workers train, where it is not this process."""
    add = train.add_argument
    add(
        "--cluster",
        metavar="URL",
        help="train on a Dask cluster (tcp://...), whose workers read DATA: .npy, or a "
        "folder of shards",
    )
    add(
        "--workers",
        type=values.count,
        metavar="N",
        help="the same with N workers of this machine",
    )


def _add_scale(train: Any) -> None:
    # These choices are in widemargin.features.scaling, too, which is slow to import.
    train.add_argument(
        "--scale",
        choices=("standard", "minmax", "maxabs"),
        help="scale the columns: to mean 0 and deviation 1, from 0 to 1, or by their "
        "largest size; learned on DATA and kept in the model, with --cv also on the "
        "training rows of each fold; data with zeros that are not stored are scaled "
        "without a shift (none)",
    )


def _add_strength(train: Any) -> None:
    """The weight of all losses, and how it is chosen."""
    add = train.add_argument
    add(
        "-C",
        "--C",
        type=values.weights,
        metavar="C",
        help="weight of the losses (1); inf allows none: a hard margin; with --cv "
        "several, such as 0.1,1,10 (ten from 0.01 to 1000)",
    )
    add(
        "--cv",
        type=values.folds,
        metavar="K",
        help="choose C by the accuracy on K folds of the rows, and gamma and epsilon "
        "where --gamma and --epsilon have several values: prints a table and keeps the "
        "best model",
    )
    add(
        "--cv-seed",
        type=values.split_seed,
        metavar="N",
        help="shuffle the rows before they are cut into folds, as LIBSVM does; the "
        "same N makes the same folds (rows as they come)",
    )
    add(
        "--scoring",
        type=values.scorer,
        metavar="NAME",
        help="what --cv compares: a scorer of scikit-learn, such as f1_macro or "
        "neg_mean_absolute_error (accuracy; R^2 of --type regress)",
    )


def _add_weights(train: Any) -> None:
    """What classes weigh, and whether scores become probabilities."""
    add = train.add_argument
    add(
        "--class-weight",
        type=values.class_weights,
        metavar="LABEL:FACTOR,...",
        help="factors of C by class, such as 1:2,-1:0.5 (others: 1); of several "
        "classes one against the rest that of the one class, as in LIBLINEAR; with "
        "--type nu of the weights of rows; a label with a comma in double quotes; "
        "balanced: all classes weigh the same (none)",
    )
    add(
        "--probability",
        action="store_true",
        help="keep in the model what makes probabilities of scores: sigmoids, fitted "
        "to the scores of rows that a fold held out (--cv 5, if not said; of --type nu "
        "always five folds); predict --probability prints them",
    )


def _add_loss(train: Any) -> None:
    """What a row costs, and the intercept."""
    add = train.add_argument
    # The choices are in `LOSSES` and `INTERCEPTS` too, which are slow to import.
    add(
        "--loss",
        choices=(
            "hinge",
            "squared_hinge",
            "epsilon_insensitive",
            "squared_epsilon_insensitive",
        ),
        help="loss of a row (squared_hinge, as LinearSVC; with a kernel hinge, as SVC; "
        "not with --budget, which has --norm; of --type regress epsilon_insensitive)",
    )
    add(
        "--epsilon",
        type=values.widths,
        metavar="E",
        help="of --type regress: errors up to this cost nothing, in the units of the "
        "targets (0, as LinearSVR; with a kernel 0.1, as SVR); with --cv several, such "
        "as 0.1,0.2",
    )
    add(
        "--nu",
        type=values.share,
        metavar="NU",
        help="of --type nu, nu-regress and one-class: the share of errors at most, and "
        "of support vectors at least (0.5)",
    )
    add(
        "--intercept",
        choices=("free", "penalized", "none", "auto"),
        default="auto",
        help="auto: free for hinge and epsilon_insensitive, penalized for squares",
    )


def _add_classes(train: Any) -> None:
    """How more than two classes are told apart."""
    add = train.add_argument
    add(
        "--multi-class",
        choices=SCHEMES,
        help="more than two classes: one against the rest, one against one, or a "
        "directed acyclic graph of pairs (ovr; with a kernel or a budget ovo)",
    )
    add(
        "--decision-shape",
        choices=SHAPES,
        help="scores of classes, or of pairs of classes (ovr)",
    )
    add(
        "--break-ties",
        action="store_true",
        help="of ovo: scores choose among classes with as many votes",
    )


def _add_kernel(train: Any) -> None:
    add = train.add_argument
    add(
        "--kernel",
        choices=NAMES,
        default="linear",
        help="others than linear, without --rank, hold the data in memory (linear)",
    )
    add(
        "--gamma",
        type=values.gammas,
        help=f"{_of_kernels('gamma')}: a number, {', '.join(GAMMAS[:-1])} or "
        f"{GAMMAS[-1]} (scale); with --cv several, such as 0.01,0.1",
    )
    add("--degree", type=values.count, metavar="D", help=f"{_of_kernels('degree')} (3)")
    add(
        "--coef0",
        type=values.number,
        metavar="R",
        help=f"{_of_kernels('coef0')} (0)",
    )


def _of_kernels(parameter: str) -> str:
    """Which kernels have a parameter, for a help text."""
    names = having(parameter)
    if len(names) > len(NAMES) / 2:
        return f"of kernels but {' and '.join(k for k in NAMES if k not in names)}"
    return f"of the kernel{'s' * (len(names) > 1)} {' and '.join(names)}"


def _add_smaller(train: Any) -> None:
    """What makes a kernel model smaller."""
    add = train.add_argument
    add(
        "--budget",
        type=values.budget,
        metavar="B",
        help="support vectors of a kernel model at most, of each pair of classes: a "
        "number or a share of the rows (all)",
    )
    add(
        "--method",
        choices=("pursuit", "prune", "norm"),
        help="of --budget: chosen rows and a refit; the largest coefficients of the "
        "machine of Dekel and Singer; or that machine, whose support vectors are not "
        "bounded (pursuit)",
    )
    add(
        "--norm",
        choices=("l1", "l2"),
        help="of --budget: the losses, or their squares (l1)",
    )


def _add_approximation(train: Any) -> None:
    """What makes the work for a kernel model smaller."""
    add = train.add_argument
    add(
        "--rank",
        type=values.rank,
        metavar="R",
        help="rank of a kernel matrix that takes the place of the whole one, or the "
        "share of its trace that may be left; auto: where the exact one takes too long "
        "for --time-limit, or has no room in memory (none)",
    )
    # These choices are in widemargin.features.methods, too, which is slow to import.
    add(
        "--approximation",
        choices=("auto", "cholesky", "nystroem", "eigen", "fourier", "polynomial"),
        default="auto",
        help="how that is made (auto: nystroem, or cholesky for a share)",
    )
    add(
        "--certify",
        choices=("approximate", "exact"),
        default="approximate",
        help="exact: bound the optimum with the whole kernel matrix, whatever the rank",
    )


def _add_solving(train: Any) -> None:
    add = train.add_argument
    add(
        "--solver",
        type=values.solver,
        default="auto",
        metavar="NAME",
        help="auto (chooses and says why), active_set, augmented_lagrangian, "
        "coordinate_descent or interior_point; with a kernel irwls, frank_wolfe or "
        "core_vector; batch (small problems at once)",
    )
    add(
        "--solver-option",
        type=values.assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of that solver, such as mode=asvm; may be given several times",
    )
    add(
        "--tol",
        type=values.share,
        default=1e-4,
        help="relative duality gap to reach, at most 1 (1e-4)",
    )
    add("--max-iter", type=values.count, metavar="N", help="iterations at most")
    add(
        "--time-limit",
        type=values.positive,
        metavar="S",
        help="seconds of training at most",
    )
    _add_checkpoint(train)
    add_memory_limit(
        train,
        "that training may take, such as 500M (K, M, G, T): of arrays and Parquet only "
        "blocks are in memory, and row vectors that do not fit are in temporary files "
        "(TMPDIR); text larger than a quarter of it is first converted to such files; "
        "of text in memory, it limits what comes on top of the data",
    )


def _add_checkpoint(train: Any) -> None:
    add = train.add_argument
    add(
        "--checkpoint",
        metavar="FILE",
        help="save the run there, so that --resume can go on with it",
    )
    add(
        "--checkpoint-every",
        type=values.positive,
        metavar="S",
        help="seconds between two saves (60)",
    )
    add(
        "--resume",
        action="store_true",
        help="go on from the checkpoint, if there is one (MODEL.checkpoint, which is "
        "also written then, unless --checkpoint says another)",
    )


def _add_columns(train: Any) -> None:
    add = train.add_argument
    which = "NAME|NUMBER|FILE.npy"
    add(
        "--label",
        metavar=which,
        help="labels: a column of CSV or Parquet by name, or of a .npy matrix by "
        "number (from 0), or a .npy file; the files y-*.npy of a folder are found "
        "without",
    )
    add("--test-label", metavar=which, help="labels of the test data, if not the same")
    add(
        "--weight",
        "--weights",
        metavar=f"{which}|FILE.txt",
        help="weights of the rows, likewise; or a text with a number a line, which "
        "svmlight text may have, too (none)",
    )
    add(
        "--columns",
        type=values.names,
        metavar="NAME,...",
        help="the features of CSV or Parquet (all columns but label and weight)",
    )
