"""What an evaluation says of slices and of other subsets of its items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import SliceError
from fastbcubed.metrics import groups
from fastbcubed.results.estimates import Estimated
from fastbcubed.results.items.items import AttributeTable
from fastbcubed.results.listings.listing import LOSS, listed
from fastbcubed.results.listings.table import Table
from fastbcubed.results.scores import Scores
from fastbcubed.results.slices.macro import macro_of
from fastbcubed.results.slices.slicing import (
    SliceKey,
    beside,
    check_key,
    slice_codes,
    slice_name,
    subset_mask,
)
from fastbcubed.runtime.choices import true_or_false
from fastbcubed.sources.arrays import from_texts, table_of


class BySlice(Estimated):
    """An evaluation that can be sliced; see `Evaluation`."""

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
        NotKeptError
            If the items were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2})
        >>> ev.subset(["b", "c"]).recall, ev.subset([False, True, True]).recall  # (1/2 + 1) / 2
        (0.75, 0.75)
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
            of subsets, each a mask or a list of items. "true_size" and "pred_size" are always there; where a column
            is called so, too, it is "truth.true_size", and the size "always.true_size". A null is a slice of its own.
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
            recall of all items), and the scores; slices without a scored item are left out. An attribute called
            like one of these, such as weight, is attribute.weight here.

        Raises
        ------
        ColumnError
            If there is no such attribute.
        SliceError
            If a subset has no scored item, or an attribute cannot be sliced by.
        MetricError, OptionError
            If there is no such column to order by, `limit` is no number of rows, or `errors` neither True nor False.
        NotKeptError
            If the items were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> countries = {"item": ["a", "b", "c"], "country": ["US", "DE", "DE"]}
        >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}, attributes=countries)
        >>> ev.slices("country").select(["country", "n_items", "precision", "recall"])
        country  n_items  precision   recall
        DE             2    0.50000  0.75000
        US             1          1  0.50000
        <BLANKLINE>
        2 rows
        >>> ev.slices({"first two": ["a", "b"]})["precision"].to_pylist()  # (1 + 1/2) / 2
        [0.75]
        """
        by, errors = check_key(by), true_or_false(errors, "errors")
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
            columns = beside(cut.values, self._slice(cut.codes, cut.n_slices, errors))
        return listed(table_of(columns), self.metrics, order_by, limit)

    def macro(
        self, by: SliceKey, *, min_items: int = 1, f_of_means: bool = False, attributes: Any = None
    ) -> Table:
        """Return the mean of each score over slices, each of which counts once, however many items it has.

        This is how scores of several data sets are put together, where a column tells which one an item is of.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            As for `slices`; a null is a slice of its own.
        min_items : int
            Slices of fewer scored items are left out.
        f_of_means : bool
            Whether an F is worked out from the mean precision and the mean recall. By default an F is averaged like
            any other score.
        attributes : table, optional
            As for `slices`.

        Returns
        -------
        Table
            score, mean, sd (the standard deviation over the slices, with one less than their number below; NaN for
            one slice, and for what `f_of_means` has worked out), n_slices. A slice whose items all have weight 0 has
            no score.

        Raises
        ------
        ColumnError
            If there is no such attribute.
        SliceError
            If no slice has as many items, or an attribute cannot be sliced by.
        MetricError, OptionError
            If `f_of_means` lacks a score that it takes, or is neither True nor False, or `min_items` is no number.
        NotKeptError
            If the items were not kept, and the slices are not those that were asked for when evaluating.

        Notes
        -----
        Of the scores of all items at once, such as `adjusted_rand`, slices have none; evaluate each data set by
        itself for those. Where clusters of either side reach over several data sets, their items are scored with all
        of their mates.

        References
        ----------
        R. van Heusden et al., BCubed Revisited: Elements Like Me, 2022, whose tables are means over data sets.

        Examples
        --------
        Of two data sets one is split and one is merged: precision and recall are 1 and 1/2, and F1 is 2/3 in both.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabc"), [1, 2, 3, 3], attributes={"source": list("xxyy")})
        >>> ev.macro("source").slice(0, 3)
        score         mean       sd  n_slices
        precision  0.75000  0.35355         2
        recall     0.75000  0.35355         2
        f1         0.66667        0         2
        <BLANKLINE>
        3 rows
        >>> ev.macro("source", f_of_means=True)["mean"][2].as_py()
        0.75
        """
        f_of_means = true_or_false(f_of_means, "f_of_means")
        table = self.slices(by, attributes=attributes)
        return macro_of(
            table,
            "the subsets" if isinstance(by, Mapping) else repr(slice_name(by)),
            self.metrics,
            self.beta,
            min_items,
            f_of_means,
        )

    # Parts of the above

    def _slice(self, codes: NDArray[np.integer], n: int, errors: bool = False) -> dict[str, NDArray[Any]]:
        table = self.contingency
        columns = groups.group_means(
            table, codes, n, self.metrics, beta=self.beta, by_row=True, total=table.total_weight
        )
        return self._with_errors(columns, codes, n) if errors else columns
