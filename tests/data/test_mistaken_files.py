"""Files that are taken for those of another kind: one sentence says what they are."""

import bz2
import gzip
import lzma
import warnings

import numpy as np
import pytest
from sklearn import svm
from sklearn.model_selection import GridSearchCV

from widemargin import (
    SVC,
    LinearSVC,
    LinearSVR,
    load_model,
    load_svmlight,
    open_rows,
    save_model,
    save_svmlight,
)
from widemargin.cli import main
from widemargin.models.liblinear import write_liblinear
from widemargin.models.libsvm import write_libsvm

X, Y = np.eye(4), np.array([0, 1, 0, 1])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["libsvm", "liblinear"])
def test_models_of_other_programs_name_their_reader(here, name):
    write = {"libsvm": write_libsvm, "liblinear": write_liblinear}[name]
    write(LinearSVC().fit(X, Y), "m.model")
    with pytest.raises(
        ValueError, match=rf"widemargin.models.{name}.read_{name} reads"
    ):
        load_model("m.model")


@pytest.mark.parametrize("name", ["t.csv", "t.svm", "t.npy"])
def test_data_are_no_model(here, name):
    (here / name).write_text("1,2,3\n")
    with pytest.raises(ValueError, match="load_svmlight reads text, open_rows tables"):
        load_model(name)


@pytest.mark.parametrize("line", ["1,2,3", "a;b;y"])
@pytest.mark.parametrize("name", ["t.csv", "t.cvs", "t"])
def test_tables_are_no_svmlight_text(here, line, name, capsys):
    (here / name).write_text(f"{line}\n1{line[1]}2{line[1]}3\n")
    with pytest.raises(
        ValueError, match="; a table is read by open_rows, under a name"
    ):
        load_svmlight(name)
    if name == "t.csv":
        return
    assert main(["train", name, "m.wm"]) == 2
    said = capsys.readouterr().err
    assert "; a table has a name that ends in .csv or .tsv" in said
    assert main(["train", name, "m.wm", "--label", "y"]) == 2
    assert "; a table has a name that ends in .csv, .tsv" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["inf", "1e400"])
@pytest.mark.parametrize(
    "machine", [LinearSVC(), SVC(rank=2), LinearSVR()], ids=["svc", "rank", "svr"]
)
def test_infinity_in_a_table_is_told_by_its_line(here, value, machine):
    """It was told by its row."""
    (here / "a.csv").write_text(f"a,b\n1,2\n\n3,{value}\n4,5\n")
    message = r"Got infinity at line 4, column 'b' instead\.$"
    with pytest.raises(ValueError, match=message):
        machine.fit(open_rows(here / "a.csv"), [1, -1, 1])


def test_several_labels_are_no_table(here):
    (here / "t.svm").write_text("1,2 1:0.5\n")
    with pytest.raises(ValueError, match=r"multi-label.*\"1,2\"$"):
        load_svmlight("t.svm")


@pytest.mark.parametrize("line", ["5.1,3.5,1.4,setosa", "5.1,3.5,1.4,0"])
def test_a_table_without_names_is_told(here, line):
    (here / "t.csv").write_text(f"{line}\n{line}\n4,2,1,x\n")
    with pytest.raises(ValueError, match="none of that name; the first line is taken"):
        open_rows("t.csv", label="kind")
    with pytest.warns(UserWarning, match="^t.csv: the first line is taken for names"):
        open_rows("t.csv", label=line.split(",")[-1])
    (here / "t.csv").write_text("5,5,setosa\n1,2,x\n")
    with pytest.raises(ValueError, match="found '5' twice; the first line is taken"):
        open_rows("t.csv", label="setosa")


