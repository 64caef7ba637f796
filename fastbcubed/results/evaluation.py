"""Evaluation: one clustering scored against the truth, at every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.records import SIDES
from fastbcubed.errors import MetricError, OptionError, SliceError, first_few
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.estimates import Estimated
from fastbcubed.results.files import storage
from fastbcubed.results.gates import gating, verification
from fastbcubed.results.items.items import AttributeTable
from fastbcubed.results.listings import drilldown
from fastbcubed.results.listings.listing import LOSS, listed
from fastbcubed.results.listings.opening import chosen_columns, rows_of_cluster, with_attributes
from fastbcubed.results.listings.table import Table
from fastbcubed.results.openings import Openings
from fastbcubed.results.scores import Scores
from fastbcubed.results.slices.slicing import (
    SliceKey,
    attribute_values,
    check_key,
    slice_codes,
    slice_name,
    subset_mask,
)
from fastbcubed.results.text.display import as_html, as_text
from fastbcubed.results.text.item_view import Item
from fastbcubed.sources.arrays import from_texts, table_of, to_numpy

if TYPE_CHECKING:
    pass

__all__ = ["Evaluation", "Scores"]


class Evaluation(Openings, Estimated):
    """How good a clustering is: overall, by cluster, by slice, by item.

    Made by `fastbcubed.evaluate` or `fastbcubed.load`. Scores are means over items unless their name
    says otherwise.

    Attributes
    ----------
    contingency : Contingency
        The cells behind all scores.
    metrics : list of Metric
        The scores that tables show.
    beta : float
        Weight of recall in F.
    coverage : Coverage
        How far the two sides have the same items.
    policies : Policies
        What was done with items that are missing somewhere.
    overall : Scores
        Scores over all items; each is also an attribute of the evaluation.
    not_computed : dict of str to str
        Scores of a family that are not defined for this input, and why.
    names : dict
        What the two sides are called.
    sliced : dict of str to Table
        Slices that were asked for when evaluating.
    engine : {"memory", "disk"}
        What did the work.
    ranges : ClusterRanges or None
        What works out the clusters where their cells do not fit in memory.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
    >>> round(ev.precision, 6), ev.recall
    (0.666667, 0.75)
    >>> ev.clusters("pred", limit=1)["cluster"].to_pylist()
    [0]
    """

    def metric(self, which: str | Metric | Callable[..., Any]) -> float:
        """Return a score over all items, by name or from a formula of your own.

        Parameters
        ----------
        which : str or callable
            A name of the registry, or ``f(tp, fp, fn, tn) -> array``, which is given float64 arrays of
            one shape and works element by element. Its mean over items is returned.

        Returns
        -------
        float

        Raises
        ------
        MetricError
            If the name is unknown or the score is not defined for this input.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1], [0, 1, 1])
        >>> ev.metric(lambda tp, fp, fn, tn: tp / (tp + fp + fn))
        0.4444444444444444
        """
        if isinstance(which, str) and self.overall.named(which) is not None:
            return self.overall[which]
        found = self._resolve([which])
        if len(found) != 1:
            raise MetricError(f"{which!r} is a family of {len(found)} scores; name one of them")
        drilldown.require_items(self.contingency, found, self.beta)
        return aggregation.overall(self.contingency, found, beta=self.beta)[found[0].name]

    def subset(self, which: Any) -> Scores:
        """Return scores over some items: a list of ids, or a mask with one bool per item.

        Parameters
        ----------
        which : array-like
            Ids; or a mask in the order of `items`, or of the truth's rows. Of a saved result, or one of the
            disk engine, the rows are those of ``items.parquet``.

        Returns
        -------
        Scores

        Raises
        ------
        SliceError
            If an item is not in the evaluation, or none of them is scored.
        """
        mask = subset_mask(which, self.kept_items(), self.contingency, "the subset")
        table = self._slice(np.where(mask, 0, -1), 1)
        if not table["weight"][0]:
            raise SliceError("all items of the subset have weight 0, so it has no score")
        return Scores({m.name: float(table[m.name][0]) for m in self.metrics if m.name in table})

    def slices(
        self,
        by: SliceKey,
        *,
        attributes: Any = None,
        errors: bool = False,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return scores by slice.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            An attribute, or a part of a composite id; bins of one (see `fastbcubed.bins`); several crossed; or names
            of subsets, each a mask or a list of items. "true_size" and "pred_size" are always there. A null is a
            slice of its own.
        attributes : table, optional
            Attributes by item, or row by row, to slice by; those given to `evaluate` by default.
        errors : bool
            Whether to work out standard errors, too, which takes about as long again: <score>_se behind each
            score, by the components that have items in the slice, and n_units, the number of these.
        order_by : str, optional
            A score or column to list worst first, or largest first, or "loss": by precision_loss and recall_loss
            together, largest first. Ties are broken by weight, then by slice. When absent, by slice, or by "loss"
            if there is a limit.
        limit : int, optional
            The number of slices to return; all when absent.

        Returns
        -------
        Table
            The slice, n_items, weight, precision_loss, recall_loss (what it costs of the precision and the
            recall of all items), and the scores; slices without a scored item are left out.

        Raises
        ------
        ColumnError
            If there is no such attribute.
        SliceError
            If a subset has no scored item, or an attribute cannot be sliced by.
        """
        by = check_key(by)
        order_by = LOSS if order_by is None and limit is not None else order_by
        if not self.has_items and not errors and slice_name(by) in self.sliced:
            return listed(self.sliced[slice_name(by)], self.metrics, order_by, limit)
        items = self.kept_items()
        if isinstance(by, Mapping):
            masks = [subset_mask(w, items, self.contingency, repr(n)) for n, w in by.items()]
            rows = [self._slice(np.where(mask, 0, -1), 1, errors) for mask in masks]
            columns: dict[str, Any] = {"slice": from_texts(list(map(str, by)))}
            columns |= {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
        else:
            extra = self.attributes if attributes is None else AttributeTable.of(attributes, items)
            cut = slice_codes(by, self.contingency, items, extra)
            columns = {**cut.values, **self._slice(cut.codes, cut.n_slices, errors)}
        return listed(table_of(columns), self.metrics, order_by, limit)

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        true_cluster: Any = None,
        pred_cluster: Any = None,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return every scored item, or those of a cluster: its clusters, weight, confusion matrix and scores.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        true_cluster, pred_cluster : object, optional
            The label of a cluster, whose items alone are listed; a tuple if composite.
        order_by : str, optional
            A score or column to list worst first, or largest first, or "loss", both losses together; in the order of
            the input when absent, or in one of its own where the disk engine has joined rows by item, of two tables
            or of one with `item=`. Ties are broken by weight, then by id.
        limit : int, optional
            The number of items to return; all when absent.

        Returns
        -------
        Table
            item, true_cluster, pred_cluster, the attributes, weight, tp, fp, fn, tn (null under "outside"),
            precision_loss, recall_loss (what it costs of the precision and the recall of all items), then the
            scores; an item's own F is item_f1. With outer weights the matrix holds counts.

        Raises
        ------
        SliceError
            If there is no such cluster.
        ColumnError
            If there is no such attribute.
        """
        items, rows = self.kept_items(), self._rows()
        names = chosen_columns(self, columns)
        here = rows.cell >= 0
        for side, label in (("true", true_cluster), ("pred", pred_cluster)):
            if label is not None:
                of_cluster = np.zeros_like(here)
                of_cluster[rows_of_cluster(self, side, label)] = True
                here &= of_cluster
        table = drilldown.item_columns(self.contingency, rows, self.metrics, np.flatnonzero(here))
        found = listed(table, self.metrics, order_by, limit, named_by=("row", "item", items.ids)).to_arrow()
        at = to_numpy(found["row"])
        for k, side in enumerate(SIDES, 1):
            found = found.add_column(k, f"{side}_cluster", items.labels(side, at))
        return Table(with_attributes(found.drop_columns(["row"]), self, names, at, 3))

    def item(self, which: Any, *, columns: str | Iterable[str] = (), members: int = 5) -> Item:
        """Return one item: its confusion matrix, scores, and the first few members of its four sets.

        Parameters
        ----------
        which : object
            Its id; a tuple if composite; its position if items have no ids.
        columns : str or iterable of str
            Attributes to show, named as in `slices`.
        members : int
            Members to list of each set.

        Returns
        -------
        Item
            A dict that reads well: item, true_cluster, pred_cluster, weight, tp, fp, fn, tn, the scores,
            "attributes" if there are columns, and "members": for each of "tp", "fp", "fn", "tn" the number of
            items and the first few of them.
        """
        if isinstance(members, bool) or not isinstance(members, int) or members < 0:
            raise OptionError(f"members is a number, 0 or more, not {members!r}")
        items, rows, names = self.kept_items(), self._rows(), chosen_columns(self, columns)
        row = int(items.rows_of([which])[0])
        if row < 0 or rows.cell[row] < 0:
            fault = "not in the evaluation" if row < 0 else "not scored"
            raise SliceError(f"item {first_few([which])} is {fault}")
        found = drilldown.one_item(self.contingency, rows, items, self.metrics, row, members)
        if names:
            own = {n: attribute_values(n, items, self.attributes, np.array([row]))[0].as_py() for n in names}
            found = {**found, "attributes": own, "members": found["members"]}
        return Item(found)

    # Output

    def check(self, *gates: str, **scores: float) -> Table:
        """Raise GateError, an AssertionError, unless all scores are as good as is wanted; for tests and jobs.

        Parameters
        ----------
        *gates : str
            What has to hold, such as "f1>=0.9", "jaccard_distance<=0.1", or of a slice "f1>=0.9@country=US", of bins
            "f1>=0.9@year:10=1990-1999", of subsets by name that were given to `evaluate` "f1>=0.9@slice=new".
        **scores : float
            Scores by name, or truth_coverage and prediction_coverage: the least that each has to be; the most, if
            less of it is better.

        Returns
        -------
        Table
            gate, passed, value, at_least, at_most.

        Raises
        ------
        GateError
            With a line for each that fails. A score that is not defined (NaN) fails.
        OptionError, MetricError, SliceError
            If there is no such score or slice, or the score cannot have that value.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
        >>> ev.check("recall>=0.7", precision=0.6)["passed"].to_pylist()
        [True, True]
        >>> ev.check(precision=0.9)
        Traceback (most recent call last):
            ...
        fastbcubed.errors.GateError: 1 of 1 gates failed
        failed: precision is 0.66667, wanted at least 0.9
        """
        return gating.check(self, gates, scores)

    def verify(self, n: int = 100, *, seed: int = 0) -> verification.Verified:
        """Work items drawn at random, and the scores over all, out anew from the rows, by their definition.

        Labels are compared row by row; the cells, from which all else comes, are not used. Of a loaded result this
        tells whether its files were changed since, checksums included.

        Parameters
        ----------
        n : int
            How many items; each takes a look at all rows.
        seed : int
            Of the random numbers: the same seed draws the same items.

        Returns
        -------
        Verified
            How many items, scores and slicings agree. Of overlapping clusterings, scores over all items and
            slices are compared with the cells alone.

        Raises
        ------
        VerificationError
            Which items and scores differ, and by how much.
        NotKeptError
            If the items were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]).verify()
        verified: 4 items agree with the rows, and so do 7 scores over all items
        """
        return verification.verify(self, n, seed)

    def save(self, directory: Any, *, keep: str = "items", repairs: int = 0) -> None:
        """Write the evaluation as JSON and Parquet files; `fastbcubed.load` reads it back.

        Parameters
        ----------
        directory : path
            Made if need be. Files of an earlier evaluation in it are replaced, together at the end.
        keep : {"scores", "cells", "items"}
            How much to write: ``overall.json`` and ``slices.parquet``; with "cells" also
            ``cells.parquet``, ``true_clusters.parquet`` and ``pred_clusters.parquet``; with "items"
            also ``items.parquet``, from which any later slice can be made.
        repairs : int
            How many repairs to write, as ``repairs.parquet``; see `repairs`.
        """
        storage.save(self, directory, keep, repairs)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    # Parts of the above

    def _slice(self, codes: NDArray[np.integer], n: int, errors: bool = False) -> dict[str, NDArray[Any]]:
        table = self.contingency
        columns = aggregation.group_means(
            table, codes, n, self.metrics, beta=self.beta, by_row=True, total=table.total_weight
        )
        return self._with_errors(columns, codes, n) if errors else columns
