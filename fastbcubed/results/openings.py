"""What an evaluation says of its clusters one by one: who is in them, what they share, and how to mend them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.items.items import AttributeTable
from fastbcubed.results.listings.cell_listing import list_cells
from fastbcubed.results.listings.opening import open_cluster
from fastbcubed.results.listings.repairs import list_repairs
from fastbcubed.results.listings.source_pairs import list_source_pairs
from fastbcubed.results.listings.table import Table
from fastbcubed.results.slices.bins import Bins
from fastbcubed.results.text.cluster_view import Cluster


class Openings(Evaluated):
    """An evaluation whose clusters can be opened; see `Evaluation`."""

    def cluster(
        self, side: str, which: Any, *, columns: str | Iterable[str] | None = None, members: int = 20
    ) -> Cluster:
        """Return a cluster: what it costs, and its members by the clusters of the other side, largest first.

        Parameters
        ----------
        side : {"true", "pred"}
            Which clusters; also "truth", "prediction".
        which : object
            Its label; a tuple if composite.
        columns : str or iterable of str, optional
            Attributes to show beside the members, named as in `slices`; the first few when absent. Values that differ
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
            If there is no such cluster.
        ColumnError
            If there is no such attribute.
        """
        return open_cluster(self, side, which, columns, members)

    def cells(self, *, order_by: str | None = None, limit: int | None = None) -> Table:
        """Return the cells: what a true and a predicted cluster share, where most is lost first.

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
        """
        return list_cells(self, order_by, limit)

    def repairs(self, kinds: str | Iterable[str] = ("split", "gather"), *, limit: int | None = 200) -> Table:
        """Return which clusters to repair first: what each brings alone, and what the first of them bring together.

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
            running_precision and running_recall: what this repair alone adds to f1, precision and recall, and these
            scores when it and all before it are done, in this order. The largest gain comes first; ties are broken by
            weight, then by kind and label. If the labels of the two sides are of different kinds, such as
            integers and texts, they are texts here.

        Raises
        ------
        MetricError
            If clusters may overlap.
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
        return list_repairs(self, kinds, limit)

    def source_pairs(self, by: str | Bins, *, attributes: Any = None) -> Table:
        """Return how links do within each source, and across each two sources.

        Parameters
        ----------
        by : str or Bins
            The attribute that tells the source of an item, such as a part of a composite id; named as in `slices`.
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
