"""Blocks, columns, sums and counts of a kernel matrix against the whole of it."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import (
    NAMED,
    block_bytes,
    instruction_set,
    matrix,
    matrix_of,
    memory_limit_of,
    on_every_kind,
    on_every_simd,
    on_storages_in_memory,
    plain,
)
from tests.cases.pairwise import product
from widemargin import Kernel, as_rows
from widemargin.kernels.matrix import Columns

CASES = {"narrow": (131, 5, 0.8), "sparse": (70, 40, 0.1), "wide": (19, 2060, 0.02)}
on_every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def check(columns, K, tolerance=1e-5):
    """Each way to ask for K gives it."""
    m = len(K)
    rng = np.random.default_rng(m)
    scale = max(1.0, float(np.abs(K).max()))
    close = {"rtol": 0, "atol": tolerance * scale}
    some, J = rng.permutation(m)[: m // 2 + 1], rng.permutation(m)[: m // 3 + 1]
    np.testing.assert_allclose(columns.block(some, J), K[np.ix_(some, J)], **close)
    for _ in range(2):  # computed, then kept
        np.testing.assert_allclose(columns.columns(J), K[:, J].T, **close)
    np.testing.assert_allclose(columns.diag(), np.diag(K), rtol=1e-12, atol=1e-12)
    c = rng.normal(size=len(J))
    expected = K[:, J] @ c
    for _ in range(3):
        sums = np.full(columns.width, 0.5)
        columns.add(J, c, sums)
        np.testing.assert_allclose(sums[:m], 0.5 + expected, **close)
    exact = columns.exact(some, J, c)
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, expected[some], rtol=0, atol=1e-11 * scale)


# -- values ----------------------------------------------------------------------------


@on_every_kind
@on_every_case
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_all_ways_to_ask_agree(kernel, case, convert):
    X = matrix_of(kernel, *case)
    K = plain(kernel, X, X)
    columns = Columns(as_rows(convert(X)), kernel)
    assert columns.shape == (len(X), len(X))
    check(columns, K, 2e-5)
    columns.refine()
    assert columns.dtype == np.float64
    check(columns, K, 1e-12)


@pytest.mark.cover(1)
@on_storages_in_memory
@pytest.mark.parametrize("name", ["rbf", "poly-2"])
def test_all_ways_to_ask_agree_on_every_storage(storage, name):
    for case in CASES.values():
        X = matrix(*case)
        exact = storage.exact(X)
        columns = Columns(storage.make(X.copy()), NAMED[name])
        check(columns, plain(NAMED[name], exact, exact), 2e-5)


@on_storages_in_memory
def test_a_precomputed_kernel_may_be_of_every_storage(storage):
    K = np.rint(8.0 * plain(NAMED["rbf"], X := matrix(41, 5), X))
    check(Columns(storage.make(K), Kernel("precomputed")), K)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_callable_is_what_it_computes(convert):
    def function(A, B):
        assert isinstance(A, np.ndarray) == (convert is np.asarray)
        dense = [M if isinstance(M, np.ndarray) else M.toarray() for M in (A, B)]
        return plain(NAMED["rbf"], *dense)

    X = matrix(70, 6, 0.5)
    columns = Columns(as_rows(convert(X)), Kernel(function))
    check(columns, plain(NAMED["rbf"], X, X))
    columns.refine()
    check(columns, plain(NAMED["rbf"], X, X), 1e-12)


def test_selected_rows_have_columns_of_their_own():
    X = matrix(50, 4)
    mask = np.random.default_rng(0).random(50) < 0.5
    K = plain(NAMED["rbf"], X, X)
    for columns in (
        Columns(as_rows(X), NAMED["rbf"]),
        Columns(as_rows(K), Kernel("precomputed")),
        Columns(as_rows(sparse.csr_array(K)), Kernel("precomputed")),
    ):
        check(columns.select(mask), K[np.ix_(mask, mask)])


@on_every_simd
def test_sums_of_kept_rows_are_the_same_of_every_instruction_set(simd):
    X = matrix(131, 7)
    K = plain(NAMED["rbf"], X, X)
    with instruction_set(simd):
        columns = Columns(as_rows(X), NAMED["rbf"])
        check(columns, K)
        columns.refine()
        check(columns, K, 1e-13)


def test_no_rows_are_no_work():
    columns = Columns(as_rows(matrix(9, 3)), NAMED["rbf"])
    none = np.empty(0, np.intp)
    assert columns.block(none, none).shape == (0, 0)
    assert columns.columns(none).shape == (0, 9)
    sums = np.zeros(columns.width)
    columns.add(none, np.empty(0), sums)
    assert not sums.any()
    assert columns.exact(np.arange(3), none, np.empty(0)).tolist() == [0.0] * 3
    assert columns.evaluations == columns.hits == 0


# -- counts ----------------------------------------------------------------------------


def counts(columns):
    return columns.evaluations, columns.hits


def dear():
    """Columns with rows that are stored when they are first used."""
    return Columns(as_rows(matrix(50, 300)), NAMED["rbf"])


def test_entries_are_counted():
    columns = dear()
    assert counts(columns) == (0, 0)
    columns.block(np.arange(10), np.arange(7))
    assert counts(columns) == (70, 0)
    columns.columns([3, 4])
    assert counts(columns) == (170, 0)
    columns.columns([4, 5, 3])
    assert counts(columns) == (220, 100)
    sums = np.zeros(columns.width)
    columns.add(np.array([3, 4, 5, 6]), np.ones(4), sums)
    assert counts(columns) == (270, 250)
    columns.add(np.array([6, 7]), np.ones(2), sums)
    assert counts(columns) == (320, 300)


def test_rows_that_are_not_asked_for_again_are_not_kept():
    X = matrix(50, 80)
    columns, all_kept = (Columns(as_rows(X), NAMED["rbf"]) for _ in range(2))
    J, c = np.arange(6), np.arange(1.0, 7.0)
    sums, others = np.zeros(columns.width), np.zeros(columns.width)
    columns.add(J, c, sums, np.arange(6) % 2 == 0)
    all_kept.add(J, c, others)
    np.testing.assert_array_equal(sums, others)
    np.testing.assert_array_equal(columns.places[J] >= 0, np.arange(6) % 2 == 0)
    assert (all_kept.places[J] >= 0).all()


def test_rows_that_are_cheap_are_kept_when_they_are_used_often():
    columns = Columns(as_rows(matrix(50, 30)), NAMED["rbf"])
    sums = np.zeros(columns.width)
    # (72 / (30 + 6))^2 = 4 uses are worth memory that is touched first.
    for use in range(8):
        columns.add(np.array([1, 2]), np.ones(2), sums)
        computed = min(use + 1, 5)
        assert counts(columns) == (100 * computed, 100 * (use + 1 - computed))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_take_what_kept_rows_have(n_jobs):
    X = matrix(1600, 150)  # as many as two threads share
    columns = Columns(as_rows(X), NAMED["rbf"], n_jobs=n_jobs)
    kept, I = np.arange(0, 1600, 2), np.arange(1599, 1, -1)  # noqa: E741
    columns.keep(kept)
    J = np.random.default_rng(0).permutation(1600)[:1500]
    before, hits = counts(columns)
    values = columns.block(I, J)
    K = plain(NAMED["rbf"], X, X)
    np.testing.assert_allclose(values, K[np.ix_(I, J)], rtol=0, atol=1e-5)
    taken = columns.kept_rows[columns.places[kept[1:]]][:, J]
    np.testing.assert_array_equal(values[np.isin(I, kept)], taken[::-1])
    assert counts(columns) == (before + 799 * 1500, hits + 799 * 1500)
    columns.focus(np.arange(100, 740))  # whose kept rows are shorter
    columns.keep(kept[:10])
    values = columns.block(kept[:10], J)
    np.testing.assert_allclose(values, K[np.ix_(kept[:10], J)], rtol=0, atol=1e-5)


def test_a_row_that_is_asked_for_twice_at_once_is_one_row():
    columns = dear()
    K = plain(NAMED["rbf"], X := matrix(50, 300), X)
    twice = np.array([3, 4, 3, 3])
    for _ in range(2):
        np.testing.assert_allclose(columns.columns(twice), K[twice], atol=1e-5)
        sums = np.zeros(columns.width)
        columns.add(twice, np.arange(1.0, 5.0), sums)
        np.testing.assert_allclose(
            sums[:50], K[twice].T @ np.arange(1.0, 5.0), atol=1e-5
        )


def test_rows_that_make_room_are_read_before():
    columns = limited(matrix(1000, 70), NAMED["rbf"], PLACES)
    columns.columns(np.arange(500, 500 + PLACES))
    before = counts(columns)
    some = np.concatenate([np.arange(PLACES), np.arange(500, 500 + PLACES)])
    columns.columns(some)
    evaluated, hits = (
        now - was for now, was in zip(counts(columns), before, strict=True)
    )
    assert evaluated + hits == 1000 * len(some)
    assert hits == 1000 * PLACES  # they were read before others drove them out


# -- some of the rows ------------------------------------------------------------------


@product(
    convert=[np.asarray, sparse.csr_array],
    case=[(400, 70, 0.8), (400, 30, 0.1), (150, 2060, 0.02)],
    name=["rbf", "laplacian", "callable", "precomputed"],
    refined=[False, True],
)
def test_sums_of_some_rows_are_those_of_all(convert, case, name, refined):
    X = matrix(*case)
    m = len(X)
    K = plain(NAMED["laplacian" if name == "laplacian" else "rbf"], X, X)
    kernel = {
        "callable": Kernel(lambda A, B: plain(NAMED["rbf"], dense(A), dense(B))),
        "precomputed": Kernel("precomputed"),
    }.get(name, NAMED.get(name))
    columns = Columns(as_rows(convert(K if name == "precomputed" else X)), kernel)
    if refined:
        columns.refine()
    rng = np.random.default_rng(0)
    J = rng.permutation(m)[: m // 3]
    c = rng.normal(size=len(J))
    for count in (None, m // 3, 1, m // 5, None):
        rows = None if count is None else np.sort(rng.permutation(m)[:count])
        columns.focus(rows)
        here = np.arange(m) if rows is None else rows
        for _ in range(3):  # computed, then kept
            sums = np.zeros(columns.width)
            columns.add(J, c, sums)
            np.testing.assert_allclose(
                sums[: len(here)], K[np.ix_(here, J)] @ c, atol=2e-5
            )
            np.testing.assert_allclose(
                columns.columns(J), K[np.ix_(J, here)], atol=2e-5
            )
        np.testing.assert_allclose(
            columns.block(J, J[:5]), K[np.ix_(J, J[:5])], atol=2e-5
        )
        np.testing.assert_allclose(
            columns.exact(J, J, c), K[np.ix_(J, J)] @ c, atol=1e-10
        )


def test_some_rows_are_looked_at_where_that_is_worth_it():
    X = matrix(1000, 700)  # so dear that all rows are kept
    ample, tight = Columns(as_rows(X), NAMED["rbf"]), limited(X, NAMED["rbf"], PLACES)
    cheap = Columns(as_rows(matrix(1000, 3)), NAMED["rbf"])
    few, many = np.arange(400), np.arange(401)
    assert cheap.can_focus(np.arange(750))
    assert not cheap.can_focus(np.arange(751))
    for columns in (ample, tight):
        assert not columns.can_focus(few)
        columns.columns(np.arange(PLACES - 1))
        assert not columns.can_focus(few)
        columns.columns(np.arange(PLACES))
    assert not ample.can_focus(few)
    assert tight.can_focus(few)
    assert not tight.can_focus(many)


def test_rows_longer_than_others_need_their_room():
    X = np.zeros((1000, 2100))
    X[:, :3] = matrix(1000, 3)
    X[:300] = matrix(300, 2100)
    columns = Columns(as_rows(sparse.csr_array(X)), NAMED["rbf"])
    columns._kept._filled = len(columns._kept._owner)  # as if rows had to go
    assert columns.can_focus(np.arange(300, 700))
    assert not columns.can_focus(np.arange(100, 500))


# -- memory ----------------------------------------------------------------------------


# Rows of K that a limit has room for.
PLACES = 384


def limited(X, kernel, places):
    """Columns with room for so many rows."""
    columns = Columns(as_rows(X), kernel, memory_limit_of(X, kernel, places))
    assert len(columns._kept.rows) == places
    return columns


@pytest.mark.cover(1)
@pytest.mark.parametrize("name", ["rbf", "linear", "callable", "precomputed"])
@pytest.mark.parametrize("n", [3, 70])
def test_rows_that_make_room_are_never_mistaken(name, n):
    m = 1000
    X = matrix(m, n)
    K = plain(NAMED["linear" if name == "linear" else "rbf"], X, X)
    kernel = {
        "callable": Kernel(lambda A, B: plain(NAMED["rbf"], A, B)),
        "precomputed": Kernel("precomputed"),
    }.get(name, NAMED.get(name))
    columns = limited(K if name == "precomputed" else X, kernel, PLACES)
    rng = np.random.default_rng(0)
    for _ in range(40):
        recent = rng.integers(0, m - 200) + np.arange(200)
        J = rng.permutation(m)[: rng.integers(1, 900)]
        J = J if rng.random() < 0.5 else rng.permutation(recent)
        if rng.random() < 0.3:
            np.testing.assert_allclose(columns.columns(J), K[J], atol=1e-5)
        else:
            c, sums = rng.normal(size=len(J)), np.zeros(columns.width)
            columns.add(J, c, sums)
            np.testing.assert_allclose(sums[:m], K[:, J] @ c, atol=2e-3)
            np.testing.assert_allclose(
                sums[:m], K[:, J] @ c, atol=1e-6 * np.abs(K[:, J]).sum(axis=1).max()
            )
        kept = np.flatnonzero(columns._kept.places >= 0)
        place = columns._kept.places[kept]
        assert len(np.unique(place)) == len(kept) <= PLACES
        np.testing.assert_array_equal(columns._kept._owner[place], kept)
    assert columns.hits > 0


@pytest.mark.cover(2)
@pytest.mark.parametrize("refined", [False, True])
@pytest.mark.parametrize("name", ["rbf", "precomputed"])
@pytest.mark.parametrize(("m", "n"), [(1000, 3), (1000, 70), (100, 70), (30, 500)])
def test_kept_rows_obey_the_limit(name, m, n, refined):
    X = matrix(m, n)
    data, kernel = X, NAMED["rbf"]
    if name == "precomputed":
        data, kernel = plain(kernel, X, X), Kernel(name)
    K = plain(NAMED["rbf"], X, X)
    for places in (PLACES, PLACES + 1, 700, 2000):
        least = memory_limit_of(data, kernel, places, 8 if refined else 4)
        for limit in (least, least + 300, least + 100_000):
            columns = Columns(as_rows(data), kernel, limit)
            if refined:
                columns.refine()
            used = columns._source.n_bytes + columns._kept.rows.nbytes
            assert used <= limit
            J = np.arange(0, m, 3)
            np.testing.assert_allclose(columns.columns(J), K[J], atol=1e-5)
            if name == "rbf" and columns.can_focus(few := np.arange(int(0.4 * m))):
                columns.focus(few)
                again = columns._source._samples.n_bytes
                assert again < used
                kept = columns._source.n_bytes + columns._kept.rows.nbytes
                blocks = 2 * columns.dtype.itemsize * columns.block_rows**2
                assert again + kept + blocks <= limit


@pytest.mark.parametrize("refined", [False, True])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_samples_that_wait_for_the_next_block_obey_the_limit(convert, refined):
    X = convert(matrix(1000, 200))
    ample = Columns(as_rows(X), NAMED["rbf"])
    ample.block(J := np.arange(128), J)
    assert ample._source._of_block is not None
    tight = limited(X, NAMED["rbf"], PLACES)
    if refined:
        tight.refine()
    for q in (8, 64, tight.block_rows - 64, tight.block_rows):
        tight.block(J := np.arange(q), J)
        kept = tight._source._of_block
        used = tight.n_bytes + tight.kept_rows.nbytes + tight._focus_bytes
        used += 2 * tight.dtype.itemsize * q**2 + (kept[0].n_bytes if kept else 0)
        assert used <= tight.limit
    assert kept is None


@pytest.mark.parametrize(("m", "n"), [(1000, 3), (1000, 70), (100, 70), (30, 2000)])
@pytest.mark.parametrize("name", ["rbf", "precomputed"])
def test_a_limit_without_room_is_refused(name, m, n):
    X = matrix(m, n)
    data, kernel = X, NAMED["rbf"]
    if name == "precomputed":
        data, kernel = plain(kernel, X, X), Kernel(name)
    columns = Columns(as_rows(data), kernel)
    least = columns._source.n_bytes + block_bytes(columns.width)
    Columns(as_rows(data), kernel, least).columns(np.arange(m))
    for limit in (1, least // 2, least - 1):
        message = f"parameter must be at least {least:,} bytes for {m:,} rows with"
        with pytest.raises(ValueError, match=message):
            Columns(as_rows(data), kernel, limit)


def test_a_refined_limit_without_room_changes_nothing():
    X = matrix(1000, 700)
    columns = Columns(as_rows(X), NAMED["rbf"], memory_limit_of(X, NAMED["rbf"], 0))
    with pytest.raises(ValueError, match="'memory_limit' parameter must be at least"):
        columns.refine()
    check(columns, plain(NAMED["rbf"], X, X), 1e-4)
    assert columns.dtype == np.float32


# -- the same answers ------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("refined", [False, True])
def test_the_bits_depend_on_neither_threads_nor_time(convert, refined):
    X = matrix(3000, 40, 0.2)
    J = np.random.default_rng(0).permutation(3000)[:500]
    c = np.random.default_rng(1).normal(size=500)
    answers = []
    for n_jobs in (1, 2, 2):
        columns = Columns(as_rows(convert(X)), NAMED["rbf"], n_jobs=n_jobs)
        if refined:
            columns.refine()
        sums = np.zeros(columns.width)
        for _ in range(3):  # added as they are made, kept, and read
            columns.add(J, c, sums)
        block = columns.block(J, J[:200])
        exact = columns.exact(np.arange(3000), J, c)
        answers.append([sums, block, columns.columns(J[:300]), exact])
    for other in answers[1:]:
        for mine, its in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_sums_do_not_depend_on_what_is_kept():
    X = matrix(700, 12)
    J, c = np.arange(0, 700, 2), np.random.default_rng(0).normal(size=350)
    fresh, kept, half = (Columns(as_rows(X), NAMED["rbf"]) for _ in range(3))
    kept.columns(J)
    half.columns(J[::2])
    sums = [np.zeros(fresh.width) for _ in range(3)]
    for columns, total in zip((fresh, kept, half), sums, strict=True):
        columns.add(J, c, total)
    # What lies behind the last row is not looked at.
    np.testing.assert_allclose(sums[1][:700], sums[0][:700], rtol=0, atol=1e-5)
    np.testing.assert_allclose(sums[2][:700], sums[0][:700], rtol=0, atol=1e-5)
