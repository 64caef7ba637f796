"""Idle memory and memory in use together are never more than was in use at once."""

import gc
import mmap

import numpy as np
import pytest

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
