"""What a diff lists: its clusters, what they share, its items; and clusters and items opened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.cells.records import SIDES as OLD_SIDES
from fastbcubed.changes.becoming import OF_ONE_SIDE, listed_of_one_side, not_defined
from fastbcubed.changes.diffed import Diffed
from fastbcubed.changes.naming import (
    OF_SIZES,
    OUTCOMES,
    PLACES,
    TRUE_CLUSTER,
    asked_name,
    asked_order,
    in_a_diff,
    in_words_of_a_diff,
    renamed,
    side_of,
)
from fastbcubed.changes.opened import ChangedCluster, ChangedItem, changed_cluster, changed_item
from fastbcubed.errors import OptionError
from fastbcubed.results.listings import drilldown
from fastbcubed.results.listings.listing import listed
from fastbcubed.results.listings.opening import chosen_columns, rows_in_clusters, with_attributes
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.slicing import require_clear
from fastbcubed.runtime.choices import as_several, is_one_of
from fastbcubed.sources.arrays import from_numpy, to_numpy


class DiffLists(Diffed):
    """A diff whose clusters and items can be listed and opened; see `Diff`."""

    def clusters(
        self, side: str, *, order_by: str | None = None, limit: int | None = None, outcome: str | None = None
    ) -> Table:
        """Return what changed and scores by cluster, those with most change first.

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
            metrics = drilldown.known_by_cluster(ev.contingency, ev.metrics, 1.0)
            named_by = ("code", "cluster", lambda codes: ev.cluster_labels(old, codes))
            if ev.ranges is None or limit is None:
                columns = drilldown.columns_by_code(ev.contingency, old, metrics, 1.0)
                if self.judgement is not None:
                    columns |= self.judgement.of_clusters(old, self.judging)
                table = drilldown.listing_of(0, columns, old, known)
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
        """Return what a baseline and an experiment cluster share, where most changed first.

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
        """Return every item, or those of a cluster: its clusters, weight, what stayed, left and joined it, and scores.

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
            table = drilldown.item_columns(ev.contingency, rows, ev.metrics, np.flatnonzero(here))
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
        """Raise ColumnError for what the true cluster is called, if baseline or experiment has such an attribute."""
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
        """Return one item: what stayed with it, left and joined it, scores, and the first few of each set.

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
        """Return a cluster: what changed, and its members by the clusters of the other side, largest first.

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
    """Return what an evaluation calls the outcome of a cluster."""
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
