"""Diff: the changes between two clusterings, overall and by cluster, cell, item and slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.diff_runs.cluster_changes import changes_by, not_defined
from fastbcubed.diff_runs.diff_document import document
from fastbcubed.diff_runs.diff_listings import (
    ChangedCluster,
    ChangedItem,
    asked_columns,
    asked_key,
    cluster_of,
    clusters_of,
    item_of,
    items_of,
    requested_slices,
    shown_slices,
    slices_of,
)
from fastbcubed.diff_runs.diff_summary import MARK, known_errors, known_intervals, state_of
from fastbcubed.diff_runs.identity import DiffWithIds, known_stability
from fastbcubed.diff_runs.judgement import Judgement
from fastbcubed.diff_runs.vocabulary import (
    COLUMNS,
    MEANT,
    SIDES,
    TRUE_CLUSTER,
    asked_order,
    called,
    in_words_of_a_diff,
    meant,
    renamed,
)
from fastbcubed.errors import MetricError, NotKeptError, OptionError, arg, quoted
from fastbcubed.metrics.registry import METRICS, known_as
from fastbcubed.render.document import Document
from fastbcubed.results import save
from fastbcubed.results.figures import Scores
from fastbcubed.results.intervals import Interval, check_level
from fastbcubed.results.page import IN_BRIEF, Asked
from fastbcubed.results.slices import IN_JSON, SliceKey, check_key, numbers_of_cut, rows_for_json
from fastbcubed.results.standard_errors import COMPONENT
from fastbcubed.results.table import LOSS, Table, refuse_table_verb
from fastbcubed.runtime.arguments import is_one_of, true_or_false
from fastbcubed.runtime.object_attributes import documented
from fastbcubed.runtime.old_names import under_old_name

__all__ = ["Diff"]


class Diff(DiffWithIds):
    """Changes from the clusters of a baseline to the clusters of an experiment, and whether the changes are right.

    `fastbcubed.diff` and `fastbcubed.load` return diffs. Scores are means over the items that both sides have, unless a
    policy says otherwise.

    Attributes
    ----------
    evaluation : Evaluation
        The experiment scored against the baseline as if the baseline were the truth, with all cells and rows.
    overall : Scores
        Scores over all items; each score is also an attribute of the diff.
    verdict : Verdict or None
        How much of the change is right according to the truth, over all items; None if there is no truth.
    metrics : list of Metric
        The scores shown in tables.
    errors : Scores
        Standard errors of the scores over all items, based on connected components.
    summary : dict
        Numbers of items and clusters, and cluster sizes, of each side.
    warnings : list of dict
        Warnings and notes, each with its code, level, message and values.
    definition : dict
        How the scores are defined: average, weighting, policies.
    reading : dict
        How the columns of each side were read, why they were read this way, and other possible readings.
    manifest : dict
        Versions, the engine, the arguments passed, and the number of rows and the fingerprint of each side.
    coverage : SharedItems
        The extent to which baseline and experiment have the same items.
    names : dict
        The names of baseline, experiment and, if given, truth.
    not_computed : dict of str to str
        Scores of the requested families that are not defined for this input, and the reasons.
    sliced : dict of str to Table
        The slices requested in the call of `diff`.

    Notes
    -----
    A method that cannot return a result raises one of `fastbcubed.errors`: SliceError (the side, cluster, item or slice
    does not exist), ColumnError (the attribute does not exist), MetricError (the score does not exist or is not defined
    for this input), OptionError (another argument has an invalid value), NotKeptError (the cells or items were not
    kept), or EmptyInputError (there is no change to judge).

    Examples
    --------
    >>> import fastbcubed as fb
    >>> d = fb.diff(list("aaabbc"), list("ppqqqr"), truth=list("uuvvww"))
    >>> round(d.split_rate, 6), round(d.good_split_rate, 6), d.changes()["n_clusters"].to_pylist()
    (0.222222, 0.222222, [1, 0, 1, 1, 0, 0])
    """

    def __getattr__(self, name: str) -> float:
        if not name.startswith("_") and "evaluation" in self.__dict__:
            if (known := self.overall.named(name)) is not None:
                return float(self.overall[known])
        refuse_table_verb(name, "a diff", '.changes() and .clusters("experiment")')
        raise AttributeError(
            f"a diff has no attribute or computed score {name!r}; .metric({name!r}) computes a score"
        )

    def __dir__(self) -> list[str]:
        return documented(self, self.overall)

    # Scores

    def metric(self, which: str | Callable[..., Any]) -> float:
        """Return a score over all items, by name or from a custom formula.

        Parameters
        ----------
        which : str or callable
            The name of a score (with a truth, scores that judge the change are included), or a function
            ``f(tp, fp, fn, tn) -> array``. For each item, tp is the weight of the items that stayed with the item, fp
            of the items merged with it, fn of the items split off from it, and tn of all other items. The result is the
            mean over items of the array that the function returns.

        Returns
        -------
        float

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

    @property
    def errors(self) -> Scores:
        """Standard errors of the overall scores, based on connected components; see `Evaluation.errors`.

        Standard errors estimate how much a score would vary between samples of similar components; for the given items,
        the scores are exact. Standard errors of scores that judge the change are based on the components of truth,
        baseline and experiment.
        """
        of_impact = self.evaluation.errors
        found = dict(of_impact) | (self._judging_errors if self.verdict is not None else {})
        return Scores(found, of_impact._missing)

    def interval(self, which: str, *, level: float = 0.95, unit: str = COMPONENT) -> Interval:
        """Return the confidence interval for an overall score; see `Evaluation.interval`.

        Parameters
        ----------
        which : str
            A score, such as "split_rate".
        level : float
            The confidence level.
        unit : str
            The sampling unit: "component", "baseline_cluster" or an attribute. Scores that judge the change accept only
            "component".

        Returns
        -------
        Interval

        Examples
        --------
        >>> import fastbcubed as fb
        >>> d = fb.diff(list("aaabbc"), list("ppqqqr"))
        >>> low, high = d.interval("split_rate")  # the score is 2/9, from only two components
        >>> round(low, 2), round(high, 2)
        (0.0, 0.89)
        """
        name = known_as(meant(which))
        metric = METRICS.get(name) if isinstance(name, str) else None
        if metric is None or not metric.takes_three:
            of_baseline = str(COLUMNS[TRUE_CLUSTER])
            if is_one_of(unit, (TRUE_CLUSTER,)):  # an evaluation's name of the baseline's clusters
                raise OptionError(
                    f"units of a diff are {COMPONENT}, {of_baseline} or an attribute, not {TRUE_CLUSTER}: "
                    f"pass {arg('unit', COMPONENT)}, which does not depend on the truth"
                )
            with in_words_of_a_diff():
                unit = TRUE_CLUSTER if is_one_of(unit, (of_baseline,)) else unit
                return self.evaluation.interval(meant(which), level=level, unit=unit)
        if unit != COMPONENT:
            raise OptionError(
                f"intervals of {metric.name} are available only with {arg('unit', COMPONENT)}, not {quoted(unit)}"
            )
        judgement = self._require_judged(metric.name)
        value, found = judgement.overall([metric])[metric.name], judgement.errors([metric])
        return found.interval(metric, value, check_level(level))

    def scores(self, *, level: float = 0.95) -> Table:
        """Return the overall scores, with their standard errors and intervals if known.

        For scores that judge the change, a diff that was loaded without its items has only the values and the saved
        standard errors. The methods `to_pandas`, `to_polars` and `to_arrow` of the diff convert the table of scores.

        Parameters
        ----------
        level : float
            The confidence level.

        Returns
        -------
        Table
            The columns score, value, se, low, high, n_units and effective_units, as for `Evaluation.scores`.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> d = fb.diff(list("aaabbc"), list("ppqqqr"))
        >>> d.scores().select(["score", "value"]).slice(0, 2)
        score         value
        split_rate  0.22222
        merge_rate  0.22222
        <BLANKLINE>
        2 rows
        """
        found, judgement = self.evaluation.scores(level=level).to_arrow(), self._judgement
        errors, rows = known_errors(self) if judgement is None else self._judging_errors, []
        for metric in self._judging if self.verdict is not None else ():
            name = metric.name
            of_units: tuple[Any, ...] = math.nan, math.nan, None, math.nan
            if judgement is not None:  # otherwise, units and degrees of freedom are unknown
                of_units = (*self.interval(name, level=level), *judgement.units[:2])
            row = name, self.overall[name], errors.get(name, math.nan), *of_units
            rows.append(dict(zip(found.column_names, row, strict=True)))
        return Table(pa.concat_tables([found, pa.Table.from_pylist(rows, found.schema)]))

    _main_table = scores
    estimates = under_old_name(scores, "estimates")

    # Where clusters changed

    def changes(self, by: SliceKey | None = None) -> Table:
        """Return how many clusters are unchanged, split, merged, gone or new, with their items and weight.

        Parameters
        ----------
        by : str, Bins, tuple of these, optional
            Slices to list separately, as for `slices`.

        Returns
        -------
        Table
            The columns became, n_clusters, n_items, weight and share. Clusters of the baseline are "unchanged" (the
            experiment has the same cluster), "split" (into several clusters of the experiment that contain no other
            items), "merged" (in one cluster together with other items), "split and merged", or "gone" (the experiment
            has none of their items). Clusters of the experiment that contain no item of the baseline are "appeared".
            For clusters that are unchanged, split or merged, n_items and weight count only items on both sides. The
            column share is the fraction of the baseline's total weight or, for clusters that appeared, of the
            experiment's.

            With `by`, the first column is the slice, and clusters are counted if they have items in the slice. With
            `by`, shares are fractions of the weight of the items listed for the slice, and outcomes that do not occur
            in a slice are omitted.

        Notes
        -----
        Items that only one side has do not affect the outcome of a cluster that has common items; `coverage` shows the
        number of items that only one side has. With ``unmatched="singleton"``, an item missing from a side is a cluster
        of one item on that side.

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
                return Table(changes_by(self.evaluation, asked_key(self, by)))
        if self._changes is None:
            raise NotKeptError(
                f"the cells were not kept; call fastbcubed.diff with {arg('keep', 'cells')} to list the "
                "changes"
            )
        return Table(self._changes)

    def slices(
        self,
        by: SliceKey,
        *,
        attributes: Any = None,
        errors: bool = False,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return changes and scores by slice.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            An attribute of baseline or experiment, or of the truth if there is one; bins of an attribute (see
            `fastbcubed.bins`); a tuple of several attributes to cross; or a dict of named subsets, each a mask or a
            list of items. The cluster sizes "baseline_size" and "experiment_size" are always available. If a column is
            also named baseline_size, use "baseline.baseline_size" for the column and "always.baseline_size" for the
            cluster size. Nulls form a slice of their own.
        attributes : table, optional
            Attributes to slice by, matched by item or row by row; by default, the attributes passed to
            `fastbcubed.diff`.
        errors : bool
            Whether to compute standard errors from the components with items in the slice. With `errors`, each score is
            followed by its standard error <score>_se.
        order_by : str, optional
            A score or column to order by, as for `clusters`; "change" is the sum of split_change and merge_change. Ties
            are broken by weight, then by slice. By default, rows are ordered by slice, or by "change" if there is a
            limit.
        limit : int, optional
            The number of slices to return; all by default.

        Returns
        -------
        Table
            The slice, n_items, weight, split_change and merge_change (the slice's contributions to split_rate and
            merge_rate), and the scores. With a truth, n_labelled is the number of items on which the scores that judge
            the change are based.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> d = fb.diff(list("aaabbc"), list("ppqqqr"))
        >>> d.slices({"first": [0, 1, 2]}).select(["slice", "n_items", "split_rate", "merge_rate"])  # 4/9 and 2/9
        slice  n_items  split_rate  merge_rate
        first        3     0.44444     0.22222
        <BLANKLINE>
        1 row
        """
        return slices_of(self, check_key(by), attributes, true_or_false(errors, "errors"), order_by, limit)

    def sample_pairs(
        self,
        n: int,
        *,
        score: str = "rates",
        by: SliceKey | None = None,
        columns: str | Iterable[str] = (),
        seed: int = 0,
    ) -> Table:
        """Draw pairs of items from the changes, to be judged by people and passed to `fastbcubed.estimate_pairs`.

        Parameters
        ----------
        n : int
            The number of pairs to draw.
        score : str
            The figures to estimate: "rates" (the good and bad rates of splits and merges), a single good or bad rate or
            distance, or "delta_precision".
        by : str, Bins or tuple of these, optional
            An attribute to stratify by, named as in `slices`.
        columns : str or iterable of str
            Attributes of both items to show, named as in `slices`.
        seed : int
            Seed of the random numbers; the same seed draws the same pairs.

        Returns
        -------
        Table
            A row for each draw, with all columns that the estimate requires and an empty column "verdict"; see
            `fastbcubed.estimate_pairs`.

        Examples
        --------
        Items 0 and 1 were together, so the pairs (0, 1) and (1, 0) each have weight 1/3 * 1/2; now, items 1 and 2 are
        together.

        >>> import fastbcubed as fb
        >>> fb.diff([0, 0, 1], [0, 1, 1]).sample_pairs(4).select(["pair", "change", "probability", "z"]).slice(0, 2)
        pair  change  probability        z
        1     split             1  0.33333
        2     merged            1  0.33333
        <BLANKLINE>
        2 rows
        """
        from fastbcubed.sample.pair_sample import sample_pairs

        with in_words_of_a_diff():
            asked = asked_columns(self, columns)
            key = None if by is None else asked_key(self, by)
            found = sample_pairs(self.evaluation, n, score=score, by=key, columns=asked, seed=seed)
        names = {f"{which}.{name}": f"{which}.{called(name)}" for which in ("item", "mate") for name in asked}
        return Table(found.to_arrow().rename_columns({old: new for old, new in names.items() if old != new}))

    def clusters(
        self, side: str, *, order_by: str | None = None, limit: int | None = None, outcome: str | None = None
    ) -> Table:
        """Return changes and scores by cluster, largest change first.

        Parameters
        ----------
        side : {"baseline", "experiment"}
            Whether to list clusters of the baseline or of the experiment.
        order_by : str, optional
            A score or column to order by; by default "change", the sum of split_change and merge_change. Scores for
            which higher is better are listed smallest first, all other scores and columns largest first. Ties are
            broken by weight, largest first, then by label.
        limit : int, optional
            The number of clusters to return; all by default.
        outcome : str, optional
            The outcome of the clusters to list; all outcomes by default. Outcomes of the baseline's clusters are
            "unchanged", "split" (into several clusters that contain no other items), "merged" (in one cluster together
            with other items), "split and merged" and "gone" (the experiment has none of their items). Outcomes of the
            experiment's clusters are "unchanged", "fragment" (part of one baseline cluster), "union" (of whole baseline
            clusters), "mixed" and "appeared".

        Returns
        -------
        Table
            The columns cluster, n_items, weight, n_parts (the number of clusters of the other side that the cluster
            intersects), outcome (or, if clusters overlap, unchanged), split_change, merge_change, and the scores over
            the cluster's items. With a truth, n_labelled is the number of items on which the scores that judge the
            change are based. Clusters that are "gone" or "appeared" are listed only if `outcome` names them, with the
            columns cluster, n_items and weight.

        Notes
        -----
        split_change and merge_change are a cluster's contributions to split_rate and merge_rate: the sum over the
        cluster's items of the item's weight times the item's rate, divided by the weight of all items. Over all
        clusters of a side, the contributions add up to split_rate and merge_rate.

        Examples
        --------
        One of the three items of cluster a was split off and merged with cluster b.

        >>> import fastbcubed as fb
        >>> d = fb.diff(list("aaabbc"), list("ppqqqr"))
        >>> d.clusters("baseline").select(["cluster", "n_items", "outcome", "split_change", "merge_change"])
        cluster  n_items           outcome  split_change  merge_change
        a              3  split and merged       0.22222       0.11111
        b              2            merged             0       0.11111
        c              1         unchanged             0             0
        <BLANKLINE>
        3 rows
        """
        return clusters_of(self, side, order_by, limit, outcome)

    def cells(self, *, order_by: str | None = None, limit: int | None = None) -> Table:
        """Return the cells (intersections of a baseline and an experiment cluster), largest change first.

        Parameters
        ----------
        order_by : str, optional
            A column to order by, largest first; by default "change", the sum of split_change and merge_change. Ties are
            broken by weight, then by labels.
        limit : int, optional
            The number of cells to return; all by default.

        Returns
        -------
        Table
            The columns baseline_cluster, experiment_cluster (lists if clusters overlap), n_items and weight; split and
            merged, for each item; and split_change and merge_change, for all items of the cell.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> d = fb.diff(list("aaabbc"), list("ppqqqr"))
        >>> d.cells(limit=2).select(["baseline_cluster", "experiment_cluster", "n_items", "split", "merged"])
        baseline_cluster  experiment_cluster  n_items  split  merged
        a                 q                         1      2       2
        a                 p                         2      1       0
        <BLANKLINE>
        2 rows
        """
        with in_words_of_a_diff():
            return renamed(self.evaluation.cells(order_by=asked_order(order_by), limit=limit))

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        baseline_cluster: Any = None,
        experiment_cluster: Any = None,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return all items, or those of a cluster, with scores and the weights of mates that stayed, left or joined.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        baseline_cluster, experiment_cluster : object, optional
            The label of a cluster (a tuple if composite), to list only its items.
        order_by : str, optional
            A score or column to order by, as for `clusters`; "change" is the sum of split_change and merge_change. By
            default, items are in the order of the input. Ties are broken by weight, then by id.
        limit : int, optional
            The number of items to return; all by default.

        Returns
        -------
        Table
            The columns item, baseline_cluster, experiment_cluster, true_cluster if there is a truth, the attributes,
            weight, stable, split, merged, split_change, merge_change, and the scores.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> d = fb.diff(list("aaabbc"), list("ppqqqr"))
        >>> d.items(baseline_cluster="a").select(["item", "experiment_cluster", "stable", "split", "merged"])
        item  experiment_cluster  stable  split  merged
        0     p                        2      1       0
        1     p                        2      1       0
        2     q                        1      2       2
        <BLANKLINE>
        3 rows
        """
        return items_of(self, columns, (baseline_cluster, experiment_cluster), order_by, limit)

    def item(self, which: Any, *, columns: str | Iterable[str] = (), members: int = 5) -> ChangedItem:
        """Return one item: its scores, and the first few mates that stayed with it, left it or joined it.

        Parameters
        ----------
        which : object
            The item's id (a tuple for a composite id), or the item's position if items have no ids.
        columns : str or iterable of str
            Attributes to show, named as in `slices`.
        members : int
            Number of members to list in each group (stable, split, merged, apart).

        Returns
        -------
        ChangedItem
            A dict with a readable text form. The keys are item, baseline_cluster, experiment_cluster, weight, stable,
            split, merged, split_change, merge_change, the scores, "attributes" if requested, and "members", which gives
            the number of items and the first few items for each of "stable", "split", "merged" and "apart".

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff(list("aaabbc"), list("ppqqqr")).item(2)["members"]["split"]  # it was with items 0 and 1
        {'n_items': 2, 'first': [0, 1]}
        """
        return item_of(self, which, columns, members)

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> ChangedCluster:
        """Return a cluster: its changes, and its members grouped by the clusters of the other side, largest first.

        Parameters
        ----------
        side : {"baseline", "experiment"}
            The side of the cluster.
        which : object
            The label of the cluster; a tuple for a composite label.
        columns : str or iterable of str, optional
            Attributes to show next to the members, named as in `slices`; by default, the first few attributes,
            beginning with the true cluster. Values that differ from the most common value of an attribute are marked.
        members : int
            Number of members to show. Members are taken from each part in turn, one at a time; within a part, members
            are ordered by weight, largest first, then by id.

        Returns
        -------
        ChangedCluster
            A dict with a readable text form, an attribute `parts` (a table of all parts) and an attribute `table` (a
            table of all members).

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.diff(list("aaabbc"), list("ppqqqr")).cluster("baseline", "a")["outcome"]
        'split and merged'
        """
        return cluster_of(self, side, which, columns, members)

    # Output

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        verdict, shared = self.verdict, self.coverage
        shares = {name: getattr(shared, name) for name in ("baseline_coverage", "experiment_coverage")}
        found: dict[str, Any] = {
            "fastbcubed": __version__,
            **{side: self.names.get(side) for side in SIDES},
            "definition": self.definition,
            "overall": dict(self.overall),
            "coverage": {**asdict(shared), **shares},
            "summary": self.summary,
            "changes": None if self._changes is None else self._changes.to_pylist(),
            "id_stability": None if (kept := known_stability(self)) is None else kept._asdict(),
            "slices": {
                name: rows_for_json(
                    each if each.num_rows <= IN_JSON else requested_slices(self, name, LOSS, IN_JSON)
                )
                for name, each in shown_slices(self).items()
            },
            **numbers_of_cut(shown_slices(self), IN_JSON),
            "warnings": self.warnings,
            "not_computed": self.not_computed,
            "reading": self.reading,
            "manifest": self.manifest,
        }
        if known := known_intervals(self):
            found["intervals"] = {name: ends._asdict() for name, ends in known.items()}
        if verdict is None:
            return found
        judged = asdict(verdict)
        del judged["scores"]
        errors = known_errors(self)
        return {**found, "truth": self._truth, "verdict": judged, **({"errors": errors} if errors else {})}

    def save(self, directory: Any, *, keep: str = "items") -> None:
        """Write the diff as JSON and Parquet files; `fastbcubed.load` reads it back.

        Parameters
        ----------
        directory : path
            The directory to write to; a missing directory is created. Files of an earlier result in the directory are
            replaced together, after the new files have been written.
        keep : {"scores", "cells", "items"}
            How much of the diff to write. "scores" writes scores, changes and slices; "cells" adds clusters and cells;
            "items" also adds the items, including the items of a truth, so that any slice can be computed later. The
            files and columns are the same as for an evaluation with the baseline as truth.
        """
        save.save(
            self.evaluation,
            directory,
            keep,
            more=lambda: {MARK: state_of(self, self.to_dict())},
            sliced=shown_slices(self),
        )

    # Helpers of the methods above

    def _document(self, asked: Asked | None = None) -> Document:
        return document(self, asked or IN_BRIEF)

    def _require_judged(self, name: str) -> Judgement:
        if self._judgement is None:
            raise MetricError(
                f"{name} judges a change against a truth; pass fb.diff(..., truth=truth)"
                if self.verdict is None
                else f"{name} was not computed before the diff was saved, and the items were not kept"
            )
        return self._judgement
