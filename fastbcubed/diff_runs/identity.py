"""Identity over time: which clusters of an experiment keep the ids of a baseline, new ids, and the registry of ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.diff_runs.cluster_changes import OF_ONE_SIDE, labels_of_one_side, plain_labels
from fastbcubed.diff_runs.diff_summary import DiffData
from fastbcubed.diff_runs.heaviest_matching import Rivals, largest_first, match_first
from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    Either,
    EmptyInputError,
    FastBCubedError,
    IdTypeError,
    MetricError,
    NotKeptError,
    NullError,
    OptionError,
    arg,
    first_few,
    quoted,
)
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    combined,
    from_numpy,
    from_texts,
    id_kind,
    is_null,
    plain,
    table_of,
    to_numpy,
)
from fastbcubed.inputs.files import read_table
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.inputs.id_order import AT_ONCE, order_of_ids, same_ids, words_of
from fastbcubed.render.number_formats import count, counted, label
from fastbcubed.results.clusters import BESIDE, bytes_of_label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import without_noise
from fastbcubed.results.notices import NOTE
from fastbcubed.results.page import stem
from fastbcubed.results.standard_errors import ALWAYS
from fastbcubed.results.table import Table
from fastbcubed.runtime import buffers
from fastbcubed.runtime.arguments import a_text, is_one_of, true_or_false
from fastbcubed.runtime.memory_budget import require_within
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Codes, RowNumbers, Words

#: The events of a cluster's id, in the order of display.
EVENTS = ("kept", "merged", "split", "new")
#: Steps after which a component is matched greedily: about ten seconds, and fewer if no ids were requested.
LIMIT, QUICK = 2_000_000_000, 5_000_000
#: Bits of the total weight as a whole number, with which sums are exact, so that rounding cannot break ties.
BITS = 46
#: Bytes per cell of a cluster that changed, and per cluster, while ids are carried over and a registry is made, and per
#: row while its items are listed.
CELL_BYTES, CLUSTER_BYTES, ROW_BYTES = 300, 95, 60
#: The most digits of a number in an id after which new ids are numbered.
LONGEST = 18
#: The columns of a registry.
REGISTRY = ("id", "first_seen", "last_seen", "replaced_by")
TOO_TANGLED = "ids-partly-greedy"

#: The name of the rule by smallest items, and the advice against it, in Python and on the command line.
MINT_ITEM = Either("mint=min", "--mint-item")
NOT_BY_ITEM = Either(
    "pass another mint=, such as a prefix", "omit --mint-item, or pass --mint with a prefix instead"
)

IdRule = str | Callable[[Any], Any] | None


class IdStability(NamedTuple):
    """Shares of the common weight of baseline and experiment that keep their id; both clusters must have labels."""

    as_named: float  #: share whose clusters have the same label on both sides
    best: float  #: share that keeps its id if ids are carried over by the heaviest matching


class Carried(NamedTuple):
    """The labels of clusters by side and code, and the clusters that keep ids."""

    labels: dict[str, pa.Array]  #: null for a cluster that a policy made
    there: dict[str, NDArray[np.bool_]]  #: whether a cluster has a label and a cell
    keeps: RowNumbers  #: by new cluster: the old cluster whose id it keeps, or -1
    heir: RowNumbers  #: by old cluster whose id no cluster keeps: the new cluster with most of its weight; else -1
    shared: NDArray[np.bool_]  #: by new cluster: whether it has items of old clusters
    stability: IdStability
    n_greedy: int
    cells_of_greedy: int

    def notes(self) -> list[dict[str, Any]]:
        """Return a note if some ids were carried over greedily."""
        if not self.n_greedy:
            return []
        message = (
            f"Ids of {counted(self.n_greedy, 'group')} of clusters, connected by "
            f"{count(self.cells_of_greedy)} cells, were carried over greedily, heaviest cell first, because "
            "the search for the best matching took too long. A better matching might keep the ids of "
            "slightly more of the weight."
        )
        figures = {"n_components": self.n_greedy, "n_cells": self.cells_of_greedy}
        return [{"code": TOO_TANGLED, "level": NOTE, "message": message, **figures}]


def carry(ev: Evaluation, limit: int = LIMIT) -> Carried:
    """Match clusters of both sides one to one, such that the matched cells have the greatest total weight.

    Ties are broken by the share of the cell in both clusters, then by old id, then by new label.
    """
    table = ev.contingency
    if not table.has_cells:
        raise NotKeptError(
            f"the cells were not kept; call fastbcubed.diff with {arg('keep', 'cells')} to carry ids"
        )
    if table.overlapping:
        raise MetricError(
            "ids cannot be carried over between overlapping clusters; pass partitions, without "
            f"{arg('overlapping', True)}"
        )
    require_within(ev.kept.memory_limit, _needed(ev) - BESIDE, "stable ids", "cells and clusters")
    labels = {side: _labels(ev, side) for side in OF_ONE_SIDE}
    there = {side: ~is_null(each) for side, each in labels.items()}
    if not table.is_complete:
        for side, own in there.items():
            scored = np.zeros(own.size, np.bool_)
            scored[table.codes(side)[0]] = True
            own &= scored
    rivals, keeps = _rivals(table, labels, there)
    shared = keeps >= 0
    shared[rivals.columns] = True
    if not shared.any():
        raise EmptyInputError("no item has a cluster id on both sides, so no id can be carried over")
    found = match_first(rivals, limit)
    keeps[rivals.columns[found.cells]] = rivals.rows[found.cells]
    left = np.ones(there["true"].size, np.bool_)
    left[keeps[keeps >= 0]] = False
    largest = rivals.first_of_rows(np.flatnonzero(left[rivals.rows]))
    heir = np.full(left.size, -1)
    heir[rivals.rows[largest]] = rivals.columns[largest]
    stability = _stability(table, labels, there, keeps)
    return Carried(labels, there, keeps, heir, shared, stability, found.n_greedy, found.cells_of_greedy)


def _rivals(
    table: Contingency, labels: dict[str, pa.Array], there: dict[str, NDArray[np.bool_]]
) -> tuple[Rivals, RowNumbers]:
    """Return the cells of clusters that differ, and by new cluster the old one that is identical, or -1."""
    twins = np.full(there["pred"].size, -1)
    of_row, of_column = (np.zeros(own.size, np.int32) for own in there.values())
    places, rows, columns = (buffers.empty(table.n_cells, np.int64) for _ in range(3))
    n = kernels.components.find_rivals(
        table.cells, table.codes("pred")[0], *_lacking(there), twins, places, rows, columns, of_row, of_column
    )
    places, rows, columns = places[:n], rows[:n], columns[:n]
    # Whole numbers make sums exact, so the order of the items cannot break a tie; the unit is a power of two.
    unit = math.ldexp(1.0, math.frexp(table.total_weight * (1 + 2**-20))[1] - BITS)
    gains = np.maximum(np.rint(table.weight[places] / unit), 1.0)

    def share(of: Codes | slice) -> Words:
        cells = table.cells[places[of]]
        common = cells["n"] if table.weighting == "outer" else cells["weight"]
        return largest_first(np.rint(common / (common + (cells["fp"] + cells["fn"])) * 2.0**40))(slice(None))

    words = {side: words_of(own) for side, own in labels.items()}
    return Rivals(rows, columns, gains, of_row, of_column, [share], words["true"], words["pred"]), twins


def _lacking(there: dict[str, NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
    """Return masks of the clusters with a label; empty ones if all have one."""
    return [own[:0] if all(each.all() for each in there.values()) else own for own in there.values()]


def _needed(ev: Evaluation) -> int:
    """Return the bytes that carrying ids over takes, with the tables made of them."""
    table, of_cluster = ev.contingency, CLUSTER_BYTES + bytes_of_label(ev.kept)
    return (table.n_cells - table.n_exact) * CELL_BYTES + sum(table.n_codes.values()) * of_cluster


def known_stability(diff: DiffWithIds) -> IdStability | None:
    """Return the stability of ids if it is known or quickly computed; otherwise None."""
    if diff._saved.get("id_stability") is not None or "_carried" in diff.__dict__:
        return diff.id_stability
    cells = diff.evaluation.contingency
    if diff._saved or not cells.has_cells or cells.overlapping or cells.n_cells > ALWAYS:
        return None
    try:
        found = carry(diff.evaluation, QUICK)
    except FastBCubedError:
        return None
    if found.n_greedy:
        return None
    diff.__dict__["_carried"] = found
    return found.stability


def _stability(
    table: Contingency, labels: dict[str, pa.Array], there: dict[str, NDArray[np.bool_]], keeps: RowNumbers
) -> IdStability:
    old, new = labels["true"], labels["pred"]
    if old.type != new.type or pa.types.is_nested(old.type):
        old, new = (_as_texts(each) for each in (old, new))
    same, (true, pred), lacking = same_ids(old, new), (table.true, table.pred), _lacking(there)
    sums = [
        kernels.components.weigh_kept(
            table.cells, pred, a, same(np.ascontiguousarray(true[a:b]), pred[a:b]), keeps, *lacking
        )
        for a, b in blocks(table.n_cells, AT_ONCE)
    ]
    as_named, best, total = (math.fsum(each) for each in zip(*sums, strict=True))
    return IdStability(as_named / total, best / total)


def _as_texts(labels: pa.Array) -> pa.Array:
    """Return labels as strings, so that 1 and "1" are the same id."""
    if (
        pa.types.is_integer(labels.type)
        or pa.types.is_string(labels.type)
        or pa.types.is_large_string(labels.type)
    ):
        return labels.cast(pa.large_string())
    return pa.array(
        [None if value is None else label(value) for value in labels.to_pylist()], pa.large_string()
    )


def _labels(ev: Evaluation, side: str) -> pa.Array:
    """Return the labels of a side's clusters by code; null for codes that no cluster has."""
    table, alone = ev.contingency, ev.contingency.alone(side)
    if table.is_complete:
        return plain_labels(ev.kept.cluster_labels(side, np.arange(table.n_codes[side])))
    used = np.zeros(table.n_codes[side], np.bool_)
    for codes in (table.codes(side)[0], *(() if alone is None else (alone.codes,))):
        used[codes] = True
    found = plain_labels(ev.kept.cluster_labels(side, np.flatnonzero(used)))
    return found if used.all() else _or_null(found, np.where(used, np.cumsum(used) - 1, -1))


