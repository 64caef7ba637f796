"""The labels of all clusters of a side, in shards by their keys, as codes of clusters are: one scan names them all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.row_blocks import number_type, numbers_of_keys
from fastbcubed.cells.cell_parts import ClusterKeys
from fastbcubed.errors import FileFormatError
from fastbcubed.inputs.arrays import combined, from_numpy, join_pieces, plain, to_numpy
from fastbcubed.inputs.columns import Column
from fastbcubed.inputs.keys import seeded_keys
from fastbcubed.inputs.pair import Block, Pair
from fastbcubed.inputs.stash import Stash
from fastbcubed.inputs.tables import Stretch
from fastbcubed.runtime import buffers
from fastbcubed.runtime.codes import MAX_BITS, match, number
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.threads import Pool


class LabelShards:
    """Labels by key, in shards; a lookup reads the whole shard."""

    def __init__(
        self,
        stretches: Sequence[Stretch[Block]],
        labels_of: Callable[[Sequence[Any]], Column],
        seed: int | None,
        bits: int,
        spill: Spill,
        pool: Pool,
    ) -> None:
        self._stash = Stash(spill)
        self._bits = bits
        self._read: tuple[int, NDArray[np.int64], pa.Array] | None = None

        def put(stretch: Stretch[Block]) -> None:
            with Pool(1) as alone:
                for block in stretch.blocks():
                    self._put(block.first_row, labels_of(block.sides), seed, alone)

        pool.map(put, stretches, stage="bring the names of clusters together")

    def _put(self, index: int, labels: Column, seed: int | None, alone: Pool) -> None:
        """Take the labels of a block, each once."""
        keys, _ = seeded_keys(labels, seed, alone)
        nulls = labels.null_rows
        if nulls is None:
            rows = number(keys, alone).firsts
        else:  # their keys are arbitrary
            known = np.flatnonzero(~nulls)
            rows = known[number(keys[known], alone).firsts]
        mixed = kernels.partition.mix_all(keys[rows])
        home = self._home(mixed)
        order = np.argsort(home, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(home, minlength=1 << self._bits)))
        table = pa.table({"key": from_numpy(mixed[order]), "label": labels.take(rows[order])})
        self._stash.put(index, table, bounds)

    def _home(self, mixed: NDArray[np.int64]) -> NDArray[np.int16]:
        """Return the shard of each key, from the bits that assign rows and cells to shards."""
        bits_of = kernels.partition.bits_of
        bits_of = getattr(bits_of, "py_func", bits_of)  # for arrays, whether it is compiled or not
        home: NDArray[np.int64] = bits_of(mixed, MAX_BITS, self._bits)
        return home.astype(np.int16)

    def find(self, mixed: NDArray[np.int64], pool: Pool) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Return the label of each mixed key, and a mask of those that have one. Shape (n,)."""
        home = self._home(mixed)
        pieces, at = [], np.full(mixed.size, -1)
        n_labels = 0
        for shard in np.unique(home).tolist():
            keys, labels = self._shard(shard)
            rows = np.flatnonzero(home == shard)
            found = match(mixed[rows], keys, pool).pred_of_true
            known = rows[found >= 0]
            pieces.append(labels.take(from_numpy(found[found >= 0])))
            at[known] = n_labels + np.arange(known.size)
            n_labels += known.size
        if not pieces:
            pieces = [self._shard(0)[1].slice(0, 0)]
        return combined(pa.chunked_array(pieces)).take(from_numpy(at, at < 0)), at >= 0

    def _shard(self, shard: int) -> tuple[NDArray[np.int64], pa.Array]:
        if self._read is None or self._read[0] != shard:
            self._read = None  # before the next one is there
            table = self._stash.read(shard)
            self._read = (shard, to_numpy(table["key"].combine_chunks()), combined(table["label"]))
        return self._read[1:]


#: Rows by which the width of labels is judged.
SHOWN = 1 << 12


