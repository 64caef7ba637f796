"""Diff: what an experiment does to the clusters of a baseline, at every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbcubed.changes import keeping
from fastbcubed.changes.becoming import changes_by, not_defined
from fastbcubed.changes.change_errors import DiffErrors
from fastbcubed.changes.naming import (
    BACK,
    MEANT,
    asked_order,
    asked_slices,
    called,
    in_words_of_a_diff,
    meant,
    renamed_slices,
)
from fastbcubed.errors import NotKeptError
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS, known_as
from fastbcubed.results.files import storage
from fastbcubed.results.items.items import AttributeTable
from fastbcubed.results.listings.listing import listed
from fastbcubed.results.listings.summary import as_json
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.slicing import (
    SliceKey,
    beside,
    check_key,
    elements,
    slice_codes,
    slice_name,
    subset_mask,
)
from fastbcubed.runtime.choices import true_or_false
from fastbcubed.sources.arrays import from_texts, table_of

if TYPE_CHECKING:
    from fastbcubed.results.gates.gating import Gate
    from fastbcubed.results.report.asked import Asked
    from fastbcubed.results.report.page import Report

__all__ = ["Diff"]


class Diff(DiffErrors):
    """What an experiment does to the clusters of a baseline, and whether a truth approves of it.

    Made by `fastbcubed.diff` or `fastbcubed.load`. Scores are means over the items that both have, unless a policy
    says otherwise.

    Attributes
    ----------
    evaluation : Evaluation
        The experiment scored against the baseline as if this were the truth; all cells and rows are there.
    overall : Scores
        Scores over all items; each is also an attribute of the diff.
    verdict : Verdict or None
        What the truth says of all items together; None without one.
    metrics : list of Metric
        The scores that tables show.
    errors : Scores
        Standard errors of the scores over all items, by connected component.
    summary : dict
        Items, clusters and sizes of each side.
    warnings : list of dict
        What a reader should know: code, level, message, and figures of each.
    definition : dict
        What the scores mean: average, weighting, policies.
    manifest : dict
        Versions, engine, the arguments given, and rows and fingerprint of each side.
    coverage : SharedItems
        How far baseline and experiment have the same items.
    names : dict
        What baseline, experiment and, if there is one, truth are called.
    not_computed : dict of str to str
        Scores of a family that are not defined for this input, and why.
    sliced : dict of str to Table
        Slices that were asked for when the diff was made.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> d = fb.diff(list("aaabbc"), list("ppqqqr"), truth=list("uuvvww"))
    >>> round(d.split_rate, 6), round(d.good_split_rate, 6), d.changes()["n_clusters"].to_pylist()
    (0.222222, 0.222222, [1, 0, 1, 1, 0, 0])
    """

    def metric(self, which: str | Callable[..., Any]) -> float:
        """Return a score over all items, by name or from a formula of your own.

        Parameters
        ----------
        which : str or callable
            A name of the registry, also of a score that judges the change if there is a truth; or a formula
            ``f(tp, fp, fn, tn) -> array``, which is given what stayed with an item, what was merged to it, what was
            split off it, and all else. Its mean over items is returned.

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
        >>> fb.diff([0, 0, 1], [0, 1, 1]).metric(lambda tp, fp, fn, tn: fn > 0)  # two items lost a mate
        0.6666666666666666
        """
        if isinstance(which, str) and (known := self.overall.named(which)) is not None:
            return self.overall[known]
        name = known_as(meant(which))
        if isinstance(name, str) and name in METRICS and METRICS[name].takes_three:
            return self._require_judged(name).overall([METRICS[name]])[name]
        with in_words_of_a_diff():
            return self.evaluation.metric(MEANT.get(which, which) if isinstance(which, str) else which)

    def changes(self, by: SliceKey | None = None) -> Table:
        """Return what became of the clusters of the baseline, and which clusters appeared.

        Parameters
        ----------
        by : str, Bins, tuple of these, optional
            Slices to tell of one by one, as for `slices`.

        Returns
        -------
        Table
            became, n_clusters, n_items, weight, share. Clusters of the baseline are "unchanged" (the experiment has
            the same cluster), "split" (in several clusters of the experiment, which hold nothing else), "merged"
            (whole, together with others), "split and merged", or "gone": the experiment has none of their items.
            "appeared" are clusters of the experiment of which the baseline has no item. Items and weight of the first
            four are those that both have. The share is that of the weight of the whole baseline, and of the whole
            experiment for clusters that appeared.

            By slice, the slice comes first; clusters are those with items in it, and shares are of the weight of the
            items that are told of in the slice. What does not occur is left out.

        Raises
        ------
        MetricError
            If clusters may overlap.
        NotKeptError
            If the cells, or by slice the items, were not kept.

        Notes
        -----
        Items that one side alone has of a cluster of which both have items do not change what became of it; how many
        there are is told by `coverage`. With ``unmatched="singleton"`` they count as clusters of one item.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> baseline = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "f": 4}
        >>> fb.diff(baseline, {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z", "g": "w"}).changes()
        became            n_clusters  n_items  weight    share
        unchanged                  1        2       2  0.33333
        split                      0        0       0        0
        merged                     1        1       1  0.16667
        split and merged           1        2       2  0.33333
        gone                       1        1       1  0.16667
        appeared                   1        1       1  0.16667
        <BLANKLINE>
        6 rows
        """
        if self.evaluation.contingency.overlapping:
            raise not_defined()
        if by is not None:
            with in_words_of_a_diff():
                return Table(changes_by(self.evaluation, self._asked_key(by)))
        if self.known_changes is None:
            raise NotKeptError(
                'the cells were not kept; call fastbcubed.diff with keep="cells" to know the changes'
            )
        return Table(self.known_changes)

    def _asked_key(self, key: SliceKey) -> SliceKey:
        """Return a slicing in the names of an evaluation."""
        self._require_clear(elements(check_key(key)))
        return asked_slices(key, judged=self.verdict is not None)

    def slices(
        self,
        by: SliceKey,
        *,
        attributes: Any = None,
        errors: bool = False,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return what changed, and scores, by slice.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            An attribute of baseline or experiment, or of the truth if there is one; bins of it (see
            `fastbcubed.bins`); several crossed; or names of subsets, each a mask or a list of items. "baseline_size"
            and "experiment_size" are always there; where a column is called so, too, it is "baseline.baseline_size",
            and the size "always.baseline_size". A null is a slice of its own.
        attributes : table, optional
            Attributes by item, or row by row, to slice by; those given to `fastbcubed.diff` by default.
        errors : bool
            Whether to work out standard errors, too: <score>_se behind each score, by the components that have items
            in the slice.
        order_by : str, optional
            A score or column to list by, as for `clusters`; "change" for both changes together. Ties are broken by
            weight, then by slice. When absent, by slice, or by "change" if there is a limit.
        limit : int, optional
            The number of slices to return; all when absent.

        Returns
        -------
        Table
            The slice, n_items, weight, split_change and merge_change (its shares of split_rate and merge_rate), and
            the scores; with a truth also n_labelled, the items that the scores which judge the change are about.

        Raises
        ------
        ColumnError, SliceError
            If there is no such attribute, it cannot be sliced by, or a subset has no scored item.
        OptionError
            If `errors` is neither True nor False, or there is no such column to list by.
        """
        key, ev, errors = check_key(by), self.evaluation, true_or_false(errors, "errors")
        order = asked_order(order_by) if order_by is not None or limit is not None else None
        if not ev.has_items and not errors and slice_name(key) in self.sliced:
            return _again(self.sliced[slice_name(key)], self.metrics, order_by, limit)
        with in_words_of_a_diff():
            table = table_of(self._sliced(key, attributes, errors))
            return renamed_slices(listed(table, self.metrics, order, limit))

    def _sliced(self, key: SliceKey, attributes: Any, errors: bool) -> dict[str, Any]:
        """Return the columns of slices."""
        ev = self.evaluation
        items = ev.kept_items()
        if isinstance(key, Mapping):
            masks = [subset_mask(w, items, ev.contingency, repr(n)) for n, w in key.items()]
            parts = [self._columns(np.where(mask, 0, -1), 1, errors) for mask in masks]
            columns: dict[str, Any] = {"slice": from_texts(list(map(str, key)))}
            return columns | {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        extra = ev.attributes if attributes is None else AttributeTable.of(attributes, items)
        cut = slice_codes(self._asked_key(key), ev.contingency, items, extra)
        return beside(cut.values, self._columns(cut.codes, cut.n_slices, errors))

    def _columns(self, codes: Any, n: int, errors: bool) -> dict[str, Any]:
        found = self.evaluation._slice(codes, n, errors)
        if self.judgement is None:
            return found
        return found | self.judgement.of_slices(codes, n, self.judging, errors=errors)

    def sample_pairs(
        self,
        n: int,
        *,
        score: str = "rates",
        by: SliceKey | None = None,
        columns: str | Iterable[str] = (),
        seed: int = 0,
    ) -> Table:
        """Draw pairs of items from what changed, to be judged by people; `fastbcubed.estimate_pairs` takes them.

        Parameters
        ----------
        n : int
            How many pairs to draw.
        score : str
            What to estimate: "rates", those of splits and of merges; a good or bad rate or distance; delta_precision.
        by : str, Bins or tuple of these, optional
            An attribute by whose values to draw apart, named as in `slices`.
        columns : str or iterable of str
            Attributes to show of both items, named as in `slices`.
        seed : int
            Of the random numbers: the same seed draws the same pairs.

        Returns
        -------
        Table
            A row for each draw, with all that the estimate needs, and an empty column verdict: see
            `fastbcubed.estimate_pairs`.

        Raises
        ------
        MetricError, OptionError, EmptyInputError
            If there is no such score, n is too small, or nothing changed that could be judged.
        NotKeptError
            If the items were not kept.

        Examples
        --------
        Items 0 and 1 were together: (0, 1) and (1, 0) weigh 1/3 * 1/2 each. Now 1 and 2 are.

        >>> import fastbcubed as fb
        >>> fb.diff([0, 0, 1], [0, 1, 1]).sample_pairs(4).select(["pair", "change", "probability", "z"]).slice(0, 2)
        pair  change  probability        z
        1     split             1  0.33333
        2     merged            1  0.33333
        <BLANKLINE>
        2 rows
        """
        from fastbcubed.sampling.pair_sample import sample_pairs

        with in_words_of_a_diff():
            asked = self._asked_columns(columns)
            key = None if by is None else self._asked_key(by)
            found = sample_pairs(self.evaluation, n, score=score, by=key, columns=asked, seed=seed)
        names = {f"{which}.{name}": f"{which}.{called(name)}" for which in ("item", "mate") for name in asked}
        return Table(found.to_arrow().rename_columns({old: new for old, new in names.items() if old != new}))

    # Output

    def check(self, *gates: str, **scores: float) -> Table:
        """Raise GateError, an AssertionError, unless all scores are as is wanted; for tests and jobs.

        Parameters
        ----------
        *gates : str
            What has to hold, such as "split_rate<=0.05", or of a slice "bad_distance<=0.01@country=US".
        **scores : float
            Scores by name: the least that each has to be; the most, if less of it is better.

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
        >>> fb.diff([0, 0, 1, 1], [0, 0, 0, 1]).check("split_rate<=0.3")["passed"].to_pylist()
        [True]
        """
        from fastbcubed.results.gates import gating

        return gating.check(self, gates, scores)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return scores, changes, coverage, summary, slices and warnings as JSON; NaN becomes null."""
        return as_json(self.to_dict(), indent)

    def report(self, path: Any = None, *, overwrite: bool = False, **asked: Any) -> Report:
        """Write a page for people: what changed, whether a truth approves, and the clusters that changed most.

        Parameters
        ----------
        path : path, optional
            The file to write. Without it, what is returned shows itself in a notebook.
        overwrite : bool
            Whether a file that is there may be replaced.
        **asked
            title, worst, members, columns and by, as for `Evaluation.report`.

        Returns
        -------
        Report
        """
        from fastbcubed.results.report.page import report_of

        return report_of(self.page_content, path, asked, overwrite=overwrite)

    def page_content(self, asked: Asked, gates: Sequence[Gate] = ()) -> dict[str, Any]:
        """Return what `report` writes as plain data, with what gates came to."""
        from fastbcubed.changes.diff_page import diff_content

        return diff_content(self, asked, gates)

    def save(self, directory: Any, *, keep: str = "items") -> None:
        """Write the diff as JSON and Parquet files; `fastbcubed.load` reads it back.

        Parameters
        ----------
        directory : path
            Made if need be. Files of an earlier result in it are replaced, together at the end.
        keep : {"scores", "cells", "items"}
            How much to write: scores, changes and slices; with "cells" also the clusters and what they share; with
            "items" also the items, from which any later slice can be made, those of a truth included. The files
            are those of an evaluation with the baseline as truth, and have its names of columns.
        """
        storage.save(self.evaluation, directory, keep, more=lambda: {keeping.MARK: keeping.state_of(self)})

    def __repr__(self) -> str:
        from fastbcubed.changes.release_note import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from fastbcubed.changes.release_note import as_html

        return as_html(self)


def _again(table: Table, metrics: list[Metric], order_by: str | None, limit: int | None) -> Table:
    """Return slices that were kept, in the names of a diff, in an order."""
    if order_by is None and limit is None:
        return table
    found = table.to_arrow()
    names = [BACK.get(name, name) for name in found.column_names]
    ordered = listed(found.rename_columns(names), metrics, asked_order(order_by), limit)
    return Table(ordered.to_arrow().rename_columns(found.column_names))
