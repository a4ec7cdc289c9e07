"""Runs that survive their process: what a solver goes on from, in a file."""

import json
import os
import shutil
import time
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.fingerprint import fingerprint
from widemargin.data.state import RowState
from widemargin.parameters import Checker
from widemargin.solution import Certificate, Step
from widemargin.solvers.driver.best import Answer
from widemargin.system import deadline
from widemargin.system.files import check_outputs, open_regular, replacing

_VERSION = 1
# What reading a damaged file raises.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    NotImplementedError,
    EOFError,
)
_FACTS, _ANSWER = "checkpoint.json", "answer"
_FINGERPRINT = "fingerprint of X"
# Of what a solver gets only C over this size is left.
_SIZE = "size of the margins q"


@dataclass(frozen=True)
class Checkpoint:  # numpydoc ignore=PR02
    """Where and how often a run is saved, so that another process can go on with it.

    Parameters
    ----------
    path : str or path-like
        The file. If it exists and is of the same problem, the run goes on from it; once
        a run is solved the file is removed.
    every : float > 0 in seconds, default=60.0
        Time between two saves, without what saving takes.
    keep : bool, default=False
        Leave the file of a solved run, for a later run to confirm. A run that is solved
        before a save is due has none.

    Raises
    ------
    ValueError or TypeError
        A parameter out of range or of a wrong type.

    Notes
    -----
    A file is never half written: it is written beside its place and renamed. It holds v
    and the row vectors that the solver goes on from: 8 bytes a row for each (interior
    point 5, augmented Lagrangian 2, active set none, IRWLS 1). And the last answer that
    was proved, 8 bytes a row or, with a kernel, 16: a run that has no time for a better
    one ends with it. Saving takes one row vector at a time in memory.
    """

    path: str | os.PathLike[str]
    every: float = 60.0
    keep: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        check = Checker("Checkpoint")
        if not isinstance(self.path, str | os.PathLike):
            check.refuse("path", "a str or path-like", self.path)
        check.positive("every", self.every)
        check.choice("keep", self.keep, (True, False))

    @classmethod
    def of(cls, given: Any, owner: str) -> "Checkpoint | None":
        """What the 'checkpoint' parameter of an owner says.

        Raises
        ------
        OSError or ValueError
            No file can be written there: also where a fit is too small to save any.
        """
        if isinstance(given, str | os.PathLike):
            given = cls(given)
        if not (given is None or isinstance(given, Checkpoint)):
            expected = "a path, a Checkpoint or None"
            Checker(owner).refuse("checkpoint", expected, given)
        if given is not None:
            check_outputs([given.path], [])
        return given

    def part(self, number: int) -> "Checkpoint":
        """The checkpoint of one of several problems."""
        return Checkpoint(f"{os.fspath(self.path)}.{number}", self.every, keep=True)

    def remove(self) -> None:
        """Remove the file, if there is one."""
        if os.path.exists(self.path):
            os.unlink(self.path)


@dataclass(frozen=True)
class Saved:
    """What a file holds.

    Attributes
    ----------
    turn : int, 0 for the solver that was chosen, 1 for its first reserve, ...
    solver : str, its name
    iteration : int, of the last step
    v, best_v : ndarray (k,)
    source, best_alpha : ndarray; one of them is None
    vectors : dict of row vectors of the solver
    numbers : dict of its numbers, the details of its last step
    bounds : pair of floats, of best_v and its dual point as the run estimated them, or
        None where a file of before has none
    answer : Answer or None, the last one that was proved
    """

    turn: int
    solver: str
    iteration: int
    v: Vector
    best_v: Vector
    source: Vector | None
    best_alpha: Vector | None
    vectors: dict[str, Vector]
    numbers: dict[str, float]
    bounds: tuple[float, float] | None = None
    answer: Answer | None = None


