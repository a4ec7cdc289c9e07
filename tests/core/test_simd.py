"""The environment variable that chooses the instruction set of the core."""

import os
import subprocess
import sys

import pytest

from widemargin import _core

TOLD = "from widemargin import _core; print(_core.simd_default())"


def told(name):
    """A process that says which instruction set is used."""
    environment = os.environ | {"WIDEMARGIN_SIMD": name}
    return subprocess.run(
        [sys.executable, "-c", TOLD], env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize("level", _core.simd_levels())
def test_it_is_the_one_that_is_named(level):
    done = told(_core.SIMD_NAMES[level])
    assert done.stdout.split() == [str(level)], done.stderr


def test_an_empty_name_is_none():
    assert told("").stdout.split() == [str(_core.simd_levels()[-1])]


def test_unknown_names_are_refused_in_one_sentence():
    here = ", ".join(_core.SIMD_NAMES[level] for level in _core.simd_levels())
    for name in ("AVX2", "fastest", "1"):
        done = told(name)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "ValueError: The environment variable WIDEMARGIN_SIMD must be one of the "
            f"instruction sets of this processor and build: {here}. Got '{name}' "
            "instead."
        )


def test_an_instruction_set_that_is_not_there_is_refused():
    there = {_core.SIMD_NAMES[level] for level in _core.simd_levels()}
    for name in set(_core.SIMD_NAMES) - there:
        done = told(name)
        assert done.returncode == 1
        assert f"Got '{name}' instead." in done.stderr
