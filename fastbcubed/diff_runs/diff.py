"""Diff: changes between two clusterings, listed by cluster, cell and item."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastbcubed.cells.contingency import SIDES as OLD_SIDES
from fastbcubed.diff_runs.diff_base import Diffed
from fastbcubed.diff_runs.diff_document import (
    BACK,
    MEANT,
    OF_SIZES,
    OUTCOMES,
    PLACES,
    TRUE_CLUSTER,
    asked_name,
    asked_order,
    asked_slices,
    called,
    in_a_diff,
    in_words_of_a_diff,
    meant,
    renamed,
    renamed_slices,
    side_of,
)
from fastbcubed.diff_runs.diff_listings import (
    OF_ONE_SIDE,
    ChangedCluster,
    ChangedItem,
    changed_cluster,
    changed_item,
    changes_by,
    listed_of_one_side,
    not_defined,
)
from fastbcubed.diff_runs.judgement import Judgement, Verdict, labelled_again
from fastbcubed.errors import FileFormatError, NotKeptError, OptionError, arg
from fastbcubed.inputs.arrays import from_numpy, from_texts, table_of, to_numpy
from fastbcubed.metrics.registry import METRICS, known_as
from fastbcubed.metrics.score import Metric
from fastbcubed.render.document import Block
from fastbcubed.render.html import Shown
from fastbcubed.render.json import as_json
from fastbcubed.results import clusters, save
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import AttributeTable
from fastbcubed.results.members import chosen_columns, rows_in_clusters, with_attributes
from fastbcubed.results.slices import (
    SliceKey,
    beside,
    check_key,
    elements,
    require_clear,
    slice_codes,
    slice_name,
    subset_mask,
)
from fastbcubed.results.standard_errors import Interval, check_level, interval
from fastbcubed.results.summary import Scores
from fastbcubed.results.table import Table, listed, warn_renamed
from fastbcubed.runtime.arguments import as_several, is_one_of, true_or_false

if TYPE_CHECKING:
    from fastbcubed.render.html import Page, Report
    from fastbcubed.results.gates import Gate
    from fastbcubed.results.page import Asked


class DiffLists(Diffed):
    """A diff whose clusters and items can be listed and opened; see `Diff`."""

    def clusters(
        self, side: str, *, order_by: str | None = None, limit: int | None = None, outcome: str | None = None
    ) -> Table:
        """Return changes and scores by cluster, largest change first.

        Parameters
        ----------
        side : {"baseline", "experiment"}
            Which clusters.
        order_by : str, optional
            A score or column; when absent, or "change", split_change and merge_change together. Scores of which
            more is better are listed smallest first, all else largest first. Ties are broken by weight, largest first,
            then by label.
        limit : int, optional
            The number of clusters to return; all when absent.
        outcome : str, optional
            The outcome of the clusters to list: of the baseline "unchanged", "split" (in several clusters now, which
            hold nothing else), "merged" (whole, together with other items), "split and merged" or "gone" (the
            experiment has none of its items); of the experiment "unchanged", "fragment" (of one baseline cluster, not
            all of it), "union" (of whole ones), "mixed" or "appeared".

        Returns
        -------
        Table
            cluster, n_items, weight, n_parts (clusters of the other side that it meets), outcome (where clusters
            overlap, unchanged), split_change, merge_change, and the scores over its items. With a truth also
            n_labelled, the items that the scores which judge the change are about. Clusters that are gone or
            appeared have cluster, n_items and weight alone.

        Notes
        -----
        The changes of a cluster are its shares of split_rate and merge_rate: the sums over its items of weight * the
        item's own rate, divided by the weight of all items. So they add up to split_rate and merge_rate.
        """
        old, ev = side_of(side), self.evaluation
        if is_one_of(outcome, (OF_ONE_SIDE[old],)):
            return self._of_one_side(old, order_by, limit)
        known = _outcome_of(old, outcome)
        with in_words_of_a_diff():
            if known is not None:
                ev._require_outcomes()
            order = asked_order(order_by)
            metrics = clusters.known_by_cluster(ev.contingency, ev.metrics, 1.0)
            named_by = ("code", "cluster", lambda codes: ev.cluster_labels(old, codes))
            if ev.ranges is None or limit is None:
                columns = clusters.columns_by_code(ev.contingency, old, metrics, 1.0)
                if self.judgement is not None:
                    columns |= self.judgement.of_clusters(old, self.judging)
                table = clusters.listing_of(0, columns, old, known)
            else:
                table = ev.ranges.best(old, metrics, 1.0, order, limit, named_by, known)
            found = listed(table, self.metrics, order, limit, named_by=named_by).to_arrow()
        return renamed(_in_outcomes(found.drop_columns(["code"]), old), ["cluster"])

    def _of_one_side(self, side: str, order_by: str | None, limit: int | None) -> Table:
        if self.evaluation.contingency.overlapping:
            raise not_defined()
        found = listed_of_one_side(self.evaluation, side)
        return listed(found, (), "n_items" if order_by is None else order_by, limit)

    def cells(self, *, order_by: str | None = None, limit: int | None = None) -> Table:
        """Return the cells (intersections of a baseline and an experiment cluster), largest change first.

        Parameters
        ----------
        order_by : str, optional
            A column to list by, largest first; both changes together when absent, or "change". Ties are broken by
            weight, then by labels.
        limit : int, optional
            The number of cells to return; all when absent.

        Returns
        -------
        Table
            baseline_cluster, experiment_cluster (a list of them where they overlap), n_items, weight, split and
            merged of each item, split_change and merge_change of all of them.
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
        """Return all items, or those of a cluster: clusters, weight, mates that stayed, left and joined, and scores.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        baseline_cluster, experiment_cluster : object, optional
            The label of a cluster, whose items alone are listed; a tuple if composite.
        order_by : str, optional
            A score or column to list by, as for `clusters`; "change" for both changes together; in the order of the
            input when absent. Ties are broken by weight, then by id.
        limit : int, optional
            The number of items to return; all when absent.

        Returns
        -------
        Table
            item, baseline_cluster, experiment_cluster, true_cluster if there is a truth, the attributes, weight,
            stable, split, merged, split_change, merge_change, then the scores.

        Raises
        ------
        SliceError
            If there is no such cluster.
        ColumnError
            If there is no such attribute.
        """
        ev = self.evaluation
        with in_words_of_a_diff():
            items, rows = ev.kept_items(), ev._rows()
            asked = self._asked_columns(columns)
            here = rows_in_clusters(ev, baseline_cluster, experiment_cluster)
            table = clusters.item_columns(ev.contingency, rows, ev.metrics, np.flatnonzero(here))
            if self.judgement is not None:
                for name, scores in self.judgement.of_items(self.judging).items():
                    table = table.append_column(name, from_numpy(scores[here]))
            order = None if order_by is None else asked_order(order_by)
            found = listed(table, self.metrics, order, limit, named_by=("row", "item", items.ids)).to_arrow()
        at = to_numpy(found["row"])
        found = renamed(found.drop_columns(["row"]), ["item"]).to_arrow()
        for k, (side, name) in enumerate(
            zip(OLD_SIDES, ("baseline_cluster", "experiment_cluster"), strict=True), 1
        ):
            found = found.add_column(k, name, items.labels(side, at))
        if self.judgement is not None and TRUE_CLUSTER not in asked:
            asked = [TRUE_CLUSTER, *asked]
        return Table(in_a_diff(with_attributes(found, ev, asked, at, 3), asked))

    def _require_clear(self, names: Iterable[object]) -> None:
        """Raise ColumnError if baseline or experiment has an attribute with the name of the true cluster's column."""
        if self.judgement is not None and TRUE_CLUSTER in names:
            sides = self.evaluation.kept_items().attribute_sides()
            own = {place: sides[place] for place in PLACES.values()}
            require_clear(TRUE_CLUSTER, "the cluster of the truth", own)

    def _asked_columns(self, columns: str | Iterable[str]) -> list[str]:
        names = as_several(columns)
        judged = self.judgement is not None
        self._require_clear(names)
        asked = [
            asked_name(name, judged=judged) if isinstance(name, str) and name not in OF_SIZES else name
            for name in names
        ]
        return chosen_columns(self.evaluation, asked)

    def item(self, which: Any, *, columns: str | Iterable[str] = (), members: int = 5) -> ChangedItem:
        """Return one item: the mates that stayed, left and joined (the first few of each), and scores.

        Parameters
        ----------
        which : object
            Its id; a tuple if composite; its position if items have no ids.
        columns : str or iterable of str
            Attributes to show, named as in `slices`.
        members : int
            Members to list of each set.

        Returns
        -------
        ChangedItem
            A dict that reads well: item, baseline_cluster, experiment_cluster, weight, stable, split, merged,
            split_change, merge_change, the scores, "attributes" if there are columns, and "members": for each of
            "stable", "split", "merged" and "apart" the number of items and the first few of them.
        """
        ev = self.evaluation
        with in_words_of_a_diff():
            found = ev.item(which, columns=self._asked_columns(columns), members=members)
        if self.judgement is None:
            return changed_item(found, {}, judged=False)
        row = int(ev.kept_items().rows_of([which])[0])
        scores = {name: float(each[row]) for name, each in self.judgement.of_items(self.judging).items()}
        labels = with_attributes(pa.table({"row": [row]}), ev, [TRUE_CLUSTER], np.array([row]), 1)
        return changed_item(found, scores, labels[TRUE_CLUSTER][0].as_py(), judged=True)

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> ChangedCluster:
        """Return a cluster: its changes, and its members by the clusters of the other side, largest first.

        Parameters
        ----------
        side : {"baseline", "experiment"}
            Which clusters.
        which : object
            Its label; a tuple if composite.
        columns : str or iterable of str, optional
            Attributes to show beside the members, named as in `slices`; the first few when absent, the true cluster
            before all. Values that differ from the commonest one are marked.
        members : int
            Members to show: of each part one, then another of each, and so on, heaviest first, then by id.

        Returns
        -------
        ChangedCluster
            A dict that reads well, and that has as `parts` a table of all parts, as `table` one of all members.

        Raises
        ------
        SliceError
            If there is no such cluster.
        ColumnError
            If there is no such attribute.
        """
        old, ev = side_of(side), self.evaluation
        with in_words_of_a_diff():
            if columns is not None:
                names = self._asked_columns(columns)
            else:
                names = chosen_columns(ev, None)
                if self.judgement is not None:
                    names = list(dict.fromkeys([TRUE_CLUSTER, *names]))[: max(1, len(names))]
            return changed_cluster(ev.cluster(old, which, columns=names, members=members))


