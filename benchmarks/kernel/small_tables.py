"""The table and the picture of small fits: small.txt and small.png from small.json."""

import json
import math

import numpy as np

from benchmarks.ratios import OURS, group

# Rows from which a set is in the second mean.
FEW_ROWS = 500
MARKERS = {"sklearn": "o", "sklearnex": "^"}
PLACES = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex"}


def key_of(run):
    """What is fitted and who does it: a later run takes the place of an earlier one."""
    return run["set"], run["kind"], run["C"], run["peer"], run["jobs"]


def write_results(folder):
    """Write the table and the picture of small.json; the lines of text."""
    saved = json.loads((folder / "small.json").read_text())
    runs, here = saved["runs"], saved["machine"]
    lines = [
        f"{here['cpu']}, {here['cores']} cores; load {here['load']:.1f} when it began",
        f"{here['versions']}",
        *table(runs),
        *means(runs),
    ]
    (folder / "small.txt").write_text("\n".join(lines) + "\n")
    draw(folder, runs)
    return lines


def problems(runs):
    """Set, kind and C -> package and threads -> run."""
    found = group(runs, lambda run: (run["set"], run["kind"], run["C"]))
    return {
        problem: {(run["peer"], run["jobs"]): run for run in same}
        for problem, same in found.items()
    }


def ratio(runs, peer, jobs):
    """How many times as fast as a package we are, or None. LIBSVM has one thread."""
    ours = runs.get((OURS, jobs))
    theirs = runs.get((peer, 1 if peer == "sklearn" else jobs))
    return ours and theirs and theirs["seconds"] / ours["seconds"]


def columns(runs):
    """Who has a column of times, and which ratios there are."""
    who = sorted(
        {(run["peer"], run["jobs"]) for run in runs},
        key=lambda each: (each[0] != OURS, each[0], -each[1]),
    )
    threads = [jobs for peer, jobs in who if peer == OURS]
    peers = [peer for peer in MARKERS if any(peer == p for p, _ in who)]
    return who, [(peer, jobs) for peer in peers for jobs in threads]


def table(runs):
    """Milliseconds, gaps and ratios; a line for each set, kind and C."""
    who, ratios = columns(runs)
    yield "Milliseconds of a fit; certified gaps; times as fast as others, by threads"
    yield (
        f"{'set':14}{'rows':>6}{'columns':>8}{'classes':>8} {'kind':13}{'C':>4}"
        + "".join(f"{short(*each):>12}" for each in who)
        + "".join(f"{'gap ' + shown(peer):>14}" for peer in named(who))
        + "".join(f"{'/' + short(*each):>13}" for each in ratios)
        + "  solvers"
    )
    for (name, kind, C), same in problems(runs).items():
        any_run = next(iter(same.values()))
        gaps = {run["peer"]: run["gap"] for run in same.values()}
        solvers = {s for run in same.values() for s in run["solvers"] or ()}
        yield (
            f"{name:14}{any_run['m']:>6}{any_run['n']:>8}{any_run['classes']:>8} "
            f"{kind:13}{C:>4g}"
            + "".join(cell(same.get(each), 12) for each in who)
            + "".join(gap(gaps.get(peer), 14) for peer in named(who))
            + "".join(times(ratio(same, *each), 13) for each in ratios)
            + f"  {', '.join(sorted(solvers))}"
        )


def short(peer, jobs):
    """A package and its threads."""
    return f"{shown(peer)} {jobs}"


def shown(peer):
    """What a package is called in the table."""
    return "ours" if peer == OURS else peer


def named(who):
    """The packages, each once."""
    return list(dict.fromkeys(peer for peer, _ in who))


def cell(run, width):
    """Milliseconds."""
    return f"{1e3 * run['seconds']:>{width}.2f}" if run else f"{'-':>{width}}"


def gap(value, width):
    """A gap."""
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.0e}"


