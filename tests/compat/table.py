"""The table of what scikit-learn's tests are known to say about our classes.

A line is `passes | TEST` or `fails | TEST | why`; the first one names the version of
scikit-learn. Lines that begin with # say something to the reader.
"""

from pathlib import Path

PATH = Path(__file__).with_name("table.txt")
PASSES, FAILS = "passes", "fails"
UNKNOWN = "?"  # a reason that is still to be written
HEAD = "scikit-learn "

# The outcome of each test, and why.
Table = dict[str, tuple[str, str]]


def read(text: str) -> tuple[str, Table]:
    """The version of scikit-learn, and the table."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    table: Table = {}
    for line in lines[1:]:
        outcome, test, *why = line.split(" | ", 2)
        if test in table:
            raise ValueError(f"The table has {test} twice.")
        table[test] = outcome, *(why or [""])
    return lines[0].removeprefix(HEAD), table


def write(text: str, version: str, found: Table) -> str:
    """The text with these outcomes; tests that failed before keep their reasons."""
    known = read(text)[1]
    said = [line for line in text.splitlines() if line.startswith("#")]
    lines = [*said, f"{HEAD}{version}"]
    for test, (outcome, _) in found.items():
        why = known.get(test, ("", ""))[1] or UNKNOWN
        lines.append(" | ".join([outcome, test, *[why] * (outcome == FAILS)]))
    return "\n".join(lines) + "\n"


def differences(known: Table, found: Table) -> list[str]:
    """A sentence for each test that did not do what the table says."""
    said = []
    for test, (outcome, line) in found.items():
        if test not in known:
            said.append(f"{test} is not in the table: it {outcome}.")
        elif outcome != known[test][0] and outcome == FAILS:
            said.append(f"{test} passed before, and fails: {line}")
        elif outcome != known[test][0]:
            why = known[test][1]
            said.append(f"{test} passes; the table says that it fails: {why}")
    said += [f"{test} is in the table only." for test in known if test not in found]
    return said
