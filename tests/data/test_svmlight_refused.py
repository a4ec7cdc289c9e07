"""svmlight text: what is refused, and in which words."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.svmlight_files import SLICES, in_one_folder, put
from widemargin.data.svmlight import load_svmlight
from widemargin.data.svmlight import read as svmlight_read
from widemargin.data.svmlight import text as svmlight_text

# text, options: line, column, what was expected and found
NUMBER = "a number as the target"
FAULTS = [
    (b"1 1:2\n1 3:1 14:1,5\n", {}, 2, 10, 'a number after "14:"', '"1,5"'),
    (b"1 1:\n", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:\r\n", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:\r", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1: 2\n", {}, 1, 5, 'a number after "1:"', "a blank"),
    (b"1 1:#2\n", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:nan\n", {}, 1, 5, 'a number after "1:"', '"nan"'),
    (b"1 1:-inf\n", {}, 1, 5, 'a number after "1:"', '"-inf"'),
    (b"1 1:0x1p3\n", {}, 1, 5, 'a number after "1:"', '"0x1p3"'),
    (b"1 1:1e\n", {}, 1, 5, 'a number after "1:"', '"1e"'),
    (b"1 1:1e+\n", {}, 1, 5, 'a number after "1:"', '"1e+"'),
    (b"1 1:.\n", {}, 1, 5, 'a number after "1:"', '"."'),
    (b"1 1:--1\n", {}, 1, 5, 'a number after "1:"', '"--1"'),
    (b"1 1:1_000\n", {}, 1, 5, 'a number after "1:"', '"1_000"'),
    (b"1 1:1.5.2\n", {}, 1, 5, 'a number after "1:"', '"1.5.2"'),
    (b"1 1:2:3\n", {}, 1, 5, 'a number after "1:"', '"2:3"'),
    (b'1 1:\xc3\xa9"\\\n', {}, 1, 5, 'a number after "1:"', r'"\xc3\xa9\"\\"'),
    (
        b"1 1:" + b"9" * 30 + b"x\n",
        {},
        *(1, 5, 'a number after "1:"', f'"{"9" * 24}..."'),
    ),
    (b"1 1:1e999\n", {}, 1, 5, 'a number that fits a float64 after "1:"', '"1e999"'),
    (
        b"1 1:-3.5e38\n",
        {"dtype": np.float32},
        *(1, 5, 'a number that fits a float32 after "1:"', '"-3.5e38"'),
    ),
    (b"x 1:1\n", {}, 1, 1, NUMBER, '"x"'),
    (b"nan 1:1\n", {}, 1, 1, NUMBER, '"nan"'),
    (b"1\n\n\n # c\n  x 1:1\n", {}, 5, 3, NUMBER, '"x"'),
    (b"1 1:1\n# c\n1 1:1\n1x 1:1\n", {}, 4, 1, NUMBER, '"1x"'),
    (b"1e999 1:1\n", {}, 1, 1, "a target that fits a float64", '"1e999"'),
    (b"qid:1 1:1\n", {}, 1, 1, NUMBER, '"qid:1"'),
    (
        b"1,2 3:4\n",
        {},
        *(1, 1, "one target (multi-label files are not supported)", '"1,2"'),
    ),
    (b"1 1:1\n2:1 3:4\n", {}, 2, 1, 'a target before the first "index:value"', '"2:1"'),
    (b" 2:1\n", {}, 1, 2, 'a target before the first "index:value"', '"2:1"'),
    (b"1 2\n", {}, 1, 4, '":" after "2"', "the end of the line"),
    (b"1 2", {}, 1, 4, '":" after "2"', "the end of the line"),
    (b"1 2 :3\n", {}, 1, 4, '":" after "2"', "a blank"),
    (b"1 2x:3\n", {}, 1, 4, '":" after "2"', '"x:3"'),
    (b"1 2.5:3\n", {}, 1, 4, '":" after "2"', '".5:3"'),
    (b"1 x:3\n", {}, 1, 3, '"index:value"', '"x:3"'),
    (b"1 +2:3\n", {}, 1, 3, '"index:value"', '"+2:3"'),
    (b"1 :3\n", {}, 1, 3, '"index:value"', '":3"'),
    (b"1 1:1 -2:3\n", {}, 1, 7, "an index that is not negative", '"-2"'),
    (b"1 2:1 2:3\n", {}, 1, 7, "an index greater than 2", '"2"'),
    (b"1 1:1 5:1 3:3\n", {}, 1, 11, "an index greater than 5", '"3"'),
    (b"1 0:1 0:3\n", {}, 1, 7, "an index greater than 0", '"0"'),
    (
        b"1 1:1\n2 0:1\n",
        {"zero_based": False},
        *(2, 3, "an index of at least 1 because zero_based is False", '"0"'),
    ),
    (
        b"1 9223372036854775808:1\n",
        {},
        *(1, 3, "an index of at most 9223372036854775807", '"9223372036854775808"'),
    ),
    (
        b"1 99999999999999999999999:1\n",
        {},
        *(1, 3, "an index of at most 9223372036854775807", f'"{"9" * 23}"'),
    ),
    (
        b"2 0:1\n1 9223372036854775807:1\n",
        {},
        *(2, 3, "an index of at most 9223372036854775806", '"9223372036854775807"'),
    ),
    (
        b"1 3:1\n1 2:1 4:1\n",
        {"n_features": 3},
        *(2, 7, "an index of at most 3 because n_features is 3", '"4"'),
    ),
    (
        b"1 3:1\n1 2:1\n",
        {"n_features": 3, "zero_based": True},
        *(1, 3, "an index of at most 2 because n_features is 3", '"3"'),
    ),
    (
        b"1 1:1\n1 3:1\n1 0:1\n",
        {"n_features": 3},
        *(2, 3, "an index of at most 2 because n_features is 3", '"3"'),
    ),
    (b"1 qid:a 1:1\n", {}, 1, 7, 'an integer after "qid:"', '"a"'),
    (b"1 qid:1.5\n", {}, 1, 7, 'an integer after "qid:"', '"1.5"'),
    (b"1 qid: 1:1\n", {}, 1, 7, 'an integer after "qid:"', "a blank"),
    (
        b"1 qid:9223372036854775808\n",
        {},
        *(1, 7, 'an integer after "qid:"', '"9223372036854775808"'),
    ),
    (b"1 1:1 qid:3\n", {}, 1, 7, '"qid:" only after the target', '"qid:3"'),
    (b"1 qid:1 qid:3\n", {}, 1, 9, '"qid:" only after the target', '"qid:3"'),
    (
        b"1 qid:1\n1 1:2\n",
        {"return_qid": True},
        *(2, 3, '"qid:" after the target because return_qid is True', '"1:2"'),
    ),
    (
        b"1 1:1\r2 1:1\n",
        {},
        *(1, 6, "a line feed after the carriage return", r'"\x0d2"'),
    ),
    (b"1 1:1\x0b2:2\n", {}, 1, 5, 'a number after "1:"', r'"1\x0b2:2"'),
    (b"\x7fELF\x02\x00\n", {}, 1, 1, NUMBER, r'"\x7fELF\x02\x00"'),
    (b"1 1:1\n\x00\x00\x00\x00", {}, 2, 1, NUMBER, r'"\x00\x00\x00\x00"'),
    (b"1 1:1\n\x1f\x8b\x08", {}, 2, 1, NUMBER, r'"\x1f\x8b\x08"'),
    (b"\xef\xbb\xbfx\n", {}, 1, 4, NUMBER, '"x"'),
    (b"1\n\xef\xbb\xbf2\n", {}, 2, 1, NUMBER, r'"\xef\xbb\xbf2"'),
    (b"", {}, 1, 1, "at least one row", "the end of the file"),
    (b"\n \n", {}, 3, 1, "at least one row", "the end of the file"),
    (b"\n# no rows", {}, 2, 10, "at least one row", "the end of the file"),
    (b"\xef\xbb\xbf", {}, 1, 4, "at least one row", "the end of the file"),
    # The first fault counts, whatever stands behind it.
    (b"1 1:x\n1,2 1:1\n\x00", {}, 1, 5, 'a number after "1:"', '"x"'),
    (b"1 1:1\n" * 99 + b"1 1:y\n" * 99, {}, 100, 5, 'a number after "1:"', '"y"'),
]


@pytest.mark.parametrize("storage", ["", ".gz"])
@pytest.mark.parametrize("fault", FAULTS, ids=range(len(FAULTS)))
def test_refuses_with_line_and_column(tmp_path, monkeypatch, fault, storage):
    text, options, line, column, expected, found = fault
    path = put(tmp_path, text, "a.svm" + storage)
    where = f"{path}, line {line}, column {column}"
    for size, n_jobs in itertools.product(SLICES, [1, 2]):
        monkeypatch.setattr(svmlight_text, "SLICE_BYTES", size)
        with pytest.raises(ValueError, match="line") as error:
            load_svmlight(path, n_jobs=n_jobs, **options)
        assert str(error.value) == f"{where}: expected {expected}, found {found}"


@in_one_folder
@given(text=st.binary(max_size=60), n_jobs=st.sampled_from([1, 2]))
def test_any_bytes_are_read_or_refused(tmp_path, text, n_jobs):
    path = put(tmp_path, text)
    try:
        X, _ = load_svmlight(path, n_jobs=n_jobs)
    except ValueError as error:
        assert str(error).startswith(f"{path}, line ")
    else:
        X.check_format(full_check=True)


@pytest.mark.cover(2)
@pytest.mark.parametrize("storage", [".gz", ".bz2", ".xz"])
def test_damaged_data_is_refused(tmp_path, storage, slice_bytes, n_jobs):
    path = put(tmp_path, "1 1:2\n" * 1000, "a.svm" + storage)
    whole = path.read_bytes()
    kind = storage[1:]
    said = f"^{path}, line [0-9]+, column 1: expected more {kind} data, found damage"
    early = r" \(the compressed file ends early\)$"
    for damaged, how in (
        (whole[:-1], early),
        (whole[: len(whole) // 2], early),
        (whole[:-12] + bytes(12), ""),
        (b"1 1:2\n", ""),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=said + how):
            load_svmlight(path, n_jobs=n_jobs)


def test_a_fault_before_the_damage_comes_first(tmp_path, slice_bytes, n_jobs):
    path = put(tmp_path, "1 1:x\n" + "1 1:2\n" * 1000, "a.svm.gz")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r'line 1, column 5: .* found "x"$'):
        load_svmlight(path, n_jobs=n_jobs)


@pytest.mark.parametrize(("text", "seen"), [("1 1:2\n", "1\n"), ("1\n", "1 1:2\n2\n")])
def test_a_file_that_changes_between_the_passes(tmp_path, monkeypatch, text, seen):
    counts = svmlight_read._count(
        svmlight_text.Slice(np.frombuffer(seen.encode(), "u1"))
    )
    monkeypatch.setattr(svmlight_read, "_count", lambda piece: counts)
    path = put(tmp_path, text)
    with pytest.raises(OSError, match=f"^{path} was changed while it was read$"):
        load_svmlight(path)


def test_a_missing_file_names_one_that_is_there(tmp_path, monkeypatch):
    put(tmp_path, "1 1:1\n", "adult.svm")
    monkeypatch.chdir(tmp_path)
    for name, hint in {
        "adlt.svm": " (did you mean adult.svm?)",
        "./adlt.svm": " (did you mean ./adult.svm?)",
        "quite different": "",
        "no folder/adult.svm": "",
    }.items():
        with pytest.raises(FileNotFoundError) as error:
            load_svmlight(name)
        assert str(error.value) == f"no such file: {name}{hint}"


def test_what_is_no_readable_file(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError) as error:
        load_svmlight(tmp_path)
    assert str(error.value) == f"expected a file, found a directory: {tmp_path}"

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    path = put(tmp_path, "1 1:1\n")
    monkeypatch.setattr(svmlight_text.os, "stat", refuse)  # root may read everything
    with pytest.raises(PermissionError) as error:
        load_svmlight(path)
    assert str(error.value) == f"no permission to read {path}"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"n_features": 0}, r"None or an int in the range \[1, 2\^63\). Got 0"),
        ({"n_features": 2.0}, r"None or an int in the range \[1, 2\^63\). Got 2.0"),
        ({"zero_based": 1}, "one of True, False, 'auto'. Got 1"),
        ({"zero_based": "no"}, "one of True, False, 'auto'. Got 'no'"),
        ({"dtype": np.int32}, "float32 or float64. Got 'int32'"),
        ({"n_jobs": 0}, r"None, -1 or an int in the range \[1, inf\). Got 0"),
    ],
)
def test_parameters_of_load(tmp_path, option, said):
    (name,) = option
    said = f"^The '{name}' parameter of load_svmlight must be {said} instead.$"
    with pytest.raises(ValueError, match=said):
        load_svmlight(put(tmp_path, "1 1:1\n"), **option)
