"""A comparison: runs scored on the same items, differences between them, and their listings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage
from fastbcubed.cells.contingency import side_of
from fastbcubed.compare_runs import explain_run
from fastbcubed.compare_runs.comparison_document import document, lead, sentences
from fastbcubed.compare_runs.comparison_listings import ClusterInRuns, items_of_runs, open_in_runs
from fastbcubed.compare_runs.differences import adjusted, differences_of, with_units
from fastbcubed.compare_runs.rankings import ComparedRuns, why_no_ranks
from fastbcubed.compare_runs.true_clusters import list_true_clusters
from fastbcubed.compare_runs.units import NOT_SAVED, require_cells, require_rows, why_no_errors, why_no_room
from fastbcubed.errors import EvaluationWarning, NotKeptError, OptionError
from fastbcubed.render.document import Document, as_data, of_data
from fastbcubed.render.json import shortened
from fastbcubed.render.number_formats import label
from fastbcubed.results.intervals import check_level
from fastbcubed.results.large_tables import apart
from fastbcubed.results.load import evaluation_of
from fastbcubed.results.page import IN_BRIEF, Asked, whole
from fastbcubed.results.save import save_tables, scores_to_save
from fastbcubed.results.slices import IN_JSON, entry_of_slices
from fastbcubed.results.standard_errors import warn_of_few, warn_of_units
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import Units
from fastbcubed.results.warnings import from_saved
from fastbcubed.runtime.object_attributes import cached_property, documented
from fastbcubed.runtime.saved_figures import NUMBER, require_shape, with_nan

__all__ = ["Comparison"]


#: The scores of a run on its own items in a manifest.
_OWN_SCORES = {
    **{name + end: NUMBER for name in ("precision", "recall", "f1") for end in ("", "_if_alone")},
    "exact": bool,
}


class Comparison(ComparedRuns):
    """Several runs scored against one truth: the evaluation of each run, and the differences between runs.

    `fastbcubed.compare` and `fastbcubed.load` return comparisons. ``cmp["old"]`` is the `Evaluation` of the run "old";
    iterating over a comparison gives the names of the runs.

    Attributes
    ----------
    runs : mapping of str to Evaluation
        The evaluation of each run by name, in the order in which the runs were given.
    baseline : str
        The name of the run with which all other runs are compared.
    experiments : tuple of str
        The names of all runs other than the baseline.
    metrics : list of Metric
        The scores shown in tables.
    n_items : int
        Number of scored items.
    align : {"common", "each"}
        Whether all runs are scored on their common items, or each run on its own items.
    level : float
        The confidence level of intervals.
    unit : str
        The sampling unit.
    ranking : list of dict
        A dict for each run, ordered by the score that `best` uses, best first.
    warnings : list of dict
        Warnings and notes, each with its code, level ("warning" or "note"), message, runs and values. A single warning,
        ``runs-lack-items``, covers all runs that are missing items of the truth.
    n_bootstrap, seed : int
        Number and seed of the bootstrap replicates. Without replicates, intervals are based on Student's t.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> cmp = fb.compare(list("aabbccdd"), {"old": [1, 1, 2, 2, 3, 4, 5, 6], "new": [1, 1, 2, 2, 3, 3, 4, 5]})
    >>> cmp["new"].recall
    0.875
    >>> cmp.deltas().select(["experiment", "score", "delta"]).to_pylist()[1]
    {'experiment': 'new', 'score': 'recall', 'delta': 0.125}
    """

    __dir__ = documented
    explain = explain_run.explain

    #: the default document of a loaded comparison; None for any other
    _saved_page: Mapping[str, Any] | None = None

    # Differences over all items

    def deltas(self, *, adjust: str = "bonferroni") -> Table:
        """Return the differences in scores between each experiment and the baseline, with intervals.

        Parameters
        ----------
        adjust : {"bonferroni", "none"}
            With several experiments, "bonferroni" widens the intervals for a score so that the confidence `level`
            applies to the intervals for all experiments together. With "none", the level applies to each interval
            individually.

        Returns
        -------
        Table
            The columns:

            - baseline, experiment and score;
            - baseline_value, experiment_value, and delta, which is experiment_value minus baseline_value;
            - se, low and high, the standard error of delta and the ends of its interval;
            - holds, whether the interval excludes 0.

            For a score without a standard error, se, low and high are NaN, and holds is null. With
            ``unit="true_cluster"``, only means over items have standard errors. The text form of the comparison lists
            the scores without standard errors, and the reasons.

        Raises
        ------
        OptionError
            If the sampling unit of the comparison cannot be used for its runs.

        Notes
        -----
        Standard errors are paired and linearised. For each of the U units, let D_u be the contribution of unit u to the
        score of the experiment minus the contribution of u to the score of the baseline; then se² = U / (U - 1) Σ D_u².
        By default, units are the connected components of the truth and all runs. If such a component has more than a
        tenth of the total weight, units are the components of the truth, the baseline and the experiment instead, so
        that very large clusters of a third run do not change the standard error. For a run equal to the baseline, the
        difference and the standard error are 0. With ``align="each"``, se is NaN if all items of the baseline or of the
        experiment are in a single unit. With ``unmatched="outside"``, prediction-only items do not connect clusters.

        Examples
        --------
        Three of four components have the same recall in both runs; in the fourth, recall is higher by 1/2 in the second
        run. The standard error is sqrt(4/3 * (3 * 0.125**2 + 0.375**2)) / 4.

        >>> import fastbcubed as fb
        >>> runs = {"old": [1, 1, 2, 2, 3, 3, 4, 5], "new": [1, 1, 2, 2, 3, 3, 4, 4]}
        >>> cmp = fb.compare(list("aabbccdd"), runs, metrics="recall")
        >>> cmp.deltas().select(["experiment", "score", "delta", "se", "holds"])
        experiment  score     delta       se  holds
        new         recall  0.12500  0.12500     no
        <BLANKLINE>
        1 row
        """
        experiments, found = self.experiments, self._differences
        level = adjusted(self.level, len(experiments), adjust)
        if experiments and found.units is not None:
            of_few = found.carried_by_few(self.metrics)
            for reason in found.warnings:
                warnings.warn(reason, EvaluationWarning, stacklevel=2)
            same = len(set(found.units_of.values())) == 1
            for name, units in list(found.units_of.items())[: 1 if same else None]:
                warn_of_units(units, self.unit, stacklevel=3, of="" if same else f"{label(name)}: ")
            for name, scores in of_few.items():
                whose = "" if len(experiments) == 1 else f"{label(name)}: "
                warn_of_few(scores, found.units_of[name], self.unit, stacklevel=3, of=whose)
        elif experiments and (no_room := why_no_room(self)) is not None:
            message = f"differences have no standard errors: {no_room}"
            warnings.warn(EvaluationWarning(message), stacklevel=2)
        return self._deltas(level)

    @cached_property
    def units(self) -> Units:
        """Number and effective number of independent units of all runs, and the weight share of the largest unit.

        The standard error of a difference may be based on the units of only the two runs compared. There are more of
        these units, because two runs connect fewer items than all runs do; see `deltas`.

        Raises
        ------
        NotKeptError
            If differences have no standard errors, because clusters may overlap and the units are not components, or
            because the disk engine cannot match the true clusters of the runs.
        """
        if self._differences.units is None:
            raise NotKeptError(why_no_errors(self) or "")
        return self._differences.units

    @cached_property
    def _verdict(self) -> tuple[str, list[str]]:
        """The leading sentence, and the other sentences."""
        return lead(self), sentences(self)

    # Where runs differ

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        run: str | None = None,
        order_by: str | None = "delta",
        limit: int | None = None,
    ) -> Table:
        """Return the items that all runs score, with each item's contributions to the differences from the baseline.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        run : str, optional
            The experiment whose differences from the baseline are listed; by default, the first experiment.
        order_by : {"delta", "worse", "better"} or None
            The order of the rows: first the largest change in precision plus recall ("delta"), the largest loss
            ("worse") or the largest gain ("better"). None keeps the order of the truth. Ties are broken by weight, then
            by id.
        limit : int, optional
            The number of items to return; all by default.

        Returns
        -------
        Table
            The columns item, true_cluster, the attributes and weight, followed for each run by <run>.pred_cluster and
            the scores. There are also precision_delta and recall_delta, the item's contributions to the differences in
            precision and recall, and delta, the sum of both contributions.

        Raises
        ------
        NotKeptError
            If the rows of the runs are not kept in a common order, as with ``align="each"``, the disk engine, or
            overlapping clusters.
        OptionError
            If `run` is not the name of a run.

        Examples
        --------
        The recall of each of the four items differs by 1/2, so each item adds 1/4 of 1/2 to the difference.

        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall")
        >>> cmp.items(limit=1).select(["item", "old.pred_cluster", "new.pred_cluster", "recall_delta"]).to_pylist()
        [{'item': 'a', 'old.pred_cluster': 1, 'new.pred_cluster': 1, 'recall_delta': 0.125}]
        """
        found = items_of_runs(self.runs, self._pair(run), require_rows(self), columns, order_by, limit)
        return Table(found)

    def clusters(
        self,
        side: str = "true",
        *,
        run: str | None = None,
        order_by: str | None = "delta",
        limit: int | None = None,
    ) -> Table:
        """Return the true clusters, with their outcomes in each run and contributions to the differences between runs.

        Parameters
        ----------
        side : "true"
            Only true clusters can be listed, because predicted clusters differ between runs. To list the predicted
            clusters of the run "new", use ``cmp["new"].clusters("pred")``.
        run, order_by, limit
            As for `items`.

        Returns
        -------
        Table
            The columns cluster, n_items and weight, followed for each run by <run>.outcome, <run>.n_parts and the
            scores. There are also precision_delta, recall_delta and delta, as in `items`. With the disk engine,
            clusters that a policy has created are missing if the runs have different items.

        Raises
        ------
        OptionError
            If `side` is not "true", or `run` is not the name of a run.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall")
        >>> cmp.clusters().select(["cluster", "n_items", "old.outcome", "new.outcome", "recall_delta"])
        cluster  n_items  old.outcome  new.outcome  recall_delta
        1              2        split        exact       0.25000
        2              2        split        exact       0.25000
        <BLANKLINE>
        2 rows
        """
        if side_of(side) != "true":
            raise OptionError(
                "predicted clusters belong to one run and cannot be compared between runs; list "
                f'those of one run with cmp[{next(iter(self.runs))!r}].clusters("pred"), or list true '
                "clusters here"
            )
        require_cells(self)
        return Table(list_true_clusters(self.runs, self._pair(run), self._true_numbers, order_by, limit))

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> ClusterInRuns:
        """Return a cluster, and the predicted clusters of its items in each run.

        Parameters
        ----------
        side : str
            "true" for a true cluster, or the name of the run for a predicted cluster.
        which : object
            The label of the cluster; a tuple for a composite label.
        columns : str or iterable of str, optional
            Attributes of the items to show.
        members : int
            Number of items of the cluster to show.

        Returns
        -------
        ClusterInRuns
            A dict with a readable text form; its attribute `table` lists all members of the cluster.

        Raises
        ------
        SliceError
            If the side has no cluster with this label.
        OptionError
            If `side` is neither "true" nor the name of a run.
        NotKeptError
            In the same cases as for `items`.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall")
        >>> cmp.cluster("true", 1)
        True cluster 1: 2 items; in old in 2 clusters, in new in 1
        <BLANKLINE>
        old  new  items  item
        1    1    1      a
        2    1    1      b
        """
        return open_in_runs(self, side, which, columns, members)

    # Output

    def _document(self, asked: Asked | None = None) -> Document:
        """Return the requested document; a loaded comparison has only the default one."""
        asked = asked or IN_BRIEF
        if self._saved_page is None or not asked.page:
            return document(self, self._verdict, asked)
        if not asked.is_usual:
            raise NotKeptError(f"{NOT_SAVED} a report with clusters or slices other than the default ones")
        saved = of_data(self._saved_page)
        return replace(saved, title=asked.title or saved.title)

    def _slices_for_json(self) -> dict[str, Any]:
        """Return the rows of the requested slices or, if there are many, those that differ most and their number."""
        cut = {by: each.num_rows for by, each in self._sliced.items() if each.is_large}
        order = "delta" if self.experiments else None
        rows = {
            by: self.slices(self._slicings[by], order_by=order, limit=IN_JSON) if by in cut else each
            for by, each in self._sliced.items()
        }
        return entry_of_slices(rows) | ({"n_rows": cut} if cut else {})

    def save(self, directory: Any) -> None:
        """Write scores, differences, the evaluations of the runs and the report to files that `fastbcubed.load` reads.

        A loaded comparison shows the same results as the original. Lists of clusters and items, other slices, and other
        baselines require the original runs.

        Parameters
        ----------
        directory : path
            The directory to write to; a missing directory is created. Files of an earlier result in the directory are
            replaced together, after the new files have been written. ``overall.json`` has the content of `to_json` and
            of the report. ``scores.parquet`` and ``deltas.parquet`` are the tables of `scores` and `deltas`.
            ``slices.parquet`` has the requested slices; its column ``by`` names the slicing of each row.

        Examples
        --------
        >>> import tempfile, fastbcubed as fb
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     fb.compare([0, 0, 1], {"old": [0, 1, 1], "new": [0, 0, 1]}).save(directory)
        ...     fb.load(directory)["new"].f1
        1.0
        """
        own = {
            "verdict": self._verdict,
            "page": shortened(as_data(whole(lambda: self._document(Asked())))),
            "coverage": {name: asdict(each) for name, each in self._coverage.items()},
            "own_scores": self._own_scores,
            "cautions": self._differences.warnings,
            "n_sliced": {by: table.num_rows for by, table in self._sliced.items()},
        }
        tables = {"scores": self.scores(), "deltas": with_units(self._deltas().to_arrow(), self._differences)}
        runs = {name: scores_to_save(ev) for name, ev in self.runs.items()}
        content = {**self.to_dict(), "runs": runs, "saved": own}
        save_tables(directory, "comparison", content, tables, self._sliced)

    @classmethod
    def _restored(cls, head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Comparison:
        """Return the comparison that `save` wrote."""
        own, numbers = head["saved"], [row["n_scored"] for row in head["coverage"]]
        require_shape(numbers, [int], "n_scored")
        check_level(head["level"])
        require_shape(own["own_scores"], dict.fromkeys(head["runs"], _OWN_SCORES), "own_scores")
        require_shape(own["verdict"][:1], [(str, None)], "verdict")
        require_shape(own["verdict"][1:], [[str]], "verdict")
        runs = {name: evaluation_of(content) for name, content in head["runs"].items()}
        found = cls(
            runs,
            **{name: head[name] for name in ("baseline", "align", "level", "unit", "seed")},
            n_bootstrap=head["bootstrap"],
            n_scored=numbers,
            coverage=[Coverage.of(own["coverage"][name]) for name in runs],
            by_itself=[with_nan(own["own_scores"][name]) for name in runs],
        )
        units = None if head["units"] is None else Units(**head["units"])
        found.__dict__ |= {
            "_scores": Table(tables["scores"]),
            "_differences": differences_of(tables["deltas"], units, own["cautions"]),
            "_verdict": tuple(own["verdict"]),
            "_saved_page": own["page"],
            "_saved_slices": apart(
                tables.get("slices"), own.get("sliced", {}), own.get("n_sliced"), head.get("n_rows", ())
            ),
            "_ranking": head["ranking"],
            "warnings": from_saved(head["warnings"]),
        }
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        found = self._differences
        return {
            "fastbcubed": __version__,
            "baseline": self.baseline,
            "align": self.align,
            "level": self.level,
            "unit": self.unit,
            "bootstrap": self.n_bootstrap,
            "seed": self.seed,
            "n_items": self.n_items,
            "coverage": self.coverage().to_pylist(),
            "scores": self.scores().to_pylist(),
            "deltas": self._deltas().to_pylist(),
            "units": None if found.units is None else found.units._asdict(),
            "ranks": None if why_no_ranks(self) else self.ranks().to_pylist(),
            "ranking": self._ranking,
            "warnings": self.warnings,
            "runs": {name: ev.to_dict() for name, ev in self.runs.items()},
            **self._slices_for_json(),
        }
