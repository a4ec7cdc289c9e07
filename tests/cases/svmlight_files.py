"""What the tests of svmlight text share: files in every storage, and comparisons."""

import bz2
import gzip
import lzma

import numpy as np
from hypothesis import HealthCheck, settings

STORAGES = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
# Bytes of a slice: small ones put a cut at every line end, one size or another.
SLICES = [1, 7, 16, 4 << 20]
in_one_folder = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def put(folder, text, name="a.svm"):
    """A file that holds `text`, compressed as its name says."""
    path = folder / name
    text = text.encode() if isinstance(text, str) else text
    path.write_bytes(STORAGES.get(path.suffix, bytes)(text))
    return path


def assert_same_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(
        np.ascontiguousarray(found).view(np.uint8),
        np.ascontiguousarray(expected).view(np.uint8),
    )