def _of_one_side(ev: Evaluation, carried: Carried, side: str) -> pa.Array:
    """Return the labels of a side's clusters without items of the other side."""
    own, alone = carried.labels[side], ev.contingency.alone(side)
    if alone is None:
        return own.slice(0, 0)
    if ev.has_items:
        return labels_of_one_side(ev, side)
    scored = np.zeros(len(own), np.bool_)
    scored[ev.contingency.true if side == "true" else ev.contingency.pred] = True
    codes = np.unique(alone.codes)
    found = own.take(from_numpy(codes[~scored[codes]]))
    if found.null_count and ev.policies.noise_of(side) is None:
        raise NotKeptError(
            f"the labels of {counted(found.null_count, 'cluster')} without items on one of the sides were "
            f"not kept; keep the items, with {arg('keep', 'items')}"
        )
    return found.drop_null()


# -- Ids -------------------------------------------------------------------------------------------


def ids_of(diff: DiffWithIds, known: Any, mint: IdRule, *, revive: bool, by_item: bool = False) -> pa.Table:
    """Return the clusters of the experiment, in order of their labels, with ids and events; see `Diff.ids`."""
    revive, carried, ev = true_or_false(revive, "revive"), diff._carried, diff.evaluation
    old, new = carried.labels["true"], carried.labels["pred"]
    kind = _kind(old, "ids of the baseline")
    known = _known(known, kind)
    _require_rule(mint, kind)
    events = np.where(carried.keeps < 0, np.int8(2), np.int8(0))  # positions in EVENTS
    events[carried.heir[carried.heir >= 0]] |= 1
    events[~carried.shared] = 3
    labels, keeps = new, carried.keeps
    if not carried.there["pred"].all():
        codes = np.flatnonzero(carried.there["pred"])
        labels, keeps, events = new.take(from_numpy(codes)), keeps[codes], events[codes]
    appeared = _of_one_side(ev, carried, "pred")
    labels = _joined(labels, appeared.cast(new.type))
    if n := len(appeared):
        keeps, events = np.append(keeps, np.full(n, -1)), np.append(events, np.full(n, 3, np.int8))
    rows = order_of_ids(labels)
    labels, keeps, events = labels.take(from_numpy(rows)), keeps[rows], events[rows]
    fresh, every = np.flatnonzero(keeps < 0), old
    if fresh.size:
        there = carried.there["true"]
        current = old if there.all() else old.filter(from_numpy(there))
        taken = current = _joined(current, _of_one_side(ev, carried, "true")).cast(_wide(old.type))
        if known is not None:
            known = _as(known, current.type, f"{arg('known_ids')}")
            if revive:
                known = known.filter(pc.is_in(known, value_set=current))
            taken = _joined(current, known)
        own = labels.take(from_numpy(fresh))
        minted = _minted(own, taken, kind, mint, partial(_smallest, ev, own, taken))
        every = _joined(old.cast(minted.type), minted)
        keeps[fresh] = len(old) + np.arange(fresh.size)
    ids = every.take(from_numpy(keeps))
    named = pa.DictionaryArray.from_arrays(from_numpy(events), from_texts(list(EVENTS)))
    found = table_of({"experiment_cluster": labels, "id": ids, "event": named})
    return ids_by_item(ev, found) if by_item else found


