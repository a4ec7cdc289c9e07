"""Types of the C++ core: free functions on arrays that Python owns, or on views."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

class Csr:
    """Rows of a CSR matrix, by reference."""

def csr(
    indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], n: int
) -> Csr: ...
def csr_is_canonical(X: Csr) -> bool: ...
def csr_matvec(X: Csr, w: Vector, out: Vector) -> None: ...
def csr_rmatvec(X: Csr, u: Vector, out: Vector) -> None: ...
def csr_gram(X: Csr, d: Vector, out: Vector) -> None: ...
def csr_weighted_product(X: Csr, d: Vector, w: Vector, out: Vector) -> None: ...
def csr_column_sums(X: Csr, d: Vector, sums: Vector, squares: Vector) -> None: ...
def csr_row_squares(X: Csr, out: Vector) -> None: ...
def csr_row_products(X: Csr, scale: Vector, out: Vector) -> None: ...
def descend(
    X: Csr | NDArray[Any],
    coordinates: Vector,
    order: NDArray[np.int64],
    v: Vector,
    state: NDArray[np.uint8],
    budget: int,
    mark: int,
    shrinking: bool,
    simd: int = -1,
) -> bool:
    """Visit rows: see cpp/coordinate_descent.hpp."""

def group_rows(X: Csr | NDArray[np.uint8], *arguments: Any) -> int: ...

SIMD_NAMES: tuple[str, ...]

def simd_levels() -> list[int]: ...
def simd_default() -> int: ...
def advance(
    C: Vector, vectors: list[Vector], t: float, hinge: bool, simd: int = -1
) -> tuple[float, float, float]: ...

class Block:
    """Rows Y [X 1] or Y X as the sweeps read them, by reference."""

def block(
    X: Csr | NDArray[Any], y: NDArray[Any], intercept: bool, simd: int = -1
) -> Block: ...
def predict_sweep(
    A: Block,
    dv: Vector,
    C: Vector,
    vectors: list[Vector],
    clip: float,
    G: Vector,
    hinge: bool,
) -> tuple[float, int, float, float]: ...
def correct_sweep(
    A: Block,
    dv: Vector,
    C: Vector,
    vectors: list[Vector],
    target: float,
    hinge: bool,
) -> tuple[float, int, float, float]: ...
def normal_sweep(
    A: Block,
    C: Vector,
    vectors: list[Vector],
    G: Vector,
    gram: Vector | None,
    hinge: bool,
) -> None: ...
def dense_gram(
    X: NDArray[Any], d: Vector, G: Vector, simd: int = -1, rough: bool = False
) -> None: ...
def dense_column_sums(
    X: NDArray[Any], sums: Vector, squares: Vector, threads: int = 1, simd: int = -1
) -> None: ...
def dense_reach(
    X: NDArray[Any], center: Vector, absolute: bool, threads: int = 1, simd: int = -1
) -> float: ...
def dense_counts(
    X: NDArray[Any], counts: NDArray[np.int64], threads: int = 1, simd: int = -1
) -> None: ...
def dense_entries(
    X: NDArray[Any],
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[Any],
    threads: int = 1,
    simd: int = -1,
) -> None: ...
def dense_matvec(X: NDArray[Any], w: Vector, out: Vector, simd: int = -1) -> None: ...
def dense_rmatvec(X: NDArray[Any], u: Vector, out: Vector, simd: int = -1) -> None: ...
def penalty_sweep(
    A: Block,
    v: Vector | None,
    C: Vector,
    multiplier: Vector | None,
    s: float,
    f: Vector,
    alpha: Vector | None,
    g: Vector,
    counted: NDArray[np.uint8] | None = None,
    d: Vector | None = None,
    gram: Vector | None = None,
    rough: bool = False,
) -> tuple[float, float, float, int, int]: ...
def penalty_slope(
    C: Vector,
    multiplier: Vector | None,
    s: float,
    f: Vector,
    f_new: Vector,
    t: float,
    simd: int = -1,
) -> tuple[float, float]: ...
def count_svmlight(lines: NDArray[np.uint8]) -> tuple[int, int, int]: ...
def svmlight_line_start(text: NDArray[np.uint8], position: int) -> int: ...
def read_svmlight(
    text: NDArray[np.uint8],
    budget: int,
    base: int,
    first: int,
    last: int,
    need_qid: bool,
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    targets: Vector,
    qid: NDArray[np.int64] | None,
    first_entry: int,
    cursor: NDArray[np.int64],
) -> str: ...
def write_svmlight(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    targets: Vector,
    qid: NDArray[np.int64] | None,
    base: int,
    out: NDArray[np.uint8],
    cursor: NDArray[np.int64],
) -> str: ...
def large_room(bytes: int) -> NDArray[np.uint8]: ...
def lent_bytes() -> int: ...

KERNEL_STRIP: int
LONGEST: float
SUM_BLOCKS: int

def codes(simd: int = -1) -> int: ...

KERNEL_GROUP: int
KERNEL_CHUNK: int
MANY_FREE: int
MOST_FACED: int
INSIDE: float
MOST_BASIS: int
FAR_OFF: float
OF_VISIT: float
KERNEL_STEPS: float
BLOCK_STEPS: float

class Strips32: ...
class Strips64: ...
class Batch32: ...
class Batch64: ...

class GroupRows:
    strips: Strips32
    batch: Batch32
    exact: Batch64
    norms: Vector

def rows_of_groups(
    X: Any,
    place: NDArray[np.int64],
    center: Vector,
    exact_center: Vector,
    squares: bool,
    exact_squares: bool,
    look: Callable[[], object],
    simd: int = -1,
) -> GroupRows: ...
def strips(
    data: NDArray[Any],
    norms: NDArray[Any],
    indptr: NDArray[np.int64] | None,
    indices: NDArray[np.int32] | None,
    samples: int,
    n: int,
) -> Strips32 | Strips64: ...
def strips_of_ones(
    ones: NDArray[np.uint8],
    norms: NDArray[Any],
    samples: int,
    n: int,
    by_factors: bool = False,
) -> Strips32 | Strips64: ...
def pack_ones(
    X: Any,
    index: NDArray[np.int64],
    out: NDArray[np.uint8],
    norms: NDArray[Any],
) -> None: ...
def levels_at_once() -> int: ...
def pack_levels(
    X: Any,
    begin: int,
    end: int,
    unit: float,
    off: float,
    n: int,
    levels: NDArray[np.uint8],
    strips: NDArray[np.uint8],
    squares: NDArray[np.int32],
    sums: NDArray[np.int32],
) -> bool: ...
def take_levels(
    rows: NDArray[np.uint8],
    n: int,
    index: NDArray[np.intp],
    in_strips: bool,
    out: NDArray[np.uint8],
) -> None: ...
def strips_of_levels(
    levels: NDArray[np.uint8],
    level_norms: NDArray[np.int32],
    norms: NDArray[Any],
    unit: float,
    samples: int,
    n: int,
    by_groups: bool = False,
) -> Strips32 | Strips64: ...
def batch_of_levels(
    levels: NDArray[np.int8],
    level_norms: NDArray[np.int32],
    norms: NDArray[Any],
    n: int,
    begin: NDArray[np.int64] | None = None,
    end: NDArray[np.int64] | None = None,
    groups: NDArray[np.int32] | None = None,
) -> Batch32 | Batch64: ...
def batch(
    data: NDArray[Any],
    norms: NDArray[Any],
    begin: NDArray[np.int64] | None,
    end: NDArray[np.int64] | None,
    indices: NDArray[np.int32] | None,
    n: int,
) -> Batch32 | Batch64: ...
def pack(
    X: Any,
    index: NDArray[np.int64],
    center: Vector,
    out: NDArray[Any],
    norms: NDArray[Any],
    absolute: bool,
    simd: int = -1,
) -> None: ...
def dense_rows(
    X: Any, index: NDArray[np.int64], center: Vector, out: NDArray[Any]
) -> None: ...
def kernel_rows(
    form: tuple[int, float, float, int],
    X: Strips32 | Strips64,
    batch: Batch32 | Batch64,
    begin: int,
    end: int,
    out: NDArray[Any] | None,
    place: NDArray[np.int64] | None,
    weights: Vector | None,
    sums: Vector | None,
    simd: int = -1,
    back_weights: NDArray[Any] | None = None,
    back: Vector | None = None,
    rounded: NDArray[np.uint16] | None = None,
    steps: float = ...,
) -> None: ...
def kernel_sums(
    form: tuple[int, float, float, int],
    X: Strips32 | Strips64,
    batches: list[Any],
    first_sum: NDArray[np.int64],
    weights: Vector,
    sums: Vector,
    simd: int = -1,
) -> None: ...
def add_rows(
    rows: NDArray[Any],
    place: NDArray[np.int64],
    weights: Vector,
    begin: int,
    end: int,
    sums: Vector,
    simd: int = -1,
) -> None: ...
def simplex_steps(
    rows: NDArray[Any],
    place: NDArray[np.int64],
    y: Vector,
    diagonal: Vector,
    ridge: Vector,
    half: Vector,
    shift: float,
    alpha: Vector,
    g: Vector,
    numbers: Vector,
    kind: int,
    second_order: bool,
    ball: bool,
    stop: float,
    most: int,
    given: int = -1,
    simd: int = -1,
) -> tuple[int, int, int, float]: ...
def sampled_steps(
    rows: NDArray[Any],
    place: NDArray[np.int64],
    y: Vector,
    diagonal: Vector,
    ridge: Vector,
    half: Vector,
    shift: float,
    alpha: Vector,
    g: Vector,
    numbers: Vector,
    kind: int,
    second_order: bool,
    ball: bool,
    stop: float,
    most: int,
    given: int,
    order: NDArray[np.int64],
    split: int,
    state: NDArray[np.uint64],
    room: NDArray[np.int64],
    tries: int,
    simd: int = -1,
) -> tuple[int, int, int, int, int, bool]: ...
def draw_rows(
    order: NDArray[np.int64],
    split: int,
    state: NDArray[np.uint64],
    weight: Vector,
    out: NDArray[np.int64],
) -> int: ...
def votes(values: Vector, scores: Vector) -> None: ...
def violations(
    F: Vector,
    c: Vector,
    lower: Vector,
    upper: Vector,
    rise: Vector,
    fall: Vector,
    current: NDArray[np.bool_] | None = None,
) -> None: ...
def mirror(
    K: NDArray[Any], begin: int, end: int, q: int, first: int, last: int
) -> None: ...
def take(
    rows: NDArray[Any],
    place: NDArray[np.int64],
    J: NDArray[np.int64],
    out: NDArray[Any],
    at: NDArray[np.int64],
) -> None: ...
def twofold_matvec(
    X: Csr | NDArray[Any],
    w: Vector,
    hi: Vector,
    lo: Vector,
    size: Vector,
    simd: int = -1,
) -> None: ...
def twofold_rmatvec(
    X: Csr | NDArray[Any],
    a: Vector,
    hi: Vector,
    lo: Vector,
    size: Vector,
    simd: int = -1,
) -> None: ...
def twofold_kernel_sums(
    form: tuple[int, float, float, int],
    X: Csr | NDArray[Any],
    Z: Csr | NDArray[Any],
    c: Vector,
    hi: Vector,
    lo: Vector,
    error: Vector,
    size: Vector,
    simd: int = -1,
) -> None: ...
def twofold_kernel_diag(
    form: tuple[int, float, float, int],
    X: Csr | NDArray[Any],
    hi: Vector,
    lo: Vector,
    error: Vector,
    simd: int = -1,
) -> None: ...
def twofold_dot(
    a: Vector, hi: Vector, lo: Vector, simd: int = -1
) -> tuple[float, float, float]: ...
def newton_batch(
    X: Vector | Csr,
    y: Vector,
    C: Vector,
    squared: bool,
    intercept: int,
    tol: float,
    most: int,
    threads: int,
    stop: Callable[[], bool],
    alpha: Vector,
    v: Vector,
    steps: NDArray[np.int64],
    simd: int = -1,
    q: Vector | None = None,
    digits: float = ...,
    few: int = 0,
) -> bool: ...
def descent_batch(
    X: Csr,
    y: Vector,
    C: Vector,
    squared: bool,
    intercept: int,
    tol: float,
    most: int,
    threads: int,
    stop: Callable[[], bool],
    alpha: Vector,
    v: Vector,
    steps: NDArray[np.int64],
    simd: int = -1,
    q: Vector | None = None,
    seed: int = 0,
) -> bool: ...
def solve_batch(
    form: tuple[int, float, float, int],
    strips: Any,
    batch: Any,
    strip: NDArray[np.int64],
    count: NDArray[np.int64],
    rows: NDArray[np.int64],
    diagonal: Vector,
    exact_form: tuple[int, float, float, int],
    exact: Any,
    norms: Vector,
    group: NDArray[np.int64],
    group_end: NDArray[np.int64],
    end: NDArray[np.int64],
    after: NDArray[np.int64],
    y: Vector,
    C: Vector,
    q: Vector,
    mass: Vector,
    c: Vector,
    scores: Vector,
    squared: bool,
    intercept: int,
    tol: float,
    most: int,
    bytes: int,
    threads: int,
    exactly: bool,
    hopeless: float,
    seconds: float,
    work: float,
    moved: float,
    stop: Callable[[], bool],
    numbers: Vector,
    counts: NDArray[np.int64],
    simd: int = -1,
) -> tuple[int, bool]: ...
def relative_gaps(bounds: Vector, gaps: Vector) -> None: ...
def missing(alpha: Vector, total: float) -> float: ...
def fill_sum(C: Vector, total: float, bounded: bool, alpha: Vector) -> None: ...
def change_sum(
    alpha: Vector, C: Vector, total: float, bounded: bool, moved: Vector
) -> None: ...
def fill_sums(
    end: NDArray[np.int64],
    data: Sequence[Vector],
    bounded: bool,
    by_class: bool,
    c: Vector,
) -> None: ...
def certify_many(
    end: NDArray[np.int64],
    data: Sequence[Vector],
    squared: bool,
    intercept: int,
    found: Sequence[Vector],
    has_loss: NDArray[np.bool_],
    row: NDArray[np.int64],
    length: Vector,
    numbers: Sequence[Vector],
    squares: Vector | None,
    out: Vector,
) -> None: ...
def errors_by_part(
    eps: float,
    h: Vector,
    s: Vector,
    base: float,
    each: float,
    more: float,
    lost: float,
    end: NDArray[np.int64],
    row: NDArray[np.int64],
    c: Vector,
    out: Vector,
) -> None: ...
def prove_many(
    known: tuple[float, Vector, Vector, float, float, float, float],
    exact: tuple[float, Vector, Vector, float, float, float, float],
    end: NDArray[np.int64],
    row: NDArray[np.int64],
    data: Sequence[Vector],
    found: Sequence[Vector],
    rho: Vector,
    counted: Vector,
    are_all_wanted: bool,
    squared: bool,
    intercept: int,
    enough: float,
    threads: int,
    sum: Callable[..., Vector],
    out: Vector,
) -> None: ...
def lay_out(
    end: NDArray[np.int64],
    row: NDArray[np.int64],
    y: Vector,
    weights: Vector,
    factors: Vector,
    Cs: Vector,
    all_rows: NDArray[np.int64],
    all_y: Vector,
    all_C: Vector,
    all_c: Vector,
    threads: int,
) -> None: ...
def keep_answers(
    known: tuple[float, Vector, Vector, float, float, float, float],
    end: NDArray[np.int64],
    row: NDArray[np.int64],
    y: Vector,
    found: Sequence[Vector],
    threads: int,
    weights: Vector,
    sum: NDArray[np.int64],
    coefficients: Vector,
    counts: Sequence[NDArray[np.int16]],
) -> None: ...
def solve_given(
    values: Vector,
    strip: NDArray[np.int64],
    count: NDArray[np.int64],
    rows: NDArray[np.int64],
    diagonal: Vector,
    group: NDArray[np.int64],
    group_end: NDArray[np.int64],
    end: NDArray[np.int64],
    after: NDArray[np.int64],
    y: Vector,
    C: Vector,
    q: Vector,
    mass: Vector,
    c: Vector,
    scores: Vector,
    squared: bool,
    intercept: int,
    tol: float,
    most: int,
    bytes: int,
    threads: int,
    exactly: bool,
    hopeless: float,
    seconds: float,
    work: float,
    moved: float,
    stop: Callable[[], bool],
    numbers: Vector,
    counts: NDArray[np.int64],
    simd: int = -1,
) -> tuple[int, bool]: ...
def sum_given(
    values: Vector,
    diagonal: Vector,
    support: NDArray[np.int64],
    support_end: NDArray[np.int64],
    weight: Vector,
    row: NDArray[np.int64],
    row_end: NDArray[np.int64],
    out: Vector,
    threads: int,
    stop: Callable[[], bool],
) -> None: ...
def given_facts(values: Vector, s: Vector) -> tuple[float, float, float, int, int]: ...
def sum_batch(
    form: tuple[int, float, float, int],
    batch: Any,
    norms: Vector,
    support: NDArray[np.int64],
    support_end: NDArray[np.int64],
    weight: Vector,
    row: NDArray[np.int64],
    row_end: NDArray[np.int64],
    run_end: NDArray[np.int64],
    out: Vector,
    threads: int,
    stop: Callable[[], bool],
    simd: int = -1,
) -> None: ...
def sum_table(
    form: tuple[int, float, float, int],
    batch: Any,
    norms: Vector,
    weight: Vector,
    steps: int,
    order: NDArray[np.int64],
    group_end: NDArray[np.int64],
    row: NDArray[np.int64],
    wanted: NDArray[np.int64],
    out: Vector,
    threads: int,
    stop: Callable[[], bool],
    simd: int = -1,
) -> None: ...
def sum_table_given(
    values: Vector,
    diagonal: Vector,
    weight: Vector,
    steps: int,
    order: NDArray[np.int64],
    group_end: NDArray[np.int64],
    row: NDArray[np.int64],
    wanted: NDArray[np.int64],
    out: Vector,
    threads: int,
    stop: Callable[[], bool],
) -> None: ...
def pair_steps(
    K: NDArray[Any],
    q: int,
    diagonal: NDArray[Any],
    ridge: NDArray[Any],
    shift: float,
    lower: Vector,
    upper: Vector,
    x: Vector,
    F: NDArray[Any],
    room: NDArray[Any],
    sums: int,
    stop: float,
    most: int,
    kink: NDArray[Any] | None = None,
    simd: int = -1,
) -> tuple[int, int, float]: ...
