"""``pip install``, with a line on what it does: ``install.py ARGUMENTS OF PIP``.

All that pip says is in build/install.log, and is shown where it fails.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

LOG = Path("build/install.log")
# What a line of pip says, and how it is told.
SIGNS = [
    (r"Installing build dependencies: started", "fetching what builds the core"),
    (r"\[(\d+)/(\d+)\] (?:Building|Linking)", "compiling the C++ core: {} of {} files"),
    (r"(?:Collecting|Downloading|Processing) (?:.*/)?([\w.-]+)", "fetching {}"),
    (r"Installing collected packages: (.*)", "installing {}"),
]


def main() -> int:
    """Run pip; its exit status."""
    LOG.parent.mkdir(exist_ok=True)
    pip = [sys.executable, "-m", "pip", "install", "-v", "--progress-bar=off"]
    pip += ["--disable-pip-version-check", *sys.argv[1:]]
    begin = time.monotonic()
    # ninja has jobs of its own, and cannot reach those of make.
    alone = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS")}
    said = subprocess.Popen(
        pip, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=alone
    )
    assert said.stdout is not None
    with LOG.open("wb") as log:
        for line in said.stdout:
            log.write(line)
            show(line.decode(errors="replace"), time.monotonic() - begin)
    status = said.wait()
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    if status:
        print(LOG.read_text(errors="replace")[-5000:])
        print(f"The installation failed; {LOG} has all that pip said.")
    else:
        print(f"Installed in {time.monotonic() - begin:.0f} s.")
    return status


def show(line: str, seconds: float) -> None:
    """Tell what a line of pip means: in place on a terminal, else once a step."""
    for form, words in SIGNS:
        if found := re.search(form, line):
            said = words.format(*found.groups())
            break
    else:
        return
    if sys.stdout.isatty():
        print(f"\r\033[K{seconds:4.0f} s  {said:.70}", end="", flush=True)
    elif (step := said.split()[0]) not in shown:
        shown.add(step)
        print(f"{seconds:4.0f} s  {said.split(':')[0]:.70} ...", flush=True)


shown: set[str] = set()

if __name__ == "__main__":
    sys.exit(main())
