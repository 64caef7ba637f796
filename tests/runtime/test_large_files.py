"""Large files that are written in the background, and memory that is used again, hold what any others would."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from fastbcubed.runtime import buffers, output_files
from fastbcubed.runtime.output_files import LargeFile, TableWriter, maybe_with_nulls, without_nulls
from fastbcubed.runtime.threads import Pool, ahead

# -- Written ---------------------------------------------------------------------------------------


@examples(60)
@given(sizes=st.lists(st.integers(0, 30_000), max_size=8))
def test_all_bytes_are_written(sizes, tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "file"
    path.touch()
    rng = np.random.default_rng(len(sizes))
    pieces = [rng.bytes(size) for size in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_files, "WRITE_CHUNK", 8192)
        with LargeFile(str(path)) as file:
            for k, piece in enumerate(pieces):
                assert file.tell() == sum(sizes[:k])
                assert file.write(piece) == len(piece)
    assert path.read_bytes() == b"".join(pieces)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_told():
    file = LargeFile("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        for _ in range(4):
            file.write(bytes(output_files.WRITE_CHUNK))
        file.close()
    assert caught.value.errno == errno.ENOSPC
    with suppress(OSError):  # of what was still to be written
        file.close()
    assert file.closed


@pytest.mark.parametrize("n", [0, 5, 40_000])
def test_tables_come_back(n, tmp_path):
    """Hashed ids are left as they are, what repeats or is small is written as that, and nothing is lost."""
    rng = np.random.default_rng(n)
    table = pa.table(
        {
            "id": rng.integers(-(2**62), 2**62, n),
            "few": rng.integers(0, 9, n),
            "cell": pa.array(rng.integers(0, 2**20, n), mask=rng.random(n) < 0.1),
            "score": 1 / rng.integers(1, 9, n),
            "loss": rng.random(n),
            "text": [f"cluster {k}" for k in range(n)],
            "truth.country": pa.array((["DE", None, "FR"] * n)[:n], pa.string()),
        }
    )
    path = tmp_path / "table.parquet"
    path.touch()
    with TableWriter(path) as writer:
        for _ in range(3):
            writer.add(table)
    assert pq.read_table(path).equals(pa.concat_tables([table] * 3))
    if n > output_files.SAMPLE:
        group = pq.read_metadata(path).row_group(0)
        plain, differences = ("PLAIN", "UNCOMPRESSED"), ("DELTA_BINARY_PACKED", "UNCOMPRESSED")
        few, packed, attribute = (
            ("RLE_DICTIONARY", "UNCOMPRESSED"),
            ("PLAIN", "SNAPPY"),
            ("RLE_DICTIONARY", "SNAPPY"),
        )
        expected = [plain, differences, differences, few, plain, packed, attribute]
        for column, (encoding, compression) in zip(map(group.column, range(7)), expected, strict=True):
            assert encoding in column.encodings and column.compression == compression, column.path_in_schema


@pytest.mark.parametrize("n", [5, 40_000])
def test_what_has_no_nulls_and_few_values_is_written_as_that(n, tmp_path):
    texts = pa.array(["exact", "split"])
    table = pa.table(
        {
            "score": np.arange(n) / n,
            "few": pa.DictionaryArray.from_arrays(pa.array(np.arange(n) % 2, pa.int8()), texts),
            "many": pa.array([f"cluster {k}" for k in range(n)]).dictionary_encode(),
            "maybe": pa.array([None, *range(1, n)], pa.int64()),
        }
    )
    path = tmp_path / "table.parquet"
    path.touch()
    with TableWriter(path) as writer:
        for _ in range(2):
            writer.add(without_nulls(table, ["score"]))
    found = pq.read_table(path)
    assert [field.nullable for field in found.schema] == [False, True, True, True]
    written = pa.concat_tables([table, table]).unify_dictionaries()
    assert maybe_with_nulls(found.cast(written.schema)).equals(written)  # newer versions read codes as narrow
    group = pq.read_metadata(path).row_group(0)
    encodings = [set(group.column(k).encodings) for k in range(4)]
    assert ["RLE_DICTIONARY" in each for each in encodings] == [False, True, n == 5, False]


# -- Memory ----------------------------------------------------------------------------------------


def test_idle_memory_is_used_again_and_bounded():
    buffers.release()
    size = 3 << 20
    held = [buffers.empty(size, np.uint8) for _ in range(4)]
    places = {array.ctypes.data for array in held}
    most = buffers.idle_bytes() + 4 * (4 << 20)
    del held
    assert buffers.idle_bytes() == most
    again = [buffers.empty(size, np.uint8) for _ in range(4)]
    assert {array.ctypes.data for array in again} == places
    del again
    larger = buffers.empty(3 * size, np.uint8)
    assert larger.ctypes.data not in places
    del larger
    assert buffers.idle_bytes() <= most
    buffers.release()
    assert not buffers.idle_bytes()


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_made_ahead(threads):
    closed = []

    def numbers(n):
        try:
            yield from range(n)
            raise ZeroDivisionError
        finally:
            closed.append(n)

    with Pool(threads) as pool:
        found = []
        with pytest.raises(ZeroDivisionError):
            found.extend(pool.ahead(numbers(5)))
        for number in pool.ahead(numbers(9)):
            if number == 3:
                break
    assert closed == [5, 9]


def test_ahead_of_an_iterator_that_is_not_a_generator():
    assert list(ahead(iter([1, None, 2]))) == [1, None, 2]
