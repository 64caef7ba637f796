"""In-memory alignment of the rows of two clusterings by item: sides, weights, policies and coverage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.apply_policies import Combination, Join, combine, starts_of_runs
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.align.sides import (
    CheckedWeights,
    Matched,
    Rows,
    Side,
    WeightTable,
    require_known_type,
    row_weights,
)
from fastbcubed.errors import AlignmentError, EmptyInputError, IdTypeError, first_few
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import combined, from_numpy, id_kind, plain, storage_of
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column, key_pair
from fastbcubed.inputs.pair import in_one_order
from fastbcubed.inputs.spellings import SEPARATOR, way_alike
from fastbcubed.runtime.threads import Pool

#: Number of ids of each side that are examined for conversions by which they would match.
LOOKED_AT = 1 << 18
#: Advice if no such conversion is found.
WRITTEN_ALIKE = "Check that both item columns write the same ids in the same way."


@dataclass(frozen=True)
class Alignment:
    """The two sides row by row, after policies are applied."""

    truth: Clustering
    prediction: Clustering
    #: keys, equal for equal clusters; int64, or int32 if `narrow`; shape (n_rows,), like all arrays here
    true_keys: NDArray[Any]
    pred_keys: NDArray[Any]
    absent_true: int | None  #: the key of items that the side lacks; None if no item is missing
    absent_pred: int | None
    true_rows: Rows | None  #: row in the clustering, -1 if it lacks the item; None if rows are unchanged
    pred_rows: Rows | None
    weight: NDArray[np.float64] | None
    coverage: Coverage
    #: the first key that policies made, and an upper bound on their number; None if they made none
    made_keys: tuple[int, int] | None = None

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
    narrow: bool = False,
) -> Alignment:
    """Align two clusterings by item id or by position; raise an error for anything that the policies forbid.

    Weights of items may come from a separate table. If `outer`, weights apply to the mean only, so zeros are allowed.
    Keys of labels matched by position may be `narrow`, i.e. int32.
    """
    if truth.items is not None:
        prediction = in_one_order(truth, prediction)
    both = matched(
        truth, prediction, policies, pool,
        weight_table=weight_table, outer=outer, narrow=narrow,
    )  # fmt: skip
    keys = both.true_keys, both.pred_keys
    if both.is_plain:
        return Alignment(truth, prediction, *keys, None, None, *both.rows, both.weight, both.coverage)
    start, made = 0, None
    if both.needs_special_keys:
        start = next(start for start in starts_of_runs() if not any(is_used(start, k, k.size) for k in keys))
        made = start - 1, keys[0].size + 1
    return Alignment(truth, prediction, *both.finished(start), *both.rows, both.weight, both.coverage, made)


def matched(
    truth: Clustering,
    prediction: Clustering,
    policies: Policies,
    pool: Pool,
    *,
    weight_table: WeightTable | None,
    outer: bool,
    join: Join | None = None,
    checked: CheckedWeights | None = None,
    narrow: bool = False,
) -> Combination:
    """Match the rows of two clusterings; parameters are those of `align`.

    `join` matches item keys; weights in `checked` were checked with another run, and are not checked again.
    """
    if policies.noise is not None:
        require_known_type(policies, truth.labels, prediction.labels)
    pair = truth, prediction
    nulls = [side.labels.null_rows for side in pair]
    narrow = narrow and policies.noise is None  # singletons of the noise label need further keys
    narrow = narrow and all(side.items is None for side in pair) and all(mask is None for mask in nulls)
    keys = [side.labels.keys(pool, narrow=narrow) for side in pair]
    true_side, pred_side = (
        Side.of(side, policies.of_side(k), keys[k], nulls[k]) for k, side in enumerate(pair)
    )
    nothing = found_nothing(prediction, policies)
    for side in (true_side, pred_side)[: 1 if nothing else 2]:
        if not side.labels.size:
            raise EmptyInputError(f"there are no rows in {side.name}")
    weigh = partial(row_weights, pair, weight_table, outer=outer, pool=pool, checked=checked)
    items = _items(true_side, pred_side, truth.items, prediction.items, pool)
    both = combine((true_side, pred_side), items, weigh, pool, join=join)
    if not both.coverage.n_common and not nothing:
        require_common(both.coverage, Facts.of(true_side, truth.items), Facts.of(pred_side, prediction.items))
    if not both.is_plain:
        both.report_faults()
    return both


def found_nothing(prediction: Clustering, policies: Policies) -> bool:
    """Return whether the prediction has no links at all, so that every item of the truth is a singleton."""
    return policies.truth == "singleton" and prediction.omits_singletons and not len(prediction)


def _items(
    true_side: Side, pred_side: Side, truth: Column | None, prediction: Column | None, pool: Pool
) -> Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]] | None:
    """Return a function that makes the keys of both sides' items; None if rows match by position."""
    if truth is None:
        if len(true_side) != len(pred_side):
            raise AlignmentError(
                f"{true_side.name} has {len(true_side)} labels and {pred_side.name} {len(pred_side)}. Labels "
                "without item ids are matched by position, so both sides must have the same number; pass "
                "tables with an item column to join them by item."
            )
        return None
    if prediction is None:
        raise AlignmentError("only one side has item ids; give both sides item ids, or neither")
    if truth is prediction:
        return lambda: (truth.keys(pool),) * 2
    return lambda: key_pair(truth, prediction, pool)


