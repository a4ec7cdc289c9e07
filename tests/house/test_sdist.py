"""What the source distribution holds: what git knows, and all that a build needs."""

import subprocess
import tarfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ["pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "PKG-INFO"]


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """Names of the files in it, without the folder that they are in.

    It is made once for both tests, as `python -m build --sdist` makes it: a second.
    """
    why = "scikit-build-core is not installed: pip install scikit-build-core"
    build = pytest.importorskip("scikit_build_core.build", reason=why)
    folder = tmp_path_factory.mktemp("sdist")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        made = build.build_sdist(str(folder))
    with tarfile.open(folder / made) as archive:
        names = [PurePosixPath(one.name).parts[1:] for one in archive if one.isfile()]
    return {"/".join(parts) for parts in names}


def known():
    """The files that git knows, and those that it would be told of."""
    asked = "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, check=True)
    names = listed.stdout.decode().split("\0")[:-1]
    return {name for name in names if (ROOT / name).is_file()}


def test_what_a_build_needs_is_there(held):
    here = {
        path.relative_to(ROOT).as_posix()
        for folder, ending in [("src", "py"), ("cpp", "cpp"), ("cpp", "hpp")]
        for path in (ROOT / folder).rglob(f"*.{ending}")
    }
    assert len(here) > 200
    assert {*here, *NEEDED, "src/widemargin/py.typed"} <= held


def test_nothing_else_is_there(held):
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: git does not know its files")
    assert held - known() <= {"PKG-INFO"}
    endings = {PurePosixPath(name).suffix for name in held}
    assert not endings & {".so", ".pyd", ".o", ".pyc", ".whl", ".html"}
