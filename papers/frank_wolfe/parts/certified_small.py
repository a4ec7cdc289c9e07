"""Seven small sets to a certified gap of 1e-3 again, one run of a second at most each.

What it measures is what `certified` measures, in minutes and for the code of today.
"""

from dataclasses import replace

from papers.frank_wolfe.parts import certified

NAME = "certified_small"
SETS = ("a1a", "a2a", "a3a", "a4a", "w1a", "w3a", "w5a")
MOST_SECONDS = 1.0
table = certified.table


def run(options):
    """A record for each set and method."""
    return certified.measured(replace(options.least(MOST_SECONDS), repeat=1), SETS)


def draw(records, folder):
    """The picture of `certified`, of these sets."""
    certified.draw(records, folder, NAME, "processor seconds")