def label_bytes(first: Column) -> int:
    """Estimate the bytes of a label from the first rows; 0 for integers, which are their own keys."""
    if number_type(first) is not None or not len(first):
        return 0
    shown = [plain(column) for column in first.rows_of(np.arange(0, len(first), -(-len(first) // SHOWN)))]
    return sum(column.nbytes for column in shown) // len(shown[0])


class NamesByKey:
    """The labels of clusters by code."""

    def __init__(
        self,
        pair: Pair,
        labels: Sequence[Column],
        seeds: Sequence[int | None],
        made: tuple[int, int] | None,
        keys: ClusterKeys,
        bits: int,
        directory: Path,
        threads: int,
    ) -> None:
        self._made = made
        self._bits, self._directory = bits, directory
        self._threads = threads
        self._one_at_a_time = threading.Lock()  # reading takes memory
        self._sides = {
            "true": _Labels(pair, 0, labels[0], seeds[0], keys.true),
            "pred": _Labels(pair, 1, labels[1], seeds[1], keys.pred),
        }

    def __call__(self, side: str, codes: NDArray[np.integer]) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made."""
        own = self._sides[side]
        keys = kernels.partition.unmix_all(np.ascontiguousarray(own.keys[codes]))
        made = self._are_made(keys)
        if own.kind is not None:
            return numbers_of_keys(keys, own.kind, made)
        wanted, at = np.unique(keys[~made], return_inverse=True)
        with self._one_at_a_time, Pool(self._threads) as pool:
            found, place = own.look_for(wanted, pool)
        rows = np.zeros(keys.size, np.int64)
        rows[~made] = place[at]
        return found.take(from_numpy(rows, made))

    @contextmanager
    def all_of(self, side: str) -> Iterator[Callable[[NDArray[np.integer]], pa.Array]]:
        """Return a function from codes to labels, for reading all labels of a side in order of code."""
        own = self._sides[side]
        if own.kind is not None:
            yield partial(self, side)
            return
        with Spill(self._directory, named=True) as spill, Pool(1) as pool:  # others work on tables meanwhile
            with self._one_at_a_time:
                shards = LabelShards(own.stretches, own.labels_of, own.seed, self._bits, spill, pool)
                buffers.release()  # the memory of reading

            def labels(codes: NDArray[np.integer]) -> pa.Array:
                mixed = np.ascontiguousarray(own.keys[codes])
                found, known = shards.find(mixed, pool)
                missing = ~known & ~self._are_made(kernels.partition.unmix_all(mixed))
                own.require_found(int(np.count_nonzero(missing)), mixed.size)
                return own.in_own_type(found)

            yield labels

    def _are_made(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which keys were made by policies."""
        if self._made is None:
            return np.zeros(keys.size, bool)
        start, n = self._made
        return keys.view(np.uint64) - np.uint64(start % 2**64) < np.uint64(n)


class _Labels:
    """The labels of one side."""

    def __init__(self, pair: Pair, k: int, first: Column, seed: int | None, keys: NDArray[np.int64]) -> None:
        self.keys = keys
        self.seed = seed
        self.kind = number_type(first)
        if self.kind is not None:
            return  # and hold on to nothing
        self.none = first.take(np.empty(0, np.int64))
        self._name = pair.names[k]
        self.stretches = pair.stretches[k if len(pair.stretches) == 2 else 0]
        self._at = 0 if len(pair.stretches) == 2 else k

    def labels_of(self, sides: Sequence[Any]) -> Column:
        """Return the labels of a block that has these sides."""
        labels: Column = sides[self._at].labels
        return labels

    def in_own_type(self, found: pa.Array) -> pa.Array:
        """Return labels that were stored without dictionaries or views in the type that they have in the input.

        Codes of a dictionary are 32 bits wide if there may be more labels than its own can tell apart.
        """
        kind = self.none.type
        if pa.types.is_dictionary(kind):
            found = found.dictionary_encode()
            return found.cast(kind) if self.keys.size < 1 << kind.index_type.bit_width - 1 else found
        return found if found.type == kind else found.cast(kind)

    def require_found(self, n_missing: int, n: int) -> None:
        """Raise if labels were not found."""
        if n_missing:
            raise FileFormatError(
                f"{n_missing} of {n} clusters of {self._name} were not found when it was read again for their "
                "names. Has it changed since it was evaluated? Evaluate it anew"
            )

    def look_for(self, wanted: NDArray[np.int64], pool: Pool) -> tuple[pa.Array, NDArray[np.int64]]:
        """Read the input until the label of every key is found; return these, and the key of each."""
        place = np.full(wanted.size, -1)
        low = (8 << wanted.size.bit_length()) - 1  # these bits tell most other keys from those wanted
        likely = np.zeros(low + 1, bool)
        likely[wanted & low] = True
        pieces = [self.none]
        n_found = 0
        lock = threading.Lock()

        def look(stretch: Stretch[Block]) -> None:
            nonlocal n_found
            with Pool(1) as alone:
                blocks = stretch.blocks() if n_found < wanted.size else iter(())
                for block in blocks:
                    labels = self.labels_of(block.sides)
                    keys, _ = seeded_keys(labels, self.seed, alone)
                    nulls = labels.null_rows  # their keys are arbitrary
                    there = likely[keys & low]
                    rows = np.flatnonzero(there if nulls is None else there & ~nulls)
                    at = np.minimum(np.searchsorted(wanted, keys[rows]), wanted.size - 1)
                    new = (wanted[at] == keys[rows]) & (place[at] < 0)
                    rows, at = rows[new], at[new]
                    with lock:
                        codes, first = np.unique(at, return_index=True)
                        fresh = place[codes] < 0
                        place[codes[fresh]] = n_found + np.arange(np.count_nonzero(fresh))
                        pieces.append(labels.take(rows[first[fresh]]))
                        n_found += len(pieces[-1])
                    if n_found == wanted.size:
                        return

        pool.map(look, self.stretches, stage="look for the names of clusters")
        self.require_found(wanted.size - n_found, wanted.size)
        return combined(join_pieces([pa.chunked_array([each]) for each in pieces], self._name)), place
