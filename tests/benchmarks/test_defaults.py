"""The page of the default settings shows what was measured."""

from benchmarks import defaults


def test_the_table_is_that_of_the_results():
    found = defaults.answers()
    assert len(found) >= 20
    assert (defaults.RESULTS / "defaults.txt").read_text() == defaults.table(found)


def test_the_table_of_kernel_machines_is_that_of_the_results():
    found = defaults.kernel_answers()
    assert len(found) >= 7
    table = defaults.table(found, defaults.KERNEL_DEFAULTS)
    assert (defaults.KERNEL / "defaults.txt").read_text() == table


def test_gaps_are_those_to_the_best_bound():
    setting = {peer: setting for peer, (_, setting) in defaults.DEFAULTS.items()}
    ours = {"peer": "widemargin", "setting": setting["widemargin"], "dual": 8.0}
    theirs = {"peer": "liblinear", "setting": setting["liblinear"], "seconds": 3.0}
    runs = [
        {**ours, "primal": 10.0, "seconds": 1.0},
        {**ours, "primal": 16.0, "seconds": 2.0},
        {**theirs, "primal": 9.0, "dual": None},
        {**ours, "setting": {"tol": 1e-9}, "primal": 9.0, "dual": 9.0, "seconds": 9.0},
    ]
    found = defaults._of_one(runs)
    assert found["widemargin"] == (1.5, 1 - 9.0 / 16.0)
    assert found["liblinear"] == (3.0, 1e-10)
    assert "sklearn" not in found


def test_ours_are_within_the_tolerance_everywhere():
    found = [*defaults.answers().values(), *defaults.kernel_answers().values()]
    tol = defaults.DEFAULTS["widemargin"][1]["tol"]
    assert max(of["widemargin"].gap for of in found) <= tol
