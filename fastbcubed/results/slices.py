"""Slices: groups of items by attributes, by bins of these, by crossed attributes, or named subsets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.attributes import UNABLE, number_values, readable
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import (
    TRUTH,
    ColumnError,
    FastBCubedError,
    Message,
    MetricError,
    SliceError,
    Word,
    arg,
    first_few,
    quoted,
)
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    combined,
    from_numpy,
    from_texts,
    has_columns,
    is_null,
    is_pandas,
    plain,
    table_of,
    take_or_null,
    to_arrow,
    to_numpy,
)
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.figures import Figures, Scores
from fastbcubed.results.items import AttributeTable, Items, Kept, named_sides
from fastbcubed.results.slice_bins import Bins, Element, SliceKey, bins, bins_meant, element_of
from fastbcubed.results.table import LOSS, Table, listed
from fastbcubed.runtime.arguments import as_several, is_bare, is_one_of, whole_number
from fastbcubed.runtime.suggestions import did_you_mean, similar

__all__ = ["Bins", "Element", "SliceKey", "bins", "element_of"]


#: Exceptions that Arrow raises for values that cannot be compared.
INCOMPARABLE = (*UNABLE, pa.ArrowInvalid)


class ErrorsBySlice(Protocol):
    """Adds standard errors to the scores of slices."""

    def require_rows(self) -> None:
        """Raise OptionError if the memory limit does not allow for them."""

    def beside(self, columns: Mapping[str, Any], codes: NDArray[np.integer], n_groups: int) -> dict[str, Any]:
        """Return the columns of groups of rows, with the standard error after each score."""


class Shared(NamedTuple):
    """An attribute that both sides have: its common values by row, or why these cannot be merged."""

    values: pa.ChunkedArray | None
    fault: str = ""


def shared_attribute(items: Items, name: str) -> Shared:
    """Return the values of an attribute of both sides, from the truth where it has the item.

    They can be merged if they are equal, or both null, for every item that is on both sides.
    """
    sides = [combined(plain(items.attribute(side, name))) for side in ("truth", "prediction")]
    lacking = [_nulls(items.labels(side)) for side in ("true", "pred")]
    try:
        first, second = sides[0], sides[1].cast(sides[0].type)
        equal = _equal(first, second)
    except INCOMPARABLE:
        return Shared(None, f"their types, {sides[0].type} and {sides[1].type}, cannot be compared")
    differ = np.flatnonzero(~(equal | lacking[0] | lacking[1]))
    if differ.size:
        named = items.ids(differ[:4]).to_pylist()
        return Shared(None, f"their values differ for {differ.size:,} items (first: {first_few(named)})")
    return Shared(pa.chunked_array([pc.if_else(from_numpy(lacking[0]), second, first)]))


def _equal(first: pa.Array, second: pa.Array) -> NDArray[np.bool_]:
    """Return the mask of equal values, where NaN equals NaN and null equals null."""
    nulls = [_nulls(values) for values in (first, second)]
    same = pc.fill_null(pc.equal(first, second), False)
    if pa.types.is_floating(first.type):
        nan = pc.and_(pc.is_nan(first), pc.is_nan(second))
        same = pc.or_(same, pc.fill_null(nan, False))
    return (to_numpy(same) & ~nulls[0] & ~nulls[1]) | (nulls[0] & nulls[1])


def _nulls(values: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    return is_null(combined(values) if isinstance(values, pa.ChunkedArray) else values)


#: Slicings that are always available: by the size of an item's cluster, in powers of two.
SIZES = ("true_size", "pred_size")
#: Prefix of such a size if an attribute has the same name.
OURS = "always."
#: Where attributes that are parts of a composite id come from.
ID = "item"


@dataclass(frozen=True)
class Sliced:
    """Rows divided into slices: one code per row, and the names of the slice for each code."""

    codes: NDArray[np.int64]  #: code of the slice of each row; shape (n_rows,)
    #: columns with the names of slices, in ascending order, nulls last; shape (n_slices,)
    values: dict[str, pa.Array]

    @property
    def n_slices(self) -> int:
        """The number of slices."""
        return len(next(iter(self.values.values())))


def slice_name(key: SliceKey) -> str:
    """Return the name of a slicing in results: ``country``, ``country,year``."""
    return ",".join(map(str, [key] if isinstance(key, Element) else key))


def elements(key: SliceKey) -> tuple[Element, ...]:
    """Return the attributes or bins of which a key consists; empty for named subsets."""
    return () if isinstance(key, Mapping) else key if isinstance(key, tuple) else (key,)


def names_in(keys: Iterable[SliceKey]) -> list[str]:
    """Return the names of the attributes and sizes in these keys, each once."""
    every = (each for key in keys for each in elements(key))
    return list(dict.fromkeys(each.name if isinstance(each, Bins) else each for each in every))


class Renamed(str):
    """The name of a cluster size, with the name under which it was requested."""

    def __new__(cls, size: str, asked: str) -> Renamed:
        """Return the name of a cluster size; its attribute `asked` is the requested name."""
        found = super().__new__(cls, size)
        found.asked = asked
        return found

    asked: str


def size_named(
    element: Any, sides: Mapping[str, Sequence[str]] = MappingProxyType({}), extra: Sequence[str] = ()
) -> str | None:
    """Return the cluster size that an element of a key names; None if it does not name one.

    Raise ColumnError, which says how to name each, if an attribute of one of the `sides` or in the table of attributes
    (named in `extra`) has the same name.
    """
    own = element.removeprefix(OURS) if isinstance(element, str) else None
    if own not in SIZES:
        return None
    asked = element.asked if isinstance(element, Renamed) else element
    require_clear(asked, "the size of clusters", {"attributes": extra, **sides})
    return own


def require_clear(name: str, what: str, sides: Mapping[str, Sequence[str]]) -> None:
    """Raise ColumnError if a side has an attribute with this name, which also means something else."""
    there = [side for side, names in sides.items() if name in names]
    if there:
        where, prefixed = (
            sep.join(f"{begin}{Word(side)}{end}" for side in there)
            for sep, begin, end in ((" and ", "the ", ""), (" or ", "'", f".{name}'"))
        )
        raise ColumnError(
            f"{name!r} is a column of {where}, and {what} has the same name: write {prefixed} for the "
            f"column, '{OURS}{name}' for {what}"
        )


def check_key(key: Any) -> SliceKey:
    """Return the key if it is valid: an attribute or bins, a tuple of distinct ones, or named subsets.

    Raise SliceError otherwise.
    """
    if isinstance(key, Mapping) and key:
        return key
    parts = key if isinstance(key, tuple) else (key,)
    if parts and all(isinstance(part, Element) and part for part in parts):
        if of_sizes := [part.name for part in parts if isinstance(part, Bins) and size_named(part.name)]:
            name = Word(of_sizes[0])
            raise SliceError(
                f"{name} is always binned by powers of two and takes no other bins. For an attribute of "
                f"that name, write '{Word('truth')}.{name}', '{Word('prediction')}.{name}' or "
                f"'attributes.{name}'"
            )
        if len(set(map(str, parts))) == len(parts):
            return key
    raise SliceError(
        f"{arg('slices')} must be an attribute or bins of one, a tuple of different attributes (crossed), or "
        f"a mapping from names to masks or lists of items, not {quoted(key)}"
    )


def named_attributes(given: Any, argument: str = "attributes", every: str = "omit it") -> list[str | Bins]:
    """Return the attributes that an argument names, each once; raise if there is none, or if any is not a name."""
    names = as_several(given)
    if strange := [each for each in names if not isinstance(each, str | Bins) or not each]:
        raise SliceError(f"{argument} must be names, or bins of them, not {first_few(strange)}")
    if not names:
        raise ColumnError(f"{argument} is empty; {every} to search all columns of the inputs")
    return list(dict.fromkeys(names))


def is_table(attributes: Any) -> bool:
    """Return whether attributes are given as a table, not by name."""
    if isinstance(attributes, str | Bins | list | tuple | set | frozenset):
        return False
    return (
        isinstance(attributes, Mapping)
        or hasattr(attributes, "__arrow_c_stream__")
        or has_columns(attributes)
    )


def slice_codes(
    key: SliceKey,
    contingency: Contingency,
    items: Items,
    attributes: AttributeTable | None,
    among: NDArray[np.bool_] | None = None,
) -> Sliced:
    """Return the slices by one attribute, or by several crossed, that contain any items.

    `among` is a mask of the rows that count as items; by default, scored rows count.
    """
    cut = numbered_slices(key, contingency, items, attributes, among)
    return Sliced(cut.codes, {str(each): named(each, cut.values[str(each)]) for each in elements(key)})


def numbered_slices(
    key: SliceKey,
    contingency: Contingency,
    items: Items,
    attributes: AttributeTable | None,
    among: NDArray[np.bool_] | None = None,
) -> Sliced:
    """Return the slices of `slice_codes`, but with sortable numbers in place of the names of bins."""
    rows = contingency.rows
    assert rows is not None
    extra = () if attributes is None else attributes.names

    def codes(each: Element) -> Sliced:
        if isinstance(each, str) and (size := size_named(each, items.attribute_sides(), extra)) is not None:
            return _size_codes(size, each, contingency)
        return sliced_by(
            each, attribute_values(each.name if isinstance(each, Bins) else each, items, attributes)
        )

    return crossed(list(map(codes, elements(key))), rows.cell >= 0 if among is None else among)


def sliced_by(element: Element, values: pa.ChunkedArray) -> Sliced:
    """Return the slices by the values of an attribute, or by bins."""
    plain = encoded(element.name if isinstance(element, Bins) else element, values)
    return _binned(element, plain) if isinstance(element, Bins) else plain


def named(element: Element, values: pa.Array) -> pa.Array:
    """Return the names of slices: ranges for bins, otherwise the values, as text if they are not plain."""
    return element.labels(values) if isinstance(element, Bins) else readable(values)


def beside(names: Mapping[str, pa.Array], figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns of names and figures; a name that is also that of a figure becomes attribute.NAME."""
    return {f"attribute.{name}" if name in figures else name: own for name, own in names.items()} | dict(
        figures
    )


