"""The faults of `make mutations` are still those of a text, and of tests that exist."""

import pytest

from tests.mutation_list import MUTATIONS
from tests.mutations import ROOT, place


@pytest.mark.parametrize("fault", MUTATIONS, ids=lambda fault: fault.name)
def test_a_fault_has_its_text_and_its_tests(fault):
    place(ROOT, fault)
    for test in fault.tests:
        assert (ROOT / test.split("::")[0]).exists()
