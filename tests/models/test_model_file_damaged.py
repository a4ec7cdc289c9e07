"""Damaged and hostile model files: one sentence for each."""

import hashlib
import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin import load_model, save_model
from widemargin.models.model import Decision, Model

MODEL = Model(
    np.array([-1, 1]),
    "binary",
    (Decision(np.array([0.1, -0.0, 5e-324]), 0.3),),
    {"C": 1.0, "feature_names": ["a", "b", "ü"]},
)
HEADER = {
    "scheme": "binary",
    "classes": {"dtype": "int64", "values": [-1, 1]},
    "arrays": [
        {"name": "w", "dtype": "<f8", "shape": [1, 3]},
        {"name": "b", "dtype": "<f8", "shape": [1]},
    ],
    "meta": {},
}
BODY = struct.pack("<3d40xd56x", 0.1, -0.0, 5e-324, 0.3)


def forge(
    path: Path,
    header: Any,
    body: bytes = BODY,
    version: int = 1,
    length: int | None = None,
) -> Path:
    """A file with a right checksum, whatever the rest."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(16 + len(text)) % 64)
    length = len(text) if length is None else length
    content = struct.pack("<8sII", b"\x89widem\r\n", version, length) + text + body
    path.unlink(missing_ok=True)  # some file systems flush a file that is overwritten
    path.write_bytes(content + hashlib.sha256(content).digest())
    return path


def refusal(path: Path) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(ValueError, match="is not a usable model file") as caught:
        load_model(path)
    message = str(caught.value)
    assert message.startswith(f"{path} is not a usable model file: ")
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 250
    return message


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for the many files of a property."""
    return tmp_path_factory.mktemp("models") / "model.wm"


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


# -- damaged files ---------------------------------------------------------------------


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.wm"
    save_model(MODEL, path)
    content = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position, byte in enumerate(content):
            for other in (byte ^ 0x01, byte ^ 0xFF, byte):
                file.seek(position)
                file.write(bytes([other]))
                if other != byte:
                    refusal(path)
    assert load_model(path).meta == MODEL.meta


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.wm"
    save_model(MODEL, path)
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        refusal(path)


@pytest.mark.parametrize("garbage", [b"\0", b"\n", bytes(64), bytes(1000)])
def test_what_follows_the_model_is_noticed(garbage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.wm"
    save_model(MODEL, path)
    path.write_bytes(path.read_bytes() + garbage)
    assert "checksum" in refusal(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not start like one"),
        (b"\x80\x05.", "does not start like one"),
        (b"\x89widem\n" + bytes(100), "does not start like one"),
        (b"\x89widem\r\n" + bytes(39), "ends too early"),
        (
            b"\x89widem\r\n" + bytes(100),
            "version is 0, but this widemargin reads only 1 to 7",
        ),
    ],
)
def test_other_files_are_refused(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "m.wm").write_bytes(content)
    assert words in refusal(tmp_path / "m.wm")


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = forge(tmp_path / "m.wm", {"layout": "another"}, version=8)
    assert "version is 8, but this widemargin reads only 1 to 7" in refusal(path)


# -- hostile files: the checksum is right ----------------------------------------------


def test_what_is_forged_below_is_a_model_but_for_one_thing(tmp_path: Path) -> None:
    model = load_model(forge(tmp_path / "m.wm", HEADER))
    assert model.decisions[0].w.tobytes() == MODEL.decisions[0].w.tobytes()
    assert model.decisions[0].b == 0.3


REGRESSION = {
    **HEADER,
    "scheme": "regression",
    "classes": {"dtype": "float64", "values": []},
    "kernel": None,
    "features": None,
}


@pytest.mark.parametrize(
    ("changes", "version", "message"),
    [
        ({"scheme": "binary"}, 5, "its version has no scheme 'binary'"),
        ({"classes": HEADER["classes"]}, 5, "cannot have 2 classes"),
        ({"classes": {"dtype": "str", "values": []}}, 5, "its class labels are not"),
        ({"shape": "ovr", "break_ties": False}, 4, "has no scheme 'regression'"),
    ],
)
def test_forged_regressions_are_refused(
    tmp_path: Path, changes: Any, version: int, message: str
) -> None:
    model = load_model(forge(tmp_path / "m.wm", REGRESSION, version=5))
    assert model.predict([[1.0, 0.0, 0.0]]) == pytest.approx([0.1 + 0.3])
    assert message in refusal(
        forge(tmp_path / "m.wm", REGRESSION | changes, version=version)
    )