def _outcome_of(side: str, outcome: str | None) -> str | None:
    """Return an evaluation's name for the outcome of a cluster."""
    if outcome is None:
        return None
    known = {new: old for old, new in OUTCOMES[side].items()}
    if not is_one_of(outcome, known):
        listed_names = ", ".join(map(repr, (*known, OF_ONE_SIDE[side])))
        kind = "a baseline" if side == "true" else "an experiment"
        raise OptionError(f"the outcome of {kind} cluster is one of {listed_names}, not {outcome!r}")
    return known[outcome]


def _in_outcomes(table: pa.Table, side: str) -> pa.Table:
    """Return a listing of clusters with the outcomes of a diff; or whether they are unchanged where there are none."""
    at = table.column_names.index("exact")
    if "outcome" not in table.column_names:
        return table.rename_columns({"exact": "unchanged"})
    outcomes = table["outcome"].combine_chunks()
    names = pa.array([OUTCOMES[side][name] for name in outcomes.dictionary.to_pylist()], pa.string())
    own = pa.DictionaryArray.from_arrays(outcomes.indices, names)
    found = table.set_column(table.column_names.index("outcome"), "outcome", own)
    return found.remove_column(at)


class DiffErrors(DiffLists):
    """A diff that is asked how sure its scores are; see `Diff`."""

    @property
    def errors(self) -> Scores:
        """Standard errors of the overall scores, by connected component; see `Evaluation.errors`.

        They say how far a score would differ on other components of the same kind. On these very items a diff has no
        error. Scores that judge the change have one by components of truth, baseline and experiment.
        """
        of_impact = self.evaluation.errors
        found = dict(of_impact) | (self._judging_errors if self.verdict is not None else {})
        return Scores(found, of_impact._missing)

    def interval(self, which: str, *, level: float = 0.95, unit: str = "component") -> Interval:
        """Return the interval of an overall score; see `Evaluation.interval`.

        Parameters
        ----------
        which : str
            A score, such as "split_rate".
        level : float
            The confidence.
        unit : str
            As for `Evaluation.interval`; "component" alone for scores that judge the change.
        """
        name = known_as(meant(which))
        metric = METRICS.get(name) if isinstance(name, str) else None
        if metric is None or not metric.takes_three:
            with in_words_of_a_diff():
                return self.evaluation.interval(str(meant(which)), level=level, unit=unit)
        if unit != "component":
            raise OptionError(
                f"{metric.name} has intervals by {arg('unit', 'component')} alone, not {unit!r}"
            )
        judgement = self._require_judged(metric.name)
        error = judgement.errors([metric])[metric.name]
        how: dict[str, Any] = {"level": check_level(level), "low": metric.low, "high": metric.high}
        value = judgement.overall([metric])[metric.name]
        return interval(value, error, n_units=judgement.units.n, **how)

    def scores(self, *, level: float = 0.95) -> Table:
        """Return the overall scores, with standard errors and intervals where these are known.

        `to_pandas`, `to_polars` and `to_arrow` of the diff convert this table.

        Parameters
        ----------
        level : float
            The confidence.

        Returns
        -------
        Table
            score, value, se, low, high, n_units, effective_units.
        """
        found = self.evaluation.scores(level=level).to_arrow()
        if self.judgement is None:
            return Table(found)
        errors, units = self._judging_errors, self.judgement.units
        rows = []
        for metric in self.judging:
            low, high = self.interval(metric.name, level=level)
            figures = (metric.name, self.overall[metric.name], errors[metric.name], low, high, units.n)
            rows.append(dict(zip(found.column_names, (*figures, units.effective), strict=True)))
        return Table(pa.concat_tables([found, pa.Table.from_pylist(rows, found.schema)]))

    def _main_table(self) -> Table:
        return self.scores()

    def estimates(self, *, level: float = 0.95) -> Table:
        """Return `scores`, as this method was called before 0.2."""
        warn_renamed("estimates", "scores")
        return self.scores(level=level)


