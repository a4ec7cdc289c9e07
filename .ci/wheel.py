"""Build the wheel of this machine, try it where there is no compiler: ``make wheel``.

The source distribution is made first and the wheel from it. A fresh environment then
gets the wheel alone, with its dependencies as wheels.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

DIST = Path("dist")
TRY = """
import numpy, widemargin
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
for machine in (widemargin.LinearSVC(), widemargin.SVC()):
    fitted = machine.fit(X, y)
    assert fitted.status_ == "solved" and fitted.dual_gap_ <= 1e-4, machine
print("widemargin", widemargin.__version__, "from", widemargin.__file__)
"""


def main() -> int:
    """Build, install, try."""
    run(sys.executable, "-m", "build", "--outdir", str(DIST))
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, DIST.glob("*")))
    wheel = max(DIST.glob("*.whl"), key=lambda path: path.stat().st_mtime).resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        python = str(place / "env" / "bin" / "python")
        install = (
            "-m",
            "pip",
            "install",
            "--quiet",
            "--only-binary",
            ":all:",
            str(wheel),
        )
        run(python, *install)
        nothing = {
            **os.environ,
            "PATH": str(place / "env" / "bin"),
            "CXX": "",
            "CC": "",
        }
        run(python, "-c", TRY, cwd=place, env=nothing)
        run(
            str(Path(python).parent / "widemargin"), "--version", cwd=place, env=nothing
        )
    print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB")
    return 0


def run(
    *command: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> None:
    """Run a command, and end where it fails."""
    subprocess.run(command, check=True, cwd=cwd, env=env)


if __name__ == "__main__":
    sys.exit(main())