def times(value, width):
    """A ratio."""
    return f"{value:>{width}.2f}" if value else f"{'-':>{width}}"


def means(runs):
    """Geometric means of the ratios, of all sets and of those that are not tiny."""
    found = problems(runs)
    groups = {"rbf": ("rbf",), "linear": ("hinge", "squared_hinge")}
    for peer, jobs in columns(runs)[1]:
        for title, kinds in groups.items():
            mine = [
                (next(iter(same.values()))["m"], ratio(same, peer, jobs))
                for (_, kind, _), same in found.items()
                if kind in kinds and ratio(same, peer, jobs)
            ]
            if mine:
                yield f"{title}, {short(OURS, jobs)} / {peer}: {summary(mine)}"


def summary(pairs):
    """Means and the least of some ratios, each with the rows of its set."""
    every = [value for _, value in pairs]
    more = [value for m, value in pairs if m >= FEW_ROWS]
    return (
        f"geometric mean {mean(every)} of {len(every)}, from {FEW_ROWS} rows on "
        f"{mean(more)} of {len(more)}; least {min(every):.2f}"
    )


def mean(values):
    """The geometric mean, as text."""
    return f"{math.exp(np.mean(np.log(values))):.2f}" if values else "-"


# -- picture ---------------------------------------------------------------------------


def draw(folder, runs):
    """Ratios of each set, C from left to right; a panel for each number of threads."""
    from matplotlib.figure import Figure

    found = problems(runs)
    sets = list(dict.fromkeys((name, kind) for name, kind, _ in found))
    threads = sorted({run["jobs"] for run in runs if run["peer"] == OURS}, reverse=True)
    size = (max(0.55 * len(sets), 5.0), 3.2 * len(threads) + 1.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(threads), 1, squeeze=False, sharex=True)[:, 0]
    for ax, jobs in zip(axes, threads, strict=True):
        panel(ax, found, sets, jobs)
        ax.set_title(f"our threads: {jobs}", fontsize=9)
    axes[-1].set_xticks(range(len(sets)), [titled(*each) for each in sets])
    axes[-1].tick_params(axis="x", labelrotation=90)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=8
    )
    figure.savefig(folder / "small.png", dpi=120)


def titled(name, kind):
    """A set, and the loss of a linear machine."""
    return name if kind == "rbf" else f"{name}, {kind.replace('_', ' ')}"


def panel(ax, found, sets, jobs):
    """The points of one number of threads, and a cross for what was not measured."""
    for peer, marker in MARKERS.items():
        points, none = [], []
        for place, each in enumerate(sets):
            mine = [(C, same) for (*key, C), same in found.items() if (*key,) == each]
            for step, (_, same) in enumerate(sorted(mine, key=lambda pair: pair[0])):
                x = place + 0.22 * (step - (len(mine) - 1) / 2)
                value = ratio(same, peer, jobs)
                points += [(x, value)] if value else []
                none += [] if value or each[1] != "rbf" else [x]
        scatter(ax, peer, marker, points, none)
    ax.axhline(1.0, color="black", linewidth=0.8)
    ax.set_yscale("log")
    ax.set_ylabel("times as fast", fontsize=8)
    ax.tick_params(labelsize=8)
    ax.grid(visible=True, axis="y", which="both", color="0.9", linewidth=0.6)


def scatter(ax, peer, marker, points, none):
    """The points of a package, and crosses at the foot."""
    fill = "black" if peer == "sklearn" else "white"
    label = f"as {PLACES[peer]}" if points else f"{PLACES[peer]}: not measured"
    ax.plot(
        *(zip(*points, strict=True) if points else ([], [])),
        linestyle="none",
        marker=marker,
        color="black",
        markerfacecolor=fill,
        markersize=4.5,
        label=label,
    )
    if points:
        foot = ax.get_xaxis_transform()
        y = 0.04 if peer == "sklearn" else 0.1
        ax.plot(none, [y] * len(none), "x", color="0.5", markersize=4, transform=foot)
