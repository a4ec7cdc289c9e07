"""Do scikit-learn's tests of its machines say about ours what the table says?

    python -m tests.compat            compare (`make compat`)
    python -m tests.compat --write    write the table anew; new failures get the reason ?
    python -m tests.compat -k WORD    some tests, with what pytest says; no comparison

The exit status is 1 where a test did something else.
"""

import argparse
import sys

import sklearn

from tests.compat import table
from tests.compat.runner import outcomes, replace_classes


def main() -> int:
    """Run and compare; the exit status."""
    options = _options()
    print(f"In the place of scikit-learn's: {', '.join(replace_classes())}.")
    if options.k:
        outcomes("-k", options.k)
        return 0
    text = table.PATH.read_text()
    found = outcomes("--tb=no", "--no-summary")
    passed = sum(outcome == table.PASSES for outcome, _ in found.values())
    print(f"{passed} of {len(found)} tests pass.")
    if options.write:
        table.PATH.write_text(table.write(text, sklearn.__version__, found))
        return 0
    return _compare(*table.read(text), found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("-k", metavar="WORD")
    return parser.parse_args()


def _compare(version: str, known: table.Table, found: table.Table) -> int:
    """Say what differs from the table; 1 if something does."""
    said = table.differences(known, found)
    for sentence in said:
        print(sentence)
    if said and version != sklearn.__version__:
        print(
            f"The table is of scikit-learn {version}, and {sklearn.__version__} is "
            "installed: perhaps the tests are others."
        )
    if not said:
        print("As the table says.")
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
