"""Identity over time: ids of the clusters of an experiment, kept or new, retired ids, and the registry of ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import SIDES
from fastbcubed.diff_runs.carried_ids import (
    CELL_BYTES,
    EVENTS,
    LEAST,
    NEW,
    QUICK,
    SPLIT,
    Carried,
    IdStability,
    as_texts,
    carry,
    code_type,
    labels_are_numbers,
    matching_bytes,
    or_null,
    scored_clusters,
    stability,
)
from fastbcubed.diff_runs.cluster_changes import labels_of_one_side, plain_labels
from fastbcubed.diff_runs.diff_summary import DiffData
from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    Either,
    FastBCubedError,
    IdTypeError,
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
    plain,
    table_of,
    to_numpy,
)
from fastbcubed.inputs.files import read_table
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.inputs.id_order import order_of_ids
from fastbcubed.render.number_formats import count, counted
from fastbcubed.results.clusters import BESIDE, bytes_of_label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import without_noise
from fastbcubed.results.page import stem
from fastbcubed.results.standard_errors import ALWAYS
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import a_text, is_one_of, true_or_false
from fastbcubed.runtime.memory_budget import release, require_within
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import blocks

#: Bytes per cluster while ids are carried over and a registry is made; per cluster of the experiment in one of several
#: tables of ids; and per row while its items are listed.
CLUSTER_BYTES, TABLE_BYTES, ROW_BYTES = 95, 120, 60
#: Number of labels, for each table of ids, that show which labels each of them has.
SHOWN = 1 << 10
#: The most digits of a number in an id after which new ids are numbered.
LONGEST = 18
#: The columns of a registry.
REGISTRY = ("id", "first_seen", "last_seen", "replaced_by")

#: The name of the rule by smallest items, and the advice against it, in Python and on the command line.
MINT_ITEM = Either("mint=min", "--mint-item")
NOT_BY_ITEM = Either(
    "pass another mint=, such as a prefix", "omit --mint-item, or pass --mint with a prefix instead"
)

IdRule = str | Callable[[Any], Any] | None


def _needed(ev: Evaluation) -> int:
    """Return the bytes that carrying ids over takes, with whole tables made of them."""
    table, of_cluster = ev.contingency, CLUSTER_BYTES + bytes_of_label(ev.kept)
    return (table.n_cells - table.n_exact) * CELL_BYTES + sum(table.n_codes.values()) * of_cluster


def _of_codes(ev: Evaluation) -> int:
    """Return the bytes of who keeps which id, by code of each cluster."""
    return sum(ev.contingency.n_codes.values()) * (code_type(ev.contingency).itemsize + 2)


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
    return diff.id_stability


def _of_one_side(ev: Evaluation, carried: Carried, side: str) -> pa.Array:
    """Return the labels of a side's clusters without items of the other side."""
    labels, alone = carried.labels[side], ev.contingency.alone(side)
    if alone is None:
        return labels.of(np.empty(0, np.int64))
    if ev.has_items:
        return labels_of_one_side(ev, side).cast(labels.type)
    codes = np.unique(alone.codes)
    found = labels.of(codes[~scored_clusters(ev.contingency, side)[codes]])
    if found.null_count and ev.policies.noise_of(side) is None:
        raise NotKeptError(
            f"the labels of {counted(found.null_count, 'cluster')} without items on one of the sides were "
            f"not kept; keep the items, with {arg('keep', 'items')}"
        )
    return found.drop_null()


# -- Ids -------------------------------------------------------------------------------------------


def ids_of(diff: DiffWithIds, known: Any, mint: IdRule, *, revive: bool, by_item: bool = False) -> pa.Table:
    """Return the clusters of the experiment, in order of their labels, with ids and events; see `Diff.ids`."""
    (found,) = tables_of_ids(diff, known, mint, revive=revive, whole=True)
    return ids_by_item(diff.evaluation, found) if by_item else found


