"""Idle memory and memory in use together are never more than was in use at once."""

import gc
import mmap
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.results.saved_files import read_table
from fastbcubed.runtime import buffers

MIB = 1 << 20


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="the system keeps no idle memory")
def test_new_memory_takes_the_place_of_idle_memory() -> None:
    gc.collect()
    buffers.release()
    before = buffers._in_use()
    large = [buffers.empty(8 * MIB, np.uint8) for _ in range(4)]
    large.clear()
    assert buffers.idle_bytes() == 32 * MIB
    kept = []
    for count in range(1, 13):
        kept.append(buffers.empty(2 * MIB, np.uint8))  # fits no idle memory, which is four times as large
        kept[-1][:] = count
        assert buffers.idle_bytes() + buffers._in_use() - before <= 32 * MIB
    assert buffers.idle_bytes() == 8 * MIB
    assert [int(each[-1]) for each in kept] == list(range(1, 13))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="the system keeps no idle memory")
def test_a_small_buffer_does_not_take_a_large_one_from_the_next_call() -> None:
    gc.collect()
    buffers.release()
    before = buffers._in_use()
    large = buffers.empty(64 * MIB, np.uint8)
    large[:] = 1
    place = large.ctypes.data
    del large
    small = buffers.empty(2 * MIB, np.uint8)
    assert buffers.idle_bytes() + buffers._in_use() - before == 64 * MIB
    again = buffers.empty(64 * MIB, np.uint8)
    assert again.ctypes.data == place
    again[:] = 2  # those pages that were given back, too
    assert int(again.min()) == 2 and small.size == 2 * MIB


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="the system keeps no idle memory")
def test_stages_of_other_sizes_keep_their_memory() -> None:
    """Each takes what the last one left, where it is up to three times as large, and no pages go to and fro."""
    gc.collect()
    buffers.release()
    places = []
    for _ in range(3):
        for sizes in [(24, 24, 34), (8, 10, 32)]:
            lent = [buffers.empty(size * MIB, np.uint8) for size in sizes]
            places.append(sorted(each.ctypes.data for each in lent))
            del lent
            assert buffers.idle_bytes() == 82 * MIB
    assert all(each == places[0] for each in places)


def test_sizes_may_be_numbers_of_numpy():
    """Kernels that are not compiled return such."""
    assert buffers.empty(np.int64(3), np.int64).shape == (3,)


@pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="the system keeps no idle memory")
@pytest.mark.parametrize(
    "step",
    [
        lambda ev, place: ev.save(place),
        lambda ev, place: fb.diff([1, 1], [1, 2]).save(place),
        lambda ev, place: (
            ev.save(place),
            buffers.empty(8 * MIB, np.uint8),
            fb.load(place, memory_limit="1GiB"),
        ),
        lambda ev, place: ev.report().html,
    ],
)
def test_what_follows_a_call_does_not_add_to_its_idle_memory(
    step: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    gc.collect()
    ev = fb.evaluate([1, 1, 2], [1, 2, 2])
    buffers.empty(99 * MIB, np.uint8)
    assert buffers.idle_bytes() >= 99 * MIB
    step(ev, tmp_path / "saved")
    assert buffers.idle_bytes() < 99 * MIB


def test_a_table_is_loaded_within_a_limit_column_by_column(tmp_path: Path) -> None:
    """The compressed bytes of a file pass through Python, which counts them."""
    values, path = np.random.default_rng(0).random((16, 1 << 16)), tmp_path / "table.parquet"
    table = pa.table({f"sum {k}.of": each for k, each in enumerate(values)} | {"sum 3": values[0]})
    pq.write_table(table, path, row_group_size=1 << 14, use_dictionary=False)

    def most_held(*, frugal: bool) -> int:
        tracemalloc.start()
        try:
            with open(path, "rb") as file:
                assert read_table(file, path, frugal=frugal).equals(table)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert most_held(frugal=True) < most_held(frugal=False) / 3
