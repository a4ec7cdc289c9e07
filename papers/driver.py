"""What the scripts of all papers do: read options, measure parts, draw, show tables.

A part is a module with ``NAME``, ``run(options)`` -> records, ``table(records)`` ->
lines, and ``draw(records, folder)``.
"""

import argparse
import json
import os
import platform
from pathlib import Path

from papers import claims


def parser(about, home, parts, quick="few rows, one run each"):
    """A command line with what every script asks for; parts: {name: part}."""

    def chosen(text):
        names = text.split(",")
        unknown = ", ".join(name for name in names if name not in parts)
        if unknown:
            there = ", ".join(parts)
            raise argparse.ArgumentTypeError(f"there is no part {unknown}: {there}")
        return [parts[name] for name in names]

    made = argparse.ArgumentParser(description=about.splitlines()[0])
    add = made.add_argument
    add("--data", type=Path, default=Path("data"), metavar="FOLDER")
    add("--parts", type=chosen, default=list(parts.values()), metavar="LIST")
    add("--output", type=Path, default=home / "results")
    add("--quick", action="store_true", help=quick)
    add("--redraw", action="store_true", help="from the numbers there")
    return made


def machine():
    """Cores and processor: times mean little without."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        name = lines[0].split(":")[1].strip() if lines else name
    return f"{os.cpu_count()} cores, {name}"


def numbers(part, options, folder, redraw):
    """The records of a part, measured or as they lie there."""
    file = folder / f"{part.NAME}.json"
    if redraw:
        return json.loads(file.read_text())["records"] if file.exists() else []
    records = part.run(options)
    if records:
        rows = ",\n".join(json.dumps(r) for r in records)
        head = json.dumps(machine())
        file.write_text(f'{{"machine": {head},\n"records": [\n{rows}\n]}}\n')
    return records


def show(parts, options, folder, redraw=False):
    """Measure each part, write FOLDER/NAME.json, .txt and .png, and print its table.

    The tables of a claim beside the folder follow.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        records = numbers(part, options, folder, redraw)
        if not records:
            print(f"{part.NAME} is skipped: it has no data.")
            continue
        part.draw(records, folder)
        text = "\n".join(part.table(records))
        (folder / f"{part.NAME}.txt").write_text(text + "\n")
        print(f"\n{part.NAME}\n{text}", flush=True)
    claim = folder.parent / "claim.md"
    if claim.exists():
        claim.write_text(claims.refreshed(claim))