def _joined(values: pa.Array, more: pa.Array) -> pa.Array:
    """Return the values followed by more of their type; a copy takes as long as a lookup of each."""
    return combined(pa.chunked_array([values, more])) if len(more) else values


def _or_null(values: pa.Array, at: NDArray[np.int64]) -> pa.Array:
    """Return the values at these positions, null for position -1."""
    return values.take(from_numpy(at, at < 0))


def _kind(labels: pa.Array, where: str) -> str:
    if pa.types.is_struct(labels.type):
        raise OptionError(f"{where} have several columns, but ids need one; join the columns first")
    return id_kind(labels.type, where)


def _wide(kind: pa.DataType) -> pa.DataType:
    """Return a type that can also hold new ids: 64-bit integers, or large strings."""
    if pa.types.is_integer(kind):
        return pa.uint64() if kind == pa.uint64() else pa.int64()
    return pa.large_string() if pa.types.is_string(kind) or pa.types.is_large_string(kind) else kind


def _known(known: Any, kind: str) -> pa.Array | None:
    """Return the known ids, which must be one column of the same kind (numbers, strings, bytes) as the baseline's."""
    if known is None:
        return None
    if isinstance(known, Collection) and not hasattr(known, "__getitem__"):
        known = list(known)
    column = as_column(known, "known_ids", f"{arg('known_ids')}")
    column.refuse_nulls()
    if len(column.parts) > 1:
        raise OptionError(f"{arg('known_ids')} have {len(column.parts)} columns; pass one column of ids")
    found = combined(plain(column.parts[0]))
    if not len(found):
        return None
    return _of_kind(found, kind, f"{arg('known_ids')}")


