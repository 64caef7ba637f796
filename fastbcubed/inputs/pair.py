"""The two clusterings given to `evaluate`, whole or in blocks, with the weights and attributes joined to them."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fastbcubed.errors import (
    PREDICTION,
    TRUTH,
    AlignmentError,
    ColumnError,
    FastBCubedError,
    OptionError,
    WeightError,
    Word,
    arg,
    first_few,
    naming,
    quoted,
)
from fastbcubed.inputs.arrays import Nulls, is_pandas, is_spark, is_sparse, refuse_unread, starts_as_integers
from fastbcubed.inputs.clustering import UNNAMED, Clustering, by_position
from fastbcubed.inputs.files import Stream, as_rows, columns_used, open_stream, spool
from fastbcubed.inputs.id_columns import Column, Order, as_column, in_order_of, joined_in_order, text_parts
from fastbcubed.inputs.layouts import Part, Reading, choose_weights
from fastbcubed.inputs.pipes import held_once
from fastbcubed.inputs.side_columns import NAMES, PerSide, SideRequest, per_side, side_requests
from fastbcubed.inputs.tables import (
    CLUSTER,
    DEFAULT,
    DEFAULTS,
    ITEM,
    NAMED,
    ROW,
    ColumnName,
    Source,
    Stretch,
    column_names,
    is_array,
    is_result,
    read_columns,
    refuse_other_indexes,
    unlisted,
    weight_array,
)
from fastbcubed.inputs.typed_columns import Unnamed
from fastbcubed.runtime.arguments import is_one_of, is_path, path_of, true_or_false
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.runtime.threads import blocks


def refuse_items_of_clusters(truth: Mapping[Any, Any], prediction: Mapping[Any, Any]) -> None:
    """Raise if two dicts of sets seem to map clusters to items: set members mostly agree and outnumber the keys."""
    sides = [[v for v in given.values() if isinstance(v, set | frozenset)] for given in (truth, prediction)]
    labels = [set[Any]().union(*sets) for sets in sides]
    common = len(labels[0] & labels[1])
    more = all(len(own) > len(given) for own, given in zip(labels, (truth, prediction), strict=True))
    if not more or 2 * common < min(map(len, labels)):
        return
    raise OptionError(
        f"The dicts have {len(truth)} and {len(prediction)} keys, and more values in their sets, of which "
        f"{common} are on both sides: they look like dicts from cluster to items, but a dict must map each "
        "item to the set of its clusters. Pass Clustering.from_clusters(...) for both sides; if the keys "
        f"are items, pass Clustering.from_dict(..., {arg('overlapping', True)})."
    )


def refuse_items_with_clusters(truth: Any, prediction: Any) -> None:
    """Raise if both sides are lists of pairs with distinct first elements: items with clusters, not labels."""
    if isinstance(truth, list | tuple) and all(map(_are_items_with_clusters, (truth, prediction))):
        raise OptionError(
            f"The {TRUTH} and the {PREDICTION} are lists of pairs (first: {first_few(truth[:1])} and "
            f"{first_few(prediction[:1])}), whose first elements are all different: they look like items "
            "and their clusters, but a list must hold the label of each item, by position. Pass "
            "dict(truth) and dict(prediction)."
        )


def _are_items_with_clusters(given: Any) -> bool:
    are_pairs = isinstance(given, list | tuple) and all(isinstance(e, tuple) and len(e) == 2 for e in given)
    if not are_pairs or len(given) < 2:
        return False
    try:
        return len({item for item, _ in given}) == len(given)
    except TypeError:  # unhashable values cannot be items
        return False


def refuse_weights_by_row(weight: Any, tables: Iterable[tuple[Any, Any]]) -> None:
    """Raise if weights are a pandas Series taken from a table, whose index numbers rows rather than items.

    Such a Series has the unnamed index of one of the tables, and this index equals no column that may hold the items.
    Each table comes with the name of its item column, which it may lack.
    """
    frames = [(frame, item) for frame, item in tables if is_pandas(frame, "DataFrame")]
    if not frames or not is_pandas(weight, "Series") or weight.index.names != [None]:
        return
    index = weight.index
    if not any(frame.index.names == [None] and frame.index.equals(index) for frame, _ in frames):
        return
    for frame, item in frames:
        columns = [at for at, name in enumerate(frame.columns) if name == item] or range(frame.shape[1])
        if any(np.array_equal(frame.iloc[:, at].to_numpy(), index.to_numpy()) for at in columns):
            return
    raise WeightError(
        f"weight is a Series indexed by the rows of a table (first: {first_few(index[:4].tolist())}), "
        "but weights are looked up by item. Name the column of weights, or pass a dict from item to weight."
    )


def in_order(side: Clustering, order: Order) -> Clustering:
    """Return a side read from a table, with `order` set on its ids."""
    if side.items is not None and side.items.order is Order.LISTED:
        side.items.order = order
    return side


def in_one_order(truth: Clustering, prediction: Clustering) -> Clustering:
    """Return the prediction with the parts of its ids in the truth's order."""
    if truth.items is None or prediction.items is None:
        return prediction
    # parts of links are named after the ends of a link
    strict = truth.links is None and prediction.links is None
    moved = in_order_of(truth.items, prediction.items, strict=strict)
    return prediction if moved is prediction.items else replace(prediction, items=moved)


