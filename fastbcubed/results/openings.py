"""What an evaluation says of its clusters one by one: who is in them, what they share, and how to mend them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastbcubed.results.cell_listing import list_cells
from fastbcubed.results.cluster_view import Cluster
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.opening import open_cluster
from fastbcubed.results.table import Table


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
            A column to list by, largest first; both losses together when absent. Ties are broken by weight,
            then by labels.
        limit : int, optional
            The number of cells to return; all when absent.

        Returns
        -------
        Table
            true_cluster, pred_cluster (a list of them where they overlap), n_items, weight, fp and fn of each
            item, precision_loss and recall_loss of all of them.
        """
        return list_cells(self, order_by, limit)
