"""The tables of the documentation show what was measured."""

import pytest

from benchmarks import pages

DOCS = pages.RESULTS.parents[1] / "docs" / "measurements"


@pytest.mark.parametrize("name", pages.TABLES)
def test_a_table_is_that_of_the_results(name):
    found = pages.TABLES[name]()
    assert (pages.PAGES / name).read_text("utf-8") == found
    assert len(found.splitlines()) >= 4  # head, line and rows
    written = "".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    assert f"results/pages/{name}" in written


def test_the_nearest_other_is_the_one_that_we_need_most_of_the_time_of():
    point = pages.points(
        [
            {
                "peer": peer,
                "setting": {},
                "seconds": seconds,
                "primal": 1.0 + gap,
                "mib": 1,
            }
            for peer, seconds, gap in [
                ("widemargin", 2.0, 0.0),
                ("liblinear", 4.0, 0.1),
                ("sklearn", 1.0, 0.2),
            ]
        ],
        1.0,
    )
    ours = point.pop("widemargin")
    assert pages._nearest(ours, point) == ["scikit-learn 1 s (2e-01)", "2.00"]


def test_answers_far_from_the_best_of_a_peer_do_not_count():
    rows = [
        {"seconds": "1.0", "gap": "0.9", "ratio": "3.0"},
        {"seconds": "2.0", "gap": "1e-4", "ratio": "0.5"},
        {"seconds": "3.0", "gap": "5e-5", "ratio": "0.4"},
    ]
    assert pages._quickest(rows) == ["2 (1e-04)", "0.50"]
    assert pages._quickest([]) == [pages.NONE, ""]