@dataclass(frozen=True)
class Given:
    """The sources of two clusterings; see `evaluate`."""

    truth: Any
    prediction: Any
    item: PerSide = ITEM
    cluster: PerSide = CLUSTER
    weight: Any = None
    table: Any = None
    attributes: Any = None
    overlapping: bool = False
    #: the source of weights if neither side has any: the truth of a diff
    weighing: Clustering | None = None
    names: tuple[str, str] = NAMES
    run: str | None = None  #: the name of the prediction if there are several
    truth_is_read: bool = False  #: whether the truth was read before, so that no column is named for it
    sources: tuple[Any, ...] = field(init=False)  #: the table with both sides, or the source of each side
    on_spark: bool = field(init=False)  #: whether a source is a Spark DataFrame

    def __post_init__(self) -> None:
        object.__setattr__(self, "overlapping", true_or_false(self.overlapping, "overlapping"))
        for name, default in DEFAULTS.items():
            if isinstance(own := getattr(self, name), tuple) and not any(own):
                object.__setattr__(self, name, default)
        names = ("truth", "prediction", "attributes") if self.table is None else ("table", "attributes")
        given = {name: getattr(self, name) for name in names}
        if not isinstance(self.weight, str):
            given["weight"] = self.weight
        for name, source in given.items():
            if is_sparse(source):  # some sparse matrices are mappings
                refuse_unread(source, name)
        for name, source in held_once(given).items():
            object.__setattr__(self, name, source)
        sources = (self.truth, self.prediction) if self.table is None else (self.table,)
        object.__setattr__(self, "sources", sources)
        object.__setattr__(self, "on_spark", any(map(is_spark, sources)))
        if self.weight is None:
            return
        if self.table is None:
            refuse_weights_by_row(self.weight, zip(self.sources, per_side(self.item, "item"), strict=True))
        elif is_pandas(self.weight, "Series"):
            refuse_other_indexes((self.table, self.weight), "the table and the weights")

    @property
    def requests(self) -> tuple[SideRequest, SideRequest]:
        """How to read the truth and the prediction."""
        joins = self.attributes is not None or not (self.weight is None or isinstance(self.weight, str))
        truth, prediction = side_requests(self.item, self.cluster, self.names, self.run, joins=joins)
        return truth._replace(own={}) if self.truth_is_read else truth, prediction


def default_for_truth_only(prediction: Any) -> str:
    """Return the default policy for items that only the truth has: "singleton" if the prediction omits singletons."""
    alone = isinstance(prediction, Clustering) and prediction.omits_singletons
    return "singleton" if alone else "drop"