def _of_kind(values: pa.Array, kind: str, where: str) -> pa.Array:
    if (own := id_kind(values.type, where)) != kind:
        words = {"integer": "numbers", "string": "strings", "binary": "bytes"}
        raise IdTypeError(
            f"{where} {'has' if 'registry' in where else 'gives'} {words[own]} (first: "
            f"{first_few(values.slice(0, 3).to_pylist())}), but the ids of the baseline are {words[kind]}; "
            "cast one of them"
        )
    return values.cast(_wide(values.type))


def _as(values: pa.Array, kind: pa.DataType, where: str) -> pa.Array:
    """Return ids cast to the type of the baseline's ids; raise IdTypeError if it does not fit."""
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        raise IdTypeError(
            f"{where} has numbers from {pc.min(values).as_py()} to {pc.max(values).as_py()}, which do not fit in "
            f"{kind}, the type of the baseline's ids; cast these to another type"
        ) from None


def _require_rule(mint: IdRule, kind: str) -> None:
    """Raise if a rule cannot make new ids, or none of this kind."""
    if isinstance(mint, str):
        if kind != "string":
            raise IdTypeError(
                f"{arg('mint', mint)} creates strings, but the ids of the baseline are not strings; omit it to "
                "continue from the largest number, or cast the ids to strings"
            )
    elif mint is not None and not callable(mint):
        raise OptionError(
            f"{arg('mint')} must be a function, a prefix for new ids, or min, not {quoted(mint)}"
        )


