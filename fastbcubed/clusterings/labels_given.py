"""Labels, dicts, lists of clusters and Series → clusterings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from fastbcubed.clusterings.labelled_rows import UNNAMED, LabelledRows
from fastbcubed.errors import ColumnError, OptionError, OverlapError, first_few
from fastbcubed.runtime.choices import is_bare, true_or_false
from fastbcubed.sources.arrays import is_pandas
from fastbcubed.sources.columns import as_column
from fastbcubed.sources.tables import is_array, refuse_other_indexes, weight_array


class MadeOfLabels(LabelledRows):
    """The ways to make a clustering of what names the cluster of each item, or the items of each cluster."""

    @classmethod
    def from_labels(
        cls,
        labels: Any,
        *,
        items: Any = None,
        weight: Any = None,
        name: str = UNNAMED,
    ) -> Self:
        """Make a clustering of a label per item.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Cluster of each item.
        items : array-like of shape (n_rows,), optional
            Item ids; without them the position is the identity. Tuples, a MultiIndex or an Arrow array of structs
            make composite ids; names of parts say which are the same on both sides.
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
        AlignmentError
            If they are pandas Series with different indexes.
        NullError, IdTypeError, WeightError
            If an item is null, items or labels are of a type that ids cannot have, or weights are no numbers.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> len(fb.Clustering.from_labels([0, 0, 1]))
        3
        """
        refuse_other_indexes((labels, items, weight), name)
        return cls(
            as_column(labels, "cluster", f"the labels of {name}"),
            None if items is None else as_column(items, "item", f"the items of {name}"),
            None if weight is None else weight_array(weight, f"the weights of {name}"),
            None,
            name,
        )

    @classmethod
    def from_dict(cls, mapping: Mapping[Any, Any], *, overlapping: bool = False, name: str = UNNAMED) -> Self:
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
            If this is no dict, or has lists or dicts for clusters, or `overlapping` is neither True nor False.
        OverlapError
            If an item is in several clusters, without `overlapping`.
        NullError, IdTypeError
            If an item is None, or items or clusters are of types that ids cannot have, or of several.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> len(fb.Clustering.from_dict({"a": 1, "b": 1, "c": 2}))
        3
        """
        overlapping = true_or_false(overlapping, "overlapping")
        if not isinstance(mapping, Mapping):
            raise OptionError(
                f"{name}: from_dict takes a dict from item to cluster, not {type(mapping).__name__}."
            )
        items, labels = list(mapping), list(mapping.values())
        if any(isinstance(value, (set, frozenset)) for value in labels):
            items, labels = _flatten_sets(mapping, overlapping, name)
        elif _are_columns(mapping):
            raise OptionError(
                f"{name}: a dict has a cluster or a set of clusters for each item, but some values "
                "are lists, arrays or dicts. For several clusters per item use sets, for a dict of columns "
                "Clustering.from_table, for lists of items Clustering.from_clusters."
            )
        return cls.from_labels(labels, items=items, name=name)

    @classmethod
    def from_clusters(
        cls,
        clusters: Iterable[Iterable[Any]] | Mapping[Any, Iterable[Any]],
        *,
        name: str = UNNAMED,
    ) -> Self:
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
        >>> import fastbcubed as fb
        >>> len(fb.Clustering.from_clusters([["a", "b"], ["c"]]))
        3
        """
        if isinstance(clusters, (str, bytes)) or not isinstance(clusters, Iterable) or is_bare(clusters):
            raise OptionError(
                f"{name}: from_clusters takes a list of clusters, each a list of items, not "
                f"{type(clusters).__name__}."
            )
        named = isinstance(clusters, Mapping)
        groups: Iterable[Any] = clusters.values() if isinstance(clusters, Mapping) else clusters
        members: list[list[Any]] = []
        for group in groups:
            if isinstance(group, pa.Scalar):  # of an Arrow array of lists
                group = group.as_py()
            if isinstance(group, (str, bytes)) or not isinstance(group, Iterable) or is_bare(group):
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
    def from_series(cls, series: Any, *, weight: Any = None, name: str = UNNAMED) -> Self:
        """Make a clustering of a pandas Series: its index holds the items, its values the clusters.

        Parameters
        ----------
        series : pandas.Series
            A MultiIndex makes composite ids; names of its levels say which parts are the same on both sides.
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
        >>> import fastbcubed as fb
        >>> import pandas as pd
        >>> fb.Clustering.from_series(pd.Series([1, 1, 2], index=["a", "b", "c"])).items.take([1]).to_pylist()
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


def _are_columns(mapping: Mapping[Any, Any]) -> bool:
    """Say whether a dict has lists or dicts, or tuples that are columns, and no clusters."""
    one_of_each = {type(value): value for value in mapping.values()}
    if one_of_each.keys() == {tuple}:  # clusters of several parts, or else columns
        return {"item", "cluster"} <= mapping.keys()
    return any(
        isinstance(v, dict) or (is_array(v) and not isinstance(v, tuple)) for v in one_of_each.values()
    )


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
