"""Single items and clusters of an evaluation: members, shared items, repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fastbcubed.cells.contingency import SIDES, Codes
from fastbcubed.errors import SliceError, first_few
from fastbcubed.inputs.arrays import to_numpy
from fastbcubed.inputs.tables import readable
from fastbcubed.results import clusters
from fastbcubed.results.display import Cluster, Item
from fastbcubed.results.evaluation_scores import ByCluster
from fastbcubed.results.items import AttributeTable, list_cells
from fastbcubed.results.members import (
    chosen_columns,
    excerpt,
    open_cluster,
    rows_in_clusters,
    with_attributes,
)
from fastbcubed.results.repairs import KINDS, Ranked, kinds_asked, listing_of, rank_repairs, repairs_in_tables
from fastbcubed.results.slices import Bins, attribute_values
from fastbcubed.results.source_pairs import list_source_pairs
from fastbcubed.results.table import Table, listed
from fastbcubed.runtime.arguments import whole_number

#: Up to this many cells in files are all read for the repairs of a page.
FEW_CELLS = 4_000_000
#: What opens a cluster, given its side, code and label.
OpenOne = Callable[[str, int, Any], Cluster]


class Openings(ByCluster):
    """An evaluation whose items and clusters can be opened; see `Evaluation`."""

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> Cluster:
        """Return a cluster: its losses, and its members by the clusters of the other side, largest first.

        Parameters
        ----------
        side : {"true", "pred"}
            Which clusters; also "truth", "prediction".
        which : object
            Its label; a tuple if composite.
        columns : str or iterable of str, optional
            Attributes to show next to the members, named as in `slices`; the first few when absent. Values that differ
            from the commonest one are marked.
        members : int
            Members to show: of each part one, then another of each, and so on, heaviest first, then by id.

        Returns
        -------
        Cluster
            A dict that reads well, and that has as `parts` a table of all parts, as `table` one of all members.

        Raises
        ------
        SliceError
            If there is no such side, or no such cluster.
        IdTypeError
            If the labels of the side are of another type.
        ColumnError
            If there is no such attribute.
        OptionError
            If `members` is no number.
        NotKeptError
            If the items were not kept.

        Examples
        --------
        Each of the first two items loses 1/3 of its precision and the third 2/3; the third also loses 1/2 of its
        recall. There are 4 items.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1])
        >>> ev.cluster("pred", 0)
        Predicted cluster 0: 3 items of 2 true clusters, mixed
        precision loss 0.33333, recall loss 0.12500
        <BLANKLINE>
        true cluster  items   item
        0             2 of 2  0
                              1
        1             1 of 2  2
        """
        return open_cluster(self, side, which, columns, members)

    def excerpt(self, codes: Codes) -> Openings:
        """Return an opener of some clusters, by side and code, in one pass over all rows; not where they overlap."""
        return excerpt(self, codes, Openings)

    def opener(self, codes: Codes, columns: Sequence[str], members: int) -> OpenOne:
        """Return a function that opens some clusters as `cluster` does, by side, code and label."""
        part: Openings = self
        if not self.contingency.overlapping and any(own.size for own in codes.values()):
            part = self.excerpt(codes)
        return lambda side, code, label: part.cluster(side, label, columns=columns, members=members)

    def items(
        self,
        columns: str | Iterable[str] = (),
        *,
        true_cluster: Any = None,
        pred_cluster: Any = None,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return every scored item, or those of a cluster: its clusters, weight, confusion matrix and scores.

        Parameters
        ----------
        columns : str or iterable of str
            Attributes to add, named as in `slices`.
        true_cluster, pred_cluster : object, optional
            The label of a cluster, whose items alone are listed; a tuple if composite.
        order_by : str, optional
            A score or column to list worst first, or largest first, or "loss", both losses together; in the order of
            the input when absent, or in one of its own where the disk engine has joined rows by item, of two tables
            or of one with `item=`. Ties are broken by weight, then by id.
        limit : int, optional
            The number of items to return; all when absent.

        Returns
        -------
        Table
            item, true_cluster, pred_cluster, the attributes, weight, tp, fp, fn, tn (null under "outside"),
            precision_loss, recall_loss (its loss of the precision and the recall of all items), then the
            scores; an item's own F is item_f1. With outer weights the matrix holds counts.

        Raises
        ------
        SliceError
            If there is no such cluster.
        ColumnError
            If there is no such attribute.
        MetricError, OptionError
            If there is no such column to order by, or `limit` is no number of rows.
        NotKeptError
            If the items were not kept.

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
        items, rows = self.kept_items(), self._rows()
        names = chosen_columns(self, columns)
        here = rows_in_clusters(self, true_cluster, pred_cluster)
        table = clusters.item_columns(self.contingency, rows, self.metrics, np.flatnonzero(here))
        found = listed(table, self.metrics, order_by, limit, named_by=("row", "item", items.ids)).to_arrow()
        at = to_numpy(found["row"])
        for k, side in enumerate(SIDES, 1):
            found = found.add_column(k, f"{side}_cluster", items.labels(side, at))
        return Table(with_attributes(found.drop_columns(["row"]), self, names, at, 3))

    def item(self, which: Any, *, columns: str | Iterable[str] = (), members: int = 5) -> Item:
        """Return one item: its confusion matrix, scores, and the first few members of its four sets.

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
        Item
            A dict that reads well: item, true_cluster, pred_cluster, weight, tp, fp, fn, tn, the scores,
            "attributes" if there are columns, and "members": for each of "tp", "fp", "fn", "tn" the number of
            items and the first few of them.

        Raises
        ------
        SliceError
            If there is no such item, or it is not scored.
        ColumnError
            If there is no such attribute.
        OptionError
            If `members` is no number.
        NotKeptError
            If the items were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], metrics=["precision", "recall"])
        >>> ev.item(2)
        Item 2: true cluster 1, predicted cluster 0, weight 1
          precision 0.33333, recall 0.50000
        <BLANKLINE>
          tp  1  in both of its clusters: 2
          fp  2  only in its predicted cluster: 0, 1
          fn  1  only in its true cluster: 3
          tn  0  in neither
        """
        members = whole_number(members, "members")
        items, rows, names = self.kept_items(), self._rows(), chosen_columns(self, columns)
        row = int(items.rows_of([which])[0])
        if row < 0 or rows.cell[row] < 0:
            fault = "not in the evaluation" if row < 0 else "not scored"
            raise SliceError(f"item {first_few([which])} is {fault}")
        found = clusters.one_item(self.contingency, rows, items, self.metrics, row, members)
        if names:
            own = {
                name: readable(attribute_values(name, items, self.attributes, np.array([row])))[0].as_py()
                for name in names
            }
            found = {**found, "attributes": own, "members": found["members"]}
        return Item(found)

    def cells(self, *, order_by: str | None = None, limit: int | None = None) -> Table:
        """Return the cells, the overlaps of true and predicted clusters, largest loss first.

        Parameters
        ----------
        order_by : str, optional
            A column to list by, largest first; both losses together when absent, or "loss". Ties are broken by
            weight, then by labels.
        limit : int, optional
            The number of cells to return; all when absent.

        Returns
        -------
        Table
            true_cluster, pred_cluster (a list of them where they overlap), n_items, weight, fp and fn of each
            item, precision_loss and recall_loss of all of them.

        Raises
        ------
        MetricError, OptionError
            If there is no such column to order by, or `limit` is no number of rows.
        NotKeptError
            If the cells were not kept.

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
        return list_cells(self, order_by, limit)

    def repairs(self, kinds: str | Iterable[str] = ("split", "gather"), *, limit: int | None = 200) -> Table:
        """Return the clusters to repair first, with the gain of each alone and of the first k together.

        Parameters
        ----------
        kinds : "split", "gather" or both
            To split a predicted cluster by the truth: its items of each true cluster become a cluster of their own, as
            do, under "outside", those that the truth does not have. To gather a true cluster: its items, wherever
            they are, become one predicted cluster, without what they were clustered with.
        limit : int, optional
            The number of repairs to return; all that bring something when None.

        Returns
        -------
        Table
            rank, kind, side, cluster, n_items, weight; gain and running, precision_gain, recall_gain,
            running_precision and running_recall: the gain of this repair alone in f1, precision and recall, and these
            scores when it and all before it are done, in this order. The largest gain comes first; ties are broken by
            weight, then by kind and label. If the labels of the two sides are of different kinds, such as
            integers and texts, they are texts here.

        Raises
        ------
        MetricError
            If clusters may overlap.
        OptionError
            If there is no such kind of repair, `limit` is no number of rows, or the disk engine's memory limit has no
            room for what is held of all clusters.
        NotKeptError
            If the cells were not kept.

        Notes
        -----
        No repair lowers precision or recall. Repairs overlap: where one has been done, another may bring less than
        its gain, or nothing. Cost is linear in the cells.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 0, 1, 1, 2], [5, 5, 6, 6, 7, 7])
        >>> ev.repairs(limit=3).select(["rank", "kind", "side", "cluster", "gain", "running"])
        rank  kind    side  cluster      gain  running
        1     gather  true  1         0.23732  0.87500
        2     gather  true  0         0.19565        1
        3     split   pred  6        0.067447        1
        <BLANKLINE>
        3 rows
        """
        known = kinds_asked(kinds, limit)
        found = None if limit is None else self._first_repairs(known, limit)
        return listing_of(self, known, rank_repairs(self, known, limit) if found is None else found)

    def _first_repairs(self, kinds: Sequence[str], limit: int) -> Ranked | None:
        """Return the first repairs from tables of clusters and some cells; None where that takes all cells."""
        if self._lazy is None or self.contingency.weighting == "outer":
            return None
        lost = self.loss_of_all("pred"), self.loss_of_all("true")
        return repairs_in_tables(self, self._lazy, lost, kinds, limit)

    def repairs_at_hand(self, limit: int) -> Table | None:
        """Return the first repairs; None where they take all of many cells that are in files."""
        if self._lazy is None or self.contingency.n_cells <= FEW_CELLS:
            return self.repairs(limit=limit)
        found = self._first_repairs(list(KINDS), limit)
        return None if found is None else listing_of(self, list(KINDS), found)

    def source_pairs(self, by: str | Bins, *, attributes: Any = None) -> Table:
        """Return the quality of links within each source, and across each two sources.

        Parameters
        ----------
        by : str or Bins
            The attribute with the source of an item, such as a part of a composite id; named as in `slices`.
        attributes : table, optional
            Attributes by item, or row by row, as for `slices`.

        Returns
        -------
        Table
            pair ("within a", "a × b"), source, other_source; pair_tp, pair_fp, pair_fn, the pairs of items of these
            sources that are together on both sides, in the prediction alone, in the truth alone; pair_precision,
            pair_recall, pair_f1 of these. Pairs of items are counted, whatever the items weigh.

        Raises
        ------
        ColumnError
            If there is no such attribute.
        MetricError
            If clusters may overlap, or under "outside".
        NotKeptError
            If the items were not kept.
        SliceError
            If there are more than a million pairs of sources.

        Notes
        -----
        No pair of items is looked at: cost is that of sorting the items, and linear in the sources that are in
        each cluster, for each of these.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> source = {"item": [1, 2, 3, 4], "source": ["crm", "crm", "web", "web"]}
        >>> ev = fb.evaluate({1: 1, 2: 1, 3: 1, 4: 2}, {1: 1, 2: 1, 3: 2, 4: 2}, attributes=source)
        >>> ev.source_pairs("source").select(["pair", "pair_tp", "pair_fp", "pair_fn"]).to_pylist()[1]
        {'pair': 'crm × web', 'pair_tp': 0, 'pair_fp': 0, 'pair_fn': 2}
        """
        items = self.kept_items()
        extra = self.attributes if attributes is None else AttributeTable.of(attributes, items)
        return list_source_pairs(by, self.contingency, items, extra)
