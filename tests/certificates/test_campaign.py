"""Certificates of many problems drawn at random: none is false.

A failure names the numbers of its cases. One of them again, with all that was drawn:

    python -c "from tests.certificates.judged import replay; replay(SEED, NUMBER)"

in the root of the repository. Half of the first 300 are in every run, all 20,000 under the
marker ``full``. What is refused and what is not solved counts too: the draws must not become
empty.
"""

import pytest

from tests.certificates.draws import draw
from tests.certificates.judged import judge
from tests.certificates.judged_batch import judge_batch, judge_family
from tests.certificates.judged_newton import judge_newton
from tests.certificates.judged_searches import judge_search

SEED, FEW, ALL = 19, 300, 20_000


def check(numbers):
    """No false claim in these cases; most are solved, and few refused."""
    found = {number: judge(draw(SEED, number)) for number in numbers}
    false = {number: verdict for number, verdict in found.items() if verdict.false}
    text = [
        f"replay({SEED}, {number}): {draw(SEED, number).group}: {verdict.false}"
        for number, verdict in false.items()
    ]
    assert not false, f"{len(false)} of {len(found)}\n" + "\n".join(text[:10])
    ends = [verdict.status for verdict in found.values()]
    assert ends.count("refused") < 0.2 * len(ends)
    assert ends.count("solved") > 0.4 * len(ends)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("start", range(0, FEW, 30))
def test_no_certificate_is_false(start):
    check(range(start, start + 30))


def test_the_product_of_huge_gaps_is_no_warning():
    assert not judge(draw(SEED, 10_479)).false


def test_a_guess_that_the_objective_is_zero_is_none():
    """Newton's next step of rows that no loss counts for: all of P is rounding there."""
    verdict = judge(draw(SEED, 41))
    assert verdict.status != "error"
    assert not verdict.false


def check_batches(numbers):
    """No false claim of problems that are solved in one call."""
    found = [(k, one) for k in numbers for one in judge_batch(SEED, k)]
    false = [(k, one.false) for k, one in found if one.false]
    assert not false, f"judged_batch.replay({SEED}, number): {false[:10]}"
    ends = [one.status for _, one in found if one.status != "point"]
    assert ends.count("unfit") < 0.4 * len(ends)
    assert ends.count("solved") > 0.4 * len(ends)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("start", range(0, 60, 30))
def test_no_certificate_of_a_batch_is_false(start):
    check_batches(range(start, start + 30))


def check_families(numbers):
    """No false claim of problems with a linear term, or with a sum of alpha."""
    found = [(k, one) for k in numbers for one in judge_family(SEED, k)]
    false = [(k, one.false) for k, one in found if one.false]
    assert not false, f"judged_batch.family({SEED}, number): {false[:10]}"
    ends = [one.status for _, one in found if one.status != "point"]
    assert ends.count("unfit") < 0.6 * len(ends)
    assert ends.count("solved") > 0.2 * len(ends)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("start", range(0, 90, 30))
def test_no_certificate_of_a_family_is_false(start):
    check_families(range(start, start + 30))


def check_linear(numbers):
    """No false claim of linear problems that are solved in one call."""
    found = [(k, one) for k in numbers for one in judge_newton(SEED, k)]
    false = [(k, one.false) for k, one in found if one.false]
    assert not false, f"judged_newton.judge_newton({SEED}, number): {false[:10]}"
    ends = [one.status for _, one in found if one.status != "point"]
    assert ends.count("solved") > 0.6 * len(ends)


@pytest.mark.parametrize("start", range(0, 60, 30))
def test_no_certificate_of_linear_problems_at_once_is_false(start):
    check_linear(range(start, start + 30))


def check_searches(numbers):
    """No false claim about folds, most of which are proved from scores in float32."""
    found = [(k, one) for k in numbers for one in judge_search(SEED, k)]
    false = [(k, one.false) for k, one in found if one.false]
    assert not false, f"judged_searches.replay({SEED}, number): {false[:10]}"
    ends = [one.status for _, one in found]
    assert ends.count("float32") > 0.5 * len(ends)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("start", range(0, 40, 20))
def test_no_bound_of_a_search_is_false(start):
    check_searches(range(start, start + 30))


@pytest.mark.full
@pytest.mark.parametrize("start", range(FEW, ALL, 100))
def test_no_bound_of_many_searches_is_false(start):
    check_searches(range(start, min(start + 100, ALL)))


@pytest.mark.full
@pytest.mark.parametrize("start", range(FEW, ALL, 100))
def test_no_certificate_of_many_linear_problems_at_once_is_false(start):
    check_linear(range(start, min(start + 100, ALL)))


@pytest.mark.full
@pytest.mark.parametrize("start", range(FEW, ALL, 100))
def test_no_certificate_of_many_families_is_false(start):
    check_families(range(start, min(start + 100, ALL)))


@pytest.mark.full
@pytest.mark.parametrize("start", range(FEW, ALL, 100))
def test_no_certificate_of_many_batches_is_false(start):
    check_batches(range(start, min(start + 100, ALL)))


@pytest.mark.full
@pytest.mark.parametrize("start", range(FEW, ALL, 100))
def test_no_certificate_of_many_is_false(start):
    check(range(start, min(start + 100, ALL)))
