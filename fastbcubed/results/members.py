"""Members of opened clusters, grouped by the clusters of the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.attributes import readable
from fastbcubed.align.policies import Coverage
from fastbcubed.cells.contingency import SIDES, Contingency, ScoredRows, side_of
from fastbcubed.cells.excerpts import CodesBySide, chosen_of
from fastbcubed.errors import IdTypeError, Message, OptionError, SliceError, Word, arg, first_few, quoted
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import chunked, from_numpy, table_of, to_numpy
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.overlap.item_sets import signatures
from fastbcubed.results.cluster_outcomes import OUTCOMES
from fastbcubed.results.cluster_ranges import losses_of_cover
from fastbcubed.results.clusters import item_columns, one_item
from fastbcubed.results.evaluation_text import KINDS, Cluster, Item
from fastbcubed.results.items import Items, Kept, TableItems, without_noise
from fastbcubed.results.slices import attribute_values
from fastbcubed.results.table import Table, listed, order_of
from fastbcubed.runtime.arguments import as_several, is_one_of, limit_of
from fastbcubed.runtime.suggestions import most_similar
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import RowNumbers

#: Bytes per row of all rows while items are listed: whether it is listed, and a score.
ROW_BYTES = 24
#: Advice on a listing that needs less memory.
LISTED_ALONE = Message(f". The items of one cluster, as with {arg('pred_cluster', ...)}, need less")

#: Function that opens a cluster, given its side, code and label.
OpenOne = Callable[[str, int, Any], Cluster]


def _members(kept: Kept, names: Sequence[str], rows: RowNumbers) -> list[dict[str, Any]]:
    items = kept.require_items()
    ids = items.ids(rows).to_pylist()
    values = [readable(attribute_values(n, items, kept.attributes, rows)).to_pylist() for n in names]
    weights = [None if w != w else w for w in kept.rows.weights_of(rows).tolist()]
    return [
        {"item": each, "weight": weight, "attributes": dict(zip(names, own, strict=True))}
        for each, weight, *own in zip(ids, weights, *values, strict=True)
    ]


def deal(sizes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return how many of `n` members each part may show: one each in turn, until they are dealt or all are shown.

    Examples
    --------
    >>> deal(np.array([50, 5, 1]), 20).tolist(), deal(np.array([3, 3, 3]), 2).tolist()
    ([14, 5, 1], [1, 1, 0])
    """
    low, high = 0, int(sizes.max(initial=0))  # bisection for the number of complete rounds
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(sizes, middle).sum() <= n else (low, middle - 1)
    dealt = np.minimum(sizes, low)
    more = np.flatnonzero(sizes > low)[: n - int(dealt.sum())]
    dealt[more] += 1
    return dealt


#: Columns of parts that sum to those of the cluster.
SUMS = ("weight", *LOSSES)
#: Number of attributes shown by default, and number of rows searched for a label similar to an unknown one.
SHOWN, LOOKED_AT = 6, 10_000


def _outcome(table: Contingency, side: str, cells: NDArray[np.int64], foreign: bool) -> str | None:
    """Return the outcome of a cluster from its cells and from whether it has foreign items; None if it has no cells."""
    if not cells.size:
        return None
    in_parts, with_others = foreign or bool(table.fn[cells].any()), bool(table.fp[cells].any())
    return OUTCOMES[side][in_parts + 2 * with_others]


def open_cluster(kept: Kept, side: str, label: Any, columns: Any, members: int) -> Cluster:
    """Implement `Evaluation.cluster`."""
    members = limit_of(members, "members", "")
    side, names = side_of(side), chosen_columns(kept, columns)
    rows = rows_of_cluster(kept, side, label)
    opened, own = Opened.of(kept, side, rows), plain_id(label)
    if not kept.cells.overlapping:
        own = kept.require_items().labels(side, rows[:1])[0].as_py()
    return Cluster(
        {
            "side": side,
            "cluster": own,
            **opened.figures(kept, plain_id(label)),
            **opened.shown(kept, members, names),
        },
        Table(opened.parts),
        lambda: Table(opened.table(kept, names)),
    )


