"""Links → clusterings: the connected components of pairs of items, perhaps of those with a score that is enough."""

from __future__ import annotations

from typing import Any, Self

from fastbcubed.clusterings.labelled_rows import UNNAMED, LabelledRows
from fastbcubed.errors import OptionError
from fastbcubed.runtime.choices import true_or_false
from fastbcubed.sources.columns import as_column
from fastbcubed.sources.tables import ColumnName

#: Bytes of an item while components are found, beside a flag of each link.
TO_CONNECT = 16


class MadeOfLinks(LabelledRows):
    """The ways to make a clustering of pairs of items that belong together."""

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
        memory_limit: int | str | None = None,
    ) -> Self:
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
        memory_limit : int or str, optional
            Bytes by which the process may grow, or a text such as "2GiB". Links that would take more raise, before
            they are read or as soon as it shows. Nothing is looked at when absent.

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
        OptionError
            If the memory limit is below what the links take; the message says what they need.

        Notes
        -----
        A threshold is rounded to 32 bits where the scores are, so that a score of 0.9 reaches 0.9. Cost is nearly
        linear in the links; 24 bytes are used for each (12 without scores), and about 50 for each item, besides its
        id.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> links = [("a", "b", 0.95), ("b", "c", 0.5), ("d", "e", 0.9)]
        >>> fb.Clustering.from_links(links, threshold=0.9).to_table().to_pydict()
        {'item': ['a', 'b', 'c', 'd', 'e'], 'cluster': [0, 0, 1, 2, 2]}
        """
        from fastbcubed.clusterings.components import as_threshold, connect, warn_if_none_reaches
        from fastbcubed.clusterings.link_faults import warn_if_distances
        from fastbcubed.clusterings.links import read_links
        from fastbcubed.runtime.allowance import Allowance

        allowance = Allowance(memory_limit)
        ascending = true_or_false(ascending, "ascending")
        threshold = None if threshold is None else as_threshold(threshold)
        if isinstance(items, LabelledRows):
            if items.items is None:
                raise OptionError(f"items= is {items.name}, which has no item ids.")
            items = items.items
        scored = threshold is not None
        links = read_links(
            table,
            left,
            right,
            score=score,
            scored=scored,
            items=items,
            item=item,
            name=name,
            allowance=allowance,
        )
        if threshold is not None:
            warn_if_distances(links.columns.score, links.name, ascending=ascending, stacklevel=3)
            warn_if_none_reaches(links, threshold, ascending=ascending, stacklevel=3)
        allowance.require(
            TO_CONNECT * len(links.items) + len(links), f"connecting {len(links.items):,} items"
        )
        labels, made = connect(links, threshold, ascending=ascending)
        return cls(as_column(labels, "cluster"), links.items, None, None, links.name, links=made)

    @classmethod
    def from_pairs(cls, left: Any, right: Any, *, items: Any = None, name: str = UNNAMED) -> Self:
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
        >>> import fastbcubed as fb
        >>> fb.Clustering.from_pairs(["a", "b"], ["b", "c"], items=["d"]).labels.keys().tolist()
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
