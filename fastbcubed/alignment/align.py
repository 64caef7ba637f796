"""Alignment: who is on which side, what the policies make of it, and coverage.

The result has one row per item of either side: first those of the truth in their order, then those
that only the prediction has. Keys stand for clusters; an item that a side lacks has the side's
absent key, and an item that is alone by policy has a key of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.alignment.combination import Combination, Join, combine
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.alignment.side import Rows, Side, require_known_type
from fastbcubed.alignment.weights import CheckedWeights, WeightTable, row_weights
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.part_order import in_one_order
from fastbcubed.errors import AlignmentError, EmptyInputError, first_few
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import key_pair
from fastbcubed.sources.selection import plain

#: How ids may match that do not, and the functions of Arrow that show it.
ALIKE = {
    "without the spaces around them": ("utf8_trim_whitespace",),
    "in lower case": ("utf8_lower",),
    "in lower case, without the spaces around them": ("utf8_trim_whitespace", "utf8_lower"),
}
#: Ids of each side that are looked at for that.
LOOKED_AT = 1 << 20
#: What to do where nothing like that is the cause.
WRITTEN_ALIKE = "Check that the item columns name the same things in the same way."


@dataclass(frozen=True)
class Alignment:
    """The two sides, row by row."""

    truth: Clustering
    prediction: Clustering
    #: equal keys on a side, equal cluster; int64, or int32 if `narrow`; shape (n_rows,), as of all arrays here
    true_keys: NDArray[Any]
    pred_keys: NDArray[Any]
    absent_true: int | None  #: the key of items that the side lacks; None where no item is missing
    absent_pred: int | None
    true_rows: Rows | None  #: row of the clustering, -1 where it lacks the item; None for all as they are
    pred_rows: Rows | None
    weight: NDArray[np.float64] | None
    coverage: Coverage

    def __len__(self) -> int:
        return int(self.true_keys.size)


def align(
    truth: Clustering,
    prediction: Clustering,
    policies: Policies,
    pool: Pool,
    *,
    weight_table: WeightTable | None = None,
    outer: bool = False,
    null_is_absent: bool = False,
    narrow: bool = False,
) -> Alignment:
    """Put two clusterings side by side, by item id or by position; raise for what the policies do not allow.

    Items may have their weights in a table of their own. If `outer`, these serve the mean alone, so that zeros are
    allowed. If `null_is_absent`, a null cluster says "not on that side" (the one-table form). Keys of labels that go by
    position may be `narrow`.
    """
    prediction = in_one_order(truth, prediction)
    both = matched(
        truth, prediction, policies, pool,
        weight_table=weight_table, outer=outer, null_is_absent=null_is_absent, narrow=narrow,
    )  # fmt: skip
    start = _unused_run(both.true_keys, both.pred_keys) if both.needs_special_keys else 0
    return Alignment(truth, prediction, *both.finished(start), *both.rows, both.weight, both.coverage)


def matched(
    truth: Clustering,
    prediction: Clustering,
    policies: Policies,
    pool: Pool,
    *,
    weight_table: WeightTable | None,
    outer: bool,
    null_is_absent: bool,
    join: Join | None = None,
    checked: CheckedWeights | None = None,
    narrow: bool = False,
) -> Combination:
    """Match the rows of two clusterings; raise for what the policies do not allow. Parameters are those of `align`.

    `join` matches the keys of items; weights that have been `checked` with another run are not checked again.
    """
    if policies.noise is not None:
        require_known_type(policies.noise, truth.labels, prediction.labels)
    pair = truth, prediction
    narrow = narrow and _as_they_are(pair, policies)
    true_side, pred_side = (
        Side.of(side, policies, side.labels.keys(pool, narrow=narrow), null_is_absent) for side in pair
    )
    for side in pair:
        if not len(side):
            raise EmptyInputError(f"there are no rows in {side.name}")
    checked = checked or CheckedWeights()
    weigh = partial(row_weights, pair, weight_table, outer=outer, pool=pool, checked=checked)
    both = combine((true_side, pred_side), _items(*pair, pool), weigh, pool, join=join)
    require_common(both.coverage, Facts.of(true_side, truth.items), Facts.of(pred_side, prediction.items))
    both.report_faults()
    return both


def _as_they_are(pair: tuple[Clustering, Clustering], policies: Policies) -> bool:
    """Tell whether rows go by position, and each key stands for a label."""
    by_position = all(side.items is None for side in pair)
    return by_position and policies.noise is None and all(side.labels.null_rows is None for side in pair)


def _items(
    truth: Clustering, prediction: Clustering, pool: Pool
) -> Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]] | None:
    """Return what makes the keys of both sides' items; None where these go by position."""
    true_items, pred_items = truth.items, prediction.items
    if true_items is None:
        if len(truth) != len(prediction):
            raise AlignmentError(
                f"{truth.name} has {len(truth)} labels and {prediction.name} {len(prediction)}. Labels "
                "without item ids are put side by side by position and have to be equally many; pass "
                "tables with an item column to join them by item."
            )
        return None
    if pred_items is None:
        raise AlignmentError("one side has item ids and the other has none; give both sides the same form")
    if true_items is pred_items:
        return lambda: (true_items.keys(pool),) * 2
    return lambda: key_pair(true_items, pred_items, pool)


