"""How much memory is free."""

import numpy as np
import pytest

from widemargin import SVCCV, _core
from widemargin.system import memory

LIMIT, USED = 1 << 30, 300 << 20


@pytest.fixture
def container(tmp_path, monkeypatch):
    """A container with a limit, as Linux says it."""
    limit, used = tmp_path / "memory.max", tmp_path / "memory.current"
    limit.write_text(f"{LIMIT}\n")
    used.write_text(f"{USED}\n")
    monkeypatch.setattr(memory, "_CGROUPS", ((str(limit), str(used)),))
    return limit


def test_what_fits_have_lent_to_the_system_is_free(container):
    """All rows are support vectors of a fold: their rows of K take 80 MB."""
    rng = np.random.default_rng(0)
    search = SVCCV(Cs=[1.0], gammas=[5.0], cv=2, refit=False)
    search.fit(rng.standard_normal((4_500, 6)), rng.integers(0, 2, 4_500))
    lent = _core.lent_bytes()
    assert 0 < lent <= 192 << 20
    assert memory.free_bytes() == (LIMIT - USED + lent) // 2


def test_no_limit_of_a_container(container):
    container.write_text("max\n")
    assert memory.free_bytes() > 0
