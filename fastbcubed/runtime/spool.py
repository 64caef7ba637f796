"""Batches of records that may be spilled: read again shard by shard, or mapped as one array."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import PAGE, Pages, Spill


class Spool:
    """Batches of records, each sorted by shard: kept in memory as far as that goes, spilled from there on.

    As many bytes as `memory` may be kept.
    """

    def __init__(self, dtype: np.dtype, n_shards: int, spill: Spill, memory: int) -> None:
        self.dtype = dtype
        self.n_shards = n_shards
        self._spill = spill
        self._memory = memory
        self._lock = threading.Lock()
        self._batches: dict[Any, tuple[NDArray[np.int64], NDArray[np.uint8] | int]] = {}

    def put(self, index: Any, pages: Pages, bounds: NDArray[np.int64]) -> None:
        """Take a batch from `pages`, and where each shard begins in it; both may be used again after.

        Batches are read back in the order of their indexes, whatever order they come in.
        """
        size = int(bounds[-1])
        if not size:
            return
        n_bytes = size * self.dtype.itemsize
        with self._lock:
            keep = n_bytes <= self._memory
            if keep:
                self._memory -= n_bytes
        place: NDArray[np.uint8] | int
        if keep:
            place = buffers.empty(n_bytes, np.uint8)
            np.copyto(place, pages.empty(n_bytes, place.dtype))
        else:
            place = self._spill.write(pages.first(n_bytes))
        with self._lock:
            self._batches[index] = (bounds.copy(), place)

    def pages(self) -> AbstractContextManager[Pages]:
        """Lend memory to make a batch in."""
        return self._spill.pages()

    @property
    def indexes(self) -> list[Any]:
        """The indexes of the batches, in order."""
        return sorted(self._batches)

    def segments(self, shard: int) -> NDArray[np.int64]:
        """Return how many records of this shard each batch has, in their order. Shape (n_batches,)."""
        return np.array([self._batches[i][0][shard + 1] - self._batches[i][0][shard] for i in self.indexes])

    def sizes(self) -> NDArray[np.int64]:
        """Return how many records each shard has. Shape (n_shards,)."""
        total = np.zeros(self.n_shards, np.int64)
        for bounds, _ in self._batches.values():
            total += np.diff(bounds)
        return total

    def read(self, shard: int, batches: slice = slice(None)) -> np.ndarray:
        """Bring the records of a shard together, in the order of the batches, or those of some of these by rank."""
        return self._bring(
            [(index, *self._batches[index][0][shard : shard + 2].tolist()) for index in self.indexes[batches]]
        )

    def read_batch(self, index: Any) -> np.ndarray:
        """Return a batch as it was put: the records of its shards, one after the other."""
        return self._bring([(index, 0, int(self._batches[index][0][-1]))])

    def _bring(self, segments: list[tuple[Any, int, int]]) -> np.ndarray:
        """Bring segments of batches together, each from one record to another."""
        size = self.dtype.itemsize
        into = buffers.empty(sum(last - first for _, first, last in segments), self.dtype)
        rest, spilled = into.view(np.uint8), []
        for index, first, last in segments:
            place = self._batches[index][1]
            own, rest = rest[: (last - first) * size], rest[(last - first) * size :]
            if isinstance(place, np.ndarray):
                np.copyto(own, place[first * size : last * size])
            elif own.size:
                spilled.append((place + first * size, own))
        self._spill.read(*spilled)
        return into

    def read_ahead(self, shards: Iterable[int], pool: Pool, stage: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the shards that have records, with them; the next one is read meanwhile.

        What is done with them is a stage of the pool.
        """
        sizes = self.sizes()
        todo = [shard for shard in shards if sizes[shard]]
        with (
            ThreadPoolExecutor(1, "fastbcubed-read") as reader,
            pool.stage(stage, len(todo), int(sizes[todo].sum())) as step,
        ):
            coming = reader.submit(self.read, todo[0]) if todo else None
            for k, shard in enumerate(todo):
                assert coming is not None
                records = [coming.result()]
                coming = reader.submit(self.read, todo[k + 1]) if k + 1 < len(todo) else None
                yield shard, records.pop()  # so that they are gone as soon as whoever gets them is done
                step(int(sizes[shard]))

    def clear(self) -> None:
        """Forget everything."""
        self._batches.clear()


class Packed:
    """Records written one after the other, without gaps, to a file of their own that can be mapped."""

    def __init__(self, dtype: np.dtype, directory: Path) -> None:
        self.dtype = dtype
        self._spill = Spill(directory, named=True)
        self._pages = Pages()
        self._size = 0
        self._left = b""  # less than a page, not yet written

    def append(self, records: np.ndarray) -> None:
        """Write records at the end."""
        data = np.ascontiguousarray(records.astype(self.dtype, copy=False)).view(np.uint8)
        self._size += records.size
        held = len(self._left) + data.size
        whole = held - held % PAGE
        if whole:
            room = self._pages.empty(held, np.dtype(np.uint8))
            room[: len(self._left)] = np.frombuffer(self._left, np.uint8)
            room[len(self._left) : held] = data
            self._spill.write(self._pages.first(whole))
            self._left = room[whole:held].tobytes()
        else:
            self._left += data.tobytes()

    def finish(self) -> np.ndarray:
        """Return all records, read from the file as they are used."""
        if self._left:
            room = self._pages.empty(PAGE, np.dtype(np.uint8))
            room[: len(self._left)] = np.frombuffer(self._left, np.uint8)
            self._spill.write(self._pages.first(PAGE))
        found = self._spill.map(0, self._size, self.dtype)
        self._spill.close()
        return found


class Behind:
    """Hands batches to `put` on a thread of its own, so that writing them does not hold up the work."""

    def __init__(self, put: Callable[[Any, Pages, Any], None]) -> None:
        self._put = put
        self._writer = ThreadPoolExecutor(1, "fastbcubed-write")
        self._last: Future[None] | None = None
        self._idle = [Pages(), Pages()]

    def pages(self) -> Pages:
        """Return pages to fill."""
        return self._idle.pop()

    def hand_over(self, index: Any, pages: Pages, bounds: Any) -> None:
        """Put a batch while the work goes on; waits for the one before."""
        self._wait()
        self._last = self._writer.submit(self._put, index, pages, bounds)
        self._idle.insert(0, pages)  # the other one is free

    def settle(self) -> None:
        """Wait for all batches, and give up the pages."""
        try:
            self._wait()
        finally:
            self._writer.shutdown()
            self._idle.clear()

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None
