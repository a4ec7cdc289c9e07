"""Every number of a claim is that of results/, so that no rerun leaves one behind.

So is every number of the page of the documentation that sums the claims up. And no cell
of a table that people read has more than three numbers.
"""

from pathlib import Path

import pytest

from papers import claims

PAPERS = Path(claims.__file__).parent
PAGE = PAPERS.parent / "docs" / "measurements" / "papers.md"
CLAIMS = [*sorted(PAPERS.glob("*/claim.md")), PAGE]
ROOT = PAPERS.parent
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "benchmarks").rglob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *PAPERS.rglob("*.md"),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.parent.name)
def test_numbers_and_tables_are_those_of_results(claim):
    assert list(claims.wrong(claim)) == []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.parent.name)
def test_no_figure_is_without_a_source(claim):
    assert claims.MARK.search(claim.read_text())
    assert list(claims.loose(claim)) == []


@pytest.mark.parametrize(
    "page", sorted(PAGES), ids=lambda page: str(page.relative_to(ROOT))
)
def test_no_cell_has_more_than_three_numbers(page):
    assert list(claims.crowded(page)) == []


RECORDS = """{"machine": "x", "records": [
{"set": "a", "rows": 10, "seconds": 0.1234}, {"set": "b", "rows": 1000, "seconds": 1.234}
]}"""


@pytest.fixture
def claim(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "part.json").write_text(RECORDS)
    (tmp_path / "results" / "part.txt").write_text("a 0.1234\n")
    return tmp_path / "claim.md"


def written(claim, number, source):
    text = f'| x | 7 | took [{number}][it] s |\n\n[it]: results/part.json "{source}"\n'
    claim.write_text(text)
    return list(claims.wrong(claim))


@pytest.mark.parametrize(
    ("number", "source"),
    [
        ("0.12", "seconds; set=a"),
        ("1e-1", "seconds; rows=10"),
        ("1.2", "max seconds"),
        ("2", "count seconds"),
        ("1,010", "sum rows"),
        ("0.50", "slope rows seconds"),
        ("+1.1", "seconds; set=b - seconds; set=a"),
        ("10", "seconds; set=b / seconds; set=a"),
        ("1.4", "seconds; set=b + seconds; set=a"),
    ],
)
def test_what_a_title_can_name(claim, number, source):
    assert written(claim, number, source) == []


@pytest.mark.parametrize(
    ("number", "source"),
    [("0.13", "seconds; set=a"), ("2e-1", "seconds; set=a"), ("3", "count rows")],
)
def test_another_number_is_red(claim, number, source):
    (line,) = written(claim, number, source)
    assert f"{number} is " in line


def test_numbers_and_sources_belong_together(claim):
    claim.write_text("took [0.12][it] s\n")
    without, value = claims.wrong(claim)
    assert "[it] is a number without a source" in without
    assert "0.12 is nan" in value
    claim.write_text('[it]: results/part.json "seconds; set=a"\n')
    (line,) = claims.wrong(claim)
    assert "or the reverse" in line


def test_a_title_names_one_record(claim):
    with pytest.raises(ValueError, match="too many values"):
        written(claim, "0.12", "seconds")
    with pytest.raises(ValueError, match="not enough values"):
        written(claim, "0.12", "seconds; set=c")


def test_an_old_table_is_red(claim):
    claim.write_text("<!-- results/part.txt -->\n```text\na 0.5\n```\n")
    (line,) = claims.wrong(claim)
    assert "a table is not that of results/" in line
    claim.write_text(claims.refreshed(claim))
    assert "a 0.1234" in claim.read_text()
    assert list(claims.wrong(claim)) == []


def test_a_figure_without_a_source_is_red(claim):
    claim.write_text(
        "# 3\n| Table 1 | 5 steps | 6 steps of Algorithm 3.1, `nu = 1` |\n"
    )
    (line,) = claims.loose(claim)
    assert "without a source: 6 steps" in line


@pytest.mark.parametrize(
    "cell",
    [
        4 * "[0.12][it] ",
        "[0.12][it] at `B = 140`, `1e-6` and 1,360",
        "7 million points, 33 x 33, 96 minutes",
        "`0.5 m`, `0.25 m` and -0.9 to +3.2",
        "`1 m`, `2 m` by f(x) `3 m` and 4",
    ],
)
def test_every_number_of_a_cell_counts(claim, cell):
    claim.write_text(f"| x | {cell} |\n")
    (line,) = claims.crowded(claim)
    assert "more than 3 numbers" in line


@pytest.mark.parametrize(
    "no_number",
    [
        "w1a, L1, S1, Adult-4",
        "Figures 5.2 to 5.5, (3.21), (4b), Table 1, step `2`",
        "Perez-Cruz et al. (2005)",
        '`Map(X, "cholesky", 300)`, `IRWLS(carry=0)`',
        "`train a.svm --C 0.1,1,10,100`, `mode=asvm`",
        "$n(n+3)/2 + 1$, [a page](2008-01-02.md)",
    ],
)
def test_what_is_no_number(claim, no_number):
    claim.write_text(f"| 1, 2 and 3: {no_number} | 1 |\n")
    assert list(claims.crowded(claim)) == []
    claim.write_text(f"| 1, 2, 3 and 4: {no_number} | 1 |\n")
    assert len(list(claims.crowded(claim))) == 1
