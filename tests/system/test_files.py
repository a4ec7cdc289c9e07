"""Every writer replaces its file as a whole or not at all; readers say why not."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from widemargin import load_model, save_model
from widemargin.models.liblinear import read_liblinear, write_liblinear
from widemargin.models.model import Decision, Model
from widemargin.models.onnx import write_onnx
from widemargin.system.files import check_outputs, open_bytes

MODEL = Model(np.array([0, 1]), "binary", (Decision(np.ones(1000), 0.5),))
OLD = b"what was there before"

Writer = Callable[[Any, Any], None]
Reader = Callable[[Any], Model]


def _write_onnx(model: Any, path: Any) -> None:
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    write_onnx(model, path)


@pytest.fixture(params=[save_model, write_liblinear, _write_onnx])
def write(request: pytest.FixtureRequest) -> Writer:
    """Every writer in turn."""
    writer: Writer = request.param
    return writer


@pytest.fixture(params=[load_model, read_liblinear])
def read(request: pytest.FixtureRequest) -> Reader:
    """Every reader in turn."""
    reader: Reader = request.param
    return reader


# -- writing ---------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "os.chmod"])
@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), KeyboardInterrupt()]
)
def test_an_error_leaves_the_old_file(
    call: str,
    error: BaseException,
    write: Writer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*args: Any) -> None:
        raise error

    path = tmp_path / "model"
    path.write_bytes(OLD)
    monkeypatch.setattr(call, fail)
    with pytest.raises(type(error)) as caught:
        write(MODEL, path)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["model"]
    if isinstance(error, OSError):
        assert str(caught.value) == f"[Errno 5] Input/output error: '{path}'"


def test_a_full_disk_leaves_the_old_file(write: Writer, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits need POSIX")
    path = tmp_path / "model"
    path.write_bytes(OLD)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, old[1]))
    try:
        with pytest.raises(OSError, match=f"File too large: '{path}'"):
            write(MODEL, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["model"]


def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(OLD)
    code = (
        "import os, sys; from widemargin.system.files import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'half'); file.flush(); os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert done.returncode == 9
    assert path.read_bytes() == OLD


def test_all_is_on_the_disk_before_the_old_file_goes(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size))
    write(MODEL, tmp_path / "model")
    assert sizes == [os.stat(tmp_path / "model").st_size]


def test_a_new_file_has_the_usual_permissions(write: Writer, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write(MODEL, tmp_path / "model")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(tmp_path / "model").st_mode) == 0o640
    assert os.listdir(tmp_path) == ["model"]


def test_a_replaced_file_keeps_its_permissions(write: Writer, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(OLD)
    path.chmod(0o604)
    write(MODEL, path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o604
    assert path.read_bytes() != OLD


def test_a_symbolic_link_stays(write: Writer, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path, target = tmp_path / "link", tmp_path / "real" / "model"
    path.symlink_to(target)
    for _ in range(2):  # a link to nothing, then to a file
        write(MODEL, path)
        assert path.is_symlink()
        assert target.stat().st_size > 1000


def test_a_bare_name_is_in_the_current_folder(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(MODEL, "model")
    assert os.listdir(tmp_path) == ["model"]


def test_a_missing_folder(write: Writer, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write(MODEL, tmp_path / "none" / "model")
    assert str(caught.value) == f"no such folder: {tmp_path / 'none'}"


def test_a_folder_or_device_is_not_replaced(write: Writer, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, found in ((tmp_path, "directory"), (tmp_path / "pipe", "pipe or device")):
        message = f"^expected a file, found a {found}: {path}$"
        with pytest.raises((ValueError, OSError), match=message):
            write(MODEL, path)
    assert os.listdir(tmp_path) == ["pipe"]


# -- reading ---------------------------------------------------------------------------


def test_a_missing_file(
    read: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("adult.wm", "other"):
        Path(name).write_bytes(OLD)
    cases = {
        "adlt.wm": "no such file: adlt.wm (did you mean adult.wm?)",
        f"{tmp_path}/adlt.wm": f"no such file: {tmp_path}/adlt.wm "
        f"(did you mean {tmp_path}/adult.wm?)",
        "x": "no such file: x",
        "none/adult.wm": "no such file: none/adult.wm",
    }
    for path, message in cases.items():
        with pytest.raises(FileNotFoundError) as caught:
            read(path)
        assert str(caught.value) == message


def test_a_folder_or_pipe_is_not_read(read: Reader, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would block for ever
    with pytest.raises(ValueError, match="^expected a file, found a pipe or device: "):
        read(tmp_path / "pipe")
    with pytest.raises(
        OSError, match=f"^expected a file, found a directory: {tmp_path}$"
    ):
        read(tmp_path)


# -- checking before the work ----------------------------------------------------------


def test_outputs_that_can_be_written_leave_no_trace(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(OLD)
    check_outputs([tmp_path / "old", tmp_path / "new"], [tmp_path / "input"])
    assert os.listdir(tmp_path) == ["old"]
    assert (tmp_path / "old").read_bytes() == OLD


@pytest.mark.parametrize("same", ["./a", "folder/../a", "link", "hard"])
def test_an_output_that_is_an_input_is_refused(
    same: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    for exists in (False, True):
        if exists:
            Path("a").write_bytes(OLD)
            os.link("a", "hard")
        elif same == "hard":
            continue
        else:
            os.symlink("a", "link")
        with pytest.raises(ValueError, match=f"^{same}: would overwrite the input a$"):
            check_outputs([same], ["b", "a"])
        with pytest.raises(ValueError, match=f"^{same}: would overwrite the output a$"):
            check_outputs(["a", same], ["b"])


def test_a_folder_without_permission_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # root may write everywhere
    with pytest.raises(PermissionError, match=f"^no permission to write {tmp_path}/a$"):
        check_outputs([tmp_path / "a"], [])


@pytest.mark.skipif(sys.platform == "win32", reason="no such names")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_open_files_are_not_replaced(name):
    with pytest.raises(ValueError, match=f"expected a file, .* device: {name}"):
        check_outputs([Path(name)], [])


def test_a_link_to_nothing(tmp_path):
    link = tmp_path / "data.svm"
    link.symlink_to("gone.svm")
    with pytest.raises(
        FileNotFoundError, match="gone.svm, which the link .*data.svm n"
    ):
        open_bytes(link)