@pytest.mark.parametrize("length", [2**32 - 1, 2**32 - 16, 2**20 - 16, 704, 1, 0])
def test_header_lengths(length: int, tmp_path: Path) -> None:
    path = forge(tmp_path / "m.wm", HEADER, length=length)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f"header cannot have {length} bytes" in message
    assert peak < 100_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xff", "not valid JSON"),
        ('{"scheme": "binary"}'.encode("utf-16"), "not valid JSON"),
        (b"1" * 5000, "not valid JSON"),
        (b"{} {}", "not valid JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b"[]", "must be an object"),
        (b"null", "must be an object"),
        (b"NaN", "must be an object"),
        (b'"' + b"x" * 5000 + b'"', "must be an object"),
    ],
)
def test_headers_that_are_none(text: bytes, words: str, tmp_path: Path) -> None:
    assert words in refusal(forge(tmp_path / "m.wm", text))


def changed(*keys: Any, value: Any) -> dict[str, Any]:
    """The header with one value replaced or, for ..., removed."""
    header: Any = json.loads(json.dumps(HEADER))
    at = header
    for key in keys[:-1]:
        at = at[key]
    if value is ...:
        del at[keys[-1]]
    else:
        at[keys[-1]] = value
    return header  # type: ignore[no-any-return]


W = {"name": "w", "dtype": "<f8", "shape": [1, 3]}
SHAPE = ("arrays", 0, "shape")
VALUES = ("classes", "values")
HOSTILE = [
    (changed("meta", value=...), "the header must be an object with the keys"),
    (changed("more", value=1), "the header must be an object with the keys"),
    (changed("meta", value=[]), "'meta' of the header must be of type dict"),
    (changed("arrays", value={}), "'arrays' of the header must be of type list"),
    (changed("scheme", value=["binary"]), "'scheme' of the header must be of type str"),
    (changed("scheme", value="o" * 9999), "A model of scheme"),
    (changed("scheme", value="ovr"), "cannot have 1 decision"),
    (changed("arrays", 0, value=1), "an array must be an object"),
    (changed("arrays", 0, "offset", value=0), "an array must be an object"),
    (changed("arrays", 0, "name", value="x"), "unexpected array 'x'"),
    (changed("arrays", 1, "name", value="w"), "unexpected array 'w'"),
    (
        changed("arrays", 0, "name", value=None),
        "'name' of an array must be of type str",
    ),
    (changed("arrays", 0, "dtype", value="<f4"), "of dtype '<f4'"),
    (changed("arrays", 0, "dtype", value="|O"), "of dtype '|O'"),
    (changed("arrays", 0, "dtype", value="O" * 9999), "of dtype [...]"),
    (changed("arrays", value=[]), "not those of a model"),
    (changed("arrays", value=[W]), "not those of a model"),
    (changed("arrays", value=[W, W]), "unexpected array 'w'"),
    (changed(*SHAPE, value=[3]), "cannot have the shape"),
    (changed(*SHAPE, value=[1, 3, 1]), "cannot have the shape"),
    (changed(*SHAPE, value=[1] * 9999), "cannot have the shape"),
    (changed(*SHAPE, value=[-1, -3]), "cannot have the shape"),
    (changed(*SHAPE, value=[0, 3]), "cannot have the shape"),
    (changed(*SHAPE, value=[1, 3.0]), "cannot have the shape"),
    (changed(*SHAPE, value=[True, 3]), "cannot have the shape"),
    (changed(*SHAPE, value=["1", 3]), "cannot have the shape"),
    (changed(*SHAPE, value=[2**32, 2**32]), "would end after the file"),
    (changed(*SHAPE, value=[2**61, 1]), "would end after the file"),
    (changed(*SHAPE, value=[1, 17]), "would end after the file"),
    (changed(*SHAPE, value=[1, 9]), "would end after the file"),  # b would
    (changed("arrays", 1, "shape", value=[9]), "would end after the file"),
    (changed("arrays", 1, "shape", value=[2]), "arrays differ in length"),
    (changed("classes", value=[0, 1]), "'classes' of the header must be of type dict"),
    (changed("classes", "dtype", value="object"), "not values of dtype 'object'"),
    (changed("classes", "dtype", value="complex128"), "not values of dtype"),
    (changed("classes", "dtype", value="<i8"), "not values of dtype '<i8'"),
    (changed("classes", "dtype", value="bool"), "not values of dtype 'bool'"),
    (changed("classes", "dtype", value="uint8"), "out of the range of uint8"),
    (changed(*VALUES, value=[]), "not values of dtype"),
    (changed(*VALUES, value=[1]), "it has 1 class"),
    (changed(*VALUES, value=[1, 2, 3]), "it has 3 class(es), but is binary"),
    (changed(*VALUES, value=[1, 1]), "not sorted and distinct"),
    (changed(*VALUES, value=[2, 1]), "not sorted and distinct"),
    (changed(*VALUES, value=[0, True]), "not values of dtype 'int64'"),
    (changed(*VALUES, value=[0, 1.0]), "not values of dtype 'int64'"),
    (changed(*VALUES, value=[0, None]), "not values of dtype 'int64'"),
    (changed(*VALUES, value=[0, [1]]), "not values of dtype 'int64'"),
    (changed(*VALUES, value=[0, 2**63]), "out of the range of int64"),
    (
        changed("classes", value={"dtype": "str", "values": ["a", "a\0"]}),
        "not sorted and distinct",
    ),
    (
        changed("classes", value={"dtype": "float64", "values": [0.0, np.nan]}),
        "not sorted and distinct",
    ),
    (
        changed("classes", value={"dtype": "float16", "values": [1e300, 2e300]}),
        "not sorted and distinct",
    ),
]


