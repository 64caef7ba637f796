"""Clusterings that could be read, but look as if something else was meant: refused, with what to pass instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fastbcubed.errors import OptionError, WeightError, first_few
from fastbcubed.sources.arrays import is_pandas


def refuse_items_of_clusters(truth: Mapping[Any, Any], prediction: Mapping[Any, Any]) -> None:
    """Raise if two dicts of sets look like clusters and their items: most labels agree, and exceed the keys."""
    sides = [[v for v in given.values() if isinstance(v, set | frozenset)] for given in (truth, prediction)]
    labels = [set[Any]().union(*sets) for sets in sides]
    common = len(labels[0] & labels[1])
    more = all(len(own) > len(sets) for own, sets in zip(labels, sides, strict=True))
    if not more or 2 * common < min(map(len, labels)):
        return
    raise OptionError(
        f"The dicts have {len(truth)} and {len(prediction)} keys, and more values in their sets, of which {common} "
        "are on both sides: they look like clusters and the items of each, but a dict goes from an item to the set "
        "of its clusters. Pass Clustering.from_clusters(...) of both; or, if the keys are items, "
        "Clustering.from_dict(..., overlapping=True)."
    )


def refuse_items_with_clusters(truth: Any, prediction: Any) -> None:
    """Raise if both sides are lists of pairs no two of which begin alike: items with their clusters, not labels."""
    if all(map(_are_items_with_clusters, (truth, prediction))):
        raise OptionError(
            f"The truth and the prediction are lists of pairs (first: {first_few(truth[:1])} and "
            f"{first_few(prediction[:1])}), no two of which begin alike: they look like items and their clusters, but "
            "a list has the label of each item, by position. Pass dict(truth) and dict(prediction)."
        )


def _are_items_with_clusters(given: Any) -> bool:
    if not isinstance(given, list | tuple) or len(given) < 2:
        return False
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in given):
        return False
    try:
        return len({item for item, _ in given}) == len(given)
    except TypeError:  # what has no hash is no item
        return False


def refuse_weights_by_row(weight: Any, tables: Iterable[tuple[Any, Any]]) -> None:
    """Raise if weights are a Series as it was taken out of a table: its index numbers rows, and has no items.

    Then it is the index of one of the tables, has no name, and differs from all columns that may have the items. Each
    table comes with the name of that column, which it may lack.
    """
    frames = [(frame, item) for frame, item in tables if is_pandas(frame, "DataFrame")]
    if not frames or not is_pandas(weight, "Series") or weight.index.names != [None]:
        return
    index = weight.index
    if not any(frame.index.names == [None] and frame.index.equals(index) for frame, _ in frames):
        return
    for frame, item in frames:
        columns = [at for at, name in enumerate(frame.columns) if name == item] or range(frame.shape[1])
        if any(np.array_equal(frame.iloc[:, at].to_numpy(), index.to_numpy()) for at in columns):
            return
    raise WeightError(
        f"weight is a Series with the index of the rows of a table (first: {first_few(index[:4].tolist())}), but it is "
        "looked up by item. Name the column of weights, or pass a dict from item to weight."
    )