def _minted(
    labels: pa.Array, taken: pa.Array, kind: str, mint: IdRule, smallest: Callable[[], pa.Array]
) -> pa.Array:
    """Return new ids for the clusters with these labels; raise if an id is taken, or if two are the same."""
    n, where, is_free = len(labels), f"{arg('mint')}", False  # whether the ids cannot be taken
    if mint is min:
        found = _of_kind(smallest(), kind, f"{MINT_ITEM}")
    elif isinstance(mint, str):
        first = _last_number(taken, mint) + 1
        is_free = first + n < 10**LONGEST
        numbers = from_numpy(np.arange(first, first + n)).cast(pa.large_string())
        begin, between = (pa.scalar(text, pa.large_string()) for text in (mint, ""))
        found = pc.binary_join_element_wise(begin, numbers, between)
    elif callable(mint):
        values = [mint(value) for value in labels.to_pylist()]
        if none := sum(value is None for value in values):
            raise NullError(f"{where} gives no id to {none} of {counted(n, 'new cluster')}")
        found = _of_kind(combined(as_column(values, "mint", where).parts[0]), kind, where)
        found = _as(found, taken.type, where)
    elif kind == "integer":
        first = max(0, pc.max(taken).as_py()) + 1
        if first + n > np.iinfo(_wide(taken.type).to_pandas_dtype()).max:
            raise OptionError(
                f"the largest id is {first - 1}, beyond which no numbers are left; pass {arg('mint', ...)}"
            )
        found, is_free = (
            from_numpy(np.arange(first, first + n, dtype=_wide(taken.type).to_pandas_dtype())),
            True,
        )
    else:
        found = _as_texts(labels) if kind == "string" else _of_kind(labels, kind, "the experiment")
    return found if is_free else _require_free(found, labels, taken)


def _require_free(ids: pa.Array, labels: pa.Array, taken: pa.Array) -> pa.Array:
    """Return new ids; raise OptionError if one is taken, or if two are the same."""
    hint = f"Pass another rule, such as a prefix for new ids: {arg('mint', 'new-')}"
    taken, used = taken.cast(ids.type), np.empty(0, np.int64)
    few, many = sorted((ids, taken), key=len)  # hashing the shorter list is quicker
    if pc.any(pc.is_in(many, value_set=few)).as_py():
        used = np.flatnonzero(np.asarray(to_numpy(pc.is_in(ids, value_set=taken)), np.bool_))
    if used.size:
        raise OptionError(
            f"{counted(used.size, 'new id')} of {count(len(ids))} {'is' if used.size == 1 else 'are'} taken (first: "
            f"{first_few(ids.take(from_numpy(used[:3])).to_pylist())}): the baseline or the known ids use "
            f"{'it' if used.size == 1 else 'them'} for other clusters. {hint}"
        )
    if (distinct := pc.count_distinct(ids).as_py()) < len(ids):
        counts = pc.value_counts(ids)
        first = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()["values"]
        several = labels.filter(pc.equal(ids, first)).slice(0, 3).to_pylist()
        raise OptionError(
            f"{count(len(ids))} new clusters have only {count(distinct)} different new ids: "
            f"{quoted(first)} is shared by {first_few(several)}. {hint}"
        )
    return ids


def _last_number(taken: pa.Array, prefix: str) -> int:
    """Return the largest number after a prefix in the taken ids; 0 if there is none."""
    rest = pc.utf8_slice_codeunits(taken.filter(pc.starts_with(taken, pattern=prefix)), len(prefix))
    rest = rest.filter(pc.match_substring_regex(rest, f"^[0-9]{{1,{LONGEST}}}$"))
    return int(pc.max(rest.cast(pa.int64())).as_py()) if len(rest) else 0