def name_columns(columns: Iterable[str]) -> list[str]:
    """Return those columns of a table of slices that name the slice."""
    return list(takewhile(lambda column: column != "n_items", columns))


#: Maximum number of slices of one slicing in JSON: the costliest.
IN_JSON = 1 << 12


def numbers_of_cut(sliced: Mapping[str, Table], limit: int | None) -> dict[str, dict[str, int]]:
    """Return the number of slices of each slicing that JSON has only in part; empty if there is none."""
    cut = {by: table.num_rows for by, table in sliced.items() if limit is not None and table.num_rows > limit}
    return {"n_slices": cut} if cut else {}


def rows_for_json(table: Any, limit: int | None = None) -> list[dict[str, Any]]:
    """Return a table of slices row by row, with names that JSON lacks (NaN, infinity, dates) as text.

    If there are more than `limit` slices, return the costliest.

    Examples
    --------
    >>> rows_for_json(pa.table({"x": [float("inf"), None], "n_items": [3, 4]}))
    [{'x': 'inf', 'n_items': 3}, {'x': None, 'n_items': 4}]
    """
    if limit is not None and table.num_rows > limit:
        table = listed(table, (), LOSS, limit)
    rows = table.to_pylist()
    for name in name_columns(table.column_names):
        for row in rows:
            value = row[name]
            is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
            row[name] = value if value is None or is_number else str(value)
    return rows