def read_pair(given: Given) -> Pair:
    """Read two sides from any source, each as a single block."""
    truth, prediction, weight = given.truth, given.prediction, given.weight
    named = not (is_one_of(given.item, ("item",)) and is_one_of(given.cluster, ("cluster",)))
    if given.table is not None:
        if not is_one_of(given.cluster, ("cluster",)):
            raise OptionError(
                f"With {arg('table', ...)}, name the columns of clusters as the {TRUTH} and the "
                f"{PREDICTION}; {arg('cluster', given.cluster)} has no effect."
            )
        sides = pair_of_table(truth, prediction, given.table, given.item, weight, given.names)
    else:
        if not named and starts_as_integers(truth) and starts_as_integers(prediction):
            # Two arrays of integers can only be labels by position. Tables, Series, sets and pairs are not looked for,
            # which would take as long as scoring a few thousand items.
            labels = zip((truth, prediction), given.names, strict=True)
            sides = _of_one_length(*(Clustering.from_labels(own, name=name) for own, name in labels))
        else:
            truth, prediction, weight = by_position(truth, prediction, weight, given.overlapping)
            sides = _from_two(truth, prediction, weight, given)
    weight_table: tuple[Column, np.ndarray] | None = None
    if isinstance(weight, str):
        weight_table = _weights_of(given.weighing, sides)
        if weight_table is None:
            require_weight(sides, weight)
    elif weight is not None:
        item = per_side(given.item, "item")[0]
        sides, weight_table = _given_weight(sides, weight, item, given.table is not None, (truth, prediction))
    attribute_table = None
    if given.attributes is not None:
        if sides[0].items is None and given.table is None:
            columns = (
                given.attributes.values() if isinstance(given.attributes, Mapping) else [given.attributes]
            )
            refuse_other_indexes((truth, prediction, *columns), "the labels and the attributes")
        sides, attribute_table = _given_attributes(sides, given.attributes, per_side(given.item, "item")[0])
    for joined in (weight_table, attribute_table):
        if joined is not None:
            joined[0].refuse_nulls()
    own = zip(sides, (truth, prediction), strict=True)
    made = any(side.attributes is not None and not isinstance(given, Clustering) for side, given in own)
    if named and given.table is None and not made and not given.truth_is_read:
        joins = weight_table is not None or attribute_table is not None
        for name, asked in (("item", given.item), ("cluster", given.cluster)):
            if asked != name and not (name == "item" and joins):
                raise OptionError(f"{name}={asked!r} names a column, but no table was given to take it from.")
    ids = sides[0].items
    return Pair.of(
        *sides,
        weight_table and joined_in_order(ids, weight_table),
        attribute_table and joined_in_order(ids, attribute_table),
    )


def pair_of_table(
    truth: Any, prediction: Any, table: Any, item: PerSide, weight: Any, called: tuple[str, str] = NAMES
) -> tuple[Clustering, Clustering]:
    """Read both sides from one table."""
    rows = as_rows(table, "the table")
    if rows is None:
        raise ColumnError(f"table should be a table or a path, not {type(table).__name__}.")
    groups = []
    for side, names in (("truth", truth), ("prediction", prediction)):
        groups.append(column_names(names, f"With {arg('table', ...)}, the {Word(side)}"))
    named = per_side(item, "item")[0]
    if isinstance(item, tuple) and item[0] != item[1]:
        raise OptionError(f"With {arg('table', ...)} both sides have one item column, not two: {item!r}.")
    items = column_names(named, "item")
    if items != ["item"] or "item" in rows.names:
        groups.append(items)
    if any(unlisted(rows, name) is not rows for group in groups[:2] for name in group):
        if groups[-1] == groups[1]:
            raise ColumnError(
                f"{rows.where} has lists of clusters, so it needs a column of items; pass {arg('item', ...)}."
            )
        named_weight = weight if isinstance(weight, str) else None
        truth, prediction = (
            Clustering.from_table(rows, item=named, cluster=group, weight=named_weight)
            for group in groups[:2]
        )
        return truth, prediction
    columns, weights = read_columns(rows, groups, weight if isinstance(weight, str) else None)
    ids = columns[2] if len(columns) > 2 else None
    of_items = Part((), ROW)
    if ids is not None:
        of_items = Part(tuple(items), DEFAULT if isinstance(named, Unnamed) else NAMED)
    sides = [
        Clustering(
            labels, ids, weights, rows, f"{name} ({labels.name!r} of {rows.where})",
            Reading(of_items, Part(tuple(group), NAMED)),
        )
        for labels, name, group in zip(columns, called, groups, strict=False)
    ]  # fmt: skip
    return sides[0], sides[1]