@pytest.mark.parametrize("line", ["0,1,2,kind", "0,1,2,3", "a,b,7,kind"])
def test_names_that_count_columns_are_names(here, line):
    (here / "t.csv").write_text(f"{line}\n1,2,3,4\n4,2,1,3\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_rows("t.csv", label=line[-4:].split(",")[-1]).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "separator", "words"),
    [
        (
            "t.csv",
            ";",
            "expected commas between the names in the first line, found semi",
        ),
        (
            "t.csv",
            "\t",
            "expected commas between the names in the first line, found tabs",
        ),
        (
            "t.tsv",
            ",",
            "expected tabs between the names in the first line, found commas",
        ),
    ],
)
def test_other_separators_are_told(here, name, separator, words):
    rows = (separator.join(row) for row in ("aby", "123", "132"))
    (here / name).write_text("\n".join(rows))
    with pytest.raises(ValueError, match=words):
        open_rows(name, label="y")


@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_search_is_no_model(here, is_fitted):
    search = GridSearchCV(SVC(), {"C": [1.0]}, cv=2)
    search = search.fit(X, Y) if is_fitted else search
    with pytest.raises(
        TypeError, match="Got GridSearchCV instead. Give its best_estim"
    ):
        save_model(search, "m.wm")


@pytest.mark.parametrize("name", ["t.txt", "t.npz"])
def test_labels_of_text_name_the_endings_of_tables(here, capsys, name):
    (here / name).write_text("a,y\n1,2\n")
    assert main(["train", name, "m.wm", "--label", "y"]) == 2
    assert "ends in .csv, .tsv, .npy or .parquet" in capsys.readouterr().err


def test_a_machine_of_scikit_learn_is_named_with_its_module(here):
    with pytest.raises(TypeError, match=r"Got sklearn\.svm\.SVC instead"):
        save_model(svm.SVC().fit(X, Y), "m.wm")


def test_no_name_of_a_file(here):
    with pytest.raises(TypeError, match="expected the name of a file, found NoneType"):
        load_model(None)
    model, message = LinearSVC().fit(X, Y), "the name of a file, found an empty one"
    for write in (
        lambda: save_model(model, ""),
        lambda: save_svmlight(X, Y, ""),
        lambda: LinearSVC(checkpoint="").fit(X, Y),
    ):
        with pytest.raises(ValueError, match=message):
            write()