def entry_of_slices(sliced: Mapping[str, Table]) -> dict[str, Any]:
    """Return the entry of tables of slices in the JSON of a result; empty if there are no slices."""
    return {"slices": {by: rows_for_json(table) for by, table in sliced.items()}} if sliced else {}


def names_element(column: str, element: Element) -> bool:
    """Return whether a column of names, made by `beside`, belongs to this attribute or these bins."""
    return column in (str(element), f"attribute.{element}")


def _binned(element: Bins, plain: Sliced) -> Sliced:
    """Return the slices by bins, given those by value, with nulls last; unused values are ignored."""
    (values,) = plain.values.values()
    there = np.bincount(plain.codes, minlength=len(values)) > 0
    numbers = element.numbers(values.take(from_numpy(np.flatnonzero(there))))
    by_value, known = number_values(pa.chunked_array([numbers]))
    return Sliced(by_value[(np.cumsum(there) - 1)[plain.codes]], {str(element): known})


def crossed(columns: Sequence[Sliced], scored: NDArray[np.bool_]) -> Sliced:
    """Return the slices formed by crossing several columns, without those that have no scored row."""
    codes = np.zeros(scored.size, np.int64)
    for each in columns:
        codes *= each.n_slices
        codes += each.codes
    n_crossed = int(np.prod([float(each.n_slices) for each in columns]))
    if n_crossed <= 4 * scored.size + 1024:
        used = np.flatnonzero(np.bincount(codes[scored], minlength=n_crossed))
        position = np.full(n_crossed, -1)
        position[used] = np.arange(used.size)
        codes = position[codes]
    else:
        used = np.unique(codes[scored])
        at = np.minimum(np.searchsorted(used, codes), used.size - 1)
        codes = np.where(used[at] == codes, at, -1)
    values: dict[str, pa.Array] = {}
    left = used
    for each in reversed(columns):
        for name, own in each.values.items():
            values[name] = own.take(from_numpy(left % each.n_slices))
        left = left // each.n_slices
    return Sliced(codes, dict(reversed(values.items())))


