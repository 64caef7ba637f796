"""Clustering: which item is in which cluster, one row per membership; every way to make one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastbcubed.clusterings.labels_given import MadeOfLabels
from fastbcubed.clusterings.links_given import MadeOfLinks
from fastbcubed.errors import ColumnError, OptionError
from fastbcubed.runtime.completion import documented
from fastbcubed.sources.arrays import join_pieces
from fastbcubed.sources.choosing import choose_columns, refuse_links
from fastbcubed.sources.columns import as_column
from fastbcubed.sources.lists import unlisted
from fastbcubed.sources.open import as_rows
from fastbcubed.sources.suggestions import Typed
from fastbcubed.sources.tables import ColumnName, is_path, listed_paths, read_columns


@dataclass(frozen=True, eq=False, repr=False)
class Clustering(MadeOfLabels, MadeOfLinks):
    """Items and the cluster of each, one row per membership.

    Made by one of the `from_...` methods. Nothing that was given is changed or, where the types
    allow it, copied; see `Column.keys` for what is.

    Attributes
    ----------
    labels : Column
        Cluster label of each row. Null labels are kept; what they mean is a policy of `evaluate`.
    items : Column or None
        Item id of each row, never null; None if the row number is the identity.
    weight : numpy.ndarray of shape (n_rows,) or None
        float64; without nulls, otherwise unchecked.
    attributes : Rows or None
        All columns of the table the clustering came from, read when asked for.
    name : str
        What the clustering is, for messages: "the truth", "the prediction", or a path.
    reading : Reading or None
        How the columns were recognised, where they were neither named nor have the default names.
    links : Connected or None
        How it was made of links, if it was.

    Examples
    --------
    >>> Clustering.from_labels([0, 0, 1], items=["a", "b", "c"])
    Clustering: the clustering, 3 rows
      items   'item' (string)
      labels  'cluster' (int64)
    """

    __dir__ = documented

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        item: ColumnName = "item",
        cluster: ColumnName = "cluster",
        weight: str | None = None,
        name: str = "the table",
    ) -> Clustering:
        """Make a clustering of a table with a row per membership.

        Parameters
        ----------
        table : path, URI, data frame, Arrow stream exporter or data set, or dict of columns
            The table. Arrow data are not copied; of files only the needed columns are read. An item in
            several clusters has several rows, or a list of clusters.
        item, cluster : str or list of str
            Their columns; a list makes a composite id. A default name that the table lacks stands
            for the only column left, or for the one that Splink, Zingg, dedupe or Senzing writes.
        weight : str, optional
            The column of weights.
        name : str, optional
            What the clustering is called in messages; a path speaks for itself.

        Returns
        -------
        Clustering

        Raises
        ------
        ColumnError
            If it is no table, or has no such columns.
        NullError, IdTypeError
            If an item is null, or items or clusters are of a type that ids cannot have.
        OptionError, WeightError
            If `weight` is no name, or the column is not of numbers.
        FileFormatError
            If there is no such file, or it cannot be read.

        Examples
        --------
        >>> Clustering.from_table({"item": ["a", "b"], "cluster": [1, 1]})
        Clustering: the table, 2 rows
          items   'item' (string)
          labels  'cluster' (int64)
        """
        return cls._of_table(table, {"item": item, "cluster": cluster}, weight, name, Typed())

    @classmethod
    def _of_table(
        cls, table: Any, asked: Mapping[str, ColumnName], weight: str | None, name: str, typed: Typed
    ) -> Clustering:
        """Do what `from_table` does; `typed` writes arguments for messages."""
        rows = as_rows(table, name)
        if rows is None:
            raise ColumnError(
                f"{name} should be a table with columns of items and clusters, but a "
                f"{type(table).__name__} was given. For labels alone use Clustering.from_labels."
            )
        if weight is not None and not isinstance(weight, str):
            raise OptionError(
                f"weight is the name of a column of {name}, not {type(weight).__name__}. "
                "Arrays of labels and weights go to Clustering.from_labels."
            )
        (items, clusters), reading = choose_columns(rows, asked, weight, typed)
        if reading is not None:
            refuse_links(rows, reading)
        if len(clusters) == 1:
            rows = unlisted(rows, clusters[0])
        columns, weights = read_columns(rows, [items, clusters], weight)
        return cls(columns[1], columns[0], weights, rows, rows.where, reading)

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        *,
        item: ColumnName = "item",
        cluster: ColumnName = "cluster",
        weight: str | None = None,
    ) -> Clustering:
        """Make a clustering of Parquet files (or Arrow IPC, or CSV) with a row per membership.

        Parameters
        ----------
        path : str or os.PathLike
            A file, a glob or a directory; or the URI of one; or a list of files.
        item, cluster, weight
            Columns, as in `from_table`.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If this is no path.
        FastBCubedError
            As `from_table` does.

        Examples
        --------
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     pq.write_table(pa.table({"id": ["a", "b"], "city": [1, 1]}), f"{directory}/cities.parquet")
        ...     found = Clustering.from_parquet(f"{directory}/cities.parquet", item="id", cluster="city")
        >>> len(found)
        2
        """
        if not is_path(listed_paths(path)):
            raise OptionError(f"from_parquet reads a path, not {type(path).__name__}.")
        return cls.from_table(path, item=item, cluster=cluster, weight=weight)

    def with_ancestors(self, child: Any, parent: Any) -> Clustering:
        """Return this clustering with every item in all ancestors of its clusters, too.

        Parameters
        ----------
        child, parent : array-like of shape (n_links,)
            Clusters, and a cluster that each is within; a null parent says that there is none. A cluster
            may have several.

        Returns
        -------
        Clustering
            The same rows, and one for each further membership; without weights and attributes.

        Raises
        ------
        OptionError
            If a cluster is its own ancestor, or items have no ids.
        ColumnError, NullError
            If there is not one parent for each child, or a child is null.

        Examples
        --------
        >>> towns = Clustering.from_clusters({"Bern": ["a"], "Lyon": ["b"]})
        >>> places = towns.with_ancestors(["Bern", "Lyon"], ["Switzerland", "France"])
        >>> places.labels.take([2, 3]).to_pylist()
        ['Switzerland', 'France']
        """
        from fastbcubed.clusterings.hierarchy import lift

        links = [as_column(child, "child"), as_column(parent, "parent")]
        if self.items is None:
            raise OptionError(f"{self.name} has no item ids; pass Clustering.from_labels(labels, items=ids).")
        rows, labels = lift(self.labels, self.items.keys(), *links)
        items = self.items.take(np.concatenate([np.arange(len(self)), rows]))
        pieces = join_pieces([self.labels.parts[0], labels.parts[0]], f"the labels of {self.name}")
        return Clustering.from_labels(pieces, items=items, name=self.name)
