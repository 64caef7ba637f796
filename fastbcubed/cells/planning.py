"""How rows are cut into parts that fit a core's cache, and the records that parts are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime.parts import PART_ROWS, part_bits, part_blocks, sampled_rows

#: A true cluster with more than this share of the rows is heavy (see `find_heavy`).
HEAVY_SHARE = 1 / 256
#: From here on counts may pass 31 bits, and the wide records are used.
WIDE = 1 << 31
#: Where cells go: to what `bits` bits of their pred key after the first `skip` say, or evenly to all if items can
#: be without pred key and it is the one that stands for none. A plain tuple, which Numba knows at once.
Targets = tuple[int, int, bool, int]


def _records(code: str, *, counted: bool = False) -> dict[str, np.dtype]:
    """Return the record types with this integer type for counts and codes; see `Plan`.

    Rows are as long as the cells that are written over them; `counted` ones say how many rows they stand for.
    """
    same = [("true", "i8"), ("pred", "i8")]
    cell = [("cluster", code), ("n", code), ("pred", "i8")]
    x, pad = [("x", "f8")], [("pad", "i8")]
    more = [("n", "i8")] if counted else pad if code == "i8" else []
    short = pad if counted and code == "i4" else []
    tail = [("weight", "f8"), ("fn", "f8"), ("true", code), ("n", code)]
    return {
        "row": np.dtype([*same, *more]),
        "cell": np.dtype([*cell, *short]),
        "weighted row": np.dtype([*same, *x, *more]),
        "weighted cell": np.dtype([*cell, *x, *short]),
        "numbered row": np.dtype([*same, ("x", "i8")]),
        "arrived": np.dtype([("pred", "i8"), *tail]),
        "final": np.dtype([("fp", "f8"), *tail]),
    }


NARROW_RECORDS, COUNTED_RECORDS = _records("i4"), _records("i4", counted=True)
WIDE_RECORDS, WIDE_COUNTED_RECORDS = _records("i8"), _records("i8", counted=True)


@dataclass(frozen=True)
class Plan:
    """How the rows of one input are cut into parts; a function of the keys alone."""

    n_rows: int
    bits: int
    heavy: NDArray[np.int64]  #: mixed true keys of heavy clusters, sorted; the absent one is among them
    absent_true: NDArray[np.int64]  #: (0,) or (1,): mixed key for "not in the truth"
    absent_pred: NDArray[np.int64]  #: likewise for the prediction
    records: dict[str, np.dtype] = field(repr=False)
    counted: bool = False  #: whether a row may stand for several, and says for how many

    @classmethod
    def of(
        cls,
        n_rows: int,
        bits: int,
        heavy: NDArray[np.int64],
        absent_true: int | None,
        absent_pred: int | None,
        *,
        wide: bool,
        counted: bool = False,
    ) -> Plan:
        """Plan with these heavy keys, and what stands for "not on this side", None where no row lacks it."""
        no_true, no_pred = (mixed_keys([] if key is None else [key]) for key in (absent_true, absent_pred))
        heavy = np.union1d(mixed_keys(heavy), no_true)
        records = [[NARROW_RECORDS, COUNTED_RECORDS], [WIDE_RECORDS, WIDE_COUNTED_RECORDS]][wide][counted]
        return cls(n_rows, bits, heavy, no_true, no_pred, records, counted)

    @property
    def code(self) -> str:
        """The type of counts and codes."""
        return str(self.records["cell"]["n"].str)

    def row_type(self, weighted: bool) -> np.dtype:
        """Return the type of rows, with or without weights."""
        return self.records["weighted row" if weighted else "row"]

    @property
    def n_parts(self) -> int:
        """Parts in all: by true key, and by pred key for the rows of heavy clusters."""
        return (1 << self.bits) * (2 if self.heavy.size else 1)

    def targets(self, skip: int, bits: int) -> Targets:
        """Return where these bits of their pred key send cells."""
        lacking = self.absent_pred.size > 0
        return skip, bits, lacking, int(self.absent_pred[0]) if lacking else 0

    def tasks(self) -> list[tuple[int, int]]:
        """Cut the parts into ranges, those of heavy clusters in ranges of their own."""
        regular = part_blocks(1 << self.bits)
        if not self.heavy.size:
            return regular
        return regular + [(a + (1 << self.bits), b + (1 << self.bits)) for a, b in regular]

    def is_heavy(self, part: int) -> bool:
        """Tell whether this part holds rows of heavy clusters."""
        return part >= 1 << self.bits


def plan_parts(
    true_keys: Sequence[NDArray[np.int64]],
    absent_true: int | None = None,
    absent_pred: int | None = None,
    *,
    wide: bool | None = None,
    stands_for: int | None = None,
    part_rows: int = PART_ROWS,
) -> Plan:
    """Choose the number of parts, and the true clusters that are too large for one.

    Keys may come in several blocks. Where rows stand for several, `stands_for` is how many they all stand for.
    """
    n = sum(block.size for block in true_keys)
    bits = part_bits(n, part_rows)
    heavy = find_heavy(true_keys) if bits else np.empty(0, np.int64)
    wide = (stands_for or n) >= WIDE if wide is None else wide
    return Plan.of(n, bits, heavy, absent_true, absent_pred, wide=wide, counted=stands_for is not None)


def find_heavy(keys: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the keys with a large share of the rows of all blocks, judged by a sample spread over them.

    Rows of such a cluster are partitioned by their other key, or one part would hold them all.
    """
    ends = np.cumsum([block.size for block in keys])
    rows = np.sort(sampled_rows(int(ends[-1])).astype(np.int64))
    shares = np.split(rows, np.searchsorted(rows, ends[:-1]))
    chosen = [
        block[share - end] for block, share, end in zip(keys, shares, ends, strict=True)
    ]  # from its end
    return find_heavy_in_sample(np.concatenate(chosen))


def find_heavy_in_sample(sample: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys with a large share of a sample, which stands for all rows."""
    return frequent_keys(sample, max(1, sample.size * HEAVY_SHARE))[0]


def frequent_keys(sample: NDArray[np.int64], most: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys that come more than `most` times in a sample, ascending, and how many times each does."""
    groups = (sample.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(52)  # 4,096 of them
    candidates = sample[np.bincount(groups.view(np.int64))[groups] > most]  # few, if any, have to be sorted
    found, counts = np.unique(candidates, return_counts=True)
    return found[counts > most], counts[counts > most]


def mixed_keys(keys: Iterable[int]) -> NDArray[np.int64]:
    """Mix a few keys, as kernels do."""
    return np.array([kernels.partition.mix(np.int64(key)) for key in keys], np.int64)
