"""Pairs of sources: numbers of right, wrong and missing links within each source and between each two.

Pairs of items are counted from the number of items of each source in a cell or cluster; pairs are never enumerated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.attributes import readable
from fastbcubed.errors import SliceError, quoted
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.number_formats import label
from fastbcubed.results.items import Kept
from fastbcubed.results.slice_bins import Bins
from fastbcubed.results.slices import beside, slice_codes
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import true_or_false
from fastbcubed.types import Counts

#: Maximum number of pairs of sources that are listed.
MOST = 1_000_000
#: Fewer items than this have few enough pairs for int64.
FEW = 1 << 31
#: Number of bits of a count that are multiplied at a time if int64 would overflow.
LOW = 20


def source_pairs(self: Any, by: str | Bins, *, attributes: Any = None, by_slice: bool = False) -> Table:
    """Return the quality of links within each source and between every two sources, or pair scores by slice.

    Parameters
    ----------
    by : str or Bins
        The attribute with the source of an item, such as a part of a composite id, named as in `slices`.
    attributes : table, optional
        Attributes, matched by item or row by row, as for `slices`.
    by_slice : bool
        Whether to list slices, in two rows each. Pairs "within" a slice have both items in the slice; pairs "touching"
        a slice have at least one item in the slice, for example an item wrongly joined to another slice.

    Returns
    -------
    Table
        The columns pair ("within a", "a × b"), source and other_source; pair_tp, pair_fp and pair_fn (the numbers of
        pairs of items from source and other_source that are together on both sides, only in the prediction, and only in
        the truth); pair_precision, pair_recall and pair_f1. Pairs are counted without weights. With `by_slice`, the
        columns begin with the slice and `pairs` ("within" or "touching"). Pairs within slices and between any two
        slices add up to all pairs; pairs that touch slices do not, because a pair between two slices touches both.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> source = {"item": [1, 2, 3, 4], "source": ["crm", "crm", "web", "web"]}
    >>> ev = fb.evaluate({1: 1, 2: 1, 3: 1, 4: 2}, {1: 1, 2: 1, 3: 2, 4: 2}, attributes=source)
    >>> ev.source_pairs("source").select(["pair", "pair_tp", "pair_fp", "pair_fn"]).to_pylist()[1]
    {'pair': 'crm × web', 'pair_tp': 0, 'pair_fp': 0, 'pair_fn': 2}
    >>> ev.source_pairs("source", by_slice=True).select(["source", "pairs", "pair_precision", "pair_recall"])
    source  pairs     pair_precision  pair_recall
    crm     within                 1            1
    crm     touching               1      0.33333
    web     within                 0            1
    web     touching               0            0
    <BLANKLINE>
    4 rows
    """
    return list_source_pairs(self.kept, by, attributes, true_or_false(by_slice, "by_slice"))


def list_source_pairs(kept: Kept, by: Any, attributes: Any, by_slice: bool = False) -> Table:
    """Implement `Evaluation.source_pairs`."""
    if not isinstance(by, str | Bins) or not by:
        raise SliceError(f"sources must be given by one attribute, or bins of one, not by {quoted(by)}")
    items, contingency = kept.require_items(), kept.cells
    metric, how = METRICS["pair_f1"], {"outside": contingency.outside, "overlapping": contingency.overlapping}
    if reason := metric.undefined(weighted=False, weighting="pointwise", **how):
        raise metric.not_defined(reason)
    cut = slice_codes(by, contingency, items, kept.attributes_or(attributes))
    (names,) = cut.values.values()
    n = len(names)
    if n * (n + 1) // 2 > MOST:
        raise SliceError(
            f"{by!s} has {n:,} values, which make {n * (n + 1) // 2:,} pairs of sources, more than the "
            f"limit of {MOST:,}; choose an attribute with fewer values, or bins of it"
        )
    cell = kept.rows.cell
    here = cell >= 0
    units, sources, counts = _grouped(cell[here], cut.codes[here], np.ones(int(here.sum()), np.int64), n)
    few = contingency.n_items < FEW
    together = {"tp": _pairs(units, sources, counts, n, few)}
    for side in ("true", "pred"):
        codes = np.ascontiguousarray(getattr(contingency, side)).astype(np.int64)[units]
        together[side] = _pairs(*_grouped(codes, sources, counts, n), n, few)
    return _listed(names, together, str(by) if by_slice else None)


def _grouped(units: Counts, sources: Counts, counts: Counts, n: int) -> tuple[Counts, Counts, Counts]:
    """Return counts summed by unit (a cell or cluster) and source, sorted by both. Shapes: (n_groups,) each."""
    keys = units * n + sources
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[begins] // n, keys[begins] % n, np.add.reduceat(counts[order], begins)


def _pairs(units: Counts, sources: Counts, counts: Counts, n: int, few: bool) -> NDArray[Any]:
    """Return the number of pairs of items within units, by the sources of the two items. Shape (n, n), upper triangle.

    Groups of the same unit are adjacent; those at a distance of 0, 1, ... are multiplied together at once.
    """
    half = np.where(counts % 2 == 0, counts // 2, counts)
    rest = np.where(counts % 2 == 0, counts - 1, (counts - 1) // 2)
    total = _added(np.zeros((n, n), np.int64 if few else object), sources, sources, half, rest, few)
    for distance in range(1, n):
        at = np.flatnonzero(units[distance:] == units[: units.size - distance])
        if not at.size:
            break
        total = _added(total, sources[at], sources[at + distance], counts[at], counts[at + distance], few)
    return total


def _added(
    total: NDArray[Any], first: Counts, second: Counts, a: Counts, b: Counts, few: bool
) -> NDArray[Any]:
    """Return the total with products a * b added at (first, second), without overflow."""
    if few:
        np.add.at(total, (first, second), a * b)
        return total
    for shift, part in ((0, b & ((1 << LOW) - 1)), (LOW, b >> LOW)):
        added = np.zeros(total.shape, np.int64)
        np.add.at(added, (first, second), a * part)
        total = total + added.astype(object) * (1 << shift)
    return total


def _listed(names: pa.Array, together: dict[str, NDArray[Any]], by: str | None = None) -> Table:
    names = readable(names)
    if by is not None:  # two rows per slice: pairs within it, and pairs that touch it
        n, both = len(names), together.values()
        tp, true, pred = (
            np.stack([x.diagonal(), x.sum(0) + x.sum(1) - x.diagonal()], axis=1).ravel() for x in both
        )
        own = {"pairs": from_texts(["within", "touching"] * n)} | _figures(tp, true, pred)
        return Table(table_of(beside({by: names.take(pa.array(np.repeat(np.arange(n), 2)))}, own)))
    first, second = np.triu_indices(len(names))
    tp, true, pred = (together[name][first, second] for name in ("tp", "true", "pred"))
    texts = [label(name) for name in names.to_pylist()]
    pairs = [
        f"within {texts[a]}" if a == b else f"{texts[a]} × {texts[b]}"
        for a, b in zip(first, second, strict=True)
    ]
    columns: dict[str, Any] = {"pair": from_texts(pairs)}
    columns |= {"source": names.take(pa.array(first)), "other_source": names.take(pa.array(second))}
    return Table(pa.table(columns | _figures(tp, true, pred)))


def _figures(tp: NDArray[Any], true: NDArray[Any], pred: NDArray[Any]) -> dict[str, pa.Array]:
    """Return the counts of pairs, and precision, recall and F1 of pairs, as columns."""
    counts = {"pair_tp": tp, "pair_fp": pred - tp, "pair_fn": true - tp}
    shares = {"precision": (tp, pred), "recall": (tp, true), "f1": (2 * tp, true + pred)}
    return {name: _whole(values) for name, values in counts.items()} | {
        f"pair_{name}": pa.array(_share(*parts)) for name, parts in shares.items()
    }


def _share(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """Return part / whole, or 1 if there are no pairs, as scores of pairs do."""
    return np.where(whole == 0, 1.0, part / np.where(whole == 0, 1, whole)).astype(np.float64)


def _whole(values: NDArray[Any]) -> pa.Array:
    return pa.array(values) if values.dtype != object else pa.array(values.tolist(), pa.decimal128(38, 0))