def encoded(name: str, values: pa.ChunkedArray) -> Sliced:
    """Return the slices by the values of a column, ascending, nulls last."""
    kind = values.type
    try:
        if not pa.types.is_nested(kind):
            codes, known = number_values(values)
            return Sliced(codes, {name: known})
    except pa.ArrowNotImplementedError:
        pass
    raise SliceError(f"cannot slice by {name!r}, which has type {kind}; use a plain column")


def attribute_values(
    name: str, items: Items, attributes: AttributeTable | None, rows: NDArray[np.int64] | None = None
) -> pa.ChunkedArray:
    """Return an attribute of these rows, or of all rows, by the name that users give it.

    An attribute that has equal values on both sides needs no prefix.
    """
    sides, extra = (
        {**items.attribute_sides(), ID: id_parts(items)},
        () if attributes is None else attributes.names,
    )
    fault = ""
    if name not in (*extra, *sides[ID]) and name in sides["truth"] and name in sides["prediction"]:
        found, fault = shared_attribute(items, name)
        if found is not None:
            return found if rows is None else take_or_null(found, rows)
    try:
        side, own = attribute_home(name, sides, extra, fault)
    except ColumnError:
        for known, reason in items.left_out().items():
            if name in (known, known.partition(".")[2]):
                raise ColumnError(reason) from None
        raise
    if side == ID:
        return pa.chunked_array([items.ids(rows).field(own)])
    if side or attributes is None:
        return items.attribute(side, own, rows)
    return attributes.attribute(own, rows)


def id_parts(items: Items) -> tuple[str, ...]:
    """Return the parts of a composite id, which can be used as attributes; empty for a plain id."""
    return items.item_names if len(items.item_names) > 1 else ()