def tables_of_ids(
    diff: DiffWithIds, known: Any, mint: IdRule, *, revive: bool, whole: bool = False
) -> Iterator[pa.Table]:
    """Yield the rows of `Diff.ids` in order, in several tables if memory is limited and they need not be `whole`.

    The labels must then be numbers, and new ids the next ones.
    """
    revive, ev = true_or_false(revive, "revive"), diff.evaluation
    divisible = mint is None and all(labels_are_numbers(ev, side) for side in SIDES)
    divisible = divisible and not (ev.has_items and ev.contingency.alone("pred") is not None)
    whole = whole or not divisible
    if whole:
        of_table = _of_codes(ev) + ev.contingency.n_codes["pred"] * TABLE_BYTES
        _require_room(ev, of_table if divisible else _needed(ev))
    carried = diff._carried
    old, new = carried.labels["true"], carried.labels["pred"]
    kind = _kind(old.type, "ids of the baseline")
    known = _known(known, kind)
    _require_rule(mint, kind)
    appeared = _of_one_side(ev, carried, "pred")
    if ev.kept.memory_limit is not None:
        release()
    n_tables = 1 if whole else _n_tables(ev, len(appeared))
    any_fresh = len(appeared) > 0 or any((carried.keeps[codes] < 0).any() for codes in carried.codes("pred"))
    rule = _NewIds(diff, known, kind, mint, revive=revive)
    for codes, alone in _divided(carried, appeared, n_tables):
        labels, keeps, events = _joined(new.of(codes), alone), carried.keeps[codes], carried.events[codes]
        if n := len(alone):
            keeps, events = np.append(keeps, np.full(n, -1)), np.append(events, np.full(n, NEW, np.int8))
        rows = order_of_ids(labels)
        np.maximum(keeps, 0, out=keeps)
        # Texts are read once, in order. Numbers are read in the order of codes, since clusters that share items have
        # codes near each other, and sorted again, since reading them at random places takes longer.
        ids = old.of(keeps).take(from_numpy(rows)) if old.are_numbers else old.of(keeps[rows])
        labels = from_numpy(np.sort(to_numpy(labels))) if new.are_numbers else labels.take(from_numpy(rows))
        events = events[rows]
        fresh = events >= SPLIT
        if fresh.any():
            minted = rule.make(labels.take(from_numpy(np.flatnonzero(fresh))))
            ids = pc.replace_with_mask(ids.cast(minted.type), from_numpy(fresh), minted)
        elif any_fresh:
            ids = ids.cast(_wide(old.type))
        named = pa.DictionaryArray.from_arrays(from_numpy(events), from_texts(list(EVENTS)))
        yield table_of({"experiment_cluster": labels, "id": ids, "event": named})


def _require_room(ev: Evaluation, needed: int) -> None:
    """Raise OptionError if whole tables of ids, for which this many bytes are needed, exceed the memory limit.

    The error names a limit that suffices even if all clusters that changed are connected, and so matched at once.
    """
    limit, cells = ev.kept.memory_limit, ev.contingency
    if limit is None or needed - BESIDE <= limit or not cells.has_cells or cells.overlapping:
        return
    require_within(limit, max(needed, sum(matching_bytes(ev))) - BESIDE, "stable ids", "cells and clusters")


