"""How much memory is free."""

import numpy as np
import pytest

from widemargin import SVC, _core
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


def test_what_a_fit_has_left_behind_for_the_next_one_is_free(container):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_500, 6))
    SVC(C=10.0).fit(X, np.sign(X[:, 0] + rng.standard_normal(len(X))))
    spare = _core.spare_bytes()
    assert 0 < spare <= 256 << 20
    assert memory.free_bytes() == (LIMIT - USED + spare) // 2


def test_no_limit_of_a_container(container):
    container.write_text("max\n")
    assert memory.free_bytes() > 0
