"""Evaluation: one clustering scored against the truth, at every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastbcubed.metrics.metric import Metric
from fastbcubed.render.json import as_json
from fastbcubed.results import (
    better_than_chance,
    clusters,
    explain_items,
    repairs,
    save,
    saved_files,
    slices,
    source_pairs,
)
from fastbcubed.results.cluster_outcomes import require_outcomes
from fastbcubed.results.evaluation_data import EvaluationData
from fastbcubed.results.evaluation_text import Cluster, Item
from fastbcubed.results.figures import Scores, how_to_have
from fastbcubed.results.intervals import Interval
from fastbcubed.results.items import list_cells
from fastbcubed.results.members import list_items, open_cluster, open_item
from fastbcubed.results.slices import IN_JSON, SliceKey, slice_name
from fastbcubed.results.standard_errors import COMPONENT, warn_of_units
from fastbcubed.results.table import Table, refuse_table_verb
from fastbcubed.runtime.arguments import true_or_false
from fastbcubed.runtime.object_attributes import cached_property, documented
from fastbcubed.runtime.old_names import under_old_name

if TYPE_CHECKING:
    from fastbcubed.render.document import Document
    from fastbcubed.results.page import Asked


class Evaluation(EvaluationData):
    """How good a clustering is: overall, by cluster, by slice and by item.

    `fastbcubed.evaluate` and `fastbcubed.load` return evaluations. Scores are means over items unless their names say
    otherwise.

    Attributes
    ----------
    contingency : Contingency
        The cells from which all scores are computed.
    metrics : list of Metric
        The scores shown in tables.
    beta : float
        Weight of recall in F.
    coverage : Coverage
        The extent to which the two sides have the same items.
    policies : Policies
        The policies for items missing from one side, null clusters, duplicates and noise.
    overall : Scores
        Scores over all items; each score is also an attribute of the evaluation.
    not_computed : dict of str to str
        Scores of the requested families that are not defined for this input, and the reasons.
    names : dict
        The names of the two sides.
    sliced : dict of str to Table
        The slices requested in the call of `evaluate`.
    engine : {"memory", "disk", "spark"}
        The engine that computed the scores.
    errors : Scores
        Standard errors of the scores over all items, based on connected components.
    units : Units
        Number and effective number of connected components, and the weight share of the largest component.
    bounds : Bounds or None
        Bounds of the precision, if prediction-only items were dropped.
    summary : dict
        Numbers of items and clusters, cluster sizes, and outcomes of the clusters of each side.
    concentration : dict
        How concentrated the loss is in the clusters of each side.
    warnings : list of dict
        Warnings and notes, each with its code, level, message and values.
    definition : dict
        How the scores are defined: average, weighting, policies.
    reading : dict
        How the columns of each side were read: the columns used for item and cluster (for links: left, right, score and
        verdict), the reason, other candidate columns, and the tool that wrote the table. The value for a side without
        columns, such as a dict, is None.
    manifest : dict
        Versions, the engine, the arguments passed, and the number of rows and the fingerprint of each side.

    Notes
    -----
    A method that cannot return a result raises one of `fastbcubed.errors`: SliceError (the side, cluster, item or
    slice does not exist), ColumnError (the attribute does not exist), MetricError (the score or the column to order
    by does not exist, or is not defined for this input), OptionError (another argument has an invalid value), or
    NotKeptError (the cells or items were not kept).

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
    >>> round(ev.precision, 6), ev.recall
    (0.666667, 0.75)
    """

    __getstate__, __setstate__ = saved_files.state_of, saved_files.set_state
    test, source_pairs = better_than_chance.better_than_chance, source_pairs.source_pairs
    explain = explain_items.explain

    def __getattr__(self, name: str) -> float:
        overall: Scores | None = self.__dict__.get("overall")
        if overall is not None and not name.startswith("_") and (known := overall.named(name)) is not None:
            return float(overall[known])
        refuse_table_verb(name, "an evaluation", '.items(), .clusters("true") and .scores()')
        how = how_to_have(name, self.contingency) if "contingency" in self.__dict__ else ""
        raise AttributeError(f"an evaluation has no attribute or computed score {name!r}{how}")

    def __dir__(self) -> list[str]:
        return documented(self, self.overall)

    def metric(self, which: str | Metric | Callable[..., Any]) -> float:
        """Return a score over all items, by name or from a custom formula.

        Parameters
        ----------
        which : str or callable
            The name of a score, or a function ``f(tp, fp, fn, tn) -> array`` that takes float64 arrays of equal shape
            and works element by element. For a function, the result is the mean of the returned array over items.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1], [0, 1, 1])
        >>> ev.metric(lambda tp, fp, fn, tn: tp / (tp + fp + fn))
        0.4444444444444444
        """
        if isinstance(which, str) and self.overall.named(which) is not None:
            return self.overall[which]
        return clusters.score_over_all(self.kept, self.figures, which)

    @cached_property
    def errors(self) -> Scores:
        """Standard errors of the overall scores, based on the connected components of truth and prediction.

        Standard errors estimate how much a score would vary between samples of the same number of similar components.
        Access to a score without a standard error raises a MetricError with the reason. With a single component,
        standard errors are NaN. A standard error of 0 means that all components have the same score; components outside
        the data may have other scores. The standard errors are computed from the cells on first access.
        """
        found = self.standard_errors.by_component
        warn_of_units(found.units, COMPONENT, stacklevel=4)
        return Scores(found.of, self.standard_errors.missing())

    def interval(self, which: str, *, level: float = 0.95, unit: str = COMPONENT) -> Interval:
        """Return the confidence interval for an overall score.

        Parameters
        ----------
        which : str
            A score, such as "f1".
        level : float
            The confidence level.
        unit : str
            The sampling unit: "component" (a connected component of truth and prediction), "true_cluster" (valid only
            with ``unmatched="outside"``), or a column of the tables. If values of the column divide components, the
            interval is too narrow, and an `EvaluationWarning` says so.

        Returns
        -------
        Interval
            The ends low and high of an interval based on Student's t. The fewer units account for the error, the fewer
            the degrees of freedom. The interval for a score between 0 and 1 is symmetric on the log-odds scale; for a
            mean over items, it is also no wider than Wilson's interval for the effective number of units. A score at an
            end of its range has a one-sided interval, which allows for units with other scores outside the sample. The
            ends are NaN if all items are in one unit. The ends are also NaN for a score of 0 without an upper limit,
            such as 0 wrong pairs, because the data do not show how large the score could be.

        Examples
        --------
        Of four components, three have recall 1 and one has recall 1/2. The standard error is sqrt(4/3 * (3 * 0.25**2 +
        0.75**2)) / 8. The interval is Wilson's for 3.5 of 4, (3.5 + q / 2 -+ sqrt(q (3.5 * 0.125 + q / 4))) / (4 + q),
        where q is 1.96**2: from 0.396 to 0.987. A fifth component would have a fifth of the items. The fraction 0.36 of
        the largest change that a fifth component could make, downwards (0.063) and upwards (0.009), is a second error.
        The lower end is therefore 0.38 = 7/8 - sqrt((7/8 - 0.396)**2 + (1.96 * 0.063)**2).

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5])
        >>> low, high = ev.interval("recall")
        >>> ev.recall, ev.errors.recall, round(low, 3), round(high, 3)
        (0.875, 0.125, 0.38, 0.988)
        """
        return self.standard_errors.interval(which, level, unit)

    def scores(self, *, level: float = 0.95, unit: str = COMPONENT) -> Table:
        """Return the overall scores, with their standard errors and intervals if defined.

        The methods `to_pandas`, `to_polars` and `to_arrow` of the evaluation convert the table of scores.

        Parameters
        ----------
        level, unit
            As for `interval`.

        Returns
        -------
        Table
            The columns score, value, se, low, high (null for scores without a standard error), n_units and
            effective_units (the effective number of units). n_units and effective_units are null if no score has a
            standard error.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5], metrics=["precision", "recall"])
        >>> ev.scores()
        score        value       se      low     high  n_units  effective_units
        precision        1        0  0.39764        1        4                4
        recall     0.87500  0.12500  0.38012  0.98819        4                4
        <BLANKLINE>
        2 rows
        """
        return self.standard_errors.listed(level, unit)

    _main_table = scores
    estimates = under_old_name(scores, "estimates")

    def clusters(
        self, side: str, *, order_by: str | None = None, limit: int | None = None, outcome: str | None = None
    ) -> Table:
        """Return losses and scores by cluster, costliest clusters first.

        Parameters
        ----------
        side : {"true", "pred"}
            Whether to list true or predicted clusters.
        order_by : str, optional
            A score (worst first) or column (largest first). "loss", the default, means recall_loss for true clusters
            and precision_loss for predicted clusters. Ties are broken by weight, largest first, then by label.
        limit : int, optional
            The number of clusters to return; all by default.
        outcome : str, optional
            The outcome of the clusters to list, such as "mixed" (see `outcomes`); all outcomes by default.

        Returns
        -------
        Table
            The columns cluster, n_items, weight, n_parts (the number of clusters of the other side that the cluster
            intersects), exact (whether the other side has the same cluster), outcome (unless clusters overlap),
            precision_loss, recall_loss, and the scores.

        Notes
        -----
        The losses of a cluster are its contributions to the loss of overall precision and recall: the sum over the
        cluster's items of weight * (1 - precision), or weight * (1 - recall), divided by the weight of all items. Over
        all clusters of a side, the precision losses add up to over_merge_rate, and the recall losses to
        under_merge_rate.

        If clusters overlap, the precision losses of predicted clusters and the recall losses of true clusters are
        divided, pair by pair, among the clusters that both items share. Other losses of an item are divided equally
        among all clusters of the item. The losses of a side still add up.

        Examples
        --------
        In predicted cluster 0, two items have precision 2/3 and one has precision 1/3: together, the three items have a
        loss of (2/3 + 2/3) / 4, as there are 4 items.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], metrics="precision")
        >>> ev.clusters("pred").drop_columns(["weight", "exact"])
        cluster  n_items  n_parts   outcome  precision_loss  recall_loss  precision
        0              3        2     mixed         0.33333      0.12500    0.55556
        1              1        1  fragment               0      0.12500          1
        <BLANKLINE>
        2 rows
        """
        found = clusters.list_clusters(self.kept, self.figures, side, order_by, limit, outcome)
        clusters.warn_of_left_out(self.kept.cells, self.figures.metrics, self.figures.beta, stacklevel=2)
        return found.drop_columns(["code"])

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> Cluster:
        """Return a cluster: its losses, and its members grouped by the clusters of the other side, largest first.

        Parameters
        ----------
        side : {"true", "pred"}
            The side of the cluster; "truth" and "prediction" are also accepted.
        which : object
            The label of the cluster; a tuple for a composite label.
        columns : str or iterable of str, optional
            Attributes to show next to the members, named as in `slices`; by default, the first few attributes. Values
            that differ from the most common value of an attribute are marked.
        members : int
            Number of members to show. Members are taken from each part in turn, one at a time; within a part, members
            are ordered by weight, largest first, then by id.

        Returns
        -------
        Cluster
            A dict with a readable text form, an attribute `parts` (a table of all parts) and an attribute `table` (a
            table of all members).

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.evaluate(list("aab"), [1, 1, 1]).cluster("pred", 1)["outcome"]  # made of two whole true clusters
        'union'
        """
        return open_cluster(self.kept, side, which, columns, members)

    def outcomes(self) -> Table:
        """Return the number and losses of clusters by outcome (exact, split, merged, …).

        A true cluster is "exact" (there is an identical predicted cluster), "split" (into several predicted clusters
        that contain no other items), "merged" (in one predicted cluster together with other items) or "split and
        merged". A predicted cluster is "exact", a "fragment" (part of one true cluster), a "union" (of whole true
        clusters) or "mixed". Under ``unmatched="outside"``, prediction-only items count as other items, so a predicted
        cluster that contains a prediction-only item is mixed.

        Returns
        -------
        Table
            The columns side, outcome, n_clusters, n_items, weight, precision_loss and recall_loss, with all outcomes in
            the order above, true clusters first. On either side, precision_loss and recall_loss add up to the overall
            losses.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbcd"), [1, 1, 2, 3, 4, 4])
        >>> ev.outcomes()
        side  outcome           n_clusters  n_items  weight  precision_loss  recall_loss
        true  exact                      1        2       2               0            0
        true  split                      1        2       2               0      0.16667
        true  merged                     2        2       2         0.16667            0
        true  split and merged           0        0       0               0            0
        pred  exact                      1        2       2               0            0
        pred  fragment                   2        2       2               0      0.16667
        pred  union                      1        2       2         0.16667            0
        pred  mixed                      0        0       0               0            0
        <BLANKLINE>
        8 rows
        """
        return Table(require_outcomes(self.contingency, self._outcomes))

    def repairs(
        self,
        kinds: str | Iterable[str] = ("split", "gather"),
        *,
        limit: int | None = 200,
        order_by: str = "gain",
    ) -> Table:
        """Return the clusters to repair first, with the gain from each single repair and the scores after each repair.

        Parameters
        ----------
        kinds : "split", "gather" or both
            "split" divides a predicted cluster by the truth: its items of each true cluster become a separate cluster,
            and under ``unmatched="outside"``, its prediction-only items also become a separate cluster. "gather" moves
            all items of a true cluster into one predicted cluster without other items.
        limit : int, optional
            The number of repairs to return; None for all repairs with a gain.
        order_by : str
            The column to order by, largest first: gain, precision_gain, recall_gain, n_items, weight, pair_fp or
            pair_fn (the number of wrong pairs, or of missing pairs, that a single repair removes). An expression that
            combines columns with + - * /, such as "5*pair_fp + pair_fn", becomes the column `value`.

        Returns
        -------
        Table
            The columns:

            - rank, kind, side, cluster, n_items and weight;
            - gain, precision_gain and recall_gain, the gains in f1, precision and recall from only this repair;
            - running, running_precision and running_recall: f1, precision and recall after this repair and all earlier
              repairs.

            Ties are broken by weight, then by kind and label; labels of mixed types are converted to strings. No repair
            lowers precision or recall. Repairs overlap, so one repair may reduce the gain from another.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 0, 1, 1, 2], [5, 5, 6, 6, 7, 7])
        >>> ev.repairs(limit=2).select(["rank", "kind", "side", "cluster", "gain", "running"])
        rank  kind    side  cluster     gain  running
        1     gather  true  1        0.23732  0.87500
        2     gather  true  0        0.19565        1
        <BLANKLINE>
        2 rows
        """
        return repairs.list_repairs(self.kept, self.losses.of_all, kinds, limit, order_by)

    def subset(self, which: Any) -> Scores:
        """Return scores over a subset of the items, given as a list of ids or as a mask with one bool per item.

        Parameters
        ----------
        which : array-like
            A list of ids; or a mask in the order of `items` or, unless clusters overlap, of the truth's rows. For a
            result that was saved or computed by the disk engine, a mask refers to the rows of ``items.parquet``.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2})
        >>> ev.subset(["b", "c"]).recall, ev.subset([False, True, True]).recall  # (1/2 + 1) / 2
        (0.75, 0.75)
        """
        return slices.subset_scores(self.kept, self.figures, which)

    def macro(
        self, by: SliceKey, *, min_items: int = 1, f_of_means: bool = False, attributes: Any = None
    ) -> Table:
        """Return the mean of each score over slices, such as data sets, in which each slice counts equally.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            The slices, as for the method `slices`; nulls form a slice of their own.
        min_items : int
            Minimum number of scored items of a slice; smaller slices are omitted.
        f_of_means : bool
            Whether F scores are computed from the mean precision and recall, rather than averaged like the other
            scores.
        attributes : table, optional
            As for `slices`.

        Returns
        -------
        Table
            The columns score, mean, sd (the sample standard deviation over the slices; NaN for a single slice, and for
            scores from `f_of_means`) and n_slices. A slice of weight 0 has no score.

        Notes
        -----
        Scores that are defined only for all items at once, such as `adjusted_rand`, do not exist for slices. To average
        such scores, evaluate each data set separately. An item of a cluster that extends over several data sets is
        scored against all items of that cluster. The tables of R. van Heusden et al., BCubed Revisited: Elements Like
        Me, 2022, show means over data sets.

        Examples
        --------
        The prediction splits the only true cluster of data set x, and merges the two true clusters of data set y. In x,
        precision is 1 and recall is 1/2; in y, precision is 1/2 and recall is 1. F1 is 2/3 in both data sets.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabc"), [1, 2, 3, 3], attributes={"source": list("xxyy")})
        >>> ev.macro("source").slice(0, 3)
        score         mean       sd  n_slices
        precision  0.75000  0.35355         2
        recall     0.75000  0.35355         2
        f1         0.66667        0         2
        <BLANKLINE>
        3 rows
        """
        f_of_means = true_or_false(f_of_means, "f_of_means")
        table = self.slices(by, attributes=attributes)
        name = "the subsets" if isinstance(by, Mapping) else repr(slice_name(by))
        return slices.macro_of(table, name, self.metrics, self.beta, min_items, f_of_means)

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        true_cluster: Any = None,
        pred_cluster: Any = None,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return all scored items, or the items of a cluster, with clusters, weight, confusion matrix and scores.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        true_cluster, pred_cluster : object, optional
            The label of a cluster (a tuple if composite), to list only its items.
        order_by : str, optional
            A score (worst first) or column (largest or latest first), or "loss", the sum of precision_loss and
            recall_loss. By default, items are in the order of the input, unless the disk engine has joined rows by
            item.
        limit : int, optional
            The number of items to return; all by default.

        Returns
        -------
        Table
            The columns item, true_cluster, pred_cluster, the attributes, weight, tp, fp, fn, tn (null under
            ``unmatched="outside"``), precision_loss and recall_loss (contributions to the overall losses), and the
            scores; the F1 of a single item is item_f1. With outer weighting, tp, fp, fn and tn are numbers of items.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
        >>> ev.items(pred_cluster=0, order_by="fp").select(["item", "true_cluster", "tp", "fp", "fn"])
        item  true_cluster  tp  fp  fn
        2     1              1   2   1
        0     0              2   1   0
        1     0              2   1   0
        <BLANKLINE>
        3 rows
        """
        return list_items(self.kept, self.metrics, columns, true_cluster, pred_cluster, order_by, limit)

    def item(self, which: Any, *, columns: str | Iterable[str] = (), members: int = 5) -> Item:
        """Return one item: its confusion matrix, its scores, and the first few items counted in tp, fp, fn and tn.

        Parameters
        ----------
        which : object
            The item's id (a tuple for a composite id), or the item's position if items have no ids.
        columns : str or iterable of str
            Attributes to show, named as in `slices`.
        members : int
            Number of members to list in each group (tp, fp, fn, tn).

        Returns
        -------
        Item
            A dict with a readable text form. The keys are item, true_cluster, pred_cluster, weight, tp, fp, fn, tn, the
            scores, "attributes" if requested, and "members", which gives the number of items and the first few items
            for each of "tp", "fp", "fn" and "tn".

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.evaluate(list("aab"), [1, 1, 1]).item(0)["members"]["fp"]  # it is wrongly with item 2
        {'n_items': 1, 'first': [2]}
        """
        return open_item(self.kept, self.metrics, which, columns, members)

    def cells(self, *, order_by: str | None = None, limit: int | None = None) -> Table:
        """Return the cells (the overlaps of true and predicted clusters), largest loss first.

        Parameters
        ----------
        order_by : str, optional
            A column to order by, largest first; by default "loss", the sum of precision_loss and recall_loss.
        limit : int, optional
            The number of cells to return; all by default.

        Returns
        -------
        Table
            The columns true_cluster, pred_cluster (lists if clusters overlap), n_items and weight; fp and fn, for each
            item; and precision_loss and recall_loss, for all items of the cell.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
        >>> ev.cells()  # what is lost: (2/3, 1/2), (2 * 1/3, 0) and (0, 1/2), each of 4 items
        true_cluster  pred_cluster  n_items  weight  fp  fn  precision_loss  recall_loss
        1             0                   1       1   2   1         0.16667      0.12500
        0             0                   2       2   1   0         0.16667            0
        1             1                   1       1   0   1               0      0.12500
        <BLANKLINE>
        3 rows
        """
        return list_cells(self.kept, order_by, limit)

    def to_dict(self, *, limit: int | None = IN_JSON) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        return save.content_of(self, limit)

    def to_json(self, *, indent: int | None = 2, limit: int | None = IN_JSON) -> str:
        """Return overall scores, coverage, summary, slices and warnings as JSON; NaN becomes null.

        Parameters
        ----------
        indent : int or None
            Spaces per level of indentation; None for a single line.
        limit : int or None
            Maximum number of slices per slicing, costliest slices first; None for all slices.

        Raises
        ------
        OptionError
            If all slices are requested and need more than half of the run's memory limit.

        Examples
        --------
        >>> import json, fastbcubed as fb
        >>> json.loads(fb.evaluate([0, 0], [0, 1], metrics="recall").to_json())["overall"]
        {'recall': 0.5}
        """
        return as_json(self.to_dict(limit=limit), indent)

    def _document(self, asked: Asked | None = None) -> Document:
        """Return the result as a document with these options, or the saved one if all options are defaults."""
        from fastbcubed.render.document import of_data
        from fastbcubed.results.evaluation_document import document
        from fastbcubed.results.page import IN_BRIEF, title_of

        asked = asked or IN_BRIEF
        saved = self.kept.lazy.page() if self.kept.lazy is not None and asked.is_usual else None
        if saved is None:
            return document(self, asked)
        return replace(of_data(saved), title=asked.title or title_of(self.names))

    def save(self, directory: Any, *, keep: str = "items", repairs: int = 0) -> None:
        """Write the evaluation as JSON and Parquet files; `fastbcubed.load` reads it back.

        Parameters
        ----------
        directory : path
            The directory to write to; a missing directory is created. Files of an earlier evaluation in the directory
            are replaced together, after the new files have been written.
        keep : {"scores", "cells", "items"}
            How much of the evaluation to write. "scores" writes ``overall.json`` and ``slices.parquet``; "cells" adds
            ``cells.parquet``, ``true_clusters.parquet`` and ``pred_clusters.parquet``; "items" also adds
            ``items.parquet``, from which any slice can be computed later. If there are many cells, the content of the
            HTML report is written to ``page.json``, a file that may be deleted.
        repairs : int
            Number of repairs to write as ``repairs.parquet``; see `repairs`.

        Examples
        --------
        >>> import tempfile, fastbcubed as fb
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     fb.evaluate([0, 0, 1], [0, 1, 1]).save(directory)
        ...     fb.load(directory).recall
        0.6666666666666666
        """
        save.save(self if self.kept.lazy is None else self.kept.lazy.whole(), directory, keep, repairs)