def _from_two(truth: Any, prediction: Any, weight: Any, asked: Given) -> tuple[Clustering, Clustering]:
    series = is_pandas(truth, "Series") and is_pandas(prediction, "Series")
    if series and not truth.index.equals(prediction.index):
        raise AlignmentError(
            "The two Series have different indexes. If the index holds the items, pass "
            "Clustering.from_series(...) for both; if rows correspond by position, pass .to_numpy()."
        )
    if isinstance(truth, Mapping) and isinstance(prediction, Mapping):
        refuse_items_of_clusters(truth, prediction)
    refuse_items_with_clusters(truth, prediction)
    refuse_one_result(truth, prediction)
    sides = [
        one_side(given, own, weight, asked.overlapping)
        for given, own in zip((truth, prediction), asked.requests, strict=True)
    ]
    positional = [side.items is None for side in sides]
    if positional == [True, True]:
        return _of_one_length(*sides)
    if positional[0] != positional[1]:
        bare, full = (TRUTH, PREDICTION) if positional[0] else (PREDICTION, TRUTH)
        raise AlignmentError(
            f"The {bare} is an array of labels without item ids, but the {full} has item ids; they cannot "
            f"be matched. Pass the {bare} as a table, or as Clustering.from_labels(labels, items=ids)."
        )
    return sides[0], in_one_order(*sides)


def _of_one_length(truth: Clustering, prediction: Clustering) -> tuple[Clustering, Clustering]:
    if len(truth) != len(prediction):
        raise AlignmentError(
            f"Label arrays correspond by position and should be equally long, but the {TRUTH} has "
            f"{len(truth)} labels and the {PREDICTION} {len(prediction)}. To match by item, pass "
            "tables."
        )
    return truth, prediction


def refuse_one_result(truth: Any, prediction: Any) -> None:
    """Raise if both sides are the same DuckDB connection, which holds one result."""
    if truth is prediction and is_result(truth):
        raise OptionError(
            f"the {TRUTH} and the {PREDICTION} are the same DuckDB connection, which holds only the result "
            "of its last execute(); pass con.sql(...) for each, or use two cursors"
        )


def one_side(given: Any, asked: SideRequest, weight: Any, overlapping: bool) -> Clustering:
    """Read one side from any source.

    `weight` may name a column of weights, which the table may lack; anything else is ignored. If `overlapping`, a dict
    may put an item into several clusters.
    """
    if isinstance(given, Clustering):
        asked.refuse_columns()
        own = given.weight if weight is None else own_weight(given, weight)
        return replace(given, weight=own, name=asked.name if given.name == UNNAMED else given.name)
    if isinstance(given, Mapping):
        asked.refuse_columns()
        return Clustering.from_dict(given, overlapping=overlapping, name=asked.name)
    rows = as_rows(given, asked.name)
    if rows is None:
        asked.refuse_columns()
        return Clustering.from_labels(given, name=asked.name)
    named = weight if isinstance(weight, str) and weight in rows.names else None
    return in_order(Clustering._of_table(rows, asked.columns, named, asked.name, asked.typed), asked.order)


def own_weight(side: Clustering, weight: Any) -> np.ndarray | None:
    """Return the side's column named `weight`, which replaces the side's own weights; None if there is none."""
    if side.attributes is None or not isinstance(weight, str) or weight not in side.attributes.names:
        return None
    return read_columns(side.attributes, [], weight)[1]


def _weights_of(
    weighing: Clustering | None, sides: tuple[Clustering, Clustering]
) -> tuple[Column, np.ndarray] | None:
    """Return the items and weights of a third clustering if it has weights and neither side does."""
    own = any(side.weight is not None for side in sides)
    if own or weighing is None or weighing.weight is None or weighing.items is None:
        return None
    return weighing.items, weighing.weight


def require_weight(sides: tuple[Clustering, Clustering], weight: str) -> None:
    """Raise ColumnError if neither side has the weight column."""
    if sides[0].weight is None and sides[1].weight is None:
        known = [
            f"{side.name} has {', '.join(side.attributes.names) if side.attributes else 'none'}"
            for side in sides
        ]
        names = [name for side in sides if side.attributes for name in side.attributes.names]
        hint = did_you_mean(weight, names)
        if os.path.exists(weight):
            hint = f" A string names a column; for weights in a file pass pathlib.Path({weight!r})."
        raise ColumnError(f"There is no weight column {quoted(weight)}. Columns: {'; '.join(known)}.{hint}")