def _n_tables(ev: Evaluation, n_appeared: int) -> int:
    """Return the number of tables of ids of which each fits within the memory limit."""
    limit = ev.kept.memory_limit
    if limit is None:
        return 1
    needed = (ev.contingency.n_codes["pred"] + n_appeared) * TABLE_BYTES
    return max(1, -(-needed // max(limit + BESIDE - _of_codes(ev), LEAST)))


def _divided(carried: Carried, appeared: pa.Array, n: int) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """Yield codes and further labels of new clusters, `n` ranges of labels in turn if these are numbers."""
    if n == 1:
        yield np.concatenate(list(carried.codes("pred"))), appeared
        return
    labels, alone = carried.labels["pred"], to_numpy(appeared)
    step = -(-carried.keeps.size // (n * SHOWN))
    shown = np.sort(np.concatenate([to_numpy(labels.of(codes[::step])) for codes in carried.codes("pred")]))
    bounds = [None, *np.unique(shown[shown.size * np.arange(1, n) // n]).tolist(), None]

    def within(numbers: NDArray[Any], low: int | None, high: int | None) -> NDArray[np.int64]:
        there = np.ones(numbers.size, np.bool_) if low is None else numbers >= low
        return np.flatnonzero(there if high is None else there & (numbers < high))

    for ends in pairwise(bounds):
        codes = [own[within(to_numpy(labels.of(own)), *ends)] for own in carried.codes("pred")]
        yield np.concatenate(codes), appeared.take(from_numpy(within(alone, *ends)))


def _joined(values: pa.Array, more: pa.Array) -> pa.Array:
    """Return the values followed by more of their type; a copy takes as long as a lookup of each."""
    return combined(pa.chunked_array([values, more])) if len(more) else values


def _kind(labels: pa.DataType, where: str) -> str:
    if pa.types.is_struct(labels):
        raise OptionError(f"{where} have several columns, but ids need one; join the columns first")
    return id_kind(labels, where)


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


class _NewIds:
    """Makes ids by a rule for new clusters, whose labels come in order."""

    def __init__(
        self, diff: DiffWithIds, known: pa.Array | None, kind: str, mint: IdRule, *, revive: bool
    ) -> None:
        self._ev, self._carried = diff.evaluation, diff._carried
        self._known, self._kind, self._mint, self._revive = known, kind, mint, revive
        self._type = _wide(self._carried.labels["true"].type)
        self._last: int | None = None  # the largest number so far

    def _current(self) -> Iterator[pa.Array]:
        """Yield the ids of the baseline."""
        labels = self._carried.labels["true"]
        for codes in self._carried.codes("true"):
            yield labels.of(codes).cast(self._type)
        yield _of_one_side(self._ev, self._carried, "true").cast(self._type)

    def _taken(self) -> pa.Array:
        """Return the ids that must not be used again."""
        current = combined(pa.chunked_array(list(self._current()), self._type))
        if self._known is None:
            return current
        known = _as(self._known, self._type, f"{arg('known_ids')}")
        if self._revive:
            known = known.filter(pc.is_in(known, value_set=current))
        return _joined(current, known)

    def make(self, labels: pa.Array) -> pa.Array:
        """Return new ids for the clusters with these labels; raise if an id is taken, or if two are the same."""
        if self._mint is None and self._kind == "integer":
            return self._next(len(labels))
        n, where, taken = len(labels), f"{arg('mint')}", self._taken()
        if self._mint is min:
            found = _of_kind(_smallest(self._ev, labels, taken), self._kind, f"{MINT_ITEM}")
        elif isinstance(self._mint, str):
            first = _last_number(taken, self._mint) + 1
            numbers = from_numpy(np.arange(first, first + n)).cast(pa.large_string())
            begin, between = (pa.scalar(text, pa.large_string()) for text in (self._mint, ""))
            found = pc.binary_join_element_wise(begin, numbers, between)
            if first + n < 10**LONGEST:
                return found
        elif callable(self._mint):
            values = [self._mint(value) for value in labels.to_pylist()]
            if none := sum(value is None for value in values):
                raise NullError(f"{where} gives no id to {none} of {counted(n, 'new cluster')}")
            found = _of_kind(combined(as_column(values, "mint", where).parts[0]), self._kind, where)
            found = _as(found, taken.type, where)
        else:
            found = (
                as_texts(labels) if self._kind == "string" else _of_kind(labels, self._kind, "the experiment")
            )
        return _require_free(found, labels, taken)

    def _next(self, n: int) -> pa.Array:
        """Return the next numbers after the largest id."""
        if self._last is None:
            known = [] if self._known is None else [_as(self._known, self._type, f"{arg('known_ids')}")]
            parts = chain(self._current(), [] if self._revive else known)
            self._last = max(0, *(pc.max(each).as_py() for each in parts if len(each)))
        first, kind = self._last + 1, self._type.to_pandas_dtype()
        if first + n > np.iinfo(kind).max:
            raise OptionError(
                f"the largest id is {self._last}, beyond which no numbers are left; pass {arg('mint', ...)}"
            )
        self._last += n
        return from_numpy(np.arange(first, first + n, dtype=kind))


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
    kept = np.zeros(carried.heir.size, np.bool_)
    for start, stop in blocks(carried.keeps.size):
        keeps = carried.keeps[start:stop]
        kept[keeps[keeps >= 0]] = True
    codes = np.concatenate([own[~kept[own]] for own in carried.codes("true")])
    gone = _of_one_side(ev, carried, "true")
    needed = (codes.size + len(gone)) * (CLUSTER_BYTES + bytes_of_label(ev.kept)) - BESIDE
    require_within(ev.kept.memory_limit, needed, "retired ids", "they")
    heirs = carried.heir[codes]
    # Each heir keeps the id of another old cluster; otherwise, the matching could be heavier.
    at = np.where(heirs < 0, -1, carried.keeps[heirs])
    by = or_null(old.of(np.maximum(at, 0)), np.where(at < 0, -1, np.arange(at.size)))
    own = _joined(old.of(codes), gone)
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
    for column, now in (("first_seen", of_part == 2), ("last_seen", of_part >= 1)):
        before = [] if known is None else [combined(known[column])]
        place = np.append(np.arange(len(old)), len(old) + now)
        if column == "last_seen":
            alive = seen[now[seen]]
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
    _require_room(diff.evaluation, _needed(diff.evaluation))
    before, now = (stem(diff.names[side] or f"the {side}") for side in ("baseline", "experiment"))
    now = now if release is None else a_text(release, "release")
    known = None
    if previous is not None:
        known = checked_registry(
            previous, _kind(diff._carried.labels["true"].type, "ids of the baseline"), now
        )
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
        """Shares of the weight of common items that keep their id: by label (`as_named`), and by `ids` (`best`).

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff(list("aabbc"), list("xxyyc")).id_stability  # only c kept its id; all items could
        IdStability(as_named=0.2, best=1.0)
        """
        saved = self._saved.get("id_stability")
        return stability(self.evaluation, self._carried) if saved is None else IdStability(**saved)

    def ids(
        self, *, known_ids: Any = None, revive: bool = False, mint: IdRule = None, by: str = "cluster"
    ) -> Table:
        """Return the id of each cluster of the experiment: the id of a baseline cluster, or a new id.

        The labels of the baseline are the existing ids. Each id is given to at most one cluster, so that as much weight
        as possible keeps its id. Ties are broken in favour of the heaviest cell, then of the two clusters with the
        higher Jaccard index, then of the smaller old id, and then of the smaller label.

        Parameters
        ----------
        known_ids : array-like, optional
            Ids of earlier releases that must not be used again, such as the column id of `registry`.
        revive : bool
            Whether known ids that the baseline does not have may be used again as new ids.
        mint : callable, str, optional
            How new ids are made: a function of the cluster's label; a string to prefix to consecutive numbers; or the
            builtin `min`, for the cluster's smallest item that is not yet an id. By default, integer ids continue from
            the largest known id, and other ids are the labels of the experiment. An id that is already taken raises
            OptionError, and a mix of numbers and strings raises IdTypeError.
        by : {"cluster", "item"}
            Whether to list clusters or items; a list of items can be the baseline for the next release.

        Returns
        -------
        Table
            The columns experiment_cluster, id and event, ordered by label. The event is "kept" (the cluster keeps an
            id), "merged" (the id also replaces ids that are retired), "split" (the id is new, because other clusters
            keep the ids of the clusters that the items come from) or "new" (the cluster has no items of the baseline).
            With ``by="item"``, the columns are item and cluster, which contains the id. Clusters created by a policy
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
        """Return the ids that no cluster keeps, and the id that replaces each.

        The columns are id and replaced_by. replaced_by is the id of the cluster that has most of the retired id's
        weight, or null if there is no such cluster.

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
        """Return a registry of all ids up to the current release: id, first_seen, last_seen and replaced_by.

        Parameters
        ----------
        previous : table or path, optional
            The registry of the previous release, whose ids are known and are listed first.
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
