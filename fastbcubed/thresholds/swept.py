"""Sweep: the clusters that links give at every threshold, scored against the truth."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed._version import __version__
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.components import Connected, as_thresholds, column_at
from fastbcubed.clusterings.links import as_score
from fastbcubed.errors import EvaluationWarning
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.listings.listing import require_limit
from fastbcubed.results.listings.summary import as_json
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.slicing import SliceKey
from fastbcubed.results.warnings.notices import WARNING
from fastbcubed.runtime.cached import cached_property
from fastbcubed.sources.arrays import from_numpy
from fastbcubed.sources.columns import as_column
from fastbcubed.thresholds.best import Best
from fastbcubed.thresholds.saved_sweep import save_sweep
from fastbcubed.thresholds.slice_thresholds import slice_thresholds
from fastbcubed.thresholds.sweep_text import as_text
from fastbcubed.thresholds.swept_curve import SweptCurve
from fastbcubed.thresholds.tipping import heap_of, list_merges, list_weakest_links

if TYPE_CHECKING:
    from fastbcubed.results.report.page import Report


@dataclass(eq=False, repr=False)
class Sweep(SweptCurve):
    """Every match threshold at once: the clusters of links at each, scored against the truth.

    Made by `fastbcubed.sweep`. A threshold uses the links whose score is at least that, or at most if small scores
    are strong (`ascending`); clusters are the connected components of these. They change only at scores of links, so
    that the figures at these are those of all thresholds.

    Attributes
    ----------
    links : JoinedLinks
        The items of the links, how many links there are, and the columns that they were read from.
    tree : MergeTree
        Which clusters become one at which score.
    metrics : list of Metric
        The scores that are known at every threshold.
    others : list of Metric
        Scores that are known only at the thresholds asked for, as `points` lists them.
    not_computed : dict of str to str
        Scores that are not defined for this input or cannot be kept up, and why.
    coverage : Coverage
        How far truth and links have the same items.
    policies : Policies
        What was done with items that are missing somewhere.
    asked : list of float
        The thresholds that were asked for.
    points : Table
        All scores at the thresholds that were asked for.
    warnings : list of dict
        What a reader should know: code, level, message, and figures of each.
    sliced : dict of str to Table
        The best thresholds of slices that were asked for.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> links = [("a", "b", 0.9), ("b", "c", 0.4), ("c", "d", 0.8)]
    >>> sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, links)
    >>> sweep.best("f1").threshold, sweep.best("f1").value
    (0.8, 1.0)
    >>> sweep.curve().select(["threshold", "clusters", "precision", "recall"])
    threshold  clusters  precision   recall
          inf         4          1  0.50000
      0.90000         3          1  0.75000
      0.80000         2          1        1
      0.40000         1    0.50000        1
    <BLANKLINE>
    4 rows
    """

    def __repr__(self) -> str:
        return as_text(self)

    @cached_property
    def points(self) -> Table:
        """All scores at the thresholds asked for, also those that are not known at every threshold."""
        rows = []
        for threshold in self.asked:
            figures = self._curve.at(self._point(threshold))
            if self.others:
                formulas = [m.formula if m.family == "own" else m.name for m in self.others]
                ev = self._evaluated(threshold, {"metrics": formulas})
                figures |= {metric.name: ev.overall[metric.name] for metric in self.others}
            rows.append({"threshold": threshold, **figures})
        if rows:
            return Table(pa.Table.from_pylist(rows))
        return Table(self.curve(limit=2).to_arrow().slice(0, 0))

    # Clusters at a threshold

    def at(self, threshold: float) -> Clustering:
        """Return the clusters at a threshold: the connected components of the links that it uses.

        Parameters
        ----------
        threshold : float
            Any number; links with just this score are used.

        Returns
        -------
        Clustering
            A row for each item that the links have or that was given with `items`. Clusters are numbered from 0 in the
            order of their first items.
        """
        labels, _ = self.tree.labels(self._n_used(threshold))
        links, ascending = self.links, self.tree.ascending
        n_connecting = self.tree.n_links_used(as_score(threshold, links.precision))
        made = Connected(len(links), n_connecting, links.columns, float(threshold), ascending, links.complete)
        items = None if self._alignment.truth.items is None else links.items
        return Clustering(as_column(labels, "cluster"), items, name=links.name, links=made)

    def clusterings(self, thresholds: Sequence[float]) -> Table:
        """Return the clusters at several thresholds side by side, such as `fastbcubed.compare` takes them.

        Parameters
        ----------
        thresholds : list of float
            Each becomes a column, named as Splink names them: "cluster_p_0_9" of a probability, else "cluster_0_9".

        Returns
        -------
        Table
            The item, in a column or the columns of a composite id, and a column of clusters for each threshold.
        """
        columns: dict[str, Any] = {}
        if self._alignment.truth.items is None:
            columns["item"] = from_numpy(np.arange(self.tree.n_items))
        else:
            columns |= dict(zip(self.links.items.names, self.links.items.parts, strict=True))
        for threshold in as_thresholds(thresholds):
            labels, _ = self.tree.labels(self._n_used(threshold))
            columns[column_at(threshold, self.links.columns.score)] = from_numpy(labels)
        return Table(pa.table(columns))

    def evaluate(self, threshold: float | None = None, **options: Any) -> Evaluation:
        """Return the evaluation of the clusters at a threshold.

        Parameters
        ----------
        threshold : float, optional
            That of the best F1 when absent.
        **options
            Arguments of `fastbcubed.evaluate`, in place of those that the sweep was given.

        Returns
        -------
        Evaluation
        """
        ev = self._evaluated(threshold, options)
        for found in ev.warnings:
            if found["level"] == WARNING:
                warnings.warn(EvaluationWarning(found["message"], found["code"]), stacklevel=2)
        return ev

    def _evaluated(self, threshold: float | None, options: Mapping[str, Any]) -> Evaluation:
        """Return the evaluation at a threshold, or that of the best F1; nothing is warned of."""
        threshold = self._curve.thresholds[self._best_f1].item() if threshold is None else threshold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvaluationWarning)
            return self._evaluate(self.at(threshold), options)

    def slices(self, key: SliceKey, score: str = "f1", *, where: str | Iterable[str] | None = None) -> Table:
        """Return the best threshold of each slice, and what one threshold for all costs it.

        Parameters
        ----------
        key : str, Bins, tuple of these, or mapping
            As for `Evaluation.slices`: an attribute, several crossed, or subsets by name; "true_size", but not
            "pred_size", which differs from threshold to threshold.
        score : str
            A score of the curve that items have: precision, recall, an F of them, ELM.
        where : str or list of str, optional
            Conditions, as for `best`; each slice has to meet them by itself.

        Returns
        -------
        Table
            The slice, n_items, weight, its best threshold, the score there with precision and recall; the score with
            the threshold that is best for all items (`<score>_at_common`), and the cost: how much better its own is.
            Those that it costs most come first. Without a threshold that meets the conditions, null.
        """
        return slice_thresholds(self, key, score, where)

    # Where it tips

    @cached_property
    def _place_of_item(self) -> NDArray[np.integer]:
        """Where each item stands in the tree."""
        places = np.empty_like(self.tree.order)
        places[self.tree.order] = np.arange(self.tree.n_items)
        return places

    @cached_property
    def _highest(self) -> NDArray[np.integer]:
        """The levels of the tree, as `measure_stretches` looks at them."""
        return heap_of(self.tree.levels, self.tree.n_levels)

    def merges(
        self, *, order_by: str | None = None, limit: int | None = 10, threshold: float | None = None
    ) -> Table:
        """Return the merges of clusters that cost most, and the link that joins each.

        Parameters
        ----------
        order_by : str, optional
            "f1_change", the default, or "precision_change": the most harmful first; or "recall_change": the most useful
            first.
        limit : int or None
            Rows at most; None for all.
        threshold : float, optional
            List only merges that this threshold uses.

        Returns
        -------
        Table
            threshold (over which the merge is undone), left and right (items of a link that joins), n_left and n_right
            (the items of their clusters before), n_clusters (how many become one at that score), n_items (all of
            theirs), and what the merge does to precision, recall and F1 of all items, at that threshold.

        Notes
        -----
        Links of equal scores join together: what they make of several clusters is one merge.
        """
        require_limit(limit)
        point = None if threshold is None else self._point(threshold)
        return list_merges(self, self._effects, order_by, limit, point)

    def weakest_links(self, *, limit: int | None = 10) -> Table:
        """Return the true clusters that come together last: those whose weakest needed link is the weakest of all.

        Parameters
        ----------
        limit : int or None
            Rows at most; None for all.

        Returns
        -------
        Table
            cluster, n_items, threshold (the strongest at which all its items are in one cluster), and left and right:
            items of a link with that score which is needed. Those that no threshold makes whole stand last, without.
        """
        require_limit(limit)
        return list_weakest_links(self, self._effects, limit)

    # Output

    @cached_property
    def at_best(self) -> Evaluation:
        """The evaluation at the best F1, of the usual scores."""
        clustering = self.at(self._curve.thresholds[self._best_f1].item())
        return self._evaluate.aligned(clustering, self._alignment, self.policies)

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """What a reader of the scores should know: the warnings of the evaluation at the best F1."""
        return self.at_best.warnings

    def warn(self, *, stacklevel: int) -> None:
        """Give the warnings."""
        for found in self.warnings:
            if found["level"] == WARNING:
                warnings.warn(EvaluationWarning(found["message"], found["code"]), stacklevel=stacklevel)

    def save(self, directory: Any, *, score: str = "f1", where: str | Iterable[str] | None = None) -> None:
        """Write the curve and the clusters at the best threshold to a directory; all files at once, or none.

        Parameters
        ----------
        directory : path
            Made if it is not there.
        score, where
            What the best threshold is best in, as for `best`.

        Notes
        -----
        sweep.json is what `to_json` returns; curve.parquet the curve at all thresholds; clusters.parquet the items and
        clusters at the best one; merges.parquet and weakest_links.parquet the first 1,000 of each.
        """
        save_sweep(self, directory, self.best(score, where=where))

    def report(
        self,
        path: Any = None,
        *,
        score: str = "f1",
        where: str | Iterable[str] | None = None,
        title: str | None = None,
        worst: int = 10,
        overwrite: bool = False,
    ) -> Report:
        """Write a page for people: which threshold is best, the curve, merges to look at, and slices asked for.

        Parameters
        ----------
        path : path, optional
            The file to write. Without it, what is returned shows itself in a notebook.
        score, where
            What the best threshold is best in, as for `best`.
        title : str, optional
            The heading.
        worst : int
            How many merges to list.
        overwrite : bool
            Whether a file that is there may be replaced.

        Returns
        -------
        Report
        """
        from fastbcubed.results.report.page import report_of
        from fastbcubed.thresholds.sweep_page import sweep_content

        best, asked = self.best(score, where=where), {"title": title, "worst": worst}
        return report_of(lambda found: sweep_content(self, best, found), path, asked, overwrite=overwrite)

    def to_dict(self, *, limit: int = 1000, best: Best | None = None) -> dict[str, Any]:
        """Return what `to_json` writes, as plain dicts, lists, numbers and strings; `best` in place of the best F1."""
        if best is None and any(metric.name == "f1" for metric in self.metrics):
            best = self.best("f1")
        return {
            "fastbcubed": __version__,
            "links": len(self.links),
            "items": self.tree.n_items,
            "ascending": self.tree.ascending,
            "thresholds": self.tree.n_levels,
            "unmatched": {"truth": self.policies.truth, "prediction": self.policies.prediction},
            "coverage": asdict(self.coverage),
            "best": None if best is None else best.to_dict(),
            "warnings": self.warnings,
            "curve": self.curve(limit=limit).to_pylist(),
            "points": self.points.to_pylist(),
            "slices": {name: table.to_pylist() for name, table in self.sliced.items()},
            "not_computed": self.not_computed,
        }

    def to_json(self, *, limit: int = 1000, indent: int | None = 2) -> str:
        """Return the curve, the best F1 and the thresholds asked for as JSON; an infinite threshold becomes null."""
        return as_json(self.to_dict(limit=limit), indent)
