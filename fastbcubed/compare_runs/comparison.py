"""Comparison: several runs evaluated against one truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fastbcubed._version import __version__
from fastbcubed.cells.contingency import side_of
from fastbcubed.compare_runs.clusters_of_runs import ClusterInRuns, open_in_runs
from fastbcubed.compare_runs.comparison_base import Compared
from fastbcubed.compare_runs.comparison_text import document
from fastbcubed.compare_runs.movers import items_of_runs, true_clusters_of_runs
from fastbcubed.compare_runs.slices_of_runs import slices_of_runs
from fastbcubed.errors import OptionError
from fastbcubed.render.document import Block
from fastbcubed.render.html import Shown
from fastbcubed.render.json import as_json
from fastbcubed.results.slices import SliceKey, check_key
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import true_or_false

if TYPE_CHECKING:
    from fastbcubed.render.report import Page, Report
    from fastbcubed.results.gates import Gate
    from fastbcubed.results.page import Asked

__all__ = ["Comparison"]


class Comparison(Shown, Compared):
    """Several runs against one truth: the evaluation of each, and their differences.

    Made by `fastbcubed.compare`. ``cmp["old"]`` is the `Evaluation` of a run; iterating gives the names of the runs.

    Attributes
    ----------
    runs : mapping of str to Evaluation
        The evaluations by name, in the order given.
    baseline : str
        The run that the others are compared with.
    experiments : tuple of str
        The other runs.
    metrics : list of Metric
        The scores that tables show.
    n_items : int
        Items that are scored.
    align : {"common", "each"}
        Whether all runs are scored on the items that each of them scores, or each on its own.
    level : float
        The confidence of intervals.
    unit : str
        What could have been drawn otherwise, as a whole.
    ranking : list of dict
        The runs by the score that `best` goes by, the best first: run, score, value; delta, se, low, high of the
        difference from the best; as_good, whether that interval includes 0. Empty where `ranks` refuses.
    warnings : list of dict
        What a reader should know: code, level ("warning" or "note"), message, runs, figures. One, ``runs-lack-items``,
        is on all runs that lack items of the truth.
    n_bootstrap, seed : int
        Replicates of the bootstrap, and what they are drawn from; without any, intervals are those of
        Student's t.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> cmp = fb.compare(list("aabbccdd"), {"old": [1, 1, 2, 2, 3, 4, 5, 6], "new": [1, 1, 2, 2, 3, 3, 4, 5]})
    >>> cmp["new"].recall
    0.875
    >>> cmp.deltas().select(["experiment", "score", "delta"]).to_pylist()[1]
    {'experiment': 'new', 'score': 'recall', 'delta': 0.125}
    """

    # Where it differs

    def slices(
        self, by: SliceKey, *, deltas: bool = True, order_by: str | None = None, limit: int | None = None
    ) -> Table:
        """Return the scores of all runs by slice, and how they differ from the baseline's.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            As for `Evaluation.slices`.
        deltas : bool
            Whether to add the differences from the baseline.
        order_by : {"delta", "worse", "better"}, optional
            List the runs other than the baseline, by how much of precision and recall a slice adds to the difference:
            the largest change first, or what got worse, or better. Slice by slice when absent.
        limit : int, optional
            The number of rows to return; all when absent.

        Returns
        -------
        Table
            run, the slice, n_items, weight, the scores and the losses. With `deltas`, behind each stands
            <score>_delta, and <score>_delta_se, its standard error, where all runs have the same items in a slice and
            the score has one, null for the baseline; and n_units, the units (those of `deltas`) that have items in the
            slice, null for the baseline where they differ from run to run. An attribute that is called run is
            attribute.run here.

        Raises
        ------
        ColumnError, SliceError
            As `Evaluation.slices` does.
        OptionError
            If `deltas` is neither True nor False, or there is no such order or number of rows.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> parts = {"item": list("abcd"), "part": list("xxyy")}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall", attributes=parts)
        >>> cmp.slices("part").select(["run", "part", "n_items", "recall", "recall_delta"])
        run  part  n_items   recall  recall_delta
        old  x           2  0.50000
        new  x           2        1       0.50000
        old  y           2  0.50000
        new  y           2        1       0.50000
        <BLANKLINE>
        4 rows
        """
        deltas = true_or_false(deltas, "deltas") or order_by is not None
        return slices_of_runs(self, check_key(by), deltas, order_by, limit)

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        run: str | None = None,
        order_by: str | None = "delta",
        limit: int | None = None,
    ) -> Table:
        """Return the items that all runs score, with their contribution to the difference between two runs.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        run : str, optional
            The experiment that differences are of; the first one when absent.
        order_by : {"delta", "worse", "better"} or None
            The largest change of precision and recall together first, or what got worse, or better; None for
            the order of the truth. Ties are broken by weight, then by id.
        limit : int, optional
            The number of items to return; all when absent.

        Returns
        -------
        Table
            item, true_cluster, the attributes, weight; for each run <run>.pred_cluster and the scores; precision_delta
            and recall_delta (what the item adds to these differences), and delta, their sum.

        Raises
        ------
        NotKeptError
            If the rows of the runs are not kept in one order, as with align="each" or the disk engine.
        OptionError
            If there is no such run.

        Examples
        --------
        Each item adds a quarter of the difference of its recall, 1/2.

        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall")
        >>> cmp.items(limit=1).select(["item", "old.pred_cluster", "new.pred_cluster", "recall_delta"]).to_pylist()
        [{'item': 'a', 'old.pred_cluster': 1, 'new.pred_cluster': 1, 'recall_delta': 0.125}]
        """
        found = items_of_runs(self.runs, self._pair(run), self.require_rows(), columns, order_by, limit)
        return Table(found)

    def clusters(
        self,
        side: str = "true",
        *,
        run: str | None = None,
        order_by: str | None = "delta",
        limit: int | None = None,
    ) -> Table:
        """Return the true clusters: the outcome of each in each run, and its contribution to the difference of two.

        Parameters
        ----------
        side : "true"
            Predicted clusters differ from run to run; those of one are listed by ``cmp["new"].clusters("pred")``.
        run, order_by, limit
            As for `items`.

        Returns
        -------
        Table
            cluster, n_items, weight; for each run <run>.outcome, <run>.n_parts and the scores; precision_delta,
            recall_delta and delta, as in `items`. Clusters that a policy has made of an item in each run are lacking
            where the runs do not have the same items and the disk engine is used.

        Raises
        ------
        OptionError
            If the side is another one, or there is no such run.

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
                "predicted clusters are of one run, so that they do not stand beside each other; list those of a run "
                f'with cmp[{next(iter(self.runs))!r}].clusters("pred"), or true clusters here'
            )
        return Table(true_clusters_of_runs(self.runs, self._pair(run), self.true_numbers, order_by, limit))

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> ClusterInRuns:
        """Return a cluster, and where each run has its items.

        Parameters
        ----------
        side : str
            "true", or the run whose predicted cluster it is.
        which : object
            Its label; a tuple if composite.
        columns : str or iterable of str, optional
            Attributes to show.
        members : int
            Items to show.

        Returns
        -------
        ClusterInRuns
            A dict that reads well, and that has as `table` all members.

        Raises
        ------
        SliceError
            If there is no such cluster.
        OptionError
            If the side is no run.
        NotKeptError
            As `items` does.

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
        return open_in_runs(self.runs, self.baseline, side, which, self.require_rows(), columns, members)

    # Output

    def report(
        self,
        path: Any = None,
        *,
        title: str | None = None,
        worst: int = 20,
        members: int = 10,
        columns: str | Iterable[str] = (),
        by: Any = None,
        overwrite: bool = False,
    ) -> Report:
        """Write a page for people: which run is better and whether that holds, slices, true clusters that changed.

        Parameters
        ----------
        path : path, optional
            The file to write. Without it, what is returned shows itself in a notebook.
        title, columns, by, overwrite
            As for `Evaluation.report`.
        worst : int
            True clusters to show, those that changed most in the first experiment.
        members : int
            Members of each to show.

        Returns
        -------
        Report

        Raises
        ------
        MissingPackageError, OptionError, ColumnError, SliceError, NotKeptError
            As `Evaluation.report` does.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare(list("aabbccdd"), {"old": [1, 1, 2, 2, 3, 4, 5, 6], "new": [1, 1, 2, 2, 3, 3, 4, 5]})
        >>> cmp.report().content["movers"]["flow"][1]
        {'before': 'split', 'after': 'exact', 'n_clusters': 1}
        """
        from fastbcubed.results.page import report_of

        asked = {"title": title, "worst": worst, "members": members, "columns": columns, "by": by}
        return report_of(self._page, path, asked, overwrite=overwrite)

    def _page(self, asked: Asked, gates: Sequence[Gate] = ()) -> Page:
        """Return the content of `report`, with the results of gates, and its document."""
        from fastbcubed.compare_runs.comparison_page import comparison_content, comparison_document
        from fastbcubed.render.report import Page

        return Page(comparison_content(self, asked, gates), comparison_document)

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
            "ranks": None if self.why_no_ranks() else self.ranks().to_pylist(),
            "ranking": self.ranking,
            "warnings": self.warnings,
            "runs": {name: ev.to_dict() for name, ev in self.runs.items()},
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return scores, differences, coverage and the evaluation of each run as JSON; NaN becomes null."""
        return as_json(self.to_dict(), indent)

    def _document(self) -> list[Block]:
        return document(self)

    # Parts of the above

    def _pair(self, run: str | None) -> tuple[str, str]:
        """Return the baseline, and the requested experiment."""
        if run is None:
            run = (*self.experiments, self.baseline)[0]
        self[run]
        return self.baseline, run
