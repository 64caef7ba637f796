"""Clustering: which item is in which cluster, one row per membership; every way to make one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, OptionError, OverlapError, first_few
from fastbcubed.sources.arrays import is_pandas, join_pieces
from fastbcubed.sources.blocks import rows_between
from fastbcubed.sources.choosing import choose_columns, refuse_links
from fastbcubed.sources.columns import Column, as_column
from fastbcubed.sources.layouts import Reading
from fastbcubed.sources.lists import unlisted
from fastbcubed.sources.open import as_rows
from fastbcubed.sources.suggestions import Typed
from fastbcubed.sources.tables import (
    ColumnName,
    Rows,
    is_path,
    read_columns,
    weight_array,
)

if TYPE_CHECKING:
    from fastbcubed.clusterings.components import Connected


@dataclass(frozen=True, eq=False, repr=False)
class Clustering:
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

    labels: Column
    items: Column | None = None
    weight: np.ndarray | None = None
    attributes: Rows | None = None
    name: str = "the clustering"
    reading: Reading | None = None
    links: Connected | None = None

    def __post_init__(self) -> None:
        lengths = {"labels": len(self.labels)}
        if self.items is not None:
            lengths["items"] = len(self.items)
        if self.weight is not None:
            lengths["weights"] = len(self.weight)
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{count} {what}" for what, count in lengths.items())
            raise ColumnError(f"{self.name} should have one of each per row, but has {listed}.")
        if self.items is not None:
            self.items.refuse_nulls()

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        def describe(column: Column) -> str:
            return f"{column.name!r} ({' and '.join(str(part.type) for part in column.parts)})"

        items = "none, by position" if self.items is None else describe(self.items)
        lines = [
            f"Clustering: {self.name}, {len(self):,} rows",
            f"  items   {items}",
            f"  labels  {describe(self.labels)}",
        ]
        if self.weight is not None:
            lines.append("  weight  given")
        others = self.attribute_names
        if others:
            lines.append(f"  other   {', '.join(others)}")
        return "\n".join(lines)

    def slice(self, start: int, stop: int) -> Clustering:
        """Return the clustering of consecutive rows; nothing is copied.

        Parameters
        ----------
        start, stop : int
            First row, and the row after the last.
        """
        items = None if self.items is None else self.items.stretch(start, stop)
        weight = None if self.weight is None else self.weight[start:stop]
        others = None if self.attributes is None else rows_between(self.attributes, start, stop)
        labels = self.labels.stretch(start, stop)
        return Clustering(labels, items, weight, others, self.name, self.reading, self.links)

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """Names of the columns of the table other than the items and labels."""
        if self.attributes is None:
            return ()
        used = {*self.labels.names, *(self.items.names if self.items is not None else ())}
        return tuple(name for name in self.attributes.names if name not in used)

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
            A file, a glob or a directory; or the URI of one.
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
        if not is_path(path):
            raise OptionError(f"from_parquet reads a path, not {type(path).__name__}.")
        return cls.from_table(path, item=item, cluster=cluster, weight=weight)

    @classmethod
    def from_labels(
        cls,
        labels: Any,
        *,
        items: Any = None,
        weight: Any = None,
        name: str = "the clustering",
    ) -> Clustering:
        """Make a clustering of a label per item.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Cluster of each item.
        items : array-like of shape (n_rows,), optional
            Item ids; without them the position is the identity.
        weight : array-like of shape (n_rows,), optional
            Weight of each item.
        name : str, optional
            What the clustering is called in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        ColumnError
            If these are no columns, or of different lengths.
        NullError, IdTypeError, WeightError
            If an item is null, items or labels are of a type that ids cannot have, or weights are no numbers.

        Examples
        --------
        >>> len(Clustering.from_labels([0, 0, 1]))
        3
        """
        return cls(
            as_column(labels, "cluster", f"the labels of {name}"),
            None if items is None else as_column(items, "item", f"the items of {name}"),
            None if weight is None else weight_array(weight, f"the weights of {name}"),
            None,
            name,
        )

    @classmethod
    def from_dict(
        cls, mapping: Mapping[Any, Any], *, overlapping: bool = False, name: str = "the clustering"
    ) -> Clustering:
        """Make a clustering of a dict: item to cluster, or item to a set of clusters.

        Parameters
        ----------
        mapping : dict
            Its keys are the items. An empty set is a null label.
        overlapping : bool, optional
            Whether an item may be in several clusters; else that raises OverlapError.
        name : str, optional
            What the clustering is called in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If this is no dict, or has lists or dicts for clusters.
        OverlapError
            If an item is in several clusters, without `overlapping`.
        NullError, IdTypeError
            If an item is None, or items or clusters are of types that ids cannot have, or of several.

        Examples
        --------
        >>> len(Clustering.from_dict({"a": 1, "b": 1, "c": 2}))
        3
        """
        if not isinstance(mapping, Mapping):
            raise OptionError(
                f"{name}: from_dict takes a dict from item to cluster, not {type(mapping).__name__}."
            )
        items, labels = list(mapping), list(mapping.values())
        if any(isinstance(value, (set, frozenset)) for value in labels):
            items, labels = _flatten_sets(mapping, overlapping, name)
        elif any(isinstance(value, (list, dict, np.ndarray)) for value in labels):
            raise OptionError(
                f"{name}: a dict has a cluster or a set of clusters for each item, but some values "
                "are lists or dicts. For several clusters per item use sets, for a dict of columns "
                "Clustering.from_table, for lists of items Clustering.from_clusters."
            )
        return cls.from_labels(labels, items=items, name=name)

    @classmethod
    def from_clusters(
        cls,
        clusters: Iterable[Iterable[Any]] | Mapping[Any, Iterable[Any]],
        *,
        name: str = "the clustering",
    ) -> Clustering:
        """Make a clustering of a list of clusters, each a list (or set) of items.

        Parameters
        ----------
        clusters : iterable of iterables, or a dict from label to iterable
            The clusters; labels are 0, 1, ... if they have none.
        name : str, optional
            What the clustering is called in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If these are no lists of items.
        NullError, IdTypeError
            If an item is None, or items or labels are of types that ids cannot have, or of several.

        Examples
        --------
        >>> len(Clustering.from_clusters([["a", "b"], ["c"]]))
        3
        """
        if isinstance(clusters, (str, bytes)) or not isinstance(clusters, Iterable):
            raise OptionError(
                f"{name}: from_clusters takes a list of clusters, each a list of items, not "
                f"{type(clusters).__name__}."
            )
        named = isinstance(clusters, Mapping)
        groups: Iterable[Any] = clusters.values() if isinstance(clusters, Mapping) else clusters
        members: list[list[Any]] = []
        for group in groups:
            if isinstance(group, (str, bytes)) or not isinstance(group, Iterable):
                raise OptionError(
                    f"{name}: every cluster should be a list of items, but one is {first_few([group])}."
                )
            listed = group.tolist() if isinstance(group, np.ndarray) else list(group)
            if isinstance(group, (set, frozenset)):  # the same order in every process
                listed.sort(key=repr)
            members.append(listed)
        items = [item for group in members for item in group]
        sizes = [len(group) for group in members]
        labels: Any
        if named:
            sized = zip(clusters, sizes, strict=True)
            labels = [label for label, size in sized for _ in range(size)]
        else:
            labels = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        return cls.from_labels(labels, items=items, name=name)

    @classmethod
    def from_series(cls, series: Any, *, weight: Any = None, name: str = "the clustering") -> Clustering:
        """Make a clustering of a pandas Series: its index holds the items, its values the clusters.

        Parameters
        ----------
        series : pandas.Series
            A MultiIndex makes composite ids.
        weight : array-like of shape (n_rows,), optional
            Weight of each row, in the same order; a Series must have the same index.
        name : str, optional
            What the clustering is called in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If this is no Series.
        ColumnError
            If the weights are not as many, or have another index.
        NullError, IdTypeError, WeightError
            As `from_labels` does.

        Examples
        --------
        >>> import pandas as pd
        >>> Clustering.from_series(pd.Series([1, 1, 2], index=["a", "b", "c"])).items.take([1]).to_pylist()
        ['b']
        """
        if not is_pandas(series, "Series"):
            raise OptionError(
                f"from_series takes a pandas Series, not {type(series).__name__}; "
                "for a table use Clustering.from_table, for labels Clustering.from_labels."
            )
        if is_pandas(weight, "Series") and not weight.index.equals(series.index):
            raise ColumnError(f"The weights of {name} have another index than its labels.")
        return cls.from_labels(series, items=series.index, weight=weight, name=name)

    @classmethod
    def from_links(
        cls,
        table: Any,
        left: ColumnName | None = None,
        right: ColumnName | None = None,
        *,
        score: str | None = None,
        threshold: float | None = None,
        ascending: bool = False,
        items: Any = None,
        item: ColumnName = "item",
        name: str = "the links",
    ) -> Clustering:
        """Make a clustering of links, which are pairs of items with a score: the connected components.

        Parameters
        ----------
        table : path, URI, data frame, Arrow stream exporter or data set, dict of columns, or list of tuples
            A row per link. Tuples are (left, right) or (left, right, score); an item that is a tuple is a composite
            id. Links may be repeated, reversed, or from an item to itself. Of files only the needed columns are
            read, block by block.
        left, right : str or list of str, optional
            The columns of the two items; a list makes a composite id. When absent they are those that Splink, dedupe,
            Zingg or recordlinkage writes, or those whose names differ as ``id_l`` and ``id_r``, ``left_id`` and
            ``right_id``, ``id1`` and ``id2`` do.
        score : str, optional
            The column of scores; when absent ``match_probability``, ``match_weight``, ``score``, ... or the only
            column left.
        threshold : float, optional
            The score that a link needs to connect its items. All links connect when absent.
        ascending : bool
            Whether scores are distances, which have to be at most the threshold.
        items : table, path, Clustering, or array-like, optional
            All items that there are. Those without a link that connects are alone. When absent, they are all
            items of the links; of others, `evaluate` says that they are alone, not missing.
        item : str or list of str
            The column of items, if `items` is a table with several columns.
        name : str, optional
            What the clustering is called in messages; a path speaks for itself.

        Returns
        -------
        Clustering
            An item per row, in the order in which items are given, or appear in the links; clusters are
            numbered from 0 in that order.

        Raises
        ------
        NullError
            If an id is null.
        LinkError
            If a score is null or NaN, or a link has an item that is not among `items`.

        Notes
        -----
        A threshold is rounded to 32 bits where the scores are, so that a score of 0.9 reaches 0.9. Cost is nearly
        linear in the links; 16 bytes are used for each, and about 30 for each item, besides its id.

        Examples
        --------
        >>> links = [("a", "b", 0.95), ("b", "c", 0.5), ("d", "e", 0.9)]
        >>> Clustering.from_links(links, threshold=0.9).to_table().to_pydict()
        {'item': ['a', 'b', 'c', 'd', 'e'], 'cluster': [0, 0, 1, 2, 2]}
        """
        from fastbcubed.clusterings.components import as_threshold, connect, warn_if_none_reaches
        from fastbcubed.clusterings.links import read_links

        threshold = None if threshold is None else as_threshold(threshold)
        if isinstance(items, Clustering):
            if items.items is None:
                raise OptionError(f"items= is {items.name}, which has no item ids.")
            items = items.items
        scored = threshold is not None
        links = read_links(table, left, right, score=score, scored=scored, items=items, item=item, name=name)
        if threshold is not None:
            warn_if_none_reaches(links, threshold, ascending=ascending, stacklevel=3)
        labels, made = connect(links, threshold, ascending=ascending)
        return cls(as_column(labels, "cluster"), links.items, None, None, links.name, links=made)

    @classmethod
    def from_pairs(
        cls, left: Any, right: Any, *, items: Any = None, name: str = "the clustering"
    ) -> Clustering:
        """Make a clustering of two arrays of items that belong together, pair by pair: the connected components.

        For tables of links, and those with a score, see `from_links`.

        Parameters
        ----------
        left, right : array-like of shape (n_pairs,)
            The two items of each pair.
        items : array-like, optional
            Further items, such as all there are; those in no pair become singletons. When absent, the items are those
            of the pairs; of others, `evaluate` says that they are alone, not missing. Pass ``[]`` if there are none.
        name : str, optional
            What the clustering is called in messages.

        Returns
        -------
        Clustering
            An item per row, those of `items` first; clusters are numbered from 0 in that order.

        Examples
        --------
        >>> Clustering.from_pairs(["a", "b"], ["b", "c"], items=["d"]).labels.keys().tolist()
        [0, 1, 1, 1]
        """
        from fastbcubed.clusterings.components import connect
        from fastbcubed.clusterings.links import links_of

        columns = [
            as_column(values, "item", f"the {what} of {name}")
            for what, values in (("items", items), ("left items", left), ("right items", right))
            if values is not None or what != "items"
        ]
        links = links_of(columns[-2], columns[-1], columns[0] if len(columns) > 2 else None, name)
        labels, made = connect(links)
        return cls(as_column(labels, "cluster"), links.items, None, None, name, links=made)

    @property
    def omits_singletons(self) -> bool:
        """Whether it has only the items that are in a link, so that those it lacks are alone, not missing."""
        return self.links is not None and not self.links.complete

    def to_table(self) -> pa.Table:
        """Return the items and the cluster of each as a table, which `from_table` reads again.

        Returns
        -------
        pyarrow.Table
            The columns of the items, one for each part of a composite id and none for items by position; then those
            of the labels. A row per membership, in the order of the clustering.

        Examples
        --------
        >>> Clustering.from_clusters({"x": ["a", "b"], "y": ["c"]}).to_table().to_pydict()
        {'item': ['a', 'b', 'c'], 'cluster': ['x', 'x', 'y']}
        """
        columns = [self.labels] if self.items is None else [self.items, self.labels]
        names = [name for column in columns for name in column.names]
        return pa.table([part for column in columns for part in column.parts], names=names)

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


def _flatten_sets(mapping: Mapping[Any, Any], overlapping: bool, name: str) -> tuple[list[Any], list[Any]]:
    sets: Sequence[Any] = [
        value if isinstance(value, (set, frozenset)) else {value} for value in mapping.values()
    ]
    several = [item for item, value in zip(mapping, sets, strict=True) if len(value) > 1]
    if several and not overlapping:
        raise OverlapError(
            f"{len(several)} of {len(sets)} items of {name} are in more than one cluster "
            f"(first: {first_few(several[:4])}). A partition has every item in one cluster: if "
            "clusters may overlap, pass overlapping=True; else choose one for each."
        )
    items, labels = [], []
    for item, value in zip(mapping, sets, strict=True):
        for label in sorted(value, key=repr) if value else [None]:
            items.append(item)
            labels.append(label)
    return items, labels