def _given_weight(
    sides: tuple[Clustering, Clustering], weight: Any, item: ColumnName, one_table: bool, labels: Any
) -> tuple[tuple[Clustering, Clustering], tuple[Column, np.ndarray] | None]:
    ids = sides[0].items
    by_item = ids is not None and not one_table
    if by_item and is_pandas(weight, "Series"):
        return sides, (
            as_column(weight.index, "item", "the items of weight"),
            weight_array(weight, "weight"),
        )
    by_key = isinstance(weight, Mapping) and not (weight and all(map(is_array, weight.values())))
    rows = None if by_key else as_rows(weight, "the weight table")
    if ids is None and (by_key or rows is not None):
        raise WeightError(
            f"weight is a {'dict' if by_key else 'table'} of weights by item, but the labels have no item "
            "ids to join it on. Pass an array with one weight per label."
        )
    if by_key:
        items = as_column(list(weight), "item", "the items of weight")
        return sides, (items, weight_array(list(weight.values()), "weight"))
    if rows is not None:
        assert ids is not None
        names, weights = choose_weights(rows, _item_names(rows, item, ids))
        columns, values = read_columns(rows, [names], weights)
        assert values is not None
        return sides, (columns[0], values)
    if by_item:
        raise WeightError(
            "The clusterings are matched by item, not by position, so weight must be the name of a "
            "column, a table with the columns item and weight, or a dict from item to weight, not "
            f"{type(weight).__name__}."
        )
    if is_pandas(weight, "Series"):
        if not all(weight.index.equals(each.index) for each in labels if is_pandas(each, "Series")):
            raise WeightError("weight is a Series whose index differs from that of the labels.")
    values = weight_array(weight, "weight")
    if len(values) != len(sides[0]):
        raise WeightError(f"weight has {len(values)} values for {len(sides[0])} rows; give one per row.")
    return (replace(sides[0], weight=values), sides[1]), None


def _given_attributes(
    sides: tuple[Clustering, Clustering], attributes: Any, item: ColumnName
) -> tuple[tuple[Clustering, Clustering], tuple[Column, Source] | None]:
    rows = as_rows(attributes, "the attributes")
    if rows is None:
        raise ColumnError(
            f"attributes should be a table, a path or a dict of columns, not {type(attributes).__name__}."
        )
    ids = sides[0].items
    if ids is None:
        if len(rows) != len(sides[0]):
            raise AlignmentError(
                f"The labels have no item ids, so attributes correspond by position, but there are "
                f"{len(rows)} rows of attributes and {len(sides[0])} labels."
            )
        if sides[0].attributes is not None:
            raise OptionError(
                f"{arg('attributes', ...)} needs item ids when the labels come from a table; pass {arg('item', ...)}."
            )
        return (replace(sides[0], attributes=rows), sides[1]), None
    names = _item_names(rows, item, ids)
    columns, _ = read_columns(rows, [column_names(names, "item")])
    return sides, (columns[0], rows)


def _item_names(rows: Source, item: ColumnName, ids: Column) -> ColumnName:
    """Return the item columns of a joined table: the requested ones, else those named as in the truth."""
    own, asked = list(ids.names), column_names(item, "item")
    if not set(asked) <= set(rows.names) and set(own) <= set(rows.names):
        return own
    return item


@dataclass(frozen=True)
class Block:
    """Consecutive rows of one side, or of both sides where rows correspond."""

    first_row: int
    sides: tuple[Clustering, ...]


