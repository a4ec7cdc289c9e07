"""Rows of K that are kept: what makes room for what, under a tight limit."""

import numpy as np

from widemargin import Kernel, _core
from widemargin.data.memory import as_rows
from widemargin.kernels import matrix
from widemargin.kernels.matrix import Columns
from widemargin.kernels.packed import aligned, padded
from widemargin.problems.scores import Scores


def test_sums_are_right_when_new_rows_take_the_last_free_places_and_used_ones():
    rng = np.random.default_rng(0)
    X = 0.1 * rng.normal(size=(1200, 200))  # dear enough to be kept
    kernel = Kernel("rbf", gamma=0.3)
    packed = Columns(as_rows(X), kernel)
    columns = Columns(as_rows(X), kernel, packed._source.n_bytes + (3 << 20))
    assert 0 < len(columns._kept.rows) < 600
    K = kernel(X, X)
    sums, expected = np.zeros(columns.width), np.zeros(1200)
    for _ in range(30):
        J = rng.choice(1200, rng.integers(5, 600), replace=False)
        c = rng.normal(size=len(J))
        columns.add(J, c, sums)
        expected += K[:, J] @ c
        np.testing.assert_allclose(sums[:1200], expected, atol=1e-3)
    assert columns.hits


def smooth(m=400, gamma=1e-4, **options):
    """Columns whose values, near 1, float32 hardly rounds."""
    X = np.random.default_rng(0).normal(size=(m, 80))
    kernel = Kernel("rbf", gamma=gamma)
    return Columns(as_rows(X), kernel, **options), kernel(X, X)


def test_rows_in_16_bits_are_off_by_what_they_say():
    columns, K = smooth()
    columns.keep_rounded()
    J, c = np.arange(100), np.random.default_rng(1).normal(size=100)
    made, kept = np.zeros(columns.width), np.zeros(columns.width)
    columns.add(J, c, made)
    columns.add(J, c, kept)
    assert columns.hits == 100 * 400
    assert columns._kept.rows.dtype == np.uint16
    off = np.abs([made[:400] - K[:, J] @ c, kept[:400] - K[:, J] @ c]).max(axis=1)
    assert off[0] < 2e-5 < off[1] <= columns.kept_error * np.abs(c).sum() + off[0]


def test_rows_in_16_bits_take_half_of_the_room():
    packed = smooth(1200)[0].n_bytes
    columns, K = smooth(1200, memory_limit=packed + (3 << 20))
    places = len(columns._kept.rows)
    columns.keep_rounded()
    assert len(columns._kept.rows) in (2 * places, 2 * places + 1)
    J, sums = np.arange(2 * places), np.zeros(columns.width)
    for _ in range(2):
        columns.add(J, np.ones(len(J)), sums)
    assert columns.hits == len(J) * 1200
    np.testing.assert_allclose(sums[:1200], 2 * K[:, J].sum(axis=1), rtol=1e-5)


def test_rows_in_16_bits_are_of_values_from_0_to_1_in_float32():
    X = np.random.default_rng(0).normal(size=(300, 80))
    for kernel, rounded in (
        (Kernel("poly", gamma=0.1), False),
        (Kernel("laplacian", gamma=0.1), True),
        (Kernel(lambda A, B: A @ B.T), False),
    ):
        columns = Columns(as_rows(X), kernel)
        columns.keep_rounded()
        assert columns.is_rounded == rounded
        assert (columns.kept_error > 0) == rounded
        columns.refine()
        columns.keep_rounded()
        assert not columns.is_rounded
        assert columns.kept_error == 0.0


def test_who_asks_for_rows_gets_them_exact():
    for ask in ("columns", "keep", "kept_rows"):
        columns, K = smooth()
        columns.keep_rounded()
        columns.add(np.arange(9), np.ones(9), np.zeros(columns.width))
        value = getattr(columns, ask)
        if ask == "columns":
            np.testing.assert_allclose(value(np.arange(5)), K[:5], atol=1e-6)
        elif ask == "keep":
            value(np.arange(5))
            rows = columns.kept_rows[columns.places[:5]]
            np.testing.assert_allclose(rows[:, :400], K[:5], atol=1e-6)
        assert not columns.is_rounded
        assert columns.kept_rows.dtype == np.float32


def test_blocks_take_rows_in_16_bits():
    X = np.random.default_rng(0).normal(size=(500, 300))
    kernel = Kernel("rbf", gamma=1 / 300)
    columns = Columns(as_rows(X), kernel)
    columns.keep_rounded()
    J = np.arange(0, 500, 2)
    columns.add(J, np.ones(250), np.zeros(columns.width))
    values, hits = columns.block(J, np.arange(500)), columns.hits
    assert hits == 250 * 500
    off = np.abs(values - kernel(X, X)[J]).max()
    assert 4e-6 < off <= columns.kept_error + 1e-6


def test_rows_that_are_made_anew_have_no_noise_of_16_bits():
    columns, _ = smooth()
    columns.keep_rounded()
    scores, J = Scores(columns, np.zeros(400)), np.arange(50)
    scores.add(J, np.ones(50), np.zeros(50, bool))
    scores.add(J, np.ones(50))  # kept now, but not read
    assert columns.hits == 0
    assert scores.noise == 0.0
    scores.add(J[:25], np.full(25, 2.0))
    assert columns.hits == 25 * 400
    np.testing.assert_allclose(scores.noise, columns.kept_error * 10 / 3**0.5)


def test_errors_of_scores_know_rows_in_16_bits():
    columns, K = smooth()
    columns.keep_rounded()
    scores, J = Scores(columns, np.zeros(400)), np.arange(100)
    for c in (1.0, 3.0):
        scores.add(J, c * np.ones(100))
    found, exact = scores.sums(), 4.0 * K[:, J].sum(axis=1)
    off = np.abs(found.values - exact)
    assert (off <= found.errors).all()
    assert off.max() > 0.5 * scores.noise > 0.0
    without = found.errors - scores._off
    assert (off > without).any()
    scores.refresh(np.arange(400))
    assert scores.noise == 0.0
    assert np.abs(scores.values - exact).max() < 1e-10


def test_a_block_in_16_bits_takes_kept_rows_rounded_to_it(monkeypatch):
    monkeypatch.setattr(matrix, "TAKEN", 0.0)
    columns, K = smooth(gamma=1e-2)
    columns.keep_rounded()
    J = np.arange(100)
    columns.add(J, np.ones(100), np.zeros(columns.width))
    block = aligned((150, padded(400)), np.int16)
    values = columns.block(np.arange(50, 200), np.arange(400), block)
    assert columns.hits == 50 * 400
    off = np.abs(values / _core.BLOCK_STEPS - K[50:200]).max()
    assert off <= 0.51 / _core.BLOCK_STEPS + columns.kept_error
