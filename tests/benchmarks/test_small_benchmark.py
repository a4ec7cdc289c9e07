"""The benchmark of everyday fits, on two sets of scikit-learn's."""

import json

from benchmarks.kernel import small


def test_everyday_fits(tmp_path, capsys):
    options = ["--sets", "iris,letter", "--C", "1", "--rounds", "1"]
    small.main([*options, "--output", str(tmp_path)])
    records = json.loads((tmp_path / "small.json").read_text())
    assert [one["machine"] for one in records] == [
        "rbf, C=1",
        "linear, hinge",
        "linear, squared_hinge",
    ]
    assert all(one["gap"] <= small.TOL and one["solver"] == "batch" for one in records)
    told = capsys.readouterr().out
    assert "letter: left out" in told
    assert "geometric mean" in told
