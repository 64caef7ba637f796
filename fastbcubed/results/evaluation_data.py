"""The figures of an evaluation, its losses, slices and warnings, as its listings and its document read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from fastbcubed.cells.contingency import side_of
from fastbcubed.results.cluster_outcomes import by_side, outcomes_of
from fastbcubed.results.clusters import Losses
from fastbcubed.results.concentration import ROWS, concentration
from fastbcubed.results.figures import Bounds, Figures, summarize
from fastbcubed.results.items import Items, Kept
from fastbcubed.results.origin import Origin
from fastbcubed.results.result import ScoredResult
from fastbcubed.results.slices import SliceKey, check_key, list_slices
from fastbcubed.results.standard_errors import ScoreErrors
from fastbcubed.results.table import Table, require_limit
from fastbcubed.results.unit_cells import Units
from fastbcubed.results.warnings import found_in
from fastbcubed.runtime.arguments import true_or_false
from fastbcubed.runtime.object_attributes import cached_property


class EvaluationData(ScoredResult):
    """The figures and data of an evaluation that are used by its listings, document and files."""

    def __init__(self, figures: Figures, kept: Kept, origin: Origin) -> None:
        self.figures, self.kept, self.origin = figures, kept, origin
        self.contingency, self.metrics, self.beta = kept.cells, figures.metrics, figures.beta
        self.coverage, self.policies, self.overall = figures.coverage, figures.policies, figures.overall
        self.not_computed, self.sliced = figures.not_computed, figures.sliced
        self.names, self.engine, self.reading = origin.names, origin.engine, dict(origin.reading)

    @cached_property
    def standard_errors(self) -> ScoreErrors:
        """The standard errors of scores, by component or by other units."""
        return ScoreErrors(self.kept, self.figures)

    @property
    def units(self) -> Units:
        """Number and effective number of connected components, and the weight share of the largest component."""
        return self.standard_errors.units

    @cached_property
    def _outcomes(self) -> pa.Table | None:
        """The table of `outcomes`; None if unknown or undefined."""
        if self.figures.outcomes is not None:
            return self.figures.outcomes
        ranges = self.kept.ranges
        return outcomes_of(self.contingency, None if ranges is None else ranges.limit)

    @cached_property
    def losses(self) -> Losses:
        """The losses of clusters: Lorenz curves, and totals by size."""
        return Losses(self.kept, self.figures)

    def lorenz(self, side: str, *, limit: int | None = ROWS) -> Table:
        """Return the concentration of the loss: the cumulative share of the loss over clusters, costliest first.

        Parameters
        ----------
        side : {"true", "pred"}
            The side of the clusters: true clusters lose recall, predicted clusters lose precision.
        limit : int or None
            Maximum number of rows of the curve; None for all rows. The costliest clusters are listed one by one, other
            clusters at increasing intervals. The first cluster, the last cluster with a loss and the last cluster are
            always included.

        Returns
        -------
        Table
            The columns n_clusters, share_clusters and share_loss. share_loss is the share of the loss that the
            n_clusters costliest clusters have, or NaN if there is no loss.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aaabbcd"), [1, 1, 2, 3, 3, 3, 4])
        >>> ev.lorenz("pred")
        n_clusters  share_clusters  share_loss
                 1         0.25000           1
                 2         0.50000           1
                 3         0.75000           1
                 4               1           1
        <BLANKLINE>
        4 rows
        """
        limit = require_limit(limit)
        return Table(self.losses.curves[side_of(side)].table(limit))

    @cached_property
    def concentration(self) -> dict[str, dict[str, Any]]:
        """By side, "loss", "n_clusters", "n_lossy" (with a loss) and "n_half" (clusters with half of the loss)."""
        return concentration(self.losses.curves)

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
            An attribute, or a part of a composite id; bins of an attribute (see `fastbcubed.bins`); a tuple of several
            attributes to cross; or a dict of named subsets, each a mask or a list of items. The cluster sizes
            "true_size" and "pred_size" are always available. If a column is also named true_size, use "truth.true_size"
            for the column and "always.true_size" for the cluster size. For an item in several clusters, the size is the
            number of items in at least one of these clusters. Nulls form a slice of their own.
        attributes : table, optional
            Attributes to slice by, matched by item or row by row; by default, the attributes passed to `evaluate`.
        errors : bool
            Whether to compute standard errors from the components with items in the slice, which about doubles the run
            time. With `errors`, each score is followed by its standard error <score>_se, and n_units is the number of
            components with items in the slice.
        order_by : str, optional
            A score (worst first), a column of numbers or times (largest or latest first), "loss", "excess" or
            "excess_per_item". "loss" is the sum of precision_loss and recall_loss. "excess" is the loss of a slice
            minus the loss that average scores would give to a slice of its weight. Ordered by "loss", large slices come
            first even if their scores are average. "excess_per_item" is how far (1 - precision) + (1 - recall) of the
            slice is above the overall value. By default, rows are ordered by slice, or by "loss" if there is a limit.
        limit : int, optional
            The number of slices to return; all by default.

        Returns
        -------
        Table
            The slice, n_items, weight, precision_loss and recall_loss (the slice's contributions to the overall
            losses), and the scores; slices without scored items are omitted. An attribute with the same name as another
            column, such as weight, appears as attribute.weight.

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
        by, wanted = check_key(by), true_or_false(errors, "errors")
        found = self.standard_errors if wanted else None
        return list_slices(self.kept, self.figures, by, attributes, found, order_by, limit)

    @cached_property
    def _sliced(self) -> dict[str, Table]:
        """The requested slices as printed and saved: with standard errors if these are quickly computed."""
        return with_quick_errors(self, self.sliced, self.slices)

    @property
    def has_clusters(self) -> bool:
        """Whether clusters can be listed, which requires that the cells were kept."""
        return self.kept.has_clusters

    @property
    def has_items(self) -> bool:
        """Whether slices and items can be listed, which requires that the items were kept."""
        return self.kept.items is not None

    @property
    def attributes(self) -> Any:
        """The attributes that were passed in a separate table, if any."""
        return self.kept.attributes

    def kept_items(self) -> Items:
        """Return the items; raise NotKeptError if they were not kept."""
        return self.kept.require_items()

    @property
    def definition(self) -> dict[str, Any]:
        """How the scores are defined: average, weighting, policies."""
        return self.figures.definition(self.contingency)

    @cached_property
    def summary(self) -> dict[str, dict[str, Any]]:
        """By side, numbers of items, clusters, singletons and exact clusters, sizes and, if known, outcomes."""
        if self._outcomes is None:
            return self._sides
        outcomes = by_side(self._outcomes)
        return {side: {**figures, "outcomes": outcomes[side]} for side, figures in self._sides.items()}

    @cached_property
    def _sides(self) -> dict[str, dict[str, Any]]:
        """Numbers of items, clusters and singletons, and sizes, without outcomes, which require reading all cells."""
        return summarize(self.contingency) if self.figures.summary is None else self.figures.summary

    @cached_property
    def bounds(self) -> Bounds | None:
        """Bounds of the precision if prediction-only items were dropped; otherwise None."""
        return self.figures.bounds_in(self.contingency)

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes on the scores, each with its code, level (warning or note), message and values."""
        known = self.figures.warnings
        return [*found_in(self), *self.origin.notes] if known is None else known

    @property
    def manifest(self) -> dict[str, Any]:
        """Provenance: versions, engine, the arguments passed, and the number of rows and fingerprint of each side.

        A fingerprint identifies the rows of items and labels, regardless of their order and container. All rows are
        hashed when the manifest is first requested, for example for JSON and saved results.
        """
        return self.origin.manifest(self.kept.memory_limit)


def with_quick_errors(
    ev: EvaluationData, sliced: dict[str, Table], slices: Callable[..., Table]
) -> dict[str, Table]:
    """Return requested slices, with standard errors if these were saved or are quickly computed by `slices`.

    `ev` is the evaluation that the result is based on.
    """
    if ev.figures.sliced_with_errors is not None:
        return ev.figures.sliced_with_errors
    keys = ev.figures.slicings if ev.standard_errors.are_shown_by_slice else {}
    return sliced | {by: slices(key, errors=True) for by, key in keys.items() if not sliced[by].is_large}