def attribute_home(
    name: str, sides: Mapping[str, Sequence[str]], extra: Sequence[str] = (), fault: str = ""
) -> tuple[str, str]:
    """Return the side and column of an attribute; one of both sides needs a prefix, and `fault` says why."""
    if name in extra or (name.startswith("attributes.") and name.removeprefix("attributes.") in extra):
        return "", name if name in extra else name.removeprefix("attributes.")
    for side in sides:
        if name.startswith(f"{side}.") and name[len(side) + 1 :] in sides[side]:
            return side, name[len(side) + 1 :]
    found = [side for side in sides if name in sides[side]]
    if "attributes" in found:  # saved attributes of a table have precedence, as before saving
        return "attributes", name
    if len(found) > 1:
        where = "both sides have" if set(found) == {"truth", "prediction"} else f"{' and '.join(found)} have"
        prefixed = " or ".join(f"'{Word(side)}.{name}'" for side in found)
        raise ColumnError(
            f"{where} an attribute {name!r}{f', and {fault}' if fault else ''}; write {prefixed}"
        )
    if found:
        return found[0], name
    there = {**{side: names for side, names in sides.items() if names or side != ID}, "attributes": extra}
    known = [own for names in (*there.values(), SIZES) for own in names]
    there["always"] = [f"{Word(size)}" for size in SIZES]
    raise ColumnError(
        f"there is no attribute {_quoted(name, sides)}. There are: {named_sides(there)}."
        + (bins_meant(name, known) or _meant(name, known))
    )


def _quoted(name: str, sides: Mapping[str, Sequence[str]]) -> str:
    """Return a name for a message, with any prefix for a side replaced by what a diff calls that side."""
    side, dot, own = name.partition(".")
    return f"'{Word(side)}.{own}'" if dot and side in sides else quoted(name)


def _meant(name: str, known: Sequence[str]) -> str:
    """Return a suggestion to end a message with; sizes are called what a diff calls them."""
    found = similar(name, known)
    return f" Did you mean '{Word(found)}'?" if found in SIZES else did_you_mean(name, known)


def _size_codes(size: str, name: str, contingency: Contingency) -> Sliced:
    """Return the slices by cluster size: 1, 2-3, 4-7, and so on; with overlap, by the items in any of the clusters."""
    rows = contingency.rows
    assert rows is not None
    sizes = contingency.mates("true" if size == "true_size" else "pred")
    power = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1] - 1
    by_row = power[np.maximum(rows.cell, 0)].astype(np.int64)
    sizes = 2 ** np.arange(int(by_row.max()) + 1, dtype=np.int64)
    return Sliced(by_row, {name: size_names(sizes)})


def size_names(sizes: NDArray[np.integer]) -> pa.Array:
    """Return the names of slices by size, from the smallest size in each: 1, 2-3, 4-7, and so on."""
    return from_texts([f"{size}-{2 * size - 1}" if size > 1 else "1" for size in sizes.tolist()])


def subset_mask(which: Any, items: Items, contingency: Contingency, name: str) -> NDArray[np.bool_]:
    """Return the mask of scored rows in a subset, which is given as a mask or a list of items."""
    rows = contingency.rows
    assert rows is not None
    scored = rows.cell >= 0
    mask, which = as_subset(which, name)
    if mask is not None:
        mask = _rows_of_mask(mask, items, scored, name)
    else:
        found = items.rows_of(which)
        if (missing := np.flatnonzero(found < 0)).size:
            column = list(which)
            raise missing_items(name, [column[k] for k in missing[:4]], missing.size, found.size)
        mask = np.zeros(scored.size, np.bool_)
        mask[found] = True
    if not (mask & scored).any():
        raise nothing_scored(name)
    return np.asarray(mask & scored)


def _rows_of_mask(
    mask: NDArray[np.bool_], items: Items, scored: NDArray[np.bool_], name: str
) -> NDArray[np.bool_]:
    """Return the mask of scored rows, given a mask over the truth's rows or over the scored items in order."""
    n_listed, found = int(np.count_nonzero(scored)), []
    if mask.shape == (items.n_given,):
        found.append(items.by_row(mask) & scored)
    if mask.shape == (n_listed,):
        listed = np.zeros(scored.size, np.bool_)
        listed[scored] = mask
        found.append(listed)
    if not found:
        rows = "" if n_listed == items.n_given else f", or of the {items.n_given} rows that were given"
        raise SliceError(
            f"the mask of {name} has {mask.size} values; it needs one for each of the {n_listed} items that "
            f"items() lists{rows}"
        )
    if not np.array_equal(found[0], found[-1]):
        raise SliceError(
            f"the mask of {name} is ambiguous: its length fits both the rows of the {TRUTH} and the items that "
            "items() lists, and these readings select different items; pass a list of items"
        )
    return found[0]


