"""Figures 5.2 to 5.4: time and iterations over q_U for pairs of variants."""

from dataclasses import dataclass

from papers import style
from papers.crsvm import methods

SHARES = (1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05)
ALL = "all rows"
FORMS = {"published": methods.published, "repaired": methods.repaired}


@dataclass(frozen=True)
class Sweep:
    """One figure: two variants, on two sets, as published and with our repair."""

    NAME: str
    names: tuple
    variants: dict

    def run(self, options):
        """A record for each set, variant, form and q_U / m."""
        records = []
        for data in options.sets(self.names):
            shares = (1.0, 0.4, 0.1) if options.quick else SHARES
            keys = [
                (form, label, share)
                for share in shares
                for label in self.variants
                for form in FORMS
            ]
            solvers = {
                key: FORMS[key[0]](share=key[2], **self.variants[key[1]])
                for key in keys
            }
            solvers["", ALL, 1.0] = methods.unreduced()
            limit = min(options.timeout, 30.0)
            found = methods.compare(
                data, solvers, repeat=options.repeat, time_limit=limit
            )
            whole = found["", ALL, 1.0]["seconds"]
            for (form, label, share), numbers in found.items():
                head = {"set": data.name, "form": form, "variant": label}
                ratio = numbers["seconds"] / whole
                records.append({**head, "share": share, "ratio": ratio, **numbers})
        return records

    def table(self, records):
        """Lines of text: time ratio (iterations) by q_U / m."""
        for name in dict.fromkeys(r["set"] for r in records):
            rows = [r for r in records if r["set"] == name]
            whole = next(r for r in rows if r["variant"] == ALL)
            yield (
                f"{name}: all rows take {whole['seconds']:.2f} s, "
                f"{whole['iterations']} iterations; time/work (iterations), "
                "! not solved"
            )
            shares = list(dict.fromkeys(r["share"] for r in rows))
            yield f"{'q_U / m':25}" + "".join(f"{s:>17g}" for s in shares)
            for form, label in dict.fromkeys((r["form"], r["variant"]) for r in rows):
                if label != ALL:
                    cells = "".join(_cell(r, whole) for r in _line(rows, form, label))
                    yield f"{form + ' ' + label:25}{cells}"
            yield f"objectives differ by {methods.disagreement(rows):.0e} at most"

    def draw(self, records, folder):
        """Two panels for each set."""
        names = list(dict.fromkeys(r["set"] for r in records))
        figure, axes = style.panels(len(names), 2)
        for k, name in enumerate(names):
            rows = [r for r in records if r["set"] == name]
            self._panel(axes[2 * k], rows, "ratio")
            self._panel(axes[2 * k + 1], rows, "iterations")
            axes[2 * k].set_title(f"{name}: time / time of all rows")
            axes[2 * k + 1].set_title(f"{name}: iterations")
        style.legend(figure, axes[0], 2)
        style.save(figure, folder, self.NAME)

    def _panel(self, axis, rows, column):
        whole = next(r for r in rows if r["variant"] == ALL)
        axis.axhline(whole[column], color="black", lw=0.8)
        k = 0
        for form in FORMS:
            for label in self.variants:
                line = _line(rows, form, label)
                shares = [r["share"] for r in line]
                style.curve(
                    axis, shares, [r[column] for r in line], k, f"{label}, {form}"
                )
                bad = [r for r in line if r["status"] != "solved"]
                axis.plot(
                    [r["share"] for r in bad], [r[column] for r in bad], "kx", ms=11
                )
                k += 1
        axis.set_xlabel("$q_U / m$ (x: not solved)")
        axis.set_xscale("log")
        style.plain(axis, "x", (1, 2, 5))
        if column == "iterations":
            axis.set_ylim(bottom=0)
        else:
            axis.set_yscale("log")
            style.plain(axis, "y", (1, 1.5, 2, 3, 4, 5, 6, 8))


def _line(rows, form, label):
    found = [r for r in rows if r["form"] == form and r["variant"] == label]
    return sorted(found, key=lambda r: -r["share"])


def _cell(r, whole):
    mark = "" if r["status"] == "solved" else "!"
    work = methods.patterns(r) / methods.patterns(whole)
    return f"{r['ratio']:.2f}/{work:.2f} ({r['iterations']}){mark}".rjust(17)


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