@pytest.mark.parametrize(("header", "words"), HOSTILE)
def test_headers_that_lie(header: Any, words: str, tmp_path: Path) -> None:
    assert words in refusal(forge(tmp_path / "m.wm", header))


@pytest.mark.parametrize("length", [0, 8, 64, 127, 129, 192])
def test_arrays_fill_the_file(length: int, tmp_path: Path) -> None:
    body = BODY.ljust(length, b"\0")[:length]
    message = refusal(forge(tmp_path / "m.wm", HEADER, body))
    assert "would end after the file" in message or "do not fill the file" in message


def test_no_array_may_be_missing(tmp_path: Path) -> None:
    path = forge(tmp_path / "m.wm", changed("arrays", value=[W]), BODY[:64])
    assert "not those of a model" in refusal(path)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("position", [0, 16, 64])  # two weights and the intercept
def test_coefficients_must_be_finite(bad: float, position: int, tmp_path: Path) -> None:
    body = bytearray(BODY)
    body[position : position + 8] = struct.pack("<d", bad)
    path = forge(tmp_path / "m.wm", HEADER, bytes(body))
    assert "NaN or an infinity" in refusal(path)


def test_one_long_label_cannot_ask_for_a_huge_array(tmp_path: Path) -> None:
    count = 20_000
    labels = [f"{i:05}" for i in range(count)]
    labels[-1] += "x" * count
    header = changed("classes", value={"dtype": "object", "values": labels})
    header["scheme"] = "ovr"
    header["arrays"][0]["shape"], header["arrays"][1]["shape"] = [count, 1], [count]
    body = bytes(8 * count) * 2  # a multiple of 64
    path = forge(tmp_path / "m.wm", header, body)
    assert load_model(path).classes.tolist() == labels
    header["classes"]["dtype"] = "str"
    forge(path, header, body)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "labels are too long" in message
    assert peak < 50_000_000


@given(data=st.data())
@settings(deadline=None)
def test_no_header_raises_anything_else(data: st.DataObject, scratch: Path) -> None:
    """Any JSON in any place of a header: the right model or the one sentence."""
    places = [("scheme",), ("classes",), VALUES, ("classes", "dtype"), (*VALUES, 0)]
    places += [("arrays",), ("arrays", 0), SHAPE, (*SHAPE, 0), ("arrays", 0, "name")]
    place = data.draw(st.sampled_from(places))
    value = data.draw(
        JSON_VALUES | st.sampled_from(["ovr", "w", "b", "str", "object", "float16"])
    )
    header = changed(*place, value=value)
    forge(scratch, header)
    if json.dumps(header) == json.dumps(HEADER):
        assert load_model(scratch).classes.tolist() == [-1, 1]
        return
    try:
        model = load_model(scratch)
    except ValueError as error:
        assert "is not a usable model file" in str(error)
    else:  # other labels may be right ones
        assert place[0] == "classes"
        assert model.classes.tolist() == header["classes"]["values"]