def as_subset(which: Any, name: str) -> tuple[NDArray[np.bool_] | None, Any]:
    """Return a subset as a mask and None, or None and a list of items."""
    if isinstance(which, set | frozenset):
        which = list(which)
    if isinstance(which, str | Mapping) or is_bare(which) or not hasattr(which, "__len__"):
        raise SliceError(f"{name} must be a list of items or a mask, not {quoted(which)}")
    if not len(which):
        raise nothing_scored(name)
    mask = _as_mask(which, name)
    if mask is not None and is_pandas(which, "Series"):
        if not np.array_equal(which.index, np.arange(len(which))):
            raise SliceError(
                f"the mask of {name} is a Series with its own index, but masks are matched by position; pass "
                "mask.to_numpy(), or a list of items"
            )
    return mask, which


def nothing_scored(name: str) -> SliceError:
    """Return the error for a subset without a scored item."""
    return SliceError(f"{name} has no scored item, so it has no score")


def missing_items(name: str, first: list[Any], n_missing: int, of_items: int) -> SliceError:
    """Return the error for a subset with items that do not exist."""
    return SliceError(
        f"{n_missing} of {of_items} items of {name} are not in the evaluation (first: {first_few(first)})"
    )


def _as_mask(which: Any, name: str) -> NDArray[np.bool_] | None:
    """Return the argument as a mask; None if it is a list of items."""
    if isinstance(which, np.ndarray) and which.dtype == np.bool_:
        return which
    first = which[0] if isinstance(which, list | tuple) else None
    if first is not None and not isinstance(first, bool | np.bool_):
        return None
    try:
        values = to_arrow(which, name)
    except FastBCubedError:
        return None
    if not pa.types.is_boolean(values.type):
        return None
    if values.null_count:
        raise SliceError(f"{values.null_count} of {len(values)} values of the mask of {name} are null")
    return np.asarray(values.to_numpy())


def subset_scores(kept: Kept, figures: Figures, which: Any) -> Scores:
    """Implement `Evaluation.subset`."""
    mask = subset_mask(which, kept.require_items(), kept.cells, "the subset")
    found = means_of_groups(kept, figures, np.where(mask, 0, -1), 1)
    if not found["weight"][0]:
        raise SliceError("all items of the subset have weight 0, so it has no score")
    return Scores({m.name: float(found[m.name][0]) for m in figures.metrics if m.name in found})


def means_of_groups(
    kept: Kept, figures: Figures, codes: NDArray[np.integer], n: int, errors: ErrorsBySlice | None = None
) -> dict[str, Any]:
    """Return scores of groups of rows, given by codes, with standard errors if `errors` is given."""
    table = kept.cells
    columns = aggregation.group_means(
        table, codes, n, figures.metrics, beta=figures.beta, by_row=True, total=table.total_weight
    )
    return columns if errors is None else errors.beside(columns, codes, n)


#: Bytes per row, and per slice, while slices are made of rows that were kept; without the values, of which there are
#: three copies per row and two per slice.
ROW_BYTES, SLICE_BYTES = 60, 200
#: Number of rows from which the size of values is estimated.
SAMPLED = 1000
#: Advice if memory is insufficient.
REQUESTED = Message(
    f". Slices requested with {arg('slices', ...)} are added up on disk, without standard errors"
)