class Facts(NamedTuple):
    """What a message about a side says: its name, its rows, how many lack a label, and its items, or the first ones."""

    name: str
    n_rows: int
    n_absent: int
    items: Column | None
    n_first: int

    @classmethod
    def of(cls, side: Side, items: Column | None) -> Facts:
        """Return those of a whole side, with its item ids."""
        n_absent = 0 if side.absent is None else side.n_null
        return cls(side.name, len(side), n_absent, items, len(side))


def first_items(items: Column | None, n_rows: int) -> list[Any]:
    """Return the first few items of so many rows, which may have an item several times."""
    if items is None:
        return list(range(min(3, n_rows)))
    _, firsts = np.unique(items.keys(), return_index=True)
    return items.first_of(np.sort(firsts)[:3])


def require_common(coverage: Coverage, truth: Facts, prediction: Facts) -> None:
    """Raise if the two sides have no item in common."""
    for side in (truth, prediction):
        if not side.n_rows:
            raise EmptyInputError(f"there are no rows in {side.name}")
        if side.n_absent == side.n_rows:
            raise EmptyInputError(
                f"all {side.n_rows} clusters of {side.name} are null, so there is nothing to score"
            )
    if not coverage.n_common:
        n = coverage.n_truth_only
        examples = [first_few(first_items(side.items, side.n_first)) for side in (truth, prediction)]
        raise EmptyInputError(
            f"no item of {truth.name} is in {prediction.name}: {n} item{' is' if n == 1 else 's are'} only in the "
            f"first, {coverage.n_prediction_only} only in the second ({examples[0]} against {examples[1]}). "
            + (_would_match(truth.items, prediction.items) or WRITTEN_ALIKE)
        )


def _would_match(a: Column | None, b: Column | None) -> str:
    """Say how ids of text would match that do not, of the first of each side; nothing if they would not."""
    if a is None or b is None or a.kinds != b.kinds or "string" not in a.kinds:
        return ""
    for how, changes in ALIKE.items():
        texts = []
        for column in (a, b):
            parts = [plain(part) for part in column.stretch(0, min(len(column), LOOKED_AT)).parts]
            for change in changes:
                parts = [
                    getattr(pc, change)(part) if pa.types.is_string(part.type) else part for part in parts
                ]
            written = [part.cast(pa.string()) for part in parts]
            texts.append(pc.binary_join_element_wise(*written, "\x1f") if len(written) > 1 else written[0])
        found = np.flatnonzero(pc.is_in(texts[0], value_set=pc.unique(texts[1].combine_chunks())))
        if found.size:
            example = first_few(a.first_of(found[:1]))
            return f"Ids such as {example} would match {how}: write them alike on both sides."
    return ""


def _unused_run(*keys: NDArray[np.int64]) -> int:
    """Return where a run of unused keys begins, one for each row; the key before it is unused, too."""
    return next(start for start in starts_of_runs() if not any(is_used(start, k, k.size) for k in keys))


def starts_of_runs() -> Iterator[int]:
    """Yield where runs of keys may begin, the same each time; any serves whose keys are not in use."""
    generator = np.random.default_rng(0)
    while True:
        yield int(generator.integers(-(2**63), 2**63, dtype=np.int64))


def is_used(start: int, keys: NDArray[np.int64], n_rows: int) -> bool:
    """Tell whether one of so many keys from `start` on, or the one before, is among these."""
    return bool(kernels.sums.find_run(keys, start - 1, n_rows + 1))