def _smallest(ev: Evaluation, labels: pa.Array, taken: pa.Array) -> pa.Array:
    """Return the smallest item of each of these clusters that is not an id of another cluster."""
    own, cluster = _rows(ev)
    at = pc.index_in(cluster, value_set=labels)
    wanted = at.is_valid()
    own, at = own.filter(wanted), at.filter(wanted)
    if pa.types.is_struct(own.type):
        raise OptionError(
            f"item ids have several columns, so no item can be the id of a cluster; {NOT_BY_ITEM}"
        )
    if _comparable(own, taken):
        own = _as(own, taken.type, f"{MINT_ITEM}")
        free = pc.invert(pc.is_in(own, value_set=taken))
        own, at = own.filter(free), at.filter(free)
    order = order_of_ids(own)
    groups, first = np.unique(to_numpy(at)[order], return_index=True)
    if groups.size < len(labels):
        none = np.setdiff1d(np.arange(len(labels)), groups)
        raise OptionError(
            f"all items of {counted(none.size, 'new cluster')} are already ids of other clusters (first: "
            f"{first_few(labels.take(from_numpy(none[:3])).to_pylist())}); {NOT_BY_ITEM}"
        )
    return own.take(from_numpy(order[first]))


def _comparable(one: pa.Array, other: pa.Array) -> bool:
    return id_kind(one.type, "items") == id_kind(other.type, "ids")


def _rows(ev: Evaluation) -> tuple[pa.Array, pa.Array]:
    """Return the items of the experiment that have a label, and their labels."""
    items = ev.kept_items()
    ev.kept.require_room(ROW_BYTES + bytes_of_label(ev.kept), "ids of items", _needed(ev))
    labels = plain_labels(without_noise(items.labels("pred"), ev.policies, "pred"))
    if pa.types.is_struct(labels.type):
        raise OptionError(
            "cluster labels of the experiment have several columns; use one column to list ids by item"
        )
    rows = np.flatnonzero(to_numpy(labels.is_valid()))
    return plain_labels(items.ids(rows)), labels.take(from_numpy(rows))


def ids_by_item(ev: Evaluation, ids: pa.Table) -> pa.Table:
    """Return the items of the experiment with the id of their cluster, as a baseline for the next release."""
    own, cluster = _rows(ev)
    at = pc.index_in(cluster, value_set=combined(ids["experiment_cluster"]))
    names, parts = list(ev.kept_items().item_names) or ["item"], [own]
    if pa.types.is_struct(own.type):
        parts = own.flatten()
    if len(parts) == 1:
        names = ["item"]
    return table_of({**dict(zip(names, parts, strict=True)), "cluster": combined(ids["id"]).take(at)})


def retired_of(diff: DiffWithIds) -> pa.Table:
    """Return the ids of the baseline that no cluster keeps; see `Diff.retired`."""
    carried, ev = diff._carried, diff.evaluation
    old = carried.labels["true"]
    kept = np.zeros(len(old), np.bool_)
    kept[carried.keeps[carried.keeps >= 0]] = True
    codes = np.flatnonzero(carried.there["true"] & ~kept)
    heirs = carried.heir[codes]
    # Each heir keeps the id of another old cluster; otherwise, the matching could be heavier.
    by = _or_null(old, np.where(heirs < 0, -1, carried.keeps[heirs]))
    gone = _of_one_side(ev, carried, "true")
    own = combined(pa.chunked_array([old.take(from_numpy(codes)), gone.cast(old.type)]))
    by = combined(pa.chunked_array([by, pa.nulls(len(gone), by.type)]))
    found = table_of({"id": own, "replaced_by": by})
    return found.take(from_numpy(order_of_ids(own)))


# -- Registry --------------------------------------------------------------------------------------


