"""Section 4 of ASVM: millions of points, growth, small sets of UCI, the Adult series.

Mangasarian, Musicant, "Active support vector machine classification", NIPS 13 (2001)
577-583.
"""

from dataclasses import dataclass
from typing import ClassVar

from papers.asvm import datasets
from papers.asvm.parts import adult, faces, growth, ndc, quadratic, sweeps, uci
from papers.options import Options as Common
from papers.options import asked

PARTS = (ndc, growth, sweeps, faces, uci, quadratic, adult)
QUICK_SHARE = 8


def _sizes(text):
    return tuple(int(float(part)) for part in text.split(","))


@dataclass(frozen=True)
class Options(Common):
    """How much to run; quick: every eighth row of the sets, few rows of NDC."""

    sizes: tuple[int, ...] = asked((4_000_000, 7_000_000), "rows of part ndc", _sizes)
    growth: tuple[int, ...] = asked(
        (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
        "rows of part growth",
        _sizes,
    )
    repeat: int = asked(3, "runs of which the median counts")
    QUICK: ClassVar = {"sizes": (20_000,), "growth": (20_000, 60_000), "repeat": 1}

    def sets(self, names, say=print):
        """Those of the data sets that are there; says what is skipped."""
        for name in names:
            data = self.found(name, lambda n=name: datasets.read(self.folder, n), say)
            if data is not None:
                yield data.thin(QUICK_SHARE) if self.quick else data
