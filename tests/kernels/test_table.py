"""The table of kernels: what is written by hand elsewhere says what it says."""

import inspect
import pathlib
import re

import pytest
from sklearn.base import BaseEstimator

import widemargin
from widemargin import Kernel
from widemargin.kernels.table import KERNELS, NAMES, PARAMETERS

ROOT = pathlib.Path(__file__).parents[2]
EVERY = pytest.mark.parametrize("row", KERNELS.values(), ids=NAMES)
# All estimators that take a kernel: some say which ones there are, others whose.
ESTIMATORS = [
    each
    for each in (getattr(widemargin, name) for name in widemargin.__all__)
    if inspect.isclass(each)
    and issubclass(each, BaseEstimator)
    and {"kernel", "degree"} <= {*inspect.signature(each).parameters}
]
SAYING = [each for each in ESTIMATORS if "    degree : " in each.__doc__]
SHARING = [each for each in ESTIMATORS if each not in SAYING]


def entry(owner, parameter):
    """What a docstring says of a parameter."""
    lines = rf"^    {parameter} : .*\n((?:        .*\n)+)"
    return re.search(lines, owner.__doc__, re.M)[1]


def plain(text):
    """A text without its line ends."""
    return " ".join(text.split())


@EVERY
def test_docstrings_name_every_kernel(row):
    assert f'``"{row.name}"``' in Kernel.__doc__
    assert f"``{row.formula}``" in Kernel.__doc__
    for estimator in SAYING:
        assert f'"{row.name}"' in entry(estimator, "kernel")


@pytest.mark.parametrize("estimator", SHARING)
def test_other_docstrings_say_whose_kernels_they_have(estimator):
    (owner,) = re.findall(r"^    kernel, [^:]*: as of `(\w+)`", estimator.__doc__, re.M)
    assert owner in {each.__name__ for each in SAYING}


@EVERY
def test_the_page_of_kernels_has_their_formulas(row):
    (line,) = (
        line
        for line in (ROOT / "docs" / "guides" / "kernels.md")
        .read_text("utf-8")
        .splitlines()
        if line.startswith(f'| `"{row.name}"` |')
    )
    assert row.tex in line


@pytest.mark.parametrize("parameter", ["degree", "coef0"])
def test_docstrings_say_which_kernels_have_a_number(parameter):
    names = " and ".join(
        f'"{k}"' for k, used in PARAMETERS.items() if parameter in used
    )
    for owner in (Kernel, *SAYING):
        assert plain(entry(owner, parameter)).startswith(f"Of {names}.")


@EVERY
def test_which_kernels_are_semidefinite(row):
    assert Kernel(row.name).is_psd == (row.name not in ("sigmoid",))
    assert Kernel(row.name, coef0=-1.0).is_psd == (row.name not in ("sigmoid", "poly"))


@EVERY
def test_numbers_that_kernels_are_for_are_those_that_they_get(row):
    kernel = Kernel(row.name, gamma=1.0)
    if row.is_nonnegative:
        with pytest.raises(ValueError, match=f"for the kernel '{row.name}'. Got -1 in"):
            kernel([[-1.0]], [[1.0]])
    else:
        assert kernel([[-1.0]], [[1.0]]).shape == (1, 1)
