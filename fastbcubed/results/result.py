"""Base classes of the results of all functions: display, conversion, reports and saving of text are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fastbcubed.render.html import Report, Shown
from fastbcubed.render.json import as_json
from fastbcubed.results.table import Table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from fastbcubed.render.document import Document
    from fastbcubed.results.page import Asked


class Result(Shown):
    """Base class of results; a subclass defines a document, plain data and a main table."""

    __slots__ = ()

    def _document(self, asked: Asked | None = None) -> Document:
        """Return the result as a document with the requested options, or in brief."""
        raise NotImplementedError

    def _main_table(self) -> Table:
        raise NotImplementedError

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return the main table as a pandas data frame, with the options of `Table.to_pandas`."""
        return self._main_table().to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """Return the main table as a Polars data frame."""
        return self._main_table().to_polars()

    def to_arrow(self) -> pa.Table:
        """Return the main table as an Arrow table."""
        return self._main_table().to_arrow()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        raise NotImplementedError

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return all values, their provenance, and the warnings as JSON; NaN becomes null."""
        return as_json(self.to_dict(), indent)

    def report(self, path: Any = None, *, title: str | None = None, overwrite: bool = False) -> Report:
        """Write an HTML report of the result, with the content of its text form and any charts.

        Parameters
        ----------
        path : path, optional
            The file to write; by default, no file is written. The report is always returned, and a notebook displays
            it.
        title : str, optional
            The heading.
        overwrite : bool
            Whether an existing file may be replaced.

        Returns
        -------
        Report
        """
        return self._report(path, overwrite, title=title)

    def _report(self, path: Any, overwrite: bool, **asked: Any) -> Report:
        from fastbcubed.results.page import report_of

        return report_of(self._document, path, asked, overwrite=overwrite)


class ClusterResult(Result):
    """A result whose report lists clusters, their members, and slices."""

    def report(
        self,
        path: Any = None,
        *,
        title: str | None = None,
        worst: int = 20,
        members: int = 10,
        columns: str | Iterable[str] = (),
        by: Any = None,
        explain: Any = None,
        overwrite: bool = False,
    ) -> Report:
        """Write an HTML report: the result in sentences, the distribution of the loss, slices, and costliest clusters.

        For a comparison or a diff, the report shows differences instead of losses, and the clusters that changed most.
        The report is a single HTML file below 2 MB that you can e-mail or archive. The file makes no network requests
        and can be read without scripts. The report contains aggregate figures, the ids of the members shown, and only
        the attributes that you name.

        Parameters
        ----------
        path : path, optional
            The file to write; by default, no file is written. The report is always returned, and a notebook displays
            it.
        title : str, optional
            The heading; by default, the names of the inputs.
        worst : int
            Number of costliest clusters of each side, and of repairs, to show; 0 for none. For a comparison, number of
            true clusters to show, beginning with the clusters that changed most in the first experiment.
        members : int
            Number of members of each cluster to show, as in `cluster`.
        columns : str or iterable of str
            Attributes to show next to the members, named as in `slices`.
        by : str, Bins, tuple of these, mapping, or list of these, optional
            Slices to show in addition to the slices of the result.
        explain : bool, str, Bins, iterable of these, or table, optional
            True to add a section on the kinds of items that lose F1 or, in a comparison, whose scores differ between
            the runs, as found by the method `explain`. With True, all columns of the inputs are searched; to search
            only some attributes, pass the attributes. A diff does not support `explain`.
        overwrite : bool
            Whether an existing file may be replaced.

        Returns
        -------
        Report
            The report, whose attribute `html` is the page and whose attribute `content` is the content as plain data.
            The same result always gives the same bytes of HTML. Lists that would make the file too large are truncated,
            and the page says so.

        Raises
        ------
        MissingPackageError, OptionError, ColumnError, SliceError, NotKeptError
            If the packages of the ``report`` extra are not installed, an option, an attribute or a slice is invalid, or
            the data needed were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.evaluate([0, 0, 1], [0, 1, 1]).report(title="Run 7").content["sections"][2]["title"]
        'Scores'
        >>> cmp = fb.compare(list("aabbccdd"), {"old": [1, 1, 2, 2, 3, 4, 5, 6], "new": [1, 1, 2, 2, 3, 3, 4, 5]})
        >>> cmp.report().content["head"][0]["blocks"][0]["sentences"][0][:23]
        'No clear difference bet'
        """
        asked = {"title": title, "worst": worst, "members": members, "columns": columns, "by": by}
        asked["explain"] = explain
        return self._report(path, overwrite, **asked)


class ScoredResult(ClusterResult):
    """A result with overall scores that gates can check."""

    def check(self, *gates: str, **scores: float) -> Table:
        """Raise GateError, which is an AssertionError, unless all scores meet their bounds.

        Parameters
        ----------
        *gates : str
            Required bounds, such as "f1>=0.9", "split_rate<=0.05" or "f1.low>=0.8", where low and high are the ends of
            the 95 % interval (MetricError if no interval is known). Append "@country=US" for a slice,
            "@year:10=1990-1999" for a bin, or "@slice=new" for a named subset passed to `evaluate`. Counts and sizes
            can be bounded too, as in "largest_pred<=50". For each side (true or pred, or baseline or experiment), gates
            can bound the number of clusters, the size of the largest cluster (in scored items) and the share of
            singletons among the clusters. Gates can also bound the numbers of items and cells. An undefined score (NaN)
            fails.
        **scores : float
            Minimum values of scores, truth_coverage or prediction_coverage, and maximum values of scores for which
            lower is better.

        Returns
        -------
        Table
            The columns gate, passed, value, at_least and at_most.

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
        >>> fb.diff([0, 0, 1, 1], [0, 0, 0, 1]).check("split_rate<=0.3")["passed"].to_pylist()
        [True]
        """
        from fastbcubed.results import gates as gating

        return gating.check(self, gates, scores)
