"""Build the wheel of this machine, try it where there is no compiler: ``make wheel``.

The source distribution is made first and the wheel from it, of a copy of the files that
git knows. A fresh environment then gets the wheel alone, with its dependencies as
wheels. ``make wheel URL=https://...`` makes the links of README absolute, as PyPI shows
it outside of the repository: URL is a folder whose files have the paths of README.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

DIST = Path("dist").resolve()
# Where a link or a picture of Markdown leads, but for addresses and places in the page.
RELATIVE = re.compile(r"(?<=\]\()(?!\w+:|#)(?=[^)\s]+\))")
TRY = """
import numpy, widemargin
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
for machine in (widemargin.LinearSVC(), widemargin.SVC()):
    fitted = machine.fit(X, y)
    assert fitted.status_ == "solved" and fitted.dual_gap_ <= 1e-4, machine
print("widemargin", widemargin.__version__, "from", widemargin.__file__)
"""


def main(url: str = "") -> int:
    """Build, install, try."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copy(place / "source", url)
        build = sys.executable, "-m", "build", "--outdir", str(DIST)
        run(*build, cwd=place / "source")
        made = sorted(DIST.iterdir())
        run(sys.executable, "-m", "twine", "check", "--strict", *map(str, made))
        attempt(next(path for path in made if path.suffix == ".whl"), place)
    for path in made:
        print(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")
    return 0


def copy(place: Path, url: str) -> None:
    """Copy the files that git knows; the links of README lead to the URL."""
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0")[:-1]:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, place / name)
    if url:
        readme = place / "README.md"
        words = readme.read_text("utf-8")
        readme.write_text(absolute(words, url), "utf-8")


def absolute(words: str, url: str) -> str:
    """Markdown with its relative links below a URL."""
    return RELATIVE.sub(f"{url.rstrip('/')}/", words)


def attempt(wheel: Path, place: Path) -> None:
    """Install a wheel in a fresh environment, and fit there without a compiler."""
    venv.create(place / "env", with_pip=True)
    programs = place / "env" / "bin"
    python = str(programs / "python")
    run(python, "-m", "pip", "install", "-q", "--only-binary", ":all:", str(wheel))
    nothing = {**os.environ, "PATH": str(programs), "CXX": "", "CC": ""}
    run(python, "-c", TRY, cwd=place, env=nothing)
    run(str(programs / "widemargin"), "--version", cwd=place, env=nothing)


def run(
    *command: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> None:
    """Run a command, and end where it fails."""
    # ninja has jobs of its own, and cannot reach those of make.
    of_make = {"MAKEFLAGS", "MFLAGS"}
    alone = {k: v for k, v in (env or os.environ).items() if k not in of_make}
    subprocess.run(command, check=True, cwd=cwd, env=alone)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