@dataclass(frozen=True)
class Pair:
    """The two sides of an evaluation, in blocks, and the tables joined to them."""

    #: one list if the rows of the two sides correspond, so that every block has both; otherwise one for the truth and
    #: one for the prediction, to be joined by item
    stretches: tuple[list[Stretch[Block]], ...]
    names: tuple[str, str]  #: names of the sides
    weight_table: tuple[Column, np.ndarray] | None = None  #: items and weights, held in memory
    attribute_table: tuple[Column, Source] | None = None  #: items and attributes, held in memory

    @classmethod
    def of(
        cls,
        truth: Clustering,
        prediction: Clustering,
        weight_table: tuple[Column, np.ndarray] | None = None,
        attribute_table: tuple[Column, Source] | None = None,
    ) -> Pair:
        """Return a pair of clusterings in memory; rows correspond if there are no item ids or both sides share them."""
        together = truth.items is None or truth.items is prediction.items
        sides = ((truth, prediction),) if together else ((truth,), (prediction,))
        whole = tuple([Stretch(0, len(own[0]), partial(iter, (Block(0, own),)))] for own in sides)
        return cls(whole, (truth.name, prediction.name), weight_table, attribute_table)

    @property
    def id_columns(self) -> list[Column]:
        """The item ids of the first block of each side, and of the joined tables."""
        found = [side.items for side in self.first if side.items is not None]
        return found + [table[0] for table in (self.weight_table, self.attribute_table) if table is not None]

    def with_text(self, texts: Sequence[bool]) -> Pair:
        """Return the pair with all ids converted by `Column.with_text`."""

        def typed(sides: tuple[Clustering, ...]) -> tuple[Clustering, ...]:
            items = {id(side.items): side.items and side.items.with_text(texts) for side in sides}
            return tuple(replace(side, items=items[id(side.items)]) for side in sides)

        def stretch(each: Stretch[Block]) -> Stretch[Block]:
            read = each.blocks
            return replace(
                each, blocks=lambda: (replace(block, sides=typed(block.sides)) for block in read())
            )

        weights, others = self.weight_table, self.attribute_table
        return replace(
            self,
            stretches=tuple([stretch(each) for each in side] for side in self.stretches),
            weight_table=weights and (weights[0].with_text(texts), weights[1]),
            attribute_table=others and (others[0].with_text(texts), others[1]),
        )

    def cut(self, size: int) -> Pair:
        """Return a pair in memory cut into blocks of at most `size` rows."""
        return replace(self, stretches=tuple(_cut(_first(side), size) for side in self.stretches))

    def without_joined(self) -> Pair:
        """Return the pair without the tables that are joined by item."""
        return replace(self, weight_table=None, attribute_table=None)

    @property
    def first(self) -> tuple[Clustering, Clustering]:
        """The first block of the truth and of the prediction."""
        found = [clustering for side in self.stretches for clustering in next(side[0].blocks()).sides]
        return found[0], found[1]

    @property
    def n_rows(self) -> int:
        """Upper bound on the number of aligned rows: that of both sides together, unless their rows correspond."""
        return sum(stretch.n_rows for side in self.stretches for stretch in side)


@dataclass(frozen=True)
class Cut:
    """How to read inputs block by block."""

    size: int  #: maximum number of rows in a block
    spill_dir: Any = None  #: directory to which streams are spilled
    #: names of columns to read besides those of the clusterings, where a table has them; None for all
    others: Collection[str] | None = ()

    def also(self, names: Sequence[str], lacking: Collection[str] = ()) -> list[str]:
        """Return the columns of a table to read besides those of the clusterings; repeated names are left out.

        If no names were given, columns that some files lack (`lacking`) are left out, too.
        """
        times = Counter(names)
        return [
            name
            for name in names
            if times[name] == 1 and (name not in lacking if self.others is None else name in self.others)
        ]


def open_pair(given: Given, cut: Cut | None = None) -> Pair:
    """Open the two sides of an evaluation, each as one block or cut into blocks.

    If cut into blocks, files are read block by block; one-pass streams, such as record-batch readers, are spilled to
    disk and read from there.
    """
    return in_one_kind([read_pair(given)])[0] if cut is None else open_pairs([given], [None], cut)[0]


def open_pairs(given: Sequence[Given], runs: Sequence[str | None], cut: Cut | None = None) -> list[Pair]:
    """Open pairs that differ only in their predictions, like `open_pair`; shared inputs are read once."""
    opening, pairs = _Opening([each.prediction for each in given], cut), list[Pair]()
    for each, run in zip(given, runs, strict=True):
        names = map(_source_name, (each.truth, each.prediction), each.names)
        with naming(run, *names):
            pairs.append(opening.pair(each))
    return in_one_kind(pairs, whole=cut is None)


def in_one_kind(pairs: list[Pair], *, whole: bool = True) -> list[Pair]:
    """Return pairs in which ids from sources without types are converted to text if any other ids are text.

    If `whole`, conversion takes place now, otherwise block by block.
    """
    columns = [column for pair in pairs for column in pair.id_columns]
    texts = text_parts(columns)
    if all(column.with_text(texts) is column for column in columns):
        return pairs
    found = [pair.with_text(texts) for pair in pairs]
    if not whole:
        return found
    return [Pair.of(*pair.first, pair.weight_table, pair.attribute_table) for pair in found]


def _source_name(given: Any, otherwise: str) -> str:
    """Return the name of a side in messages: its path, the name of a clustering, or `otherwise`."""
    if isinstance(given, Clustering):
        return given.name
    return path_of(given) if is_path(given) else otherwise