def codes_within_limit(
    kept: Kept, by: SliceKey, attributes: AttributeTable | None, errors: ErrorsBySlice | None
) -> Sliced:
    """Return the slices of rows that were kept; raise OptionError if they would exceed the run's memory limit."""
    items = kept.require_items()
    if errors is not None:
        errors.require_rows()
    if kept.memory_limit is None:
        return slice_codes(by, kept.cells, items, attributes)
    of_value = bytes_of_values(by, items, attributes)
    of_row, what = ROW_BYTES + 3 * of_value, f"slices by {slice_name(by)!r}"
    kept.require_room(of_row, what, instead=REQUESTED)
    cut = slice_codes(by, kept.cells, items, attributes)
    kept.require_room(
        of_row, f"the {cut.n_slices:,} {what}", cut.n_slices * (SLICE_BYTES + 2 * of_value), REQUESTED
    )
    return cut


def bytes_of_values(by: SliceKey, items: Items, attributes: AttributeTable | None) -> float:
    """Return the mean size in bytes of a row's values of the sliced attributes, from a sample of the first rows."""
    extra = () if attributes is None else attributes.names
    rows = np.arange(min(SAMPLED, len(items)))
    return sum(
        attribute_values(name, items, attributes, rows).nbytes / max(1, rows.size)
        for name in names_in([by])
        if size_named(name, items.attribute_sides(), extra) is None
    )


def known_within_limit(
    known: Table | None, kept: Kept, by: SliceKey, attributes: Any, errors: ErrorsBySlice | None
) -> bool:
    """Return whether requested slices are to be listed as stored rather than computed again from rows."""
    if known is None or errors is not None or kept.items is None:
        return known is not None and errors is None
    is_bounded = known.is_large or kept.memory_limit is not None
    return is_bounded and attributes is None and not isinstance(by, Mapping)


def list_slices(
    kept: Kept,
    figures: Figures,
    by: SliceKey,
    attributes: Any,
    errors: ErrorsBySlice | None,
    order_by: str | None,
    limit: int | None,
) -> Table:
    """Implement `Evaluation.slices`, with standard errors if `errors` is given."""
    order_by = LOSS if order_by is None and limit is not None else order_by
    known = figures.sliced.get(slice_name(by))
    if known is not None and known_within_limit(known, kept, by, attributes, errors):
        return ordered(known, figures.metrics, order_by, limit)
    kept.require_items()

    def means(codes: NDArray[np.integer], n: int) -> dict[str, Any]:
        return means_of_groups(kept, figures, codes, n, errors)

    table, every = slice_table(kept, by, attributes, errors, means), None
    if isinstance(by, Mapping):
        every = table_of(means_of_groups(kept, figures, np.where(kept.rows.cell >= 0, 0, -1), 1))
    return ordered(Table(table), figures.metrics, order_by, limit, every)


def slice_table(
    kept: Kept,
    by: SliceKey,
    attributes: Any,
    errors: ErrorsBySlice | None,
    means: Callable[[NDArray[np.integer], int], dict[str, Any]],
) -> pa.Table:
    """Return a table of slices with the columns that `means` computes from slice codes and the number of slices."""
    if not isinstance(by, Mapping):
        cut = codes_within_limit(kept, by, kept.attributes_or(attributes), errors)
        return table_of(beside(cut.values, means(cut.codes, cut.n_slices)))
    items = kept.require_items()
    masks = [subset_mask(which, items, kept.cells, repr(name)) for name, which in by.items()]
    rows = [means(np.where(mask, 0, -1), 1) for mask in masks]
    names = {"slice": from_texts(list(map(str, by)))}
    return table_of(names | {name: np.concatenate([row[name] for row in rows]) for name in rows[0]})


#: Orders of slices by their loss beyond their share of the weight: in total, and per item.
EXCESS = "excess"
EXCESSES = (EXCESS, "excess_per_item")


def excess_of(loss: Any, weight: Any, loss_of_all: float, weight_of_all: float) -> tuple[Any, Any]:
    """Return the loss of slices beyond their share of the weight, in total and per item of mean weight.

    >>> excess_of(0.375, 25.0, 0.5, 100.0)  # a fourth of the items: 0.375 - 0.5 / 4, and 4 times that
    (0.25, 1.0)
    """
    share = weight / weight_of_all
    return loss - share * loss_of_all, loss / share - loss_of_all


