"""Evaluation: one clustering scored against the truth, at every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fastbcubed.errors import MetricError
from fastbcubed.metrics.score import Metric
from fastbcubed.metrics.sums import overall
from fastbcubed.render.document import Block
from fastbcubed.render.html import Shown
from fastbcubed.results import clusters, save
from fastbcubed.results.display import document
from fastbcubed.results.evaluation_members import Openings
from fastbcubed.results.evaluation_scores import BySlice
from fastbcubed.results.summary import Scores
from fastbcubed.results.table import Table

if TYPE_CHECKING:
    from fastbcubed.render.html import Page, Report
    from fastbcubed.results.gates import Gate
    from fastbcubed.results.page import Asked
    from fastbcubed.results.verify import Verified

__all__ = ["Evaluation", "Scores"]


class Evaluation(Shown, Openings, BySlice):
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
        Slices requested when evaluating.
    engine : {"memory", "disk"}
        What did the work.
    errors : Scores
        Standard errors of the scores over all items, by connected component.
    units : Units
        The components: their number, the effective number of equal ones, and the share of the largest.
    bounds : Bounds or None
        Bounds of the precision, where prediction-only items were dropped.
    summary : dict
        Items, clusters, sizes and outcomes of each side.
    concentration : dict
        In how few clusters of each side the loss is.
    warnings : list of dict
        What a reader should know: code, level, message, and figures of each.
    definition : dict
        What the scores mean: average, weighting, policies.
    manifest : dict
        Versions, engine, the arguments given, and rows and fingerprint of each side.

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
        """Return a score over all items, by name or from a custom formula.

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
        clusters.require_items(self.contingency, found, self.beta)
        return overall(self.contingency, found, beta=self.beta)[found[0].name]

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
        from fastbcubed.results import gates as gating

        return gating.check(self, gates, scores)

    def verify(self, n: int = 100, *, seed: int = 0) -> Verified:
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
        from fastbcubed.results import verify

        return verify.verify(self, n, seed)

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
        """Write a page for people: verdict, sides, where the loss is, slices, the clusters that cost most, repairs.

        It is one HTML file below 2 MB that makes no request: it may be mailed, kept, and read without scripts. It
        holds sums, and the ids of the members that are shown; attributes only if they are named.

        Parameters
        ----------
        path : path, optional
            The file to write. Without it, the returned report displays in a notebook.
        title : str, optional
            The heading; by default the names of the inputs.
        worst : int
            Clusters of each side to show, those that cost most, and repairs; 0 for none.
        members : int
            Members of each to show, as in `cluster`.
        columns : str or iterable of str
            Attributes to show next to the members, named as in `slices`.
        by : str, Bins, tuple of these, mapping, or list of these, optional
            Slices to show in addition to those of the evaluation.
        overwrite : bool
            Whether an existing file may be replaced.

        Returns
        -------
        Report
            With the page as `html`, and all that is on it as plain data as `content`.

        Raises
        ------
        MissingPackageError
            If the packages of the extra ``fastbcubed[report]`` are not installed.
        OptionError
            If the file exists, or an argument is invalid.
        ColumnError, SliceError
            If there is no such attribute.
        NotKeptError
            If columns or slices are given and the items were not kept.

        Notes
        -----
        The same result gives the same bytes. Intervals are included where `to_json` has standard errors; lists that
        would make the file too large are cut, which the page says.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]).report(worst=1).content["clusters"]["pred"]["rows"][0]["outcome"]
        'mixed'
        """
        from fastbcubed.results.page import report_of

        asked = {"title": title, "worst": worst, "members": members, "columns": columns, "by": by}
        return report_of(self._page, path, asked, overwrite=overwrite)

    def page_content(self, asked: Asked, gates: Sequence[Gate] = ()) -> dict[str, Any]:
        """Return the content of `report` as plain data, with the results of gates."""
        from fastbcubed.results.page import evaluation_content, gates_content, title_of

        known = self._lazy.page() if self._lazy is not None and asked.is_usual else None
        if known is None:
            return evaluation_content(self, asked, gates)
        return {**known, "title": asked.title or title_of(self.names), "gates": gates_content(gates)}

    def _page(self, asked: Asked, gates: Sequence[Gate] = ()) -> Page:
        """Return the content of `report`, with the results of gates, and its document."""
        from fastbcubed.render.html import Page
        from fastbcubed.results.evaluation_document import document as document_of_page

        return Page(self.page_content(asked, gates), document_of_page)

    def save(self, directory: Any, *, keep: str = "items", repairs: int = 0) -> None:
        """Write the evaluation as JSON and Parquet files; `fastbcubed.load` reads it back.

        Parameters
        ----------
        directory : path
            Made if need be. Files of an earlier evaluation in it are replaced, together at the end.
        keep : {"scores", "cells", "items"}
            How much to write: ``overall.json`` and ``slices.parquet``; with "cells" also
            ``cells.parquet``, ``true_clusters.parquet`` and ``pred_clusters.parquet``; with "items"
            also ``items.parquet``, from which any later slice can be made. With many cells there is
            ``page.json``, the content of the page of `report`; it may be deleted.
        repairs : int
            How many repairs to write, as ``repairs.parquet``; see `repairs`.

        Raises
        ------
        OptionError
            If there is no such `keep`, or `repairs` is no number.
        NotKeptError
            If data to be written were not kept.
        FileFormatError
            If it cannot be written there.

        Examples
        --------
        >>> import tempfile
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     ev.save(f"{directory}/result")
        ...     fb.load(f"{directory}/result").item(2)["members"]["fn"]
        {'n_items': 1, 'first': [3]}
        """
        save.save(self if self._lazy is None else self._lazy.whole(), directory, keep, repairs)

    def _document(self) -> list[Block]:
        return document(self)