class Saver:
    """Saves one run, and reads what an earlier one saved.

    Parameters
    ----------
    checkpoint : Checkpoint
    problem : Problem, or another kind, in the coordinates of the solver
        Its ``facts`` tell it from others, with a fingerprint of its rows. One sweep.
    given : the same, in the coordinates of the user
    way_back : int, what tells the way from the one to the other from others
    """

    def __init__(
        self, checkpoint: Checkpoint, problem: Any, given: Any, way_back: int
    ) -> None:
        check_outputs([checkpoint.path], [])  # now, and not after an hour
        self.checkpoint, self._problem, self._given = checkpoint, problem, given
        self._facts: dict[str, Any] = {}
        self._way_back = way_back
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self._last >= self.checkpoint.every

    def save(
        self,
        turn: tuple[int, str],
        step: Step,
        v: Vector,
        state: RowState | None,
        known: tuple[Any, Answer | None],
    ) -> None:
        """Write the file anew; ``known``: the best point, and a proved answer."""
        best, answer = known
        vectors = {name: getattr(state, name) for name in step.vectors}
        vectors |= best.row_vectors(v)
        facts = {
            "version": _VERSION,
            "problem": self._facts,
            "turn": turn[0],
            "solver": turn[1],
            "iteration": step.iteration,
            "numbers": step.details,
            "vectors": list(vectors),
            "bounds": [best.primal, best.dual],
        }
        with (
            replacing(self.checkpoint.path) as file,
            zipfile.ZipFile(file, "w") as archive,
        ):
            archive.writestr(_FACTS, json.dumps(facts))
            _write(archive, "v", v)
            _write(archive, "best_v", best.v)
            if best.source is not None:
                _write(archive, "source", best.source)
            else:
                _write(archive, "best_alpha", best.alpha())
            for name, vector in vectors.items():
                _write(archive, f"vectors/{name}", vector)
            if answer is not None:
                self._write_answer(archive, answer)
        self._last = time.monotonic()

    def keep(self, answer: Answer) -> None:
        """Add an answer to the file of this run, if there is one."""
        path = self.checkpoint.path
        if not self._is_own(path):
            return
        with (
            zipfile.ZipFile(path) as before,
            replacing(path) as file,
            zipfile.ZipFile(file, "w") as archive,
        ):
            for name in before.namelist():
                if name.startswith(_ANSWER):
                    continue
                with before.open(name) as source, _opened(archive, name) as target:
                    shutil.copyfileobj(source, target)
            self._write_answer(archive, answer)

    def _is_own(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file is of this problem: another run may have put its own there."""
        if not os.path.exists(path):
            return False
        try:
            with zipfile.ZipFile(path) as archive:
                facts = json.loads(archive.read(_FACTS))
            self._check(str(path), facts["version"], facts["problem"])
        except _DAMAGE:  # ValueError, too
            return False
        return True

    def _write_answer(self, archive: zipfile.ZipFile, answer: Answer) -> None:
        """Write an answer whose row vectors are here."""
        if not isinstance(answer.alpha, np.ndarray):
            return
        bounds = answer.certificate
        facts = {
            "way back": self._way_back,
            "b": answer.b,
            "rho": answer.rho,
            "bounds": [bounds.primal, bounds.dual, bounds.scale, bounds.rounding],
        }
        archive.writestr(f"{_ANSWER}.json", json.dumps(facts))
        _write(archive, f"{_ANSWER}/alpha", answer.alpha)
        _write(archive, f"{_ANSWER}/w", answer.w)

    def _answer(self, archive: zipfile.ZipFile) -> Answer | None:
        """The answer in a file, if it is of this very problem, and not of its core."""
        if f"{_ANSWER}.json" not in archive.namelist():
            return None
        facts = json.loads(archive.read(f"{_ANSWER}.json"))
        if facts["way back"] != self._way_back:
            return None
        alpha, w = (_read(archive, f"{_ANSWER}/{name}") for name in ("alpha", "w"))
        if len(alpha) != self._given.shape[0]:
            return None
        bounds = Certificate(*map(float, facts["bounds"]))
        return Answer(alpha, w, float(facts["b"]), bounds, float(facts["rho"]))

    def load(self) -> Saved | None:
        """What the file holds; None where there is none. Comes before `save`.

        Raises
        ------
        ValueError for a file that is no checkpoint, or of another problem.
        """
        # Now, and whatever the time: once it is over a run is saved, too, and one that
        # has none left keeps the answer of its file.
        with deadline.without():
            rows = self._problem.rows
            facts = _size_of_margins(self._given) | self._problem.facts
            self._facts = facts | {_FINGERPRINT: fingerprint(rows)}
        path = os.fspath(self.checkpoint.path)
        if not os.path.exists(path):
            return None
        with open_regular(path) as file:
            try:
                with zipfile.ZipFile(file) as archive:
                    facts = json.loads(archive.read(_FACTS))
                    found = facts["version"], facts.get("problem", {})
                    saved = self._saved(archive, facts)
            except _DAMAGE as error:
                raise ValueError(
                    f"{path}: expected a checkpoint, found something else or damage "
                    f"({error}); remove it to begin anew"
                ) from None
        self._check(path, *found)
        return saved

    def _saved(self, archive: zipfile.ZipFile, facts: dict[str, Any]) -> Saved | None:
        """What an archive of our version holds."""
        if facts["version"] != _VERSION:
            return None
        return _saved(archive, facts, self._answer(archive))

    def _check(self, path: str, version: Any, facts: dict[str, Any]) -> None:
        """Refuse the checkpoint of another problem."""
        if version != _VERSION:
            raise ValueError(
                f"{path}: expected a checkpoint of version {_VERSION}, "
                f"found {version}; remove it to begin anew"
            )
        for name, ours in self._facts.items():
            theirs = facts.get(name)
            if name in (_FINGERPRINT, _SIZE) and theirs is None:  # a file of before
                continue
            same = theirs == ours
            if isinstance(ours, float) and isinstance(theirs, float):
                # Sums depend on the cut of blocks, which memory_limit moves.
                same = bool(np.isclose(ours, theirs, rtol=1e-9, atol=0.0))
            if not same:
                raise ValueError(
                    f"{path}: expected a checkpoint of this problem ({name} {ours}), "
                    f"found another one's ({theirs}); remove it to begin anew"
                )


def _size_of_margins(problem: Any) -> dict[str, float]:
    """The mean ``|q|`` of a problem whose margins are here."""
    q = getattr(problem, "q", None)
    return {_SIZE: float(np.abs(q).mean())} if isinstance(q, np.ndarray) else {}


def _write(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    array = np.asarray(array)  # one that lies beside its rows is fetched
    with _opened(archive, f"{name}.npy") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def _opened(archive: zipfile.ZipFile, name: str) -> Any:
    return archive.open(name, "w", force_zip64=True)


def _read(archive: zipfile.ZipFile, name: str) -> Vector:
    with archive.open(f"{name}.npy") as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    return np.asarray(array, dtype=np.float64)


def _saved(
    archive: zipfile.ZipFile, facts: dict[str, Any], answer: Answer | None
) -> Saved:
    def read(name: str) -> Vector:
        return _read(archive, name)

    bounds = facts.get("bounds")
    has_source = "source.npy" in archive.namelist()
    return Saved(
        int(facts["turn"]),
        str(facts["solver"]),
        int(facts["iteration"]),
        read("v"),
        read("best_v"),
        read("source") if has_source else None,
        None if has_source else read("best_alpha"),
        {name: read(f"vectors/{name}") for name in facts["vectors"]},
        {name: float(number) for name, number in facts["numbers"].items()},
        None if bounds is None else (float(bounds[0]), float(bounds[1])),
        answer,
    )