TABLE = "age,job,y\n1,café,0\n2,clerk,1\n3,café,1\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "t.csv",
            TABLE.encode("latin-1"),
            "text in UTF-8, found other .* column 'job'",
        ),
        (
            "t.csv",
            TABLE.replace("job", "métier").encode("latin-1"),
            "text in UTF-8, found other bytes in the line of names",
        ),
        (
            "t.csv",
            b"\xff\xfe" + TABLE.encode("utf-16-le"),
            r"text in UTF-8, found UTF-16; pandas.read_csv\('t.csv', encoding='utf-16'\)",
        ),
        (
            "t.tsv.gz",
            gzip.compress(b"\xfe\xff" + TABLE.replace(",", "\t").encode("utf-16-be")),
            r"text in UTF-8, found UTF-16; .*, encoding='utf-16', sep='\\t'\) reads",
        ),
        ("t.csv.gz", gzip.compress(TABLE.encode())[:-9], "a whole compressed file"),
        ("t.csv.xz", lzma.compress(TABLE.encode())[:-9], "a whole compressed file"),
        ("t.csv.xz", TABLE.encode(), "a whole compressed file, found damage"),
        (
            "t.csv.gz",
            TABLE.encode(),
            "a whole compressed file, found damage or another",
        ),
    ],
    ids=[
        "latin-1",
        "names",
        "utf-16",
        "utf-16 tsv",
        "cut",
        "cut xz",
        "plain xz",
        "plain",
    ],
)
def test_bytes_that_are_no_text(here, capsys, name, content, words):
    pytest.importorskip("pyarrow")
    (here / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"^{name}: expected {words}"):
        open_rows(name, label="y")
    assert main(["train", name, "m.wm", "--label", "y"]) == 2
    assert capsys.readouterr().err.startswith(f"widemargin: {name}: expected ")
    assert not (here / "m.wm").exists()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_tables_may_be_compressed(here, pack):
    pytest.importorskip("pyarrow")
    kind = {"gzip": "gz", "bz2": "bz2", "lzma": "xz"}[pack.__module__]
    (here / f"t.csv.{kind}").write_bytes(pack(TABLE.encode()))
    rows = open_rows(f"t.csv.{kind}", label="y")
    assert rows.names == ["age", "job=café", "job=clerk"]
    assert rows.vector("label").tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1 1:2\n".encode("utf-16"), "it is in UTF-16: save it as UTF-8, or iconv"),
        (b"\x1f\x8b\x08\x00", "gzip has compressed it: .* end in .gz$"),
        (b"BZh91AY&SY", "bzip2 has compressed it: .* end in .bz2$"),
        (b"\xfd7zXZ\x00", "xz has compressed it: .* end in .xz$"),
        (b"PK\x03\x04", "it is an archive"),
        (b"\x93NUMPY\x01\x00", "it is an array: let its name end in .npy$"),
        (b"PAR1", "it is Parquet: let its name end in .parquet$"),
        (b"ARROW1", r"it is Arrow \(Feather\): save it as Parquet$"),
    ],
)
@pytest.mark.parametrize("read", [load_svmlight, open_rows])
def test_other_files_are_no_svmlight_text(here, content, words, read):
    (here / "t.dat").write_bytes(content)
    with pytest.raises(ValueError, match=f"expected a number as the target.*; {words}"):
        read("t.dat")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.txt", TABLE.encode(), "name ends in '.txt' is read as svmlight text; "),
        ("t", TABLE.encode(), "name has no ending is read as svmlight text; "),
        ("t.csv.zip", b"PK\x03\x04", "'.zip' .* Of t.csv.zip: it is an archive"),
        ("t.csv.zst", b"\x28\xb5\x2f\xfd", "'.zst' .*: zstd has compressed it: unpack"),
    ],
)
@pytest.mark.parametrize("options", [{"label": "y"}, {"columns": ["a"]}], ids=str)
def test_a_table_under_another_name_is_told_what_names_tables_have(
    here, name, content, words, options
):
    (here / name).write_bytes(content)
    with pytest.raises(ValueError, match=words) as found:
        open_rows(name, **options)
    assert "tables end in .csv or .tsv" in str(found.value)
    with pytest.raises(FileNotFoundError, match="no such file: no.txt"):
        open_rows("no.txt", **options)


@pytest.mark.parametrize("name", ["m.wm", "m.model"])
def test_models_are_no_data(here, capsys, name):
    save_model(LinearSVC().fit(X, Y), "m.wm")
    write_liblinear(LinearSVC().fit(X, Y), "m.model")
    assert main(["train", name, "new.wm"]) == 2
    kind = "widemargin" if name == "m.wm" else "LIBLINEAR"
    said = f"widemargin: {name}: expected data, found a model of {kind}\n"
    assert capsys.readouterr().err == said


# -- one class -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1], "(60 rows); an accuracy needs labels: 1, and -1 of outliers"),
        ([-1, 1], " %, accuracy "),
    ],
)
def test_an_accuracy_of_one_class_needs_its_labels(here, capsys, labels, words):
    rows = np.random.default_rng(0).standard_normal((60, 2))
    y = np.array(labels)[(np.abs(rows).max(axis=1) < 1.5).astype(int)]
    save_svmlight(rows, y, "a.svm")
    asked = ["--type", "one-class", "--nu", "0.2", "--kernel", "rbf", "--gamma", "0.5"]
    assert main(["train", "a.svm", "m.wm", *asked, "--test", "a.svm"]) == 0
    said = capsys.readouterr().out
    assert words in said
    found = load_model("m.wm").predict(load_svmlight("a.svm")[0])
    assert f"outliers {100 * np.mean(found < 0):.2f} %" in said
    if labels == [-1, 1]:
        assert f"accuracy {100 * np.mean(found == y):.2f} %" in said
