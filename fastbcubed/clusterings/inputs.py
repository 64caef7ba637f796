"""What is given to evaluate() → two clusterings, and what has to be joined to them by item."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.mistaken import (
    refuse_items_of_clusters,
    refuse_items_with_clusters,
    refuse_weights_by_row,
)
from fastbcubed.clusterings.part_order import in_one_order, in_order, order_of
from fastbcubed.clusterings.set_lists import by_position
from fastbcubed.errors import AlignmentError, ColumnError, OptionError, WeightError
from fastbcubed.runtime.choices import true_or_false
from fastbcubed.sources.arrays import is_pandas
from fastbcubed.sources.choosing import choose_columns
from fastbcubed.sources.columns import Column, Order, as_column
from fastbcubed.sources.lists import unlisted
from fastbcubed.sources.open import as_rows
from fastbcubed.sources.part_names import joined_in_order
from fastbcubed.sources.pipes import held_once
from fastbcubed.sources.suggestions import Typed, did_you_mean
from fastbcubed.sources.tables import (
    ColumnName,
    Rows,
    column_names,
    is_array,
    read_columns,
    refuse_other_indexes,
    weight_array,
)
from fastbcubed.sources.wrappers import is_result

#: A column name for both sides, or a pair of them: the truth's, the prediction's.
PerSide = ColumnName | tuple[ColumnName, ColumnName]


@dataclass(frozen=True)
class Given:
    """What two clusterings are read from; see `evaluate`."""

    truth: Any
    prediction: Any
    item: PerSide = "item"
    cluster: PerSide = "cluster"
    weight: Any = None
    table: Any = None
    attributes: Any = None
    overlapping: bool = False
    #: what has the column of weights if neither side has it: the truth of a diff
    weighing: Clustering | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "overlapping", true_or_false(self.overlapping, "overlapping"))
        names = ("truth", "prediction", "attributes") if self.table is None else ("table", "attributes")
        given = {name: getattr(self, name) for name in names}
        if not isinstance(self.weight, str):
            given["weight"] = self.weight
        for name, source in held_once(given).items():
            object.__setattr__(self, name, source)
        if self.table is None:
            refuse_weights_by_row(self.weight, zip(self.sources, per_side(self.item, "item"), strict=True))
        elif is_pandas(self.weight, "Series"):
            refuse_other_indexes((self.table, self.weight), "the table and the weights")

    @property
    def sources(self) -> tuple[Any, ...]:
        """The table of both sides, or what each is read from."""
        return (self.truth, self.prediction) if self.table is None else (self.table,)

    def read(self) -> Inputs:
        """Read the two sides, whatever holds them."""
        return read_pair(
            self.truth,
            self.prediction,
            item=self.item,
            cluster=self.cluster,
            weight=self.weight,
            table=self.table,
            attributes=self.attributes,
            overlapping=self.overlapping,
            weighing=self.weighing,
        )


def default_for_truth_only(prediction: Any) -> str:
    """Return the policy for items of the truth alone if none is given: those that no link has are alone."""
    alone = isinstance(prediction, Clustering) and prediction.omits_singletons
    return "singleton" if alone else "drop"


class Inputs(NamedTuple):
    """Two clusterings over the same rows (`items` is None, or one object), or to be joined by item."""

    #: the two sides; `weight` is set on each side that has the weight column
    truth: Clustering
    prediction: Clustering
    weight_table: tuple[Column, np.ndarray] | None = None  #: item and weight, to be joined by item
    attribute_table: tuple[Column, Rows] | None = None  #: item and attributes, to be joined by item


def read_pair(
    truth: Any,
    prediction: Any,
    *,
    item: PerSide = "item",
    cluster: PerSide = "cluster",
    weight: Any = None,
    table: Any = None,
    attributes: Any = None,
    overlapping: bool = False,
    weighing: Clustering | None = None,
) -> Inputs:
    """Read the two sides of an evaluation, whatever holds them.

    The arguments are those of `fastbcubed.evaluate`; a column of weights that neither side has is that of `weighing`.
    """
    if table is not None:
        if cluster != "cluster":
            raise OptionError(
                f"With table=, the columns of clusters are given in place of the truth and the prediction, "
                f"so cluster={cluster!r} has no use."
            )
        sides = pair_of_table(truth, prediction, table, item, weight)
    else:
        truth, prediction, weight = by_position(truth, prediction, weight, overlapping)
        sides = _from_two(truth, prediction, item, cluster, weight, overlapping)
    items = per_side(item, "item")
    weight_table: tuple[Column, np.ndarray] | None = None
    if isinstance(weight, str):
        weight_table = _weights_of(weighing, sides)
        if weight_table is None:
            require_weight(sides, weight)
    elif weight is not None:
        sides, weight_table = _given_weight(sides, weight, items[0], table is not None, (truth, prediction))
    attribute_table = None
    if attributes is not None:
        if sides[0].items is None and table is None:
            columns = attributes.values() if isinstance(attributes, Mapping) else [attributes]
            refuse_other_indexes((truth, prediction, *columns), "the labels and the attributes")
        sides, attribute_table = _given_attributes(sides, attributes, items[0])
    for joined in (weight_table, attribute_table):
        if joined is not None:
            joined[0].refuse_nulls()
    if table is None and not any(map(_was_read, sides, (truth, prediction))):
        joins = weight_table is not None or attribute_table is not None
        for name, names in (("item", item), ("cluster", cluster)):
            if names != name and not (name == "item" and joins):
                raise OptionError(
                    f"{name}={names!r} names a column, but no table was given that could have it."
                )
    ids = sides[0].items
    return Inputs(*sides, joined_in_order(ids, weight_table), joined_in_order(ids, attribute_table))


def _was_read(side: Clustering, given: Any) -> bool:
    """Say whether a side was read from a table that was given."""
    return side.attributes is not None and not isinstance(given, Clustering)


def per_side(names: PerSide, argument: str) -> tuple[ColumnName, ColumnName]:
    """Return the truth's and the prediction's name of a column from what an argument gives."""
    if not isinstance(names, tuple):
        return names, names
    if len(names) != 2:
        raise OptionError(
            f"{argument} is a name, a list of names (a composite id), or a tuple of the truth's "
            f"and the prediction's, not a tuple of {len(names)}."
        )
    return names[0], names[1]


def pair_of_table(
    truth: Any, prediction: Any, table: Any, item: PerSide, weight: Any
) -> tuple[Clustering, Clustering]:
    """Read both sides from one table."""
    rows = as_rows(table, "the table")
    if rows is None:
        raise ColumnError(f"table should be a table or a path, not {type(table).__name__}.")
    groups = []
    for side, names in (("truth", truth), ("prediction", prediction)):
        groups.append(column_names(names, f"With table=, the {side}"))
    named = per_side(item, "item")[0]
    if isinstance(item, tuple) and item[0] != item[1]:
        raise OptionError(f"With table= both sides have one item column, not two: {item!r}.")
    items = column_names(named, "item")
    if items != ["item"] or "item" in rows.names:
        groups.append(items)
    if any(unlisted(rows, name) is not rows for group in groups[:2] for name in group):
        if groups[-1] == groups[1]:
            raise ColumnError(
                f"{rows.where} has lists of clusters, so it needs a column of items; pass item=."
            )
        named_weight = weight if isinstance(weight, str) else None
        truth, prediction = (
            Clustering.from_table(rows, item=named, cluster=group, weight=named_weight)
            for group in groups[:2]
        )
        return truth, prediction
    columns, weights = read_columns(rows, groups, weight if isinstance(weight, str) else None)
    ids = columns[2] if len(columns) > 2 else None
    sides = [
        Clustering(labels, ids, weights, rows, f"{name} ({labels.name!r} of {rows.where})")
        for labels, name in zip(columns, ("the truth", "the prediction"), strict=False)
    ]
    return sides[0], sides[1]


def _from_two(
    truth: Any, prediction: Any, item: PerSide, cluster: PerSide, weight: Any, overlapping: bool
) -> tuple[Clustering, Clustering]:
    series = is_pandas(truth, "Series") and is_pandas(prediction, "Series")
    if series and not truth.index.equals(prediction.index):
        raise AlignmentError(
            "The two Series have different indexes. If the index holds the items, pass "
            "Clustering.from_series(...) of both; if rows correspond by position, pass .to_numpy()."
        )
    if overlapping and isinstance(truth, Mapping) and isinstance(prediction, Mapping):
        refuse_items_of_clusters(truth, prediction)
    refuse_items_with_clusters(truth, prediction)
    refuse_one_result(truth, prediction)
    asked = asked_of_sides(item, cluster)
    sides = [
        one_side(given, own, weight, overlapping)
        for given, own in zip((truth, prediction), asked, strict=True)
    ]
    positional = [side.items is None for side in sides]
    if positional == [True, True] and len(sides[0]) != len(sides[1]):
        raise AlignmentError(
            f"Label arrays correspond by position and should be equally long, but the truth has "
            f"{len(sides[0])} labels and the prediction {len(sides[1])}. To match by item, pass "
            "tables."
        )
    if positional[0] != positional[1]:
        bare, full = ("truth", "prediction") if positional[0] else ("prediction", "truth")
        raise AlignmentError(
            f"The {bare} is an array of labels without item ids, the {full} has item ids; they "
            f"cannot be matched. Pass the {bare} as a table, or as Clustering.from_labels(labels, "
            "items=ids)."
        )
    return sides[0], in_one_order(*sides)


def refuse_one_result(truth: Any, prediction: Any) -> None:
    """Raise if both sides are one connection of DuckDB."""
    if truth is prediction and is_result(truth):
        raise OptionError(
            "the truth and the prediction are one connection of DuckDB, which holds the result of its last execute() "
            "alone; pass con.sql(...) of each, or two cursors"
        )


class Asked(NamedTuple):
    """What is asked of the table of a side: what it is called, its columns, and how these are typed."""

    name: str
    columns: dict[str, ColumnName]
    typed: Typed
    order: Order = Order.LISTED


def asked_of_sides(item: PerSide, cluster: PerSide) -> tuple[Asked, Asked]:
    """Return what is asked of the truth and of the prediction."""
    given = {"item": per_side(item, "item"), "cluster": per_side(cluster, "cluster")}
    truth, prediction = ({part: names[side] for part, names in given.items()} for side in (0, 1))
    order = order_of(item)
    return (
        Asked("the truth", truth, Typed(0, prediction), order),
        Asked("the prediction", prediction, Typed(1, truth), order),
    )


def one_side(given: Any, asked: Asked, weight: Any, overlapping: bool) -> Clustering:
    """Read one side.

    `weight` is the name of a column of weights, which the table may lack, or anything else, which is passed
    over. If `overlapping`, a dict may put an item in several clusters.
    """
    if isinstance(given, Clustering):
        return given.as_side(asked.name, given.weight if weight is None else own_weight(given, weight))
    if isinstance(given, Mapping):
        return Clustering.from_dict(given, overlapping=overlapping, name=asked.name)
    rows = as_rows(given, asked.name)
    if rows is None:
        return Clustering.from_labels(given, name=asked.name)
    named = weight if isinstance(weight, str) and weight in rows.names else None
    return in_order(Clustering._of_table(rows, asked.columns, named, asked.name, asked.typed), asked.order)


def own_weight(side: Clustering, weight: Any) -> np.ndarray | None:
    """Return the column that `weight` names, which replaces the weights that the side came with."""
    if side.attributes is None or not isinstance(weight, str) or weight not in side.attributes.names:
        return None
    return read_columns(side.attributes, [], weight)[1]


def _weights_of(
    weighing: Clustering | None, sides: tuple[Clustering, Clustering]
) -> tuple[Column, np.ndarray] | None:
    """Return the items and weights of a further clustering, if it has any and neither side has."""
    own = any(side.weight is not None for side in sides)
    if own or weighing is None or weighing.weight is None or weighing.items is None:
        return None
    return weighing.items, weighing.weight


def require_weight(sides: tuple[Clustering, Clustering], weight: str) -> None:
    """Raise if neither side has the column of weights."""
    if sides[0].weight is None and sides[1].weight is None:
        known = [
            f"{side.name} has {', '.join(side.attributes.names) if side.attributes else 'none'}"
            for side in sides
        ]
        names = [name for side in sides if side.attributes for name in side.attributes.names]
        hint = did_you_mean(weight, names)
        if os.path.exists(weight):
            hint = f" A name is that of a column; for weights in a file pass pathlib.Path({weight!r})."
        raise ColumnError(f"There is no weight column {weight!r}. Columns: {'; '.join(known)}.{hint}")


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
            f"weight is a {'dict' if by_key else 'table'} with a weight for each item, but the labels have "
            "no item ids to join it by. Pass an array with a weight for each label."
        )
    if by_key:
        items = as_column(list(weight), "item", "the items of weight")
        return sides, (items, weight_array(list(weight.values()), "weight"))
    if rows is not None:
        assert ids is not None
        asked = {"item": _item_names(rows, item, ids), "weight": "weight"}
        names, weights = choose_columns(rows, asked).columns
        columns, values = read_columns(rows, [names], weights[0])
        assert values is not None
        return sides, (columns[0], values)
    if by_item:
        raise WeightError(
            "The clusterings are matched by item, not by position, so weight is the name of a column, "
            "a table with the columns item and weight, or a dict from item to weight, not "
            f"{type(weight).__name__}."
        )
    if is_pandas(weight, "Series"):
        if not all(weight.index.equals(each.index) for each in labels if is_pandas(each, "Series")):
            raise WeightError("weight is a Series with another index than the labels have.")
    values = weight_array(weight, "weight")
    if len(values) != len(sides[0]):
        raise WeightError(f"weight has {len(values)} values for {len(sides[0])} rows; give one per row.")
    return (replace(sides[0], weight=values), sides[1]), None


def _given_attributes(
    sides: tuple[Clustering, Clustering], attributes: Any, item: ColumnName
) -> tuple[tuple[Clustering, Clustering], tuple[Column, Rows] | None]:
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
            raise OptionError("attributes= needs item ids when the labels come from a table; pass item=.")
        return (replace(sides[0], attributes=rows), sides[1]), None
    names = _item_names(rows, item, ids)
    columns, _ = read_columns(rows, [column_names(names, "item")])
    return sides, (columns[0], rows)


def _item_names(rows: Rows, item: ColumnName, ids: Column) -> ColumnName:
    """Return the item column(s) of a side table: as asked, else named as in the truth."""
    own, asked = list(ids.names), column_names(item, "item")
    if not set(asked) <= set(rows.names) and set(own) <= set(rows.names):
        return own
    return item