def rows_of_cluster(kept: Kept, side: str, label: Any) -> RowNumbers:
    """Return the rows in a cluster; raise if the label is unknown, or a noise label, whose items are singletons."""
    items, label = kept.require_items(), plain_id(label)
    rows = items.rows_of_cluster(side, label)
    if not rows.size:
        _refuse_unknown(items, side, label)
    noise = kept.policies.noise_of(side)
    if noise is not None and label == plain_id(noise):
        raise SliceError(
            f"{first_few([label])} is the noise label: each of its {rows.size:,} items is a singleton. Open "
            "one of them with item()"
        )
    return rows


def rows_in_clusters(kept: Kept, true_cluster: Any, pred_cluster: Any) -> NDArray[np.bool_]:
    """Return the mask of rows that are scored and in these clusters; None means any cluster. Shape (n_rows,)."""
    here = kept.rows.cell >= 0
    for side, label in (("true", true_cluster), ("pred", pred_cluster)):
        if label is not None:
            of_cluster = np.zeros_like(here)
            of_cluster[rows_of_cluster(kept, side, label)] = True
            here &= of_cluster
    return here


def plain_id(label: Any) -> Any:
    """Return an id as a plain Python value; a composite id becomes a tuple."""
    label = label.as_py() if isinstance(label, pa.Scalar) else label
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, Mapping):
        return tuple(label.values())
    return tuple(label) if isinstance(label, list) else label


def _refuse_unknown(items: Items, side: str, label: Any) -> NoReturn:
    """Raise SliceError for an unknown label, suggesting labels that may be meant."""
    other = SIDES[side == "true"]
    try:
        elsewhere = items.rows_of_cluster(other, label).size > 0
    except IdTypeError:
        elsewhere = False
    hint = f"It is a {KINDS[other]} cluster: " + f'open it as "{other}"' if elsewhere else None
    known = items.labels(side, np.arange(min(len(items), LOOKED_AT))).drop_null()
    if pa.types.is_large_list(known.type):
        known = pc.list_flatten(known)
    labels = {str(plain_id(each)): plain_id(each) for each in known.to_pylist()}
    written = label if isinstance(label, str) else quoted(label)
    padded = [name for name in labels if name.lstrip("0") == written.lstrip("0")]  # such as 1 for "001"
    if hint is None and (close := padded[:1] or most_similar(written, labels)):
        hint = f"Did you mean {first_few(labels[name] for name in close)}?"
    if hint is None:
        hint = f"The first ones are {first_few(list(labels.values())[:4])}"
    raise SliceError(f"there is no {Word(f'{KINDS[side]} cluster')} {first_few([label])}. {hint}")


def chosen_columns(kept: Kept, columns: Any) -> list[str]:
    """Return the names of requested attributes without repetition, or of the first few if `columns` is None."""
    if columns is not None:
        names = as_several(columns)
        if strange := [name for name in names if not isinstance(name, str)]:
            raise OptionError(f"columns must be names of attributes, not {first_few(strange)}")
        for name in names:
            attribute_values(name, kept.require_items(), kept.attributes, np.empty(0, np.int64))
        return list(dict.fromkeys(names))
    sides = kept.require_items().attribute_sides()
    extra = () if kept.attributes is None else kept.attributes.names
    every = [(name, f"{side}.{name}") for side, names in sides.items() for name in names]
    counts = [name for name, _ in every]
    names = [name if counts.count(name) == 1 and name not in extra else home for name, home in every]
    shown = [name for name, (_, home) in zip(names, every, strict=True) if home not in kept.left_out]
    shown += [name for name in extra if f"attributes.{name}" not in kept.left_out]
    return shown[:SHOWN]


def with_attributes(table: pa.Table, kept: Kept, names: Sequence[str], rows: RowNumbers, at: int) -> pa.Table:
    """Return a table with attributes of these rows inserted as columns; names that exist become attribute.NAME."""
    for k, name in enumerate(names):
        values = attribute_values(name, kept.require_items(), kept.attributes, rows)
        known = name if name not in table.column_names else f"attribute.{name}"
        table = table.add_column(at + k, known, values)
    return table


