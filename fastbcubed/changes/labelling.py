"""The truth beside a diff: which of its items have a true cluster, and what else the truth knows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.align import align
from fastbcubed.alignment.policies import Policies
from fastbcubed.alignment.row_values import take_or_null
from fastbcubed.changes.naming import TRUE_CLUSTER
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.inputs import Asked, one_side, pair_of_table
from fastbcubed.errors import ColumnError, FastBCubedError, IdTypeError, NotKeptError, OptionError
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.items.items import AlignedItems, AttributeTable, RowNumbers
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources import selection
from fastbcubed.sources.attributes import attribute, refused
from fastbcubed.sources.columns import Order, as_column
from fastbcubed.sources.suggestions import Typed
from fastbcubed.sources.tables import ColumnName


@dataclass(frozen=True, eq=False)
class Labelled:
    """The rows of a diff whose items the truth has, and the keys of their true clusters."""

    rows: RowNumbers  #: those that are scored; then new ones, which the policy "outside" merges to these
    keys: NDArray[np.int64]  #: equal keys, equal cluster; shape as of `rows`
    #: the experiment cluster of each new row by code, which is of none of the cells where no item of it is scored
    new: NDArray[np.int64]

    @property
    def judged(self) -> RowNumbers:
        """The rows that are scored."""
        return self.rows[: self.rows.size - self.new.size]


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
    rows, keys = rows[known], found.true_keys[known]
    if not (cell[rows] >= 0).any():
        raise OptionError(
            f"none of the items that {truth.name} labels is in baseline and experiment, so that nothing can be judged "
            "by it; leave truth= out"
        )
    assert isinstance(items, AlignedItems)
    labelled = _labelled(ev, rows, keys, items.in_prediction)
    return labelled, TruthAttributes(truth, row_of, ev.attributes, policies)


def _labelled(
    ev: Evaluated,
    rows: RowNumbers,
    keys: NDArray[np.int64],
    in_experiment: Callable[[], tuple[NDArray[np.bool_], NDArray[Any]]],
) -> Labelled:
    """Return rows that the truth has; `in_experiment` tells which rows that has, and the keys of its clusters."""
    scored = ev._rows().cell[rows] >= 0
    new = codes = np.empty(0, np.int64)
    if ev.policies.prediction == "outside" and not scored.all():
        there, clusters = in_experiment()
        new, first = np.flatnonzero(~scored & there[rows]), ev.first_rows("pred")
        known = np.flatnonzero(first >= 0)
        every = np.concatenate([clusters[first[known]], clusters[rows[new]]])
        _, at, place = np.unique(every, return_index=True, return_inverse=True)
        codes = np.concatenate([known, first.size + np.arange(new.size)])[at[place]][known.size :]
    chosen = np.concatenate([np.flatnonzero(scored), new])
    return Labelled(rows[chosen], keys[chosen], codes)


def labelled_again(ev: Evaluated) -> Labelled:
    """Return what `label` found, from the attribute that was saved with the items."""
    if ev.policies.nulls == "singleton":
        raise NotKeptError(
            'with nulls="singleton" a saved diff does not tell items whose true cluster is null from those that the '
            "truth lacks; call fastbcubed.diff anew"
        )
    values = ev.kept_items().attribute("attributes", TRUE_CLUSTER)
    known, keys = _keys(values, ev.policies.noise)
    rows = np.flatnonzero(known)
    return _labelled(ev, rows, keys[rows], lambda: _keys(ev.kept_items().labels("pred"), ev.policies.noise))


def _keys(values: Any, noise: Any) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which rows have a label, and keys by which those with the noise label and with none are alone."""
    labels = as_column(values, "cluster")
    alone = np.zeros(len(labels), np.bool_) if labels.null_rows is None else labels.null_rows.copy()
    known = ~alone
    if noise is not None:
        with suppress(IdTypeError):  # then it is a label of another side
            alone[labels.find(noise)] = True
    keys: NDArray[np.int64] = labels.keys().astype(np.int64, copy=False)
    if alone.any():
        keys = np.unique(keys, return_inverse=True)[1]
        keys[alone] = keys.size + np.arange(np.count_nonzero(alone))
    return known, keys


class TruthAttributes(AttributeTable):
    """The true cluster of an item and the attributes that the truth has, besides those of a table of their own."""

    def __init__(
        self, truth: Clustering, rows: RowNumbers, others: AttributeTable | None, policies: Policies
    ) -> None:
        self._truth, self._row_of, self._others, self._noise = truth, rows, others, policies.noise
        own = () if others is None else others.names
        for where, names in ((truth.name, truth.attribute_names), ("the table of attributes", own)):
            if TRUE_CLUSTER in names:
                raise ColumnError(
                    f"{where} has a column {TRUE_CLUSTER!r}, which in a diff is what the clusters of the truth are "
                    "called; give it another name"
                )
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
