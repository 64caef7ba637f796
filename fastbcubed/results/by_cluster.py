"""What an evaluation says of all its clusters: what each costs, what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastbcubed.cells.records import SIDES, side_of
from fastbcubed.errors import NotKeptError
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.losses import LOSS_OF_SIDE, LOSSES
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.listings import drilldown
from fastbcubed.results.listings.concentration import ROWS, LossCurve, concentration, loss_curves
from fastbcubed.results.listings.listing import LOSS, listed, require_limit
from fastbcubed.results.listings.outcomes import not_defined, outcome_code
from fastbcubed.results.listings.size_classes import SizeClasses, classes_of_cells, recall_alone
from fastbcubed.results.listings.table import Table
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.choices import is_one_of

if TYPE_CHECKING:
    from fastbcubed.results.listings.cluster_tables import ClusterRanges
    from fastbcubed.results.listings.saved_clusters import SavedClusters


class ByCluster(Evaluated):
    """An evaluation whose clusters can be listed and counted; see `Evaluation`."""

    def clusters(
        self, side: str, *, order_by: str | None = None, limit: int | None = None, outcome: str | None = None
    ) -> Table:
        """Return losses and scores by cluster, the costliest first.

        Parameters
        ----------
        side : {"true", "pred"}
            Which clusters.
        order_by : str, optional
            A score or column; when absent, or "loss", recall_loss for true clusters and precision_loss for predicted
            ones. Scores are listed worst first, all else largest first.
            Ties are broken by weight, largest first, then by label.
        limit : int, optional
            The number of clusters to return; all when absent.
        outcome : str, optional
            What became of the clusters to list, as `outcomes` calls it: "mixed", say; any when absent.

        Returns
        -------
        Table
            cluster, n_items, weight, n_parts (clusters of the other side that it meets), exact (the
            same cluster is on the other side), outcome (not where clusters overlap), precision_loss, recall_loss,
            and the scores over its items.

        Raises
        ------
        SliceError
            If there is no such side.
        MetricError
            If there is no such column to order by, or there are no outcomes, since clusters may overlap.
        OptionError
            If there is no such outcome, or `limit` is no number of rows.
        NotKeptError
            If the cells were not kept.

        Notes
        -----
        The losses of a cluster are what it costs of the precision and of the recall of all items: the sum over its
        items of weight * (1 - precision), or recall, divided by the weight of all items. So over all clusters of
        a side they add up to over_merge_rate and under_merge_rate.

        Where clusters overlap, this is so because losses are split, which is our definition. Two items that share
        g predicted clusters and c true ones lose (g - min(g, c)) / g of the precision of each other, divided by the
        mates of the item in question; each of the g clusters is charged an equal part. So it is with recall and true
        clusters. The recall that an item loses is split equally among its predicted clusters, and the precision
        among its true ones.

        Examples
        --------
        Of predicted cluster 0 two items have precision 2/3, and one 1/3: they lose 2 * 1/3 + 2/3 of 4 items.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], metrics="precision")
        >>> ev.clusters("pred").drop_columns(["weight", "exact"])
        cluster  n_items  n_parts   outcome  precision_loss  recall_loss  precision
        0              3        2     mixed         0.33333      0.12500    0.55556
        1              1        1  fragment               0      0.12500          1
        <BLANKLINE>
        2 rows
        """
        return self.coded_clusters(side, order_by, limit, outcome).drop_columns(["code"])

    def coded_clusters(
        self,
        side: str,
        order_by: str | None = None,
        limit: int | None = None,
        outcome: str | None = None,
    ) -> Table:
        """Return what `clusters` does, and the code of each cluster."""
        side = side_of(side)
        drilldown.require_items(
            self.contingency, [m for m in self.metrics if is_one_of(order_by, (m.name,))], self.beta
        )
        metrics = drilldown.known_by_cluster(self.contingency, self.metrics, self.beta)
        order_by = LOSS_OF_SIDE[side] if order_by is None or is_one_of(order_by, (LOSS,)) else order_by
        named_by = ("code", "cluster", lambda found: self.cluster_labels(side, found))
        if outcome is not None:
            self._require_outcomes()
            outcome_code(side, outcome)
        ranges = self._lister
        if ranges is None or limit is None:
            columns = drilldown.columns_by_code(self.contingency, side, metrics, self.beta)
            table = drilldown.listing_of(0, columns, side, outcome)
        else:
            table = ranges.best(side, metrics, self.beta, order_by, limit, named_by, outcome)
        return listed(table, metrics, order_by, limit, named_by=named_by)

    @property
    def _lister(self) -> ClusterRanges | SavedClusters | None:
        """What lists clusters without all of their cells."""
        return self.ranges

    def outcomes(self) -> Table:
        """Return what became of the clusters: how many are exact, in parts, with others or both, and what they cost.

        A true cluster is "exact" (the same cluster is on the other side), "split" (in several predicted clusters,
        which hold nothing else), "merged" (whole, together with other items) or "split and merged". A predicted one
        is "exact", a "fragment" (of one true cluster, not all of it), a "union" (of whole true clusters) or "mixed".
        Under "outside", items that only the prediction has are others, too, and a predicted cluster with any is mixed.

        Returns
        -------
        Table
            side, outcome, n_clusters, n_items, weight, precision_loss, recall_loss; all outcomes in this order, true
            clusters first. Each loss adds up to that of all items on either side.

        Raises
        ------
        MetricError
            If clusters may overlap.
        NotKeptError
            If the cells were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbcd"), [1, 1, 2, 3, 4, 4])
        >>> ev.outcomes()
        side  outcome           n_clusters  n_items  weight  precision_loss  recall_loss
        true  exact                      1        2       2               0            0
        true  split                      1        2       2               0      0.16667
        true  merged                     2        2       2         0.16667            0
        true  split and merged           0        0       0               0            0
        pred  exact                      1        2       2               0            0
        pred  fragment                   2        2       2               0      0.16667
        pred  union                      1        2       2         0.16667            0
        pred  mixed                      0        0       0               0            0
        <BLANKLINE>
        8 rows
        """
        self._require_outcomes()
        if self._outcomes is None:
            raise NotKeptError(
                'the cells were not kept; evaluate with keep="cells" to know the outcomes of clusters'
            )
        return Table(self._outcomes)

    def lorenz(self, side: str, *, limit: int | None = ROWS) -> Table:
        """Return how the loss is spread over clusters, the costliest first: in few of them, or in many.

        Parameters
        ----------
        side : {"true", "pred"}
            Which clusters: true ones lose recall, predicted ones precision.
        limit : int or None
            Rows of the curve at most. The first clusters are there one by one, later ones ever farther apart; always
            the first, the last one that costs anything, and the last. None for all.

        Returns
        -------
        Table
            n_clusters, share_clusters, share_loss: how much of the loss is in so many clusters. The share is NaN if
            nothing is lost.

        Raises
        ------
        SliceError
            If there is no such side.
        OptionError
            If `limit` is no number of rows.
        NotKeptError
            If the cells were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aaabbcd"), [1, 1, 2, 3, 3, 3, 4])
        >>> ev.lorenz("pred")
        n_clusters  share_clusters  share_loss
                 1         0.25000           1
                 2         0.50000           1
                 3         0.75000           1
                 4               1           1
        <BLANKLINE>
        4 rows
        """
        require_limit(limit)
        return Table(self._loss_curves[side_of(side)].table(limit))

    @cached_property
    def _loss_curves(self) -> dict[str, LossCurve]:
        """The loss of clusters, by side."""
        table = self.contingency
        if self._summary is None:
            n_clusters = {"true": table.n_true, "pred": table.n_pred}
        else:
            n_clusters = {side: figures["clusters"] for side, figures in self._summary.items()}
        if table.overlapping:
            losses = {
                side: drilldown.columns_by_code(table, side, [], self.beta)[LOSS_OF_SIDE[side]]
                for side in SIDES
            }
            return {side: LossCurve.of(n_clusters[side], losses[side]) for side in SIDES}
        return loss_curves(table, n_clusters, None if self.ranges is None else self.ranges.limit)

    def size_classes(self, side: str) -> SizeClasses:
        """Return what the clusters of a side come to by size, in powers of two; not where they overlap."""
        return classes_of_cells(self.contingency, side)

    def recall_alone(self) -> float | None:
        """Return the recall if all items were alone in the prediction; None if their weights are not at hand."""
        return recall_alone(self.contingency, self.size_classes("true"))

    def loss_of_all(self, side: str) -> float:
        """Return what is lost through the clusters of a side: of recall true ones, of precision predicted ones."""
        name = LOSSES[LOSS_OF_SIDE[side]].name
        return self.overall[name] if name in self.overall else self._losses_of_all[side]

    @cached_property
    def _losses_of_all(self) -> dict[str, float]:
        """What `loss_of_all` returns of both sides, from one look at all cells."""
        found = aggregation.overall(self.contingency, LOSSES.values(), beta=self.beta)
        return {side: found[LOSSES[LOSS_OF_SIDE[side]].name] for side in SIDES}

    @cached_property
    def concentration(self) -> dict[str, dict[str, Any]]:
        """By side: "loss", "n_clusters", "n_lossy" (those that cost anything), "n_half" (so few have half of it)."""
        return concentration(self._loss_curves)

    def _require_outcomes(self) -> None:
        if self.contingency.overlapping:
            raise not_defined()