class Facts(NamedTuple):
    """Facts about a side for messages: name, number of rows, number without a label, and all or some item ids."""

    name: str
    n_rows: int
    n_absent: int
    items: Column | None
    n_first: int

    @classmethod
    def of(cls, side: Side, items: Column | None) -> Facts:
        """Return the facts about a whole side, with its item ids."""
        n_absent = 0 if side.absent is None else side.n_null
        return cls(side.name, len(side), n_absent, items, len(side))


def first_items(items: Column | None, n_rows: int) -> list[Any]:
    """Return the first few distinct items of `n_rows` rows."""
    if items is None:
        return list(range(min(3, n_rows)))
    _, firsts = np.unique(items.keys(), return_index=True)
    return items.first_of(np.sort(firsts)[:3])


def require_common(coverage: Coverage, truth: Facts, prediction: Facts) -> None:
    """Raise AlignmentError if the two sides have no item in common."""
    for side in (truth, prediction):
        if not side.n_rows:
            raise EmptyInputError(f"there are no rows in {side.name}")
        if side.n_absent == side.n_rows:
            raise EmptyInputError(
                f"all {side.n_rows} clusters of {side.name} are null, so there is nothing to score"
            )
    if not coverage.n_common:
        n = coverage.n_truth_only
        fault = (
            f"no item of {truth.name} is in {prediction.name}: {n} item{' is' if n == 1 else 's are'} only in the "
            f"first, and {coverage.n_prediction_only} are only in the second"
        )
        absent = [f"{side.n_absent} of {side.name}" for side in (truth, prediction) if side.n_absent]
        if absent:  # the examples may be items without a label
            raise EmptyInputError(
                f"{fault}. Items whose cluster is null were left out ({' and '.join(absent)}): fill in their "
                "clusters, or check that the remaining ids are written alike on both sides"
            )
        examples = [first_few(first_items(side.items, side.n_first)) for side in (truth, prediction)]
        hint = _matching_hint(truth.items, prediction.items) or WRITTEN_ALIKE
        raise EmptyInputError(f"{fault} ({examples[0]} against {examples[1]}). {hint}")


def _matching_hint(a: Column | None, b: Column | None) -> str:
    """Return the conversion by which unmatched string ids would match, judging by the first ones; empty if none."""
    if a is None or b is None or a.kinds != b.kinds or "string" not in a.kinds:
        return ""
    texts = []
    for column in (a, b):
        parts = [
            plain(part).cast(pa.string()) for part in column.stretch(0, min(len(column), LOOKED_AT)).parts
        ]
        texts.append(pc.binary_join_element_wise(*parts, SEPARATOR) if len(parts) > 1 else parts[0])
    found = way_alike(*texts)
    if found is None:
        return ""
    how, row = found
    return f"Ids such as {first_few(a.first_of(np.array([row])))} would match {how}: write them alike on both sides."


def is_used(start: int, keys: NDArray[np.int64], n_rows: int) -> bool:
    """Return whether a key in start - 1 .. start + n_rows is in use."""
    return bool(kernels.sums.find_run(keys, start - 1, n_rows + 1))


#: Types that ids of different width are converted to, by kind; the first that fits is used.
WIDEST = {
    "integer": (pa.int64(), pa.uint64(), pa.large_string()),
    "string": (pa.large_string(),),
    "binary": (pa.large_binary(),),
}


def rows_or_null(table: pa.Table, rows: Rows | None) -> pa.Table:
    """Return the given rows of a table, nulls for row -1; all rows if `rows` is None."""
    return table if rows is None else table.take(from_numpy(rows, rows < 0))


def either_id(a: Column, a_rows: Rows, b: Column, b_rows: Rows) -> pa.Array:
    """Return the id from `a` if it has the row, otherwise from `b`; the types may differ in width."""
    lacking = a_rows < 0
    if not lacking.any():
        return a.take(a_rows)
    first, second = in_common(a.take(a_rows[~lacking]), b.take(b_rows[lacking]))
    at = np.empty(lacking.size, np.int64)
    at[~lacking] = np.arange(len(first))
    at[lacking] = len(first) + np.arange(len(second))
    return pa.concat_arrays([first, second]).take(from_numpy(at))


def in_common(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two arrays of ids in a common type; composite ids are converted part by part, and named as in `a`."""
    if pa.types.is_struct(a.type):
        parts = [in_common(x, y) for x, y in zip(a.flatten(), b.flatten(), strict=True)]
        names = [field.name for field in a.type.fields]
        first, second = (pa.StructArray.from_arrays(own, names) for own in zip(*parts, strict=True))
        return first, second
    a, b = (x.dictionary_decode() if pa.types.is_dictionary(x.type) else x for x in (a, b))
    if a.type == b.type:
        return a, b
    a, b = (combined(storage_of(pa.chunked_array([x]))) for x in (a, b))
    for kind in WIDEST[id_kind(a.type, "")]:
        with suppress(pa.ArrowInvalid):
            return a.cast(kind), b.cast(kind)
    raise IdTypeError(
        f"no common type can hold the ids of both sides, which are {a.type} and {b.type}. Cast one of them"
    )


def aligned_keys(keys: list[NDArray[np.int64]], matched: Matched) -> NDArray[np.int64]:
    """Return the item key of each aligned row."""
    true_rows, pred_rows = matched
    if true_rows is None:
        return keys[0]
    if pred_rows is None or (true_rows >= 0).all():
        return keys[0][true_rows]
    return np.where(true_rows >= 0, np.append(keys[0], 0)[true_rows], np.append(keys[1], 0)[pred_rows])