Make = Callable[[Source], tuple[Clustering, ...]]


class _Opening:
    """Opens several predictions with a common truth, which is read once; one-pass streams are spilled once."""

    def __init__(self, predictions: Sequence[Any], cut: Cut | None) -> None:
        self._predictions, self._cut = predictions, cut
        self._streams: list[tuple[Any, Stream | Source]] = []
        self._first: Pair | None = None
        #: inputs in memory that further predictions share with the first
        self._table: Source | None = None
        self._truth: Clustering | None = None

    def pair(self, given: Given) -> Pair:
        """Open a prediction with the truth; weights and attributes joined by item are those of the first pair."""
        first = self._first
        if first is not None:
            weight = given.weight if first.weight_table is None else None
            given = replace(given, attributes=None, weight=weight)
        pair = None if self._cut is None else self._in_blocks(given, self._cut)
        if pair is None:
            pair = self._whole(given)
            pair = pair if self._cut is None else pair.cut(self._cut.size)
        if first is not None:
            pair = replace(pair, weight_table=first.weight_table, attribute_table=first.attribute_table)
        self._first = first or pair
        return pair

    def _whole(self, given: Given) -> Pair:
        """Read a pair from sources in memory."""
        if given.table is not None:
            if self._table is None:
                self._table = as_rows(given.table, "the table")
            return read_pair(given if self._table is None else replace(given, table=self._table))
        if self._truth is None:
            pair = read_pair(given)
            self._truth = pair.first[0]
            return pair
        if self._truth.weight is None:
            return read_pair(replace(given, truth=self._truth, truth_is_read=True))
        # weights have been read
        pair = read_pair(replace(given, truth=self._truth, truth_is_read=True, weight=None))
        prediction = pair.first[1]
        own = own_weight(prediction, given.weight)
        return pair if own is None else Pair.of(pair.first[0], replace(prediction, weight=own))

    def _in_blocks(self, given: Given, cut: Cut) -> Pair | None:
        """Open a pair from sources that are read block by block; None if all are in memory."""
        found = None
        if given.table is not None and (given.weight is None or isinstance(given.weight, str)):
            if given.cluster == "cluster" and (source := self._source(given.table)) is not None:
                found = self._of_table(given, source, cut)
        elif given.table is None:
            refuse_one_result(given.truth, given.prediction)
            sources = self._source(given.truth), self._source(given.prediction)
            if sources != (None, None):
                found = self._of_sources(given, sources, cut)
        if found is None or given.attributes is None:
            return found
        first = replace(found.first[0], attributes=None)
        joined = read_pair(Given(first, first, item=given.item, attributes=given.attributes))
        if joined.attribute_table is None:
            raise OptionError(
                f"{arg('attributes', ...)} needs item ids when the labels come from a table; pass {arg('item', ...)}."
            )
        return replace(found, attribute_table=joined.attribute_table)

    def _source(self, given: Any) -> Source | Stream | None:
        """Return the rows of files, a stream or the spilled copy of one; None for sources in memory."""
        if is_path(given):
            return as_rows(given, "the table")
        for known, source in self._streams:
            if known is given:
                return source
        if (stream := open_stream(given)) is not None:
            self._streams.append((given, stream))
        return stream

    def _of_table(self, given: Given, source: Source | Stream, cut: Cut) -> Pair:
        def make(block: Source, prediction: Any = given.prediction) -> tuple[Clustering, ...]:
            return pair_of_table(given.truth, prediction, block, given.item, given.weight, given.names)

        def use(block: Source) -> None:
            for prediction in self._predictions:
                make(block, prediction)

        stretches = self._stretches(source, "the table", cut, make, use)
        return Pair((stretches,), _names(stretches, stretches))

    def _of_sources(
        self, given: Given, sources: tuple[Source | Stream | None, Source | Stream | None], cut: Cut
    ) -> Pair:
        """Open two tables, at least one of which is a stream or in files."""
        weight = given.weight
        name_of_weight = weight if isinstance(weight, str) else None
        asked = given.requests

        def make(k: int, rows: Any) -> tuple[Clustering, ...]:
            return (one_side(rows, asked[k], name_of_weight, False),)

        whole = [make(k, given.sources[k]) if source is None else () for k, source in enumerate(sources)]
        # a side without item ids, for which reading both raises
        if any(side.items is None for sides in whole for side in sides):
            shown = [
                each.without_rows(asked[k].name) if isinstance(each, Stream) else given.sources[k]
                for k, each in enumerate(sources)
            ]
            return read_pair(replace(given, truth=shown[0], prediction=shown[1], attributes=None)).cut(
                cut.size
            )

        def stretches(k: int, like: Clustering | None = None) -> list[Stretch[Block]]:
            def ordered(found: tuple[Clustering, ...]) -> tuple[Clustering, ...]:
                return found if like is None else (in_one_order(like, *found),)

            source = sources[k]
            if source is None:
                return _cut(ordered(whole[k]), cut.size)
            return self._stretches(source, asked[k].name, cut, lambda rows: ordered(make(k, rows)))

        truth = stretches(0)
        first = _first(truth)[0]
        prediction = stretches(1, first)
        firsts = first, _first(prediction)[0]
        weight_table = None
        if name_of_weight is not None:
            require_weight(firsts, name_of_weight)
        elif weight is not None:
            weight_table = read_pair(Given(firsts[0], firsts[0], weight=weight)).weight_table
        return Pair((truth, prediction), _names(truth, prediction), weight_table)

    def _stretches(
        self,
        source: Source | Stream,
        name: str,
        cut: Cut,
        make: Make,
        use: Callable[[Source], Any] | None = None,
    ) -> list[Stretch[Block]]:
        """Return stretches whose blocks are clusterings; `use`, if given, reads the columns of all predictions."""
        if isinstance(source, Stream):
            spill = Spill(cut.spill_dir, named=cut.spill_dir is not None)
            rows = spool(source, name, use or make, spill, cut.size, cut.also(source.schema.names))
            self._streams = [(known, rows if own is source else own) for known, own in self._streams]
            source = rows
        sources = source.scan(cut.size, columns_used(source, make, cut.also(source.names, source.lacking)))
        nulls = _NullsOfAll(sources, make)
        return [_stretch(each, make, nulls) for each in sources]


