"""Does the suite see a wrong sign? Puts faults into a copy, one at a time.

    python -m tests.mutations             every fault (`make mutations`)
    python -m tests.mutations pair votes  those whose name holds a word
    python -m tests.mutations --list

A fault replaces a text that a module holds once. The tests that should see it run first,
and the whole of what `make test` runs only where these stay green. Nothing of the working
tree is changed: the copy has an environment of its own, which borrows the packages of the
one that runs this script, and a build folder that is kept, so that a fault in the core
compiles one file. The end is a table, and 1 as exit status where a fault was not seen.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutation_list import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[1]
BUILD_TOOLS = ("scikit-build-core>=0.11", "nanobind>=2.7", "cmake", "ninja")
LIMIT = 1800  # seconds of one run of tests


class Verdict(NamedTuple):
    """What a run of tests said: "red", "green", or what kept it from an answer."""

    said: str
    test: str = ""
    seconds: float = 0.0


class Copy:
    """A copy of the tree, installed in an environment of its own."""

    def __init__(self, folder: Path) -> None:
        self.is_stale = False  # whether the core that is installed holds a fault
        self.tree, self.python = folder / "tree", folder / "env" / "bin" / "python"
        if not self.python.exists():
            self._make_environment(folder / "env")
        _synchronize(self.tree)
        self.build()
        where = _output([str(self.python), "-c", "import widemargin as w; print(w)"])
        if str(self.tree) not in where:
            raise SystemExit(f"The copy does not import its own package: {where}")

    def _make_environment(self, env: Path) -> None:
        """Tools to build with, and the packages of the one that runs this script."""
        _run([sys.executable, "-m", "venv", str(env)])
        _run([str(self.python), "-m", "pip", "install", "-q", *BUILD_TOOLS])
        # A plain line adds a folder to the path, and not what its own .pth files name:
        # the editable install of the working tree stays out.
        own = Path(_output([str(self.python), "-c", _PURELIB]))
        borrowed = [path for path in sys.path if path.endswith("site-packages")]
        (own / "borrowed.pth").write_text("\n".join(borrowed) + "\n")

    def build(self) -> None:
        """Compile what changed, and install the copy."""
        self.is_stale = False
        options = ["-q", "--no-deps", "--no-build-isolation", "-e", str(self.tree)]
        _run([str(self.python), "-m", "pip", "install", *options])

    def test(self, paths: tuple[str, ...], jobs: int) -> Verdict:
        """Run the tests of some files, or all of them, to the first failure."""
        command = [
            str(self.python),
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
        ]
        command += ["-n", str(jobs)] if jobs > 1 else ["-p", "no:xdist"]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [*command, *paths],
                cwd=self.tree,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                env=os.environ | {"SCIPY_ARRAY_API": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        except subprocess.TimeoutExpired:
            return Verdict(f"no end in {LIMIT} s")
        seconds = time.monotonic() - begun
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.M)
        if done.returncode == 0:
            return Verdict("green", "", seconds)
        if done.returncode in (1, 2) and failed:  # 2: xdist stopped the others
            return Verdict("red", failed[1], seconds)
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
        return Verdict(f"pytest ended with {done.returncode}", "", seconds)

    def judge(self, mutation: Mutation, jobs: int) -> Verdict:
        """Put the fault in, ask the suite, and take it out again."""
        path, text = place(self.tree, mutation)
        in_core = path.parent.name == "cpp"
        try:
            path.write_text(text.replace(mutation.old, mutation.new))
            if in_core or self.is_stale:
                self.build()
            verdict = self.test(mutation.tests, 1)
            return self.test((), jobs) if verdict.said == "green" else verdict
        finally:
            path.write_text(text)
            self.is_stale = in_core


_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def _synchronize(tree: Path) -> None:
    """Copy what differs from the working tree: other files are not compiled again."""
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = _output(listed, cwd=ROOT).split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, tree / name
        if not source.is_file():  # removed, and not committed
            continue
        if not target.exists() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    kept = {tree / name for name in names}
    for path in [*(tree / "src").rglob("*.py"), *(tree / "tests").rglob("*.py")]:
        if path not in kept:
            path.unlink()


def place(tree: Path, mutation: Mutation) -> tuple[Path, str]:
    """The file of a fault and its text, or an end that says what does not match."""
    folder = tree / ("cpp" if mutation.file.endswith(("cpp", "hpp")) else "src")
    texts = {path: path.read_text() for path in sorted(folder.rglob(mutation.file))}
    found = [path for path, text in texts.items() if mutation.old in text]
    if len(found) != 1:
        raise SystemExit(
            f"{mutation.name}: expected one file {mutation.file} below {folder.name} "
            f"with this text, found {len(found)} of {len(texts)}:\n{mutation.old}"
        )
    text = texts[found[0]]
    if (count := text.count(mutation.old)) != 1:
        raise SystemExit(
            f"{mutation.name}: expected this text once in {mutation.file}, found it "
            f"{count} times:\n{mutation.old}"
        )
    return found[0], text


def chosen(words: list[str]) -> list[Mutation]:
    """The faults whose name holds one of the words; all without words."""
    return [m for m in MUTATIONS if not words or any(word in m.name for word in words)]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def _output(command: list[str], cwd: Path | None = None) -> str:
    cwd = cwd or Path(tempfile.gettempdir())  # where no package lies beside
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd)
    return done.stdout.strip()


def main() -> int:
    """Judge the chosen faults, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of faults")
    parser.add_argument("--jobs", type=int, default=2, help="of the whole suite")
    parser.add_argument("--folder", type=Path, help="of the copy: kept, and used again")
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="do not first show that the tests are green without a fault",
    )
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    # What runs in the background ignores Ctrl-C, and so would the tests of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mutations = chosen(options.words)
    for mutation in mutations:
        place(ROOT, mutation)
    if options.list:
        print(*(f"{m.name:40} {m.file}" for m in mutations), sep="\n")
        return 0
    with contextlib.ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="widemargin-mutations-")
        folder = options.folder or Path(stack.enter_context(made))
        missed = judge_all(Copy(folder), mutations, options)
    print(f"{len(mutations) - missed} of {len(mutations)} faults were seen.")
    return int(missed > 0)


def judge_all(copy: Copy, mutations: list[Mutation], options: Any) -> int:
    """Print a line for each fault; how many were not seen."""
    first = tuple(sorted({test for m in mutations for test in m.tests}))
    if not options.unchecked:
        without = copy.test(first, options.jobs)
        if without.said != "green":
            raise SystemExit(f"Without a fault: {without.said} {without.test}")
    missed = 0
    for mutation in mutations:
        verdict = copy.judge(mutation, options.jobs)
        missed += verdict.said != "red"
        line = f"{mutation.name:44} {verdict.said:6} {verdict.seconds:6.1f} s"
        print(f"{line}  {verdict.test}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
