"""The kernels with a name: one table, which every other place reads.

A kernel is a function of a sum over the columns, ``k(x, z) = value(sum_j term(x_j,
z_j))``: what is summed and what becomes of it is said in words, by which the core, the
bounds of rounding, the diagonal and ONNX know the kernel. No NumPy is imported:
``widemargin train --help`` names the kernels, and has to start fast.
"""

import math
from dataclasses import dataclass

# The words for gamma, in place of a number.
GAMMAS = ("scale", "auto", "mean_distance")


@dataclass(frozen=True, kw_only=True)
class NamedKernel:
    """One kernel of the core.

    Attributes
    ----------
    name : str
    formula, tex : str, as docstrings and as docs/guides/kernels.md write it
    sums : {"product", "square", "size", "share"}
        Sums over the columns of x z, (x - z)^2, ``|x - z|`` or (x - z)^2 / (x + z).
    value : {"itself", "power", "tangent", "decay"}
        What becomes of a sum s: s, (gamma s + coef0)^degree, tanh(gamma s + coef0) or
        exp(-gamma s).
    parameters : tuple of str, the numbers that it depends on
    psd_from : float
        The least coef0 with which it is positive semidefinite, whatever the data.
    is_nonnegative : bool, whether it is for data >= 0 only
    spectrum : {"normal", "cauchy"} or None, frequencies of random Fourier features
    """

    name: str
    formula: str
    tex: str
    sums: str
    value: str
    parameters: tuple[str, ...] = ()
    psd_from: float = -math.inf
    is_nonnegative: bool = False
    spectrum: str | None = None

    @property
    def code(self) -> int:
        """The number by which the core knows it: its place in the table."""
        return NAMES.index(self.name)


_ROWS = (
    NamedKernel(
        name="linear",
        formula="x'z",
        tex=r"$x'z$",
        sums="product",
        value="itself",
    ),
    NamedKernel(
        name="poly",
        formula="(gamma x'z + coef0)^degree",
        tex=r"$(\gamma x'z + c_0)^d$",
        sums="product",
        value="power",
        parameters=("gamma", "degree", "coef0"),
        psd_from=0.0,
    ),
    NamedKernel(
        name="rbf",
        formula="exp(-gamma |x - z|^2)",
        tex=r"$\exp(-\gamma \lVert x - z\rVert^2)$",
        sums="square",
        value="decay",
        parameters=("gamma",),
        spectrum="normal",
    ),
    NamedKernel(
        name="sigmoid",
        formula="tanh(gamma x'z + coef0)",
        tex=r"$\tanh(\gamma x'z + c_0)$",
        sums="product",
        value="tangent",
        parameters=("gamma", "coef0"),
        psd_from=math.inf,
    ),
    NamedKernel(
        name="laplacian",
        formula="exp(-gamma |x - z|_1)",
        tex=r"$\exp(-\gamma \lVert x - z\rVert_1)$",
        sums="size",
        value="decay",
        parameters=("gamma",),
        spectrum="cauchy",
    ),
    NamedKernel(
        name="chi2",
        formula="exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j))",
        tex=r"$\exp(-\gamma \sum_j (x_j - z_j)^2 / (x_j + z_j))$",
        sums="share",
        value="decay",
        parameters=("gamma",),
        is_nonnegative=True,
    ),
)

NAMES = tuple(row.name for row in _ROWS)
KERNELS = {row.name: row for row in _ROWS}
# What a kernel depends on; a kernel that is not here has no such numbers.
PARAMETERS = {row.name: row.parameters for row in _ROWS if row.parameters}


def with_spectrum() -> tuple[str, ...]:
    """The kernels that have random Fourier features."""
    return tuple(row.name for row in _ROWS if row.spectrum is not None)


def having(parameter: str) -> tuple[str, ...]:
    """The kernels that depend on a number."""
    return tuple(name for name, used in PARAMETERS.items() if parameter in used)