@dataclass(frozen=True, eq=False)
class Opened:
    """A cluster: its scored rows, grouped by the clusters of the other side, largest first, and its other rows."""

    side: str
    rows: RowNumbers  #: scored rows, group by group
    bounds: NDArray[np.int64]  #: start of each group in `rows`, and the end of the last
    parts: pa.Table
    alone: RowNumbers  #: rows that the other side lacks
    #: cells of the cluster; unless clusters overlap, one per group, in the same order
    cells: NDArray[np.int64]

    @classmethod
    def of(cls, kept: Kept, side: str, rows: RowNumbers) -> Opened:
        """Group the rows of a cluster by the clusters of the other side."""
        table, other = kept.cells, SIDES[side == "true"]
        cell = kept.rows.cell[rows]
        scored, alone = rows[cell >= 0], rows[cell < 0]
        cells, of_row = np.unique(cell[cell >= 0], return_inverse=True)
        part, n_parts = np.arange(cells.size), cells.size  # partitions: two clusters share a single cell
        if kept.cover is not None:
            sets = kept.cover.members(other).take(cells)
            with Pool(1) as pool:
                kinds, part = np.unique(signatures(sets, pool).codes, return_inverse=True)
            n_parts = kinds.size
        by_part = np.argsort(part[of_row], kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(part[of_row], minlength=n_parts)))
        firsts = scored[by_part][bounds[:-1]]
        columns = {"label": _labels(kept, other, firsts), **_sums(table, other, cells, part, n_parts)}
        parts = pa.table({name: from_numpy(v) if name != "label" else v for name, v in columns.items()})
        order = _order_of_parts(parts, kept.require_items(), firsts)
        sizes = np.diff(bounds)[order]
        starts = np.append(0, np.cumsum(sizes))
        moved = np.repeat(bounds[:-1][order] - starts[:-1], sizes) + np.arange(scored.size)
        names = [f"{other}_cluster", *parts.column_names[1:]]
        parts = parts.take(from_numpy(order)).rename_columns(names)
        cells = cells if table.overlapping else cells[order]
        return cls(side, scored[by_part][moved], starts, parts, alone, cells)

    @property
    def other(self) -> str:
        """The other side."""
        return SIDES[self.side == "true"]

    def figures(self, kept: Kept, label: Any) -> dict[str, Any]:
        """Return the figures of the cluster: n_items, weight, n_parts, outcome and losses."""
        parts = self.parts
        sums = {name: float(np.sum(parts[name].to_numpy())) for name in parts.column_names if name in SUMS}
        found = {"n_items": int(self.rows.size), "weight": sums["weight"], "n_parts": parts.num_rows}
        if (cover := kept.cover) is not None:  # a group has a set of clusters on the other side
            met = cover.members(self.other).take(self.cells).codes
            found["n_parts"] = int(np.unique(met).size)
            labels = kept.cluster_labels(self.side, np.arange(cover.n_codes[self.side]))
            codes = as_column(labels, f"{self.side}_cluster").find(label)
            losses = losses_of_cover(cover, self.side)
            sums |= {name: float(np.sum(lost[codes])) for name, lost in losses.items()}
        else:
            foreign = self.side == "pred" and kept.cells.outside and self.alone.size > 0
            found["outcome"] = _outcome(kept.cells, self.side, self.cells, foreign)
        found |= {name: sums[name] for name in LOSSES}
        return found | {"weighted": kept.cells.weighted, "overlapping": kept.cells.overlapping}

    def shown(self, kept: Kept, members: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the parts with up to `members` members in total, heaviest first, and the one-sided items."""
        sizes = np.append(np.diff(self.bounds), self.alone.size)
        dealt = deal(sizes, members)
        there = np.flatnonzero(dealt)
        every = np.concatenate([self.rows, self.alone])
        bounds = np.append(self.bounds, self.bounds[-1] + sizes[-1])
        rows = _first(kept, [every[bounds[k] : bounds[k + 1]] for k in there], dealt[there].tolist())
        found = iter(_members(kept, names, rows))
        n_shown = int(np.count_nonzero(dealt[:-1]))
        parts = [
            {**part, "members": list(islice(found, n))}
            for part, n in zip(self.parts.slice(0, n_shown).to_pylist(), dealt.tolist(), strict=False)
        ]
        fate = kept.policies.prediction if self.side == "pred" else kept.policies.truth
        alone = {"n_items": self.alone.size, "policy": fate, "members": list(found)}
        return {"columns": list(names), "parts": parts, "one_sided": alone}

    def table(self, kept: Kept, names: Sequence[str]) -> pa.Table:
        """Return all members, part by part, heaviest first: item, part, weight, whether scored, attributes."""
        items, rows = kept.require_items(), np.concatenate([self.rows, self.alone])
        n_parts = self.bounds.size - 1
        part = np.append(
            np.repeat(np.arange(n_parts), np.diff(self.bounds)), np.full(self.alone.size, n_parts)
        )
        weight = kept.rows.weight[rows]
        order = to_numpy(order_of([part, -weight], [items.ids(rows)]))
        rows, part = rows[order], part[order]
        labels = self.parts[0].take(from_numpy(part, part == n_parts))
        columns = {"item": items.ids(rows), f"{self.other}_cluster": labels, "scored": part < n_parts}
        table = table_of({**columns, "weight": from_numpy(weight[order], np.isnan(weight[order]))})
        return with_attributes(table, kept, names, rows, 2)


def _sums(
    table: Contingency, other: str, cells: NDArray[np.int64], part: NDArray[np.int64], n_parts: int
) -> dict[str, NDArray[Any]]:
    """Return n_items and weight of each part and, unless clusters overlap, size of the other cluster and losses."""
    weight, own = table.weight[cells], table.n[cells]
    tp = own.astype(np.float64) if table.weighting == "outer" else weight
    found: dict[str, NDArray[Any]] = {"n_items": np.bincount(part, own, n_parts).astype(np.int64)}
    found["weight"] = np.bincount(part, weight, n_parts)
    if table.overlapping:  # losses are charged to whole clusters, by pairs of items
        return found
    codes, sizes = (table.true, table.true_n) if other == "true" else (table.pred, table.pred_n)
    found["n_items_of_cluster"] = sizes[codes[cells]]
    for name, wrong in zip(LOSSES, (table.fp[cells], table.fn[cells]), strict=True):
        found[name] = np.bincount(part, weight * (wrong / (tp + wrong)), n_parts) / table.total_weight
    return found


def _labels(kept: Kept, side: str, rows: RowNumbers) -> pa.ChunkedArray:
    """Return the label of each row on a side: null for clusters created by a policy, a list if clusters overlap."""
    labels = kept.require_items().labels(side, rows)
    if not kept.cells.overlapping:
        labels = without_noise(labels, kept.policies, side)
    return chunked(labels)


def _order_of_parts(parts: pa.Table, items: Items, firsts: RowNumbers) -> NDArray[np.int64]:
    """Return the order of parts: by number of items, then weight, both descending, then label."""
    figures = [-parts[name].to_numpy() for name in ("n_items", "weight")]
    names = [] if pa.types.is_large_list(parts["label"].type) else [parts["label"]]
    if names and parts["label"].null_count:
        names.append(items.ids(firsts))
    return to_numpy(order_of(figures, names)).astype(np.int64)


def _first(kept: Kept, parts: Sequence[RowNumbers], counts: Sequence[int]) -> RowNumbers:
    """Return the first `counts` rows of each part, by descending weight, then item; ids are read only once."""
    every, rows = kept.rows.weight, [np.empty(0, np.int64)]
    for part, n in zip(parts, counts, strict=True):
        # the weight of an item that is not scored may be unknown
        weight = np.nan_to_num(every[part], nan=-np.inf)
        rows.append(part[weight >= np.partition(weight, part.size - n)[part.size - n]])
    ids = kept.require_items().ids(np.concatenate(rows))
    ends, first = np.cumsum([part.size for part in rows]).tolist(), rows[:1]
    for part, n, end in zip(rows[1:], counts, ends[1:], strict=True):
        weight = np.nan_to_num(every[part], nan=-np.inf)
        order = order_of([-weight], [ids.slice(end - part.size, part.size)], n)
        first.append(part[order.to_numpy()])
    return np.concatenate(first)


def excerpt(kept: Kept, coverage: Coverage, codes: CodesBySide, columns: Sequence[str]) -> Kept:
    """Return the cells and rows of some non-overlapping clusters, sufficient to open these with some attributes.

    All rows are scanned once, and each requested column is read once.
    """
    (table, places, _), every = kept.excerpt(codes), kept.rows
    rows, cells = every.in_cells(chosen_of(places, kept.cells.n_cells))
    alone = _one_sided(kept, coverage, codes)
    order = np.argsort(np.concatenate([rows, alone]), kind="stable")
    rows = np.concatenate([rows, alone])[order]
    numbers = np.append(np.searchsorted(places, cells), np.full(alone.size, -1))[order]
    table.rows = ScoredRows.of(numbers, every.weights_of(rows))
    items = kept.require_items()
    own = {"item": items.ids(rows)} | {f"{side}_cluster": items.labels(side, rows) for side in SIDES}
    own |= {f"attributes.{name}": attribute_values(name, items, kept.attributes, rows) for name in columns}
    return Kept(table, kept.policies, TableItems(pa.table(own)))


def opener(
    kept: Kept, coverage: Coverage, codes: CodesBySide, columns: Sequence[str], members: int
) -> OpenOne:
    """Return a function that opens any of these clusters, given side, code and label; rows are read in one pass."""
    part = kept
    if not kept.cells.overlapping and any(own.size for own in codes.values()):
        part = excerpt(kept, coverage, codes, columns)
    return lambda side, code, label: open_cluster(part, side, label, columns, members)


def _one_sided(kept: Kept, coverage: Coverage, codes: CodesBySide) -> NDArray[np.int64]:
    """Return the rows in these clusters that the other side lacks."""
    found = [np.empty(0, np.int64)]
    for side in codes:
        if getattr(coverage, {"true": "n_truth_only", "pred": "n_prediction_only"}[side]):
            labels = kept.cluster_labels(side, codes[side]).to_pylist()
            found += _unscored_with(kept, side, [label for label in labels if label is not None])
    return np.unique(np.concatenate(found))


def _unscored_with(kept: Kept, side: str, labels: list[Any]) -> Iterator[NDArray[np.int64]]:
    """Yield the rows that are not scored and have one of these labels on a side."""
    for first, cell in kept.rows.stretches():
        rows = first + np.flatnonzero(cell < 0)
        if rows.size:
            column = as_column(kept.require_items().labels(side, rows), f"{side}_cluster")
            for label in labels:
                yield rows[column.find(plain_id(label))]


def list_items(
    kept: Kept,
    metrics: list[Metric],
    columns: Any,
    true_cluster: Any,
    pred_cluster: Any,
    order_by: str | None,
    limit: int | None,
) -> Table:
    """Implement `Evaluation.items`."""
    items, rows, names = kept.require_items(), kept.rows, chosen_columns(kept, columns)
    here = np.flatnonzero(rows_in_clusters(kept, true_cluster, pred_cluster))
    n_columns = 6 + len(LOSSES) + sum(bool(metric.item_name) for metric in metrics)
    needed = 8 * here.size * n_columns
    kept.require_room(ROW_BYTES, f"a listing of {here.size:,} items", needed, LISTED_ALONE)
    table = item_columns(kept.cells, rows, metrics, here)
    ranked_by = [name for name in names if is_one_of(order_by, [name]) and name not in table.column_names]
    table = with_attributes(table, kept, ranked_by, here, table.num_columns)
    found = listed(table, metrics, order_by, limit, named_by=("row", "item", items.ids)).to_arrow()
    at = to_numpy(found["row"])
    for k, side in enumerate(SIDES, 1):
        found = found.add_column(k, f"{side}_cluster", items.labels(side, at))
    return Table(with_attributes(found.drop_columns(["row", *ranked_by]), kept, names, at, 3))


def open_item(kept: Kept, metrics: list[Metric], which: Any, columns: Any, members: int) -> Item:
    """Implement `Evaluation.item`."""
    members = limit_of(members, "members", "")
    items, rows, names = kept.require_items(), kept.rows, chosen_columns(kept, columns)
    row = int(items.rows_of([which])[0])
    if row < 0 or rows.cell[row] < 0:
        fault = "not in the evaluation" if row < 0 else "not scored"
        raise SliceError(f"item {first_few([which])} is {fault}")
    found = one_item(kept.cells, rows, items, metrics, row, members)
    if names:
        at = np.array([row])
        values = {name: attribute_values(name, items, kept.attributes, at) for name in names}
        own = {name: readable(value)[0].as_py() for name, value in values.items()}
        found = {**found, "attributes": own, "members": found["members"]}
    return Item(found)