def _cut(sides: tuple[Clustering, ...], size: int) -> list[Stretch[Block]]:
    """Cut clusterings in memory, whose rows correspond, into blocks."""

    def stretch(start: int, stop: int) -> Stretch[Block]:
        def once() -> Iterator[Block]:
            found = [side.slice(start, stop) for side in sides]
            for shared in ("items", "attributes"):
                if len(sides) == 2 and getattr(sides[0], shared) is getattr(sides[1], shared):
                    found[1] = replace(found[1], **{shared: getattr(found[0], shared)})
            yield Block(start, tuple(found))

        return Stretch(start, stop - start, once)

    return [stretch(start, stop) for start, stop in blocks(len(sides[0]), size)]


class _NullsOfAll:
    """Counts the nulls of all blocks, once, when a block has nulls where none are allowed."""

    def __init__(self, sources: list[Stretch[Source]], make: Make) -> None:
        self._sources, self._make = sources, make
        self._lock = threading.Lock()  # so that blocks that fail at the same time count once
        self._found: Nulls | None = None

    def error(self) -> FastBCubedError:
        """Return the error that reports all nulls."""
        with self._lock:
            self._found = self._found or self._count()
        return self._found.error()

    def _count(self) -> Nulls:
        found: list[Nulls] = []
        for source in self._sources:
            for block in source.blocks():
                try:
                    self._make(block)
                except FastBCubedError as error:
                    if error.nulls is None:
                        raise
                    found.append(error.nulls.moved(block.first_row))
        return Nulls.sum(found, sum(source.n_rows for source in self._sources))


def _stretch(source: Stretch[Source], make: Make, nulls: _NullsOfAll) -> Stretch[Block]:
    def read() -> Iterator[Block]:
        try:
            for block in source.blocks():
                yield Block(block.first_row, make(block))
        except FastBCubedError as error:
            if error.nulls is None:
                raise
        else:
            return
        raise nulls.error()  # raised once the source is closed, as all blocks are read again

    return Stretch(source.first_row, source.n_rows, read)


def _names(truth: list[Stretch[Block]], prediction: list[Stretch[Block]]) -> tuple[str, str]:
    first, second = _first(truth), _first(prediction)
    return first[0].name, second[-1].name


def _first(side: list[Stretch[Block]]) -> tuple[Clustering, ...]:
    return next(side[0].blocks()).sides
