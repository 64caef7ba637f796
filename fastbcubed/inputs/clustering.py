"""Clustering: items and their clusters, one row per membership, and ways to make one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import (
    MAY_OVERLAP,
    PREDICTION,
    TRUTH,
    AlignmentError,
    ColumnError,
    NullError,
    OptionError,
    OverlapError,
    WeightError,
    Word,
    arg,
    first_few,
)
from fastbcubed.inputs.arrays import is_pandas, join_pieces, refuse_unread
from fastbcubed.inputs.files import as_rows
from fastbcubed.inputs.id_columns import Column, as_column, comparable_keys
from fastbcubed.inputs.layouts import Reading, choose_columns, refuse_retrieved
from fastbcubed.inputs.tables import (
    CLUSTER,
    ITEM,
    ColumnName,
    Source,
    is_array,
    listed_paths,
    read_columns,
    refuse_other_indexes,
    unlisted,
    weight_array,
)
from fastbcubed.inputs.typed_columns import Typed
from fastbcubed.runtime.arguments import (
    a_text,
    is_bare,
    is_one_of,
    naming_faults_of,
    path_of,
    refuse_idle,
    true_or_false,
    whole_number,
)
from fastbcubed.runtime.object_attributes import documented
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import RowNumbers

if TYPE_CHECKING:
    from fastbcubed.inputs.link_clusters import Connected
    from fastbcubed.inputs.link_columns import Sources, VerdictColumn


def by_position(truth: Any, prediction: Any, weight: Any, overlapping: bool) -> tuple[Any, Any, Any]:
    """Return sides given as lists of sets as dicts by position, with the weights; other input unchanged.

    A set may hold the clusters of an item or the items of a cluster; `overlapping` says that it is the former.
    """
    if not (_has_sets(truth) or _has_sets(prediction)):
        return truth, prediction, weight
    if not overlapping:
        side = "truth" if _has_sets(truth) else "prediction"
        raise OverlapError(
            f"the {Word(side)} is a list of sets, which is ambiguous. If each set holds the items of a "
            "cluster, pass Clustering.from_clusters(...) for both sides; if each holds the clusters of the "
            f"item at its position, pass {arg('overlapping', True)}"
        )
    for side, given in (("truth", truth), ("prediction", prediction)):
        if isinstance(given, str | Mapping) or not _is_list(given):
            raise AlignmentError(
                f"One side is a list with a set of clusters per item, but the {Word(side)} is a "
                f"{type(given).__name__}; they cannot be matched. Pass two lists, or two dicts from item to "
                "set."
            )
    if len(truth) != len(prediction):
        raise AlignmentError(
            f"Lists of sets correspond by position and should be equally long, but the {TRUTH} has "
            f"{len(truth)} and the {PREDICTION} {len(prediction)}. To match by item, pass dicts from item "
            "to set; if each set holds the items of a cluster, pass Clustering.from_clusters(...) for both "
            "sides."
        )
    if weight is not None and not isinstance(weight, str | Mapping):
        if np.shape(weight) != (len(truth),):
            raise WeightError(
                f"weight has shape {np.shape(weight)} for {len(truth)} items; give one weight per item."
            )
        weight = dict(enumerate(weight))
    return dict(enumerate(truth)), dict(enumerate(prediction)), weight


def _is_list(given: Any) -> bool:
    """Return whether this is a one-dimensional sequence."""
    return hasattr(given, "__len__") and hasattr(given, "__getitem__") and np.ndim(given[:0]) == 1


def _has_sets(given: Any) -> bool:
    """Return whether the first label of a list is a set."""
    objects = isinstance(given, np.ndarray) and given.dtype == object and given.ndim > 0
    if not (isinstance(given, list | tuple) or objects):
        return False
    first = next((label for label in given if label is not None), None)
    return isinstance(first, set | frozenset)


def lift(labels: Column, items: RowNumbers, child: Column, parent: Column) -> tuple[RowNumbers, Column]:
    """Return the memberships in ancestor clusters that items do not have yet.

    `items` has the item key of each row of `labels`; each cluster in `child` lies within the one in the same row of
    `parent`. Return the row of the item of each new membership, and its cluster, shapes (n_new,). Rows without a label
    have no ancestors. Raise OptionError if a cluster is its own ancestor, ColumnError or NullError if `child` and
    `parent` do not form a hierarchy.
    """
    from fastbcubed.runtime.key_codes import number

    _refuse_null_children(child, parent)
    if (nulls := parent.null_rows) is not None:  # top-level clusters
        kept = np.flatnonzero(~nulls)
        child, parent = (
            Column(column.names, column.rows_of(kept), column.where) for column in (child, parent)
        )
    with Pool() as pool:
        columns = [labels, child, parent]
        keys = np.concatenate(comparable_keys(columns, pool))
        codes, firsts = number(keys, pool)
        pieces = [column.parts[0] for column in columns if len(column)] or [labels.parts[0]]
        values = Column(labels.name, [join_pieces(pieces, "the hierarchy")])
        cuts = np.cumsum([len(column) for column in columns])[:-1]
        (own, low, high), n = np.split(codes, cuts), firsts.size
        below, above = np.divmod(_ancestors(low, high, n), n)
        if (circular := below[below == above]).size:
            names = values.take(firsts[circular[:4]]).to_pylist()
            raise OptionError(
                f"{circular.size} clusters are their own ancestors ({first_few(names)}); remove the cycles "
                "from the hierarchy"
            )
        labelled = np.arange(len(labels)) if labels.null_rows is None else np.flatnonzero(~labels.null_rows)
        rows, found = _equal(own[labelled], below)
        rows, ancestors = labelled[rows], above[found]
        who = number(items, pool).codes
        pairs = who[rows] * n + ancestors
        _, first = np.unique(pairs, return_index=True)
        new = np.sort(first[~np.isin(pairs[first], (who * n + own)[labelled])])
        added = pa.chunked_array([values.take(firsts[ancestors[new]])])
    return rows[new], Column(labels.name, [added], labels.where)


def _refuse_null_children(child: Column, parent: Column) -> None:
    """Raise unless there are as many children as parents, and no child is null."""
    if len(child) != len(parent):
        raise ColumnError(
            f"each link has a child and a parent, but there are {len(child)} children and {len(parent)} parents"
        )
    if child.null_rows is not None:
        rows = np.flatnonzero(child.null_rows)
        raise NullError(
            f"{rows.size} of {len(child)} children are null (first rows: {first_few(rows[:4].tolist())}). A "
            "null parent marks a top-level cluster, but a null child is meaningless: drop these rows"
        )


def _ancestors(low: RowNumbers, high: RowNumbers, n: int) -> RowNumbers:
    """Return each pair of a cluster and one of its ancestors, sorted, encoded as ``cluster * n + ancestor``."""
    known = np.unique(low * n + high)
    while True:  # each iteration doubles the length of the known paths
        starts, ends = np.divmod(known, n)
        rows, further = _equal(ends, starts)
        longer = np.union1d(known, starts[rows] * n + ends[further])
        if longer.size == known.size:
            return known
        known = longer


def _equal(values: RowNumbers, ascending: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
    """Return the positions of each pair of equal values, in `values` and in the sorted array `ascending`."""
    first = np.searchsorted(ascending, values)
    counts = np.searchsorted(ascending, values, "right") - first
    rows = np.repeat(np.arange(values.size), counts)
    return rows, np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts - first, counts)


#: Name in messages of a clustering that was given none.
UNNAMED = "the clustering"


#: Bytes per item needed to find components, in addition to one flag per link.
TO_CONNECT = 16


@dataclass(frozen=True, eq=False, repr=False)
class Clustering:
    """Items and their clusters, one row per membership.

    The `from_...` methods make a clustering. Inputs are never changed and, if their types allow, not copied; see
    `Column.keys` for exceptions.

    Attributes
    ----------
    labels : Column
        Cluster label of each row. Null labels are kept; the policy `nulls` of `evaluate` says what they mean.
    items : Column or None
        Item id of each row, never null; None if items are identified by row number.
    weight : numpy.ndarray of shape (n_rows,) or None
        Weight of each row as float64. Null weights are refused; other weights are not checked until evaluation.
    attributes : Source or None
        All columns of the table from which the clustering was made; the columns are read on demand.
    name : str
        Name of the clustering in messages: "the truth", "the prediction", or a path.
    reading : Reading or None
        How the columns of the table were read, why they were read this way, and other possible readings.
    links : Connected or None
        How the clustering was made from links; None if it was not made from links.

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
    attributes: Source | None = None
    name: str = UNNAMED
    reading: Reading | None = None
    links: Connected | None = None

    __dir__ = documented

    def __post_init__(self) -> None:
        if self.items is None and self.weight is None:
            return
        lengths = {"labels": len(self.labels)}
        if self.items is not None:
            lengths["items"] = len(self.items)
        if self.weight is not None:
            lengths["weights"] = len(self.weight)
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{count} {what}" for what, count in lengths.items())
            raise ColumnError(f"{self.name} should have one value per row in each column, but has {listed}.")
        if self.items is not None:
            self.items.refuse_nulls()

    def __len__(self) -> int:
        return len(self.labels.parts[0])

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
        """Return the clustering of a range of rows, without copying the rows.

        Parameters
        ----------
        start, stop : int
            The first row of the range, and the row after the last row of the range.

        Raises
        ------
        OptionError
            If `start` or `stop` is negative or not an integer, or `stop` is less than `start`.
        """
        start = whole_number(start, "start", "rows")
        stop = whole_number(stop, "stop", "rows", least=start)
        items = None if self.items is None else self.items.stretch(start, stop)
        weight = None if self.weight is None else self.weight[start:stop]
        others = None if self.attributes is None else self.attributes.between(start, stop)
        labels = self.labels.stretch(start, stop)
        return replace(self, labels=labels, items=items, weight=weight, attributes=others)

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """Names of the columns of the table, except the columns of items and labels."""
        if self.attributes is None:
            return ()
        used = {*self.labels.names, *(self.items.names if self.items is not None else ())}
        return tuple(name for name in self.attributes.names if name not in used)

    @property
    def omits_singletons(self) -> bool:
        """Whether only linked items are listed, so that absent items are singletons rather than missing."""
        return self.links is not None and not self.links.complete

    def to_table(self) -> pa.Table:
        """Return the items and their clusters as a table, which `from_table` reads back.

        Returns
        -------
        pyarrow.Table
            A table with one row per membership, in the order of the clustering. The columns of the items come first
            (one per part of a composite id, none for items identified by position), followed by the columns of the
            labels.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.Clustering.from_clusters({"x": ["a", "b"], "y": ["c"]}).to_table().to_pydict()
        {'item': ['a', 'b', 'c'], 'cluster': ['x', 'x', 'y']}
        """
        columns = [self.labels] if self.items is None else [self.items, self.labels]
        names = [name for column in columns for name in column.names]
        return pa.table([part for column in columns for part in column.parts], names=names)

    @classmethod
    def from_labels(
        cls,
        labels: Any,
        *,
        items: Any = None,
        weight: Any = None,
        name: str = UNNAMED,
    ) -> Clustering:
        """Make a clustering from one label per item.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Cluster of each item.
        items : array-like of shape (n_rows,), optional
            Item ids; by default, items are identified by position. Tuples, a MultiIndex or an Arrow array of structs
            make composite ids, whose parts are matched by name between the sides.
        weight : array-like of shape (n_rows,), optional
            Weight of each item.
        name : str, optional
            Name of the clustering in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        ColumnError
            If the arguments are not columns, or differ in length.
        AlignmentError
            If the arguments are pandas Series with different indexes.
        NullError, IdTypeError, WeightError
            If an item is null, items or labels have an unsupported type, or weights are not numbers.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> len(fb.Clustering.from_labels([0, 0, 1]))
        3
        """
        name = a_text(name, "name")
        if items is not None or weight is not None:
            refuse_other_indexes((labels, items, weight), name)
        return cls(
            as_column(labels, "cluster", f"the labels of {name}"),
            None if items is None else as_column(items, "item", f"the items of {name}"),
            None if weight is None else weight_array(weight, f"the weights of {name}"),
            None,
            name,
        )

    @classmethod
    def from_dict(
        cls, mapping: Mapping[Any, Any], *, overlapping: bool = False, name: str = UNNAMED
    ) -> Clustering:
        """Make a clustering from a dict from item to cluster, or from item to a set of clusters.

        Parameters
        ----------
        mapping : dict
            A dict from item to a cluster or a set of clusters. An empty set counts as a null cluster.
        overlapping : bool, optional
            Whether an item may be in several clusters; if False, an item in several clusters raises OverlapError.
        name : str, optional
            Name of the clustering in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If `mapping` is not a dict, its values are lists or dicts, or `overlapping` is neither True nor False.
        OverlapError
            If an item is in several clusters and `overlapping` is False.
        NullError, IdTypeError
            If an item is None, or items or clusters have unsupported or mixed types.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> len(fb.Clustering.from_dict({"a": 1, "b": 1, "c": 2}))
        3
        """
        overlapping, name = true_or_false(overlapping, "overlapping"), a_text(name, "name")
        if not isinstance(mapping, Mapping):
            raise OptionError(
                f"{name}: from_dict needs a dict from item to cluster, not {type(mapping).__name__}."
            )
        items, labels = list(mapping), list(mapping.values())
        refuse_retrieved(mapping, name, overlapping=overlapping)
        if any(isinstance(value, (set, frozenset)) for value in labels):
            items, labels = _flatten_sets(mapping, overlapping, name)
        elif _are_columns(mapping):
            raise OptionError(
                f"{name}: a dict maps each item to a cluster or a set of clusters, but some values are "
                "lists, arrays or dicts. Use sets for several clusters per item, "
                "Clustering.from_table for a dict of columns, and Clustering.from_clusters for lists of items."
            )
        return cls.from_labels(labels, items=items, name=name)

    @classmethod
    def from_clusters(
        cls,
        clusters: Iterable[Iterable[Any]] | Mapping[Any, Iterable[Any]],
        *,
        name: str = UNNAMED,
    ) -> Clustering:
        """Make a clustering from lists (or sets) of items, one per cluster.

        Parameters
        ----------
        clusters : iterable of iterables, or a dict from label to iterable
            The items of each cluster. Without a dict, the labels of the clusters are 0, 1, ...
        name : str, optional
            Name of the clustering in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If `clusters` is not an iterable of iterables.
        NullError, IdTypeError
            If an item is None, or items or labels have unsupported or mixed types.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> len(fb.Clustering.from_clusters([["a", "b"], ["c"]]))
        3
        """
        name = a_text(name, "name")
        if isinstance(clusters, (str, bytes)) or not isinstance(clusters, Iterable) or is_bare(clusters):
            raise OptionError(
                f"{name}: from_clusters needs a list of clusters, each a list of items, not "
                f"{type(clusters).__name__}."
            )
        refuse_unread(clusters, name)
        named = isinstance(clusters, Mapping)
        with naming_faults_of(clusters):
            groups = list(clusters.values() if isinstance(clusters, Mapping) else clusters)
        members: list[list[Any]] = []
        for group in groups:
            if isinstance(group, pa.Scalar):  # from an Arrow array of lists
                group = group.as_py()
            if isinstance(group, (str, bytes)) or not isinstance(group, Iterable) or is_bare(group):
                raise OptionError(
                    f"{name}: every cluster should be a list of items, but one is {first_few([group])}."
                )
            listed = group.tolist() if isinstance(group, np.ndarray) else list(group)
            if isinstance(group, (set, frozenset)):  # a set is sorted for the same order in every process
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
    def from_series(cls, series: Any, *, weight: Any = None, name: str = UNNAMED) -> Clustering:
        """Make a clustering from a pandas Series, whose index contains the items and whose values are the clusters.

        Parameters
        ----------
        series : pandas.Series
            The series. A MultiIndex makes composite ids, whose parts are matched between the sides by level name.
        weight : array-like of shape (n_rows,), optional
            Weight of each row, in the order of `series`; weights in a Series must have the same index as `series`.
        name : str, optional
            Name of the clustering in messages.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If `series` is not a pandas Series.
        ColumnError
            If the length or index of the weights differs from that of the series.
        NullError, IdTypeError, WeightError
            In the same cases as for `from_labels`.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> import pandas as pd
        >>> fb.Clustering.from_series(pd.Series([1, 1, 2], index=["a", "b", "c"])).items.take([1]).to_pylist()
        ['b']
        """
        name = a_text(name, "name")
        if not is_pandas(series, "Series"):
            raise OptionError(
                f"from_series needs a pandas Series, not {type(series).__name__}; "
                "use Clustering.from_table for a table, and Clustering.from_labels for labels."
            )
        if is_pandas(weight, "Series") and not weight.index.equals(series.index):
            raise ColumnError(f"The weights of {name} have a different index from its labels.")
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
        verdict: VerdictColumn = None,
        sources: Sources = None,
        items: Any = None,
        item: ColumnName = ITEM,
        name: str = "the links",
        memory_limit: int | str | None = None,
    ) -> Clustering:
        """Make a clustering whose clusters are the connected components of links (pairs of items with a score).

        Parameters
        ----------
        table : path, URI, data frame, Arrow stream exporter or data set, dict of columns, or list of tuples
            A table with one row per link. Tuples are (left, right) or (left, right, score); an item that is a tuple is
            a composite id. Links may be repeated, reversed, or from an item to itself. Only the needed columns of
            files are read, block by block.
        left, right : str or list of str, optional
            The columns of the two items; a list makes a composite id. The default is the columns written by Splink,
            dedupe, Zingg or recordlinkage, or two columns with paired names such as ``id_l`` and ``id_r``, ``left_id``
            and ``right_id``, or ``id1`` and ``id2``.
        score : str, optional
            The column of scores; by default, ``match_probability``, ``match_weight``, ``score``, ... or the only
            remaining column.
        threshold : float, optional
            The score that a link needs to connect its items. By default, all links connect their items.
        ascending : bool
            Whether scores are distances, so that links at or below the threshold connect their items; requires
            `threshold`.
        verdict : str or False, optional
            The column of verdicts on whether two items match: same, different or unsure, or equivalent values such as
            yes and no, true and false, or 1 and 0. Only items judged to match are connected. A column that seems to
            contain verdicts must be named. Pass False if the table has no verdicts and all rows are links.
        sources : tuple of str or False, optional
            The names of the two tables that the left and the right items are from, such as ``("crm", "web")``. With two
            sources, an item is a pair (source, id), as in a truth with ``item=["source", "id"]``, so an id that occurs
            in both tables stands for two items. Columns that tools write for two tables, such as ``ltable_id``, require
            `sources`. Pass False if an id means the same item in both tables.
        items : table, path, Clustering, or array-like, optional
            The complete list of items. Items without a connecting link are singletons. By default, only the items of
            the links are listed, and `evaluate` treats all other items as singletons, not as missing.
        item : str or list of str
            The column of items, if `items` is a table with several columns.
        name : str, optional
            Name of the clustering in messages. A clustering read from a file is always named by the path of the file.
        memory_limit : int or str, optional
            Bytes by which the memory of the process may grow, or a string such as "2GiB"; no limit by default. Links
            that need more memory than the limit raise an error, before the links are read or as soon as the need is
            known.

        Returns
        -------
        Clustering
            A clustering with one row per item, in the order in which items are given or appear in the links. Clusters
            are numbered from 0 in the order of their first items.

        Raises
        ------
        NullError
            If an id is null.
        LinkError
            If a score is null, NaN, or an integer that cannot be represented exactly as a float, or if a link has an
            item that is missing from `items`.
        ColumnError
            If columns are missing or ambiguous, or a column that was not named seems to contain verdicts.
        JudgementError
            If a value in the column of verdicts is not a verdict.
        OptionError
            If the links need more memory than the limit; the message states how much.

        Warns
        -----
        EvaluationWarning
            If links with low scores connect their items because there is no threshold, if a threshold is beyond all
            scores, or if items judged not to match are connected through other items.

        Notes
        -----
        A threshold is rounded to 32 bits if the scores have 32 bits, so that a score of 0.9 reaches a threshold of 0.9.
        The run time is nearly proportional to the number of links. The memory required is 24 bytes per link (12 bytes
        without scores), about 50 bytes per item, and the item ids.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> links = [("a", "b", 0.95), ("b", "c", 0.5), ("d", "e", 0.9)]
        >>> fb.Clustering.from_links(links, threshold=0.9).to_table().to_pydict()
        {'item': ['a', 'b', 'c', 'd', 'e'], 'cluster': [0, 0, 1, 2, 2]}
        """
        from fastbcubed.inputs.link_clusters import as_threshold, connect, warn_of
        from fastbcubed.inputs.link_columns import LinkRequest
        from fastbcubed.inputs.links import read_links, warn_if_distances
        from fastbcubed.runtime.memory_budget import Allowance

        allowance = Allowance(memory_limit)
        ascending, name = true_or_false(ascending, "ascending"), a_text(name, "name")
        threshold = None if threshold is None else as_threshold(threshold)
        refuse_idle(ascending and threshold is None, "ascending", arg("threshold", ...))
        refuse_idle(items is None and not is_one_of(item, (ITEM,)), "item", arg("items", ...))
        if isinstance(items, Clustering):
            if items.items is None:
                raise OptionError(f"{arg('items', ...)} is {items.name}, which has no item ids.")
            items = items.items
        asked = LinkRequest(left, right, score, threshold is not None, verdict, sources)
        links = read_links(table, asked, items=items, item=item, name=name, allowance=allowance)
        if threshold is not None:
            warn_if_distances(links.columns.score, links.name, ascending=ascending, stacklevel=3)
        allowance.require(
            TO_CONNECT * len(links.items) + len(links), f"connecting {len(links.items):,} items"
        )
        labels, connected = connect(links, threshold, ascending=ascending)
        warn_of(connected, stacklevel=2)
        return cls(as_column(labels, "cluster"), links.items, None, None, links.name, links=connected)

    @classmethod
    def from_pairs(
        cls,
        left: Any,
        right: Any,
        *,
        items: Any = None,
        verdict: Any = None,
        sources: Sources = None,
        name: str = UNNAMED,
    ) -> Clustering:
        """Make a clustering whose clusters are the connected components of pairs of items that belong together.

        For links in a table or with scores, see `from_links`.

        Parameters
        ----------
        left, right : array-like of shape (n_pairs,)
            The two items of each pair.
        items : array-like, optional
            Further items, such as the complete list of items; items in no pair become singletons. By default, only the
            items of the pairs are listed, and `evaluate` treats all other items as singletons, not as missing. Pass
            ``[]`` if the pairs contain all items.
        verdict : array-like of shape (n_pairs,), optional
            Whether the two items of each pair match, as in `from_links`; only matching pairs connect their items. By
            default, all pairs match.
        sources : tuple of str or False, optional
            The names of the two tables that the left and the right items are from, as in `from_links`.
        name : str, optional
            Name of the clustering in messages.

        Returns
        -------
        Clustering
            A clustering with one row per item, beginning with the items of `items`. Clusters are numbered from 0 in the
            order of their first items.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.Clustering.from_pairs(["a", "b"], ["b", "c"], items=["d"]).labels.keys().tolist()
        [0, 1, 1, 1]
        """
        from fastbcubed.inputs.link_clusters import connect, warn_of
        from fastbcubed.inputs.links import links_of

        name = a_text(name, "name")
        columns = [
            as_column(values, "item", f"the {what} of {name}")
            for what, values in (("items", items), ("left items", left), ("right items", right))
            if values is not None or what != "items"
        ]
        links = links_of(
            columns[-2], columns[-1], columns[0] if len(columns) > 2 else None, name, verdict, sources
        )
        labels, connected = connect(links)
        warn_of(connected, stacklevel=2)
        return cls(as_column(labels, "cluster"), links.items, None, None, name, links=connected)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        item: ColumnName = ITEM,
        cluster: ColumnName = CLUSTER,
        weight: str | None = None,
        name: str = "the table",
    ) -> Clustering:
        """Make a clustering from a table with one row per membership.

        Parameters
        ----------
        table : path, URI, data frame, Arrow stream exporter or data set, or dict of columns
            The table. Arrow data are not copied; only the needed columns of files are read. An item in
            several clusters has several rows, or a list of clusters.
        item, cluster : str or list of str
            The columns of items and clusters; a list makes a composite id. If the table has no column of a default
            name, the only remaining column is used, or the column written by Splink, Zingg, dedupe or Senzing.
        weight : str, optional
            The column of weights.
        name : str, optional
            Name of the clustering in messages. A clustering read from a file is always named by the path of the file.

        Returns
        -------
        Clustering

        Raises
        ------
        ColumnError
            If `table` is not a table or does not have the columns `item` and `cluster`.
        NullError, IdTypeError
            If an item is null, or items or clusters have an unsupported type.
        OptionError, WeightError
            If `weight` is not a column name, or the column of weights is not numeric.
        FileFormatError
            If the file does not exist or cannot be read.

        Examples
        --------
        >>> Clustering.from_table({"item": ["a", "b"], "cluster": [1, 1]})
        Clustering: the table, 2 rows
          items   'item' (string)
          labels  'cluster' (int64)
        """
        return cls._of_table(table, {"item": item, "cluster": cluster}, weight, a_text(name, "name"), Typed())

    @classmethod
    def _of_table(
        cls, table: Any, asked: Mapping[str, ColumnName], weight: str | None, name: str, typed: Typed
    ) -> Clustering:
        """Implement `from_table`; `typed` formats the arguments that messages propose."""
        rows = as_rows(table, name)
        if rows is None:
            raise ColumnError(
                f"{name} should be a table with columns of items and clusters, but a "
                f"{type(table).__name__} was given. For labels alone use Clustering.from_labels."
            )
        if weight is not None and not isinstance(weight, str):
            raise OptionError(
                f"weight must be the name of a column of {name}, not {type(weight).__name__}. Pass arrays of "
                "labels and weights to Clustering.from_labels."
            )
        reading = choose_columns(rows, asked, weight, typed)
        items, clusters = reading.item.columns, reading.cluster.columns
        if len(clusters) == 1:
            rows = unlisted(rows, clusters[0])
        columns, weights = read_columns(rows, [items, clusters], weight)
        return cls(columns[1], columns[0], weights, rows, rows.where, reading)

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        *,
        item: ColumnName = ITEM,
        cluster: ColumnName = CLUSTER,
        weight: str | None = None,
    ) -> Clustering:
        """Make a clustering from Parquet, Arrow IPC, CSV or JSON lines files with one row per membership.

        Parameters
        ----------
        path : str or os.PathLike
            The path or URI of a file or directory, a glob, or a list of files.
        item, cluster, weight
            Columns, as in `from_table`.

        Returns
        -------
        Clustering

        Raises
        ------
        OptionError
            If `path` is not a path.
        FastBCubedError
            In the same cases as for `from_table`.

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
        path_of(listed_paths(path), "from_parquet needs a path")
        return cls.from_table(path, item=item, cluster=cluster, weight=weight)

    def with_ancestors(self, child: Any, parent: Any) -> Clustering:
        """Return this clustering with every item added to all ancestors of its clusters.

        Parameters
        ----------
        child, parent : array-like of shape (n_links,)
            Clusters and their parent clusters; a null parent means that a cluster has no parent. A cluster may have
            several parents.

        Returns
        -------
        Clustering
            A clustering with the same rows plus one row per added membership, without weights and attributes.

        Raises
        ------
        OptionError
            If a cluster is its own ancestor, or items have no ids.
        ColumnError, NullError
            If children and parents differ in number, or a child is null.

        Examples
        --------
        >>> towns = Clustering.from_clusters({"Bern": ["a"], "Lyon": ["b"]})
        >>> places = towns.with_ancestors(["Bern", "Lyon"], ["Switzerland", "France"])
        >>> places.labels.take([2, 3]).to_pylist()
        ['Switzerland', 'France']
        """
        links = [as_column(child, "child"), as_column(parent, "parent")]
        if self.items is None:
            raise OptionError(f"{self.name} has no item ids; pass Clustering.from_labels(labels, items=ids).")
        rows, labels = lift(self.labels, self.items.keys(), *links)
        items = self.items.take(np.concatenate([np.arange(len(self)), rows]))
        pieces = join_pieces([self.labels.parts[0], labels.parts[0]], f"the labels of {self.name}")
        return Clustering.from_labels(pieces, items=items, name=self.name)


def _are_columns(mapping: Mapping[Any, Any]) -> bool:
    """Return whether the values of a dict are columns (lists, dicts or tuples) rather than cluster labels."""
    one_of_each = {type(value): value for value in mapping.values()}
    if one_of_each.keys() == {tuple}:  # tuples are composite cluster ids or columns
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
            f"(first: {first_few(several[:4])}). In a partition every item is in exactly one cluster: "
            f"{MAY_OVERLAP} one for each."
        )
    items, labels = [], []
    for item, value in zip(mapping, sets, strict=True):
        for label in sorted(value, key=repr) if value else [None]:
            items.append(item)
            labels.append(label)
    return items, labels