#: Where the manifest of a saved result has what belongs to a diff; without it, it is that of an evaluation.
MARK = "diff"


def state_of(diff: Diffed) -> dict[str, Any]:
    """Return the entry of a diff in the manifest, as JSON."""
    found = diff.to_dict()
    state: dict[str, Any] = {
        name: found.get(name) for name in ("changes", "warnings", "not_computed", "truth", "verdict")
    }
    state |= {"errors": found.get("errors", {}), "judging": [metric.name for metric in diff.judging]}
    if diff.verdict is not None:
        state["verdict"]["scores"] = dict(diff.verdict.scores)
    return dict(json.loads(as_json(state, None)))


def parts_of(ev: Evaluation, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a diff from its evaluation and its entry in the manifest."""
    verdict = None if state["verdict"] is None else _verdict(state["verdict"])
    saved = {"changes": state["changes"], "warnings": state["warnings"], "verdict": verdict}
    if state["errors"]:
        saved["errors"] = {name: _number(value) for name, value in state["errors"].items()}
    judgement = None
    if verdict is not None and ev.has_items and ev.policies.nulls != "singleton":
        if TRUE_CLUSTER not in ev.kept_items().attribute_sides().get("attributes", ()):
            raise FileFormatError("the items have no true cluster, by which the diff was judged")
        judgement = Judgement(ev, labelled_again(ev), verdict.unlabelled)
    return {
        "evaluation": ev,
        "judgement": judgement,
        "judging": [METRICS[name] for name in state["judging"] if METRICS[name].takes_three],
        "truth": state["truth"],
        "not_computed": dict(state["not_computed"]),
        "saved": saved,
    }


def _verdict(figures: Mapping[str, Any]) -> Verdict:
    """Return a verdict that was saved."""
    found = {each.name: figures[each.name] for each in fields(Verdict)}
    found["scores"] = {name: _number(value) for name, value in found["scores"].items()}
    found["levels"] = {
        side: {name: _number(value) for name, value in own.items()} for side, own in found["levels"].items()
    }
    return Verdict(**found)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


__all__ = ["Diff"]


class Diff(Shown, DiffErrors):
    """Changes from a baseline's clusters to an experiment's, and how many of them a truth confirms.

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
        Slices that were requested when the diff was made.

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
        """Return the outcomes of the baseline's clusters, and the clusters that appeared.

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
        there are is shown by `coverage`. With ``unmatched="singleton"`` they count as clusters of one item.

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
                f"the cells were not kept; call fastbcubed.diff with {arg('keep', 'cells')} to know the changes"
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
        """Return changes and scores by slice.

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
        """Draw pairs of items from the changes for people to judge; `fastbcubed.estimate_pairs` takes them.

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
        from fastbcubed.sample.pair_sample import sample_pairs

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
        from fastbcubed.results import gates as gating

        return gating.check(self, gates, scores)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return scores, changes, coverage, summary, slices and warnings as JSON; NaN becomes null."""
        return as_json(self.to_dict(), indent)

    def report(self, path: Any = None, *, overwrite: bool = False, **asked: Any) -> Report:
        """Write an HTML page: the changes, how many a truth confirms, and the clusters that changed most.

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
        from fastbcubed.results.page import report_of

        return report_of(self._page, path, asked, overwrite=overwrite)

    def _page(self, asked: Asked, gates: Sequence[Gate] = ()) -> Page:
        """Return the content of `report`, with the results of gates, and its document."""
        from fastbcubed.diff_runs.diff_document import diff_content, diff_document
        from fastbcubed.render.html import Page

        return Page(diff_content(self, asked, gates), diff_document)

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
        save.save(self.evaluation, directory, keep, more=lambda: {MARK: state_of(self)})

    def _document(self) -> list[Block]:
        from fastbcubed.diff_runs.diff_document import document

        return document(self)


def _again(table: Table, metrics: list[Metric], order_by: str | None, limit: int | None) -> Table:
    """Return slices that were kept, in the names of a diff, in an order."""
    if order_by is None and limit is None:
        return table
    found = table.to_arrow()
    names = [BACK.get(name, name) for name in found.column_names]
    ordered = listed(found.rename_columns(names), metrics, asked_order(order_by), limit)
    return Table(ordered.to_arrow().rename_columns(found.column_names))