def registry_of(
    ids: pa.Table, retired: pa.Table, known: pa.Table | None, releases: tuple[str, str]
) -> pa.Table:
    """Return the registry after a release: the updated rows of the previous registry, then those of new ids.

    `releases` has the names of the baseline and of the experiment.
    """
    living = combined(ids["id"])
    wide = _wide(living.type)
    gone, heirs = (combined(retired[name]).cast(wide) for name in ("id", "replaced_by"))
    minted = np.asarray(
        to_numpy(pc.is_in(ids["event"].cast(pa.string()), value_set=from_texts(["split", "new"])))
    )
    kept, fresh = (_sorted(living.filter(from_numpy(which)).cast(wide)) for which in (~minted, minted))
    parts = [gone, kept, fresh]  # these are disjoint
    own = combined(pa.chunked_array(parts, wide))
    old = pa.nulls(0, wide) if known is None else _as(combined(known["id"]), wide, "the registry")
    at = np.full(len(own), -1)
    if len(old):
        at = to_numpy(pc.fill_null(pc.index_in(own, value_set=old), -1)).astype(np.int64)
    seen, added = np.flatnonzero(at >= 0), np.flatnonzero(at < 0)
    rows = np.append(np.arange(len(old)), len(old) + added)  # rows of known ids, then of new ones
    of_part = np.repeat(np.arange(3), [len(part) for part in parts])
    found = {"id": combined(pa.chunked_array([old, own], wide))}
    names = [pa.array(releases, pa.string())]
    for column, release in (("first_seen", of_part == 2), ("last_seen", of_part >= 1)):
        before = [] if known is None else [combined(known[column])]
        place = np.append(np.arange(len(old)), len(old) + release)
        if column == "last_seen":
            alive = seen[release[seen]]
            place[at[alive]] = len(old) + 1
        found[column] = combined(pa.chunked_array([*before, *names])).take(from_numpy(place))
    by = np.arange(len(old) + len(own))
    by[at[seen]] = len(old) + seen
    before = [] if known is None else [combined(known["replaced_by"]).cast(wide)]
    heir = combined(pa.chunked_array([*before, heirs, pa.nulls(len(own) - len(heirs), wide)], wide))
    found["replaced_by"] = heir.take(from_numpy(by))
    return table_of(found) if not seen.size else table_of(found).take(from_numpy(rows))


def _sorted(ids: pa.Array) -> pa.Array:
    return ids.take(from_numpy(order_of_ids(ids)))


def registry_and_ids(
    diff: DiffWithIds, previous: Any, release: str | None, mint: IdRule, *, revive: bool
) -> tuple[pa.Table, pa.Table]:
    """Return the registry after a release, and the table of its ids by cluster."""
    before, now = (stem(diff.names[side] or f"the {side}") for side in ("baseline", "experiment"))
    now = now if release is None else a_text(release, "release")
    known = None
    if previous is not None:
        known = checked_registry(previous, _kind(diff._carried.labels["true"], "ids of the baseline"), now)
    ids = ids_of(diff, None if known is None else known["id"], mint, revive=revive)
    return registry_of(ids, retired_of(diff), known, (before, now)), ids


def checked_registry(given: Any, kind: str, release: str) -> pa.Table:
    """Return the previous registry with typed columns, or raise an error if it is invalid."""
    table = read_table(given)
    if lacking := [name for name in REGISTRY if name not in table.column_names]:
        raise ColumnError(
            f"the registry has no column {', '.join(lacking)}, but {first_few(table.column_names)}; a registry has the "
            f"columns {', '.join(REGISTRY)}, one row for each id"
        )
    ids = {name: plain(table[name]) for name in ("id", "replaced_by")}
    for name, own in ids.items():
        if len(own) > own.null_count:
            ids[name] = pa.chunked_array(
                [_of_kind(combined(own), kind, f"the column {name} of the registry")]
            )
    wide = ids["id"].type
    ids["replaced_by"] = ids["replaced_by"].cast(wide)
    for name in REGISTRY[:3]:
        if n := table[name].null_count:
            raise NullError(f"{counted(n, 'row')} of the registry {'has' if n == 1 else 'have'} no {name}")
    counts = pc.value_counts(ids["id"])
    if len(twice := counts.filter(pc.greater(counts.field("counts"), 1))):
        raise DuplicateItemError(
            f"{counted(len(twice), 'id')} {'is' if len(twice) == 1 else 'are'} in several rows of the "
            f"registry (first: {first_few(twice.field('values').slice(0, 3).to_pylist())}); keep one row "
            "of each"
        )
    unknown = (
        ids["replaced_by"]
        .filter(pc.invert(pc.is_in(ids["replaced_by"], value_set=combined(ids["id"]))))
        .drop_null()
    )
    if len(unknown):
        raise OptionError(
            f"replaced_by of the registry names {counted(len(unknown), 'id')} without a row of their own "
            f"(first: {first_few(unknown.slice(0, 3).to_pylist())})"
        )
    seen = {name: table[name].cast(pa.string()) for name in ("first_seen", "last_seen")}
    if any(pc.any(pc.equal(own, release)).as_py() for own in seen.values()):
        raise OptionError(
            f"the registry already contains the release {quoted(release)}; restore the registry from before "
            f"it, or give this release another name: {arg('release', ...)}"
        )
    return pa.table({"id": ids["id"], **seen, "replaced_by": ids["replaced_by"]})