def ordered(
    table: Table, metrics: Sequence[Metric], order_by: str | None, limit: int | None, every: Any = None
) -> Table:
    """Return slices in order, possibly by excess; `every` has the sums over all items, if slices do not cover them."""
    sums = ("weight", *LOSSES)
    names = table.column_names
    if order_by is None or is_one_of(order_by, names) or not set(sums) <= set(names):
        return listed(table, metrics, order_by, limit)
    parts = table if every is None else every
    batches = parts._batches(sums) if getattr(parts, "is_large", False) else [parts]
    totals = np.sum([[to_numpy(part[name]).sum() for name in sums] for part in batches], axis=0)

    def with_excess(part: pa.Table) -> pa.Table:
        loss, weight = sum(to_numpy(part[name]) for name in LOSSES), to_numpy(part["weight"])
        with np.errstate(divide="ignore", invalid="ignore"):  # slices of weight 0
            found = excess_of(loss, weight, totals[1:].sum(), totals[0])
        return table_of({name: part[name] for name in names} | dict(zip(EXCESSES, found, strict=True)))

    return listed(table._changed(with_excess), metrics, order_by, limit).select(names)


def without_errors(table: Table) -> Table:
    """Return slices without the columns for standard errors, so that attributes may use their names."""
    names = name_columns(table.column_names)
    figures = table.column_names[len(names) :]
    added = {"n_units", *(f"{score}_se" for score in figures)}
    free = {f"attribute.{name}": name for name in added}

    def change(table: pa.Table) -> pa.Table:
        kept = {free.get(name, name): table[name] for name in names}
        return table_of(kept | {name: table[name] for name in figures if name not in added})

    return table._changed(change)


def macro_of(
    slices: Table, name: str, metrics: Sequence[Metric], beta: float, min_items: int, f_of_means: bool
) -> Table:
    """Return mean and standard deviation of each score over the slices that have at least `min_items` items."""
    min_items = whole_number(min_items, "min_items", "items", least=1)
    n_items = to_numpy(slices["n_items"])
    large = n_items >= min_items
    if not large.any():
        raise SliceError(
            f"no slice of {name} has at least {min_items} items; the largest has {n_items.max(initial=0)}. Lower "
            "min_items="
        )
    chosen = [m for m in metrics if m.name in slices.column_names]
    found = {m.name: _mean_and_sd(to_numpy(slices[m.name])[large]) for m in chosen}
    if f_of_means:
        means = {score: mean for score, (mean, _, _) in found.items()}
        found |= {
            m.name: (_combined(m, means, beta), math.nan, found[m.name][2]) for m in chosen if m.combine
        }
    mean, sd, n = zip(*found.values(), strict=True) if found else ((), (), ())
    columns: dict[str, Any] = {
        "score": from_texts(list(found)),
        "mean": np.array(mean, np.float64),
        "sd": np.array(sd, np.float64),
        "n_slices": np.array(n, np.int64),
    }
    return Table(table_of(columns))


def _mean_and_sd(scores: NDArray[np.float64]) -> tuple[float, float, int]:
    """Return mean, standard deviation and number of the scores that are not NaN, as for slices of weight 0."""
    known = scores[~np.isnan(scores)]
    mean = math.fsum(known.tolist()) / known.size if known.size else math.nan
    sd = float(np.std(known, ddof=1)) if known.size > 1 else math.nan
    return mean, sd, int(known.size)


def _combined(metric: Metric, means: dict[str, float], beta: float) -> float:
    """Return a score that combines other scores, computed from their means."""
    missing = [need.name for need in metric.needs if need.name not in means]
    if missing:
        raise MetricError(
            f"f_of_means computes {metric.name} from {' and '.join(missing)}, but the slices do not have "
            f"{'it' if len(missing) == 1 else 'them'}; name {'it' if len(missing) == 1 else 'them'} in "
            f"{arg('metrics', ...)}"
        )
    assert metric.combine is not None
    return float(metric.combine(means, beta))
