"""Figures 5.2 to 5.4: time and iterations over q_U for pairs of variants."""

from dataclasses import dataclass

from papers import style
from papers.crsvm import methods

SHARES = (1.0, 0.7, 0.5, 0.25, 0.1)
ALL = "all rows"


@dataclass(frozen=True)
class Sweep:
    """One figure: two variants on two sets; the first damped and with our repair, too.

    Both leave hardly a difference of variants.
    """

    NAME: str
    names: tuple
    variants: dict

    def lines(self):
        """Form and variant of each curve."""
        first, second = self.variants
        return [
            *(("published", variant) for variant in (first, second)),
            *((form, first) for form in ("damped", "repaired")),
        ]

    def run(self, options):
        """A record for each set, variant, form and q_U / m."""
        records = []
        shares = (1.0, 0.4, 0.1) if options.quick else SHARES
        for data in options.sets(self.names):
            solvers = {("", ALL, 1.0): methods.unreduced()}
            for share in shares:
                for form, variant in self.lines():
                    make = methods.FORMS[form]
                    solver = make(share=share, **self.variants[variant])
                    solvers[form, variant, share] = solver
            found = methods.compare(
                data, solvers, repeat=options.repeat, time_limit=options.timeout
            )
            named = [
                {"set": data.name, "form": form, "variant": v, "share": share} | r
                for (form, v, share), r in found.items()
            ]
            records += methods.beside(named, found["", ALL, 1.0])
        return records

    def table(self, records):
        """Lines of text: time ratio (iterations) by q_U / m."""
        for name in dict.fromkeys(r["set"] for r in records):
            rows = [r for r in records if r["set"] == name]
            whole = next(r for r in rows if r["variant"] == ALL)
            yield (
                f"{name}: all rows take {whole['seconds']:.2f} s, "
                f"{whole['iterations']} iterations; time (iterations), "
                "! a run that is not solved"
            )
            shares = list(dict.fromkeys(r["share"] for r in rows))
            yield f"{'q_U / m':23}" + "".join(f"{s:>15g}" for s in shares)
            for form, variant in self.lines():
                cells = "".join(_cell(r) for r in _line(rows, form, variant))
                yield f"{form + ' ' + variant:23}{cells}"
            yield f"objectives differ by {methods.disagreement(rows):.0e} at most"

    def draw(self, records, folder):
        """Two panels for each set."""
        names = list(dict.fromkeys(r["set"] for r in records))
        figure, axes = style.panels(len(names), 2, width=5.0, height=3.6)
        for k, name in enumerate(names):
            rows = [r for r in records if r["set"] == name]
            self._panel(axes[2 * k], rows, "ratio")
            self._panel(axes[2 * k + 1], rows, "iterations")
            axes[2 * k].set_ylabel("processor time / all rows")
            axes[2 * k + 1].set_ylabel("iterations to a gap of 1e-6")
            for axis in axes[2 * k : 2 * k + 2]:
                axis.set_title(name)
        style.legend(figure, axes[0], 3)
        style.save(figure, folder, self.NAME)

    def _panel(self, axis, rows, column):
        whole = next(r for r in rows if r["variant"] == ALL)
        axis.axhline(whole[column], color="black", lw=0.8, label="all rows, published")
        for k, (form, variant) in enumerate(self.lines()):
            line = _line(rows, form, variant)
            solved = [float("nan") if r["unsolved"] else r[column] for r in line]
            shares = [r["share"] for r in line]
            style.curve(axis, shares, solved, k, f"{variant}, {form}")
            bad = [r["share"] for r in line if r["unsolved"]]
            style.crosses(axis, bad, 0.97 - 0.05 * k, style.LINES[k][0])
        axis.set_xlabel("$q_U / m$ (x: a run is not solved; a row for each curve)")
        for side in "xy":
            getattr(axis, f"set_{side}scale")("log")
            style.plain(
                axis, side, (1, 1.2, 1.5, 2, 3, 5, 8) if side == "y" else (1, 2, 5)
            )
        low, high = axis.get_ylim()
        axis.set_ylim(low, high * (high / low) ** 0.3)  # room for the crosses


def _line(rows, form, variant):
    found = [r for r in rows if r["form"] == form and r["variant"] == variant]
    return sorted(found, key=lambda r: -r["share"])


def _cell(r):
    return f"{r['ratio']:.2f} ({r['iterations']}){methods.marks(r)}".rjust(15)


BALANCE = Sweep(
    "figure_5.2",
    ("mushroom", "isolet"),
    {"balanced": {}, "non-balanced": {"balanced": False}},
)
ADAPTIVE = Sweep(
    "figure_5.3",
    ("letter", "waveform"),
    {"adaptive": {}, "nonadaptive": {"adaptive": False}},
)
RULE = Sweep(
    "figure_5.4",
    ("isolet", "waveform"),
    {"omega": {}, "one-sided": {"rule": "one_sided"}},
)
