"""From runs to curves and ratios; pure functions of lists of records.

A record is a dict: the problem (``set``, ``C``, ``loss``, ``intercept``), ``peer``,
``setting``, ``load`` (busy processes beside), and either ``failed`` or the measurements
(``seconds``, ``mib``, ``primal``, ...).
"""

import json
from statistics import median
from typing import NamedTuple

OURS = "widemargin"
# Nobody needs a better answer: smaller gaps count as this one.
SMALLEST_GAP = 1e-8


class Point(NamedTuple):
    """The runs of one peer with one setting: medians, and the spread of the seconds."""

    setting: str
    seconds: float
    spread: float
    gap: float
    mib: float
    runs: int


def problem_of(run):
    """What is solved: the key of a comparison."""
    return run["set"], run["loss"], run["C"], run["intercept"]


def group(runs, key):
    """Runs by key, in order of appearance."""
    groups = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def best_dual(runs):
    """Largest certified dual objective of one problem, None if there is none."""
    return max((run["dual"] for run in runs if "dual" in run), default=None)


def points(runs, dual):
    """Peer, we first -> points on one problem by seconds; failed settings have none."""
    curves = {}
    by_setting = group(runs, lambda run: (run["peer"], json.dumps(run["setting"])))
    for (peer, setting), same in by_setting.items():
        curves.setdefault(peer, [])
        if not any("failed" in run for run in same):
            curves[peer].append(_point(setting, same, dual))
    for curve in curves.values():
        curve.sort(key=lambda point: point.seconds)
    return {peer: curves[peer] for peer in sorted(curves, key=_ours_first)}


def _ours_first(peer):
    return peer != OURS, peer


def _point(setting, same, dual):
    seconds = [run["seconds"] for run in same]
    primal = median(run["primal"] for run in same)
    return Point(
        setting,
        median(seconds),
        max(seconds) - min(seconds),
        (primal - dual) / abs(primal),
        median(run["mib"] for run in same),
        len(same),
    )


def envelope(curve):
    """The points that are more accurate than every faster one, to `SMALLEST_GAP`."""
    kept = []
    for point in sorted(curve, key=lambda p: (p.seconds, p.gap)):
        if not kept or point.gap < kept[-1].gap > SMALLEST_GAP:
            kept.append(point)
    return kept


def reach(curve, gap):
    """The fastest point with at most this gap (`SMALLEST_GAP` is enough), or None."""
    good = [point for point in curve if point.gap <= max(gap, SMALLEST_GAP)]
    return min(good, key=lambda p: p.seconds, default=None)


def best(curve):
    """The fastest point among those of the smallest gap."""
    return reach(curve, min(point.gap for point in curve))


def ratio(ours, point):
    """Our seconds to the gap of this point over its seconds; inf if never there.

    At most 1: we are never slower at that gap.
    """
    mine = reach(ours, point.gap)
    return mine.seconds / point.seconds if mine else float("inf")


def worst_ratio(ours, curve):
    """The largest of these ratios over a whole curve."""
    return max(ratio(ours, point) for point in envelope(curve))


def fastest(curves, gap=1e-4):
    """The other peer that gets to this gap first; if none does, the most accurate."""
    others = {peer: c for peer, c in curves.items() if peer != OURS and c}
    there = {peer: reach(c, gap) for peer, c in others.items() if reach(c, gap)}
    if there:
        return min(there, key=lambda peer: there[peer].seconds)
    return min(others, key=lambda peer: best(others[peer]).gap, default=None)
