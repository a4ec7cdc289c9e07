"""What the fuzzer found worth keeping, and random text, against a reader in Python."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widemargin.data.svmlight import load_svmlight, save_svmlight
from widemargin.data.svmlight import text as svmlight_text

CORPUS = sorted(Path(__file__).with_name("corpus").iterdir())

NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
EMPTY = re.compile(rb"[ \t]*(?:\r?|#.*)", re.DOTALL)
ROW = re.compile(
    rb"[ \t]*(?P<target>%b)(?:[ \t]+qid:(?P<qid>-?\d+))?"
    rb"(?P<entries>(?:[ \t]+\d+:%b)*)[ \t]*(?:\r?|#.*)" % (NUMBER, NUMBER),
    re.DOTALL,
)


class RefusedError(Exception):
    """The text is not to be read."""


def require(holds):
    if not holds:
        raise RefusedError


def reference(text, zero_based, n_features, need_qid, dtype):
    """(rows as {index: value}, targets, qid) the slow way."""
    rows, targets, queries = [], [], []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if EMPTY.fullmatch(line):
            continue
        require(match := ROW.fullmatch(line))
        row = {}
        for entry in match["entries"].split():
            index, value = entry.split(b":")
            with np.errstate(over="ignore"):
                value = dtype(float(value))
            require(int(index) > max(row, default=-1) and np.isfinite(value))
            row[int(index)] = value
        qid = int(match["qid"] or 0)
        require(-(2**63) <= qid < 2**63 and np.isfinite(float(match["target"])))
        require(match["qid"] or not need_qid)
        rows.append(row)
        targets.append(float(match["target"]))
        queries.append(qid)
    require(rows)
    indices = [j for row in rows for j in row]
    base = 0 if zero_based is True or (zero_based == "auto" and 0 in indices) else 1
    require(all(base <= j < n_features + base for j in indices))
    return [{j - base: v for j, v in row.items()} for row in rows], targets, queries


def bits(values, dtype):
    return np.asarray(values, dtype).tobytes()


def check(folder, text, dtype, monkeypatch, zero_based, n_features, need_qid):
    """load_svmlight accepts what the reference does, and reads the same bits."""
    path = folder / "a.svm"
    path.write_bytes(text)
    options = {"zero_based": zero_based, "dtype": dtype, "return_qid": need_qid}
    if n_features < 2**63 - 1:
        options["n_features"] = n_features
    said = set()
    try:
        rows, targets, queries = reference(
            text, zero_based, n_features, need_qid, dtype
        )
    except RefusedError:
        for size, n_jobs in ((4 << 20, 1), (9, 2)):
            monkeypatch.setattr(svmlight_text, "SLICE_BYTES", size)
            with pytest.raises(ValueError, match=SENTENCE) as error:
                load_svmlight(path, n_jobs=n_jobs, **options)
            said.add(str(error.value))
        assert len(said) == 1
        return
    for size, n_jobs in ((4 << 20, 1), (9, 2)):
        monkeypatch.setattr(svmlight_text, "SLICE_BYTES", size)
        X, y, *qid = load_svmlight(path, n_jobs=n_jobs, **options)
        assert bits(y, np.float64) == bits(targets, np.float64)
        assert X.indptr.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
        assert X.indices.tolist() == [j for row in rows for j in row]
        assert bits(X.data, dtype) == bits([v for r in rows for v in r.values()], dtype)
        assert not qid or qid[0].tolist() == queries
    save_svmlight(X, y, path)
    Z, z = load_svmlight(path, dtype=dtype, zero_based=False)
    assert Z.indices.tolist() == X.indices.tolist()
    assert bits(Z.data, dtype) == bits(X.data, dtype)
    assert bits(z, np.float64) == bits(y, np.float64)


SENTENCE = r"a\.svm, line \d+, column \d+: expected .+, found .+"


@pytest.mark.parametrize("part", range(4))
def test_corpus(part, tmp_path, monkeypatch):
    for path in CORPUS[part::4]:
        try:
            check_file(path, tmp_path, monkeypatch)
        except BaseException as error:
            error.add_note(f"The file is corpus/{path.name}.")
            raise


def check_file(path, folder, monkeypatch):
    """A file of the corpus: its first two bytes hold the options (svmlight_fuzz.cpp)."""
    data = path.read_bytes()
    options = data[0] if data else 0
    check(
        folder,
        data[2:],
        np.float32 if options & 128 else np.float64,
        monkeypatch,
        zero_based=True if options & 1 else "auto" if options & 2 else False,
        n_features=100 if options & 8 else 2**63 - 1,
        need_qid=bool(options & 4),
    )


def test_there_is_a_corpus():
    assert len(CORPUS) > 50


pieces = st.one_of(
    st.sampled_from(["1", "-1", "1:", "2:", "03:", "0:", "4", ":", ",", ".", "-", "+"]),
    st.sampled_from(["qid:", "qid:3", "#", "nan", "inf", "1e", "1e999", "1e-999"]),
    st.sampled_from([" ", "  ", "\t", "\n", "\r\n", "\r", "\0", "\ufeff", "é"]),
    st.integers(0, 20).map("{}:1".format),
    st.floats().map(repr),
)


@settings(
    deadline=None,
    max_examples=5 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    text=st.lists(st.one_of(pieces, st.just(" ")), max_size=40).map("".join),
    zero_based=st.sampled_from([True, False, "auto"]),
    n_features=st.sampled_from([2**63 - 1, 3]),
    need_qid=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_random_text(tmp_path, monkeypatch, text, dtype, **options):
    check(tmp_path, text.encode(), dtype, monkeypatch, **options)