# -- The ids of a diff -----------------------------------------------------------------------------


class DiffWithIds(DiffData):
    """A diff whose baseline labels are ids, which are carried over to the clusters of the experiment."""

    @cached_property
    def id_stability(self) -> IdStability:
        """Share of the common weight that keeps its id with the present labels (`as_named`) and with `ids` (`best`).

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff(list("aabbc"), list("xxyyc")).id_stability  # only c kept its id; all items could
        IdStability(as_named=0.2, best=1.0)
        """
        saved = self._saved.get("id_stability")
        return self._carried.stability if saved is None else IdStability(**saved)

    def ids(
        self, *, known_ids: Any = None, revive: bool = False, mint: IdRule = None, by: str = "cluster"
    ) -> Table:
        """Return the id of each cluster of the experiment: the id of a baseline cluster, or a new id.

        The labels of the baseline are the ids. Each id is given to at most one cluster, such that as much weight as
        possible keeps its id. Ties are broken by the heaviest cell, then by the larger share of both clusters, the
        smaller old id, and the smaller label.

        Parameters
        ----------
        known_ids : array-like, optional
            Ids of earlier releases, such as the column id of `registry`, which must not be used again.
        revive : bool
            Whether known ids that the baseline does not have may be used again as new ids.
        mint : callable, str, optional
            How new ids are made: a function of the cluster's label; a string to prefix to consecutive numbers; or the
            builtin `min`, for the cluster's smallest item that is not an id. By default, integer ids continue from
            the largest known id, and other ids are the labels of the experiment. An id that is already taken raises
            OptionError, and a mix of numbers and strings raises IdTypeError.
        by : {"cluster", "item"}
            Whether to list clusters, or items as a baseline for the next release.

        Returns
        -------
        Table
            The columns experiment_cluster, id and event, ordered by label. The event is "kept" (the cluster keeps an
            id), "merged" (the id also replaces ids that are retired), "split" (the id is new, because other clusters
            keep the ids of the clusters that the items come from) or "new" (the cluster has no items of the baseline).
            If listed by item, the columns are item and cluster, which contains the id. Clusters created by a policy
            have no id.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> d = fb.diff([7, 7, 7, 8, 8, 9], list("xxyzzz"))
        >>> d.ids()
        experiment_cluster  id  event
        x                   7   kept
        y                   10  split
        z                   8   merged
        <BLANKLINE>
        3 rows
        """
        if not is_one_of(by, ("cluster", "item")):
            raise OptionError(f'{arg("by")} must be "cluster" or "item", not {quoted(by)}')
        return Table(ids_of(self, known_ids, mint, revive=revive, by_item=by == "item"))

    def retired(self) -> Table:
        """Return the ids that no cluster keeps, and the ids that replace them.

        The columns are id and replaced_by, which is the id of the cluster with most of the id's weight, or null.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff([7, 7, 7, 8, 8, 9], list("xxyzzz")).retired().to_pylist()
        [{'id': 9, 'replaced_by': 8}]
        """
        return Table(retired_of(self))

    def registry(
        self, previous: Any = None, *, release: str | None = None, revive: bool = False, mint: IdRule = None
    ) -> Table:
        """Return the registry of all ids after this release, with id, first_seen, last_seen and replaced_by.

        Parameters
        ----------
        previous : table or path, optional
            The registry of the previous release. Its ids are known, and are listed first.
        release : str, optional
            The name of the release; by default, the name of the experiment without a file name extension.
        revive, mint
            As for `ids`.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff([7, 7, 8], [1, 1, 1]).registry(release="May").to_pylist()[0]
        {'id': 8, 'first_seen': 'the baseline', 'last_seen': 'the baseline', 'replaced_by': 7}
        """
        return Table(registry_and_ids(self, previous, release, mint, revive=revive)[0])

    @cached_property
    def _carried(self) -> Carried:
        found = carry(self.evaluation)
        self.warnings.extend(found.notes())
        return found
