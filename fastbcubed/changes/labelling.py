"""The truth beside a diff: which of its items have a true cluster, and what else the truth knows of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.align import align
from fastbcubed.alignment.policies import Policies
from fastbcubed.alignment.row_values import take_or_null
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.inputs import Asked, one_side, pair_of_table
from fastbcubed.errors import FastBCubedError, IdTypeError, NotKeptError, OptionError
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.items.items import AttributeTable, RowNumbers
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources import selection
from fastbcubed.sources.attributes import attribute, refused
from fastbcubed.sources.columns import Order, as_column
from fastbcubed.sources.suggestions import Typed
from fastbcubed.sources.tables import ColumnName

#: The attribute that is the true cluster of an item.
TRUE_CLUSTER = "true_cluster"


@dataclass(frozen=True, eq=False)
class Labelled:
    """The scored rows of a diff whose items the truth has, and the keys of their true clusters."""

    rows: RowNumbers
    keys: NDArray[np.int64]  #: equal keys, equal cluster; shape as of `rows`


def read_truth(truth: Any, columns: dict[str, ColumnName], order: Order, weight: Any = None) -> Clustering:
    """Read the truth, whatever holds it, with the column of weights that it may have."""
    return one_side(truth, Asked("the truth", columns, Typed(), order), weight, False)


@contextmanager
def weighed_by(truth: Clustering | None) -> Iterator[None]:
    """Let errors of the weights that a truth has, which are joined like those of a table, name the truth."""
    try:
        yield
    except FastBCubedError as error:
        text = str(error)
        if truth is None or truth.weight is None or "the weight table" not in text:
            raise
        raise type(error)(text.replace("the weight table", truth.name)) from error


def truth_of_table(truth: Any, other: Any, table: Any, item: ColumnName) -> Clustering:
    """Read the truth from the table that baseline and experiment are in, too."""
    found, _ = pair_of_table(truth, other, table, item, None)
    return replace(found, attributes=None)  # they are those of the baseline


def label(
    ev: Evaluated, truth: Clustering, policies: Policies, pool: Pool, *, null_is_absent: bool
) -> tuple[Labelled, TruthAttributes]:
    """Find the items of a diff in the truth; return those that have a true cluster, and what the truth knows of all."""
    items, cell = ev.kept_items(), ev._rows().cell
    ids = as_column(items.ids(), "item", "the items of baseline and experiment") if items.item_names else None
    if ids is not None and truth.items is not None:
        ids.order = truth.items.order  # their values do not tell
    both = Clustering.from_labels(cell, items=ids, name="baseline and experiment")
    policies = replace(policies, truth="drop", prediction="drop")
    found = align(truth, both, policies, pool, null_is_absent=null_is_absent)
    true_rows, rows = (
        np.arange(len(found)) if own is None else own for own in (found.true_rows, found.pred_rows)
    )
    known = (rows >= 0) & (true_rows >= 0)
    row_of = np.full(cell.size, -1)
    row_of[rows[known]] = true_rows[known]
    if found.absent_true is not None:
        known &= found.true_keys != found.absent_true
    known[known] = cell[rows[known]] >= 0
    if not known.any():
        raise OptionError(
            f"none of the items that {truth.name} labels is in baseline and experiment, so that nothing can be judged "
            "by it; leave truth= out"
        )
    return Labelled(rows[known], found.true_keys[known]), TruthAttributes(
        truth, row_of, ev.attributes, policies
    )


def labelled_again(ev: Evaluated) -> Labelled:
    """Return what `label` found, from the attribute that was saved with the items."""
    if ev.policies.nulls == "singleton":
        raise NotKeptError(
            'with nulls="singleton" a saved diff does not tell items whose true cluster is null from those that the '
            "truth lacks; call fastbcubed.diff anew"
        )
    values = ev.kept_items().attribute("attributes", TRUE_CLUSTER)
    labels, known = as_column(values, TRUE_CLUSTER), ev._rows().cell >= 0
    if labels.null_rows is not None:
        known = known & ~labels.null_rows
    keys = labels.keys().astype(np.int64, copy=True)
    if ev.policies.noise is not None:
        with suppress(IdTypeError):  # then it is a label of another side
            keys = _alone(keys, labels.find(ev.policies.noise))
    rows = np.flatnonzero(known)
    return Labelled(rows, keys[rows])


def _alone(keys: NDArray[np.int64], rows: RowNumbers) -> NDArray[np.int64]:
    """Return keys in which each of some rows has one of its own."""
    codes = np.unique(keys, return_inverse=True)[1]
    codes[rows] = keys.size + np.arange(rows.size)
    return codes


class TruthAttributes(AttributeTable):
    """The true cluster of an item and the attributes that the truth has, besides those of a table of their own."""

    def __init__(
        self, truth: Clustering, rows: RowNumbers, others: AttributeTable | None, policies: Policies
    ) -> None:
        self._truth, self._row_of, self._others, self._noise = truth, rows, others, policies.noise
        own = () if others is None else others.names
        known = [name for name in (TRUE_CLUSTER, *truth.attribute_names) if name not in own]
        self.names = (*dict.fromkeys(known), *own)

    def attribute(self, name: str, rows: RowNumbers | None = None) -> pa.ChunkedArray:
        """Return an attribute of some rows, or of all, null where the truth lacks the item."""
        if self._others is not None and name in self._others.names:
            return self._others.attribute(name, rows)
        at = self._row_of if rows is None else np.where(rows < 0, -1, self._row_of[rows])
        if name == TRUE_CLUSTER:
            return pa.chunked_array([take_or_null(self._truth.labels, at)])
        assert self._truth.attributes is not None
        return selection.take_or_null(attribute(self._truth.attributes, name), at)

    def left_out(self) -> dict[str, str]:
        """Return the attributes that cannot be kept, and why."""
        found = {} if self._others is None else self._others.left_out()
        table = self._truth.attributes
        if table is None:
            return found
        own = [name for name in self.names if name != TRUE_CLUSTER and name in self._truth.attribute_names]
        return found | {f"attributes.{name}": reason for name, reason in refused(table, own).items()}
