"""Lists with a set of clusters for each item, by position → dicts from position to set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastbcubed.errors import AlignmentError, OverlapError, WeightError


def by_position(truth: Any, prediction: Any, weight: Any, overlapping: bool) -> tuple[Any, Any, Any]:
    """Return both sides and the weights by position if a side is a list of sets, and as they are if none is.

    A list of sets may have the clusters of each item, or the items of each cluster: if `overlapping` it is the former.
    """
    if not (_has_sets(truth) or _has_sets(prediction)):
        return truth, prediction, weight
    if not overlapping:
        side = "truth" if _has_sets(truth) else "prediction"
        raise OverlapError(
            f"the {side} is a list of sets, which can be read in two ways. If each set is a cluster and has its items, "
            "pass Clustering.from_clusters(...) of both sides; if each has the clusters of an item, by position, "
            "pass overlapping=True"
        )
    for side, given in (("truth", truth), ("prediction", prediction)):
        if isinstance(given, str | Mapping) or not hasattr(given, "__len__") or np.ndim(given[:0]) != 1:
            raise AlignmentError(
                f"One side is a list with a set of clusters for each item, the {side} is a {type(given).__name__}; "
                "they cannot be matched. Pass two lists, or two dicts from item to set."
            )
    if len(truth) != len(prediction):
        raise AlignmentError(
            f"Lists of sets correspond by position and should be equally long, but the truth has {len(truth)} and "
            f"the prediction {len(prediction)}. To match by item, pass dicts from item to set; if each set is a "
            "cluster and has its items, pass Clustering.from_clusters(...) of both sides."
        )
    if weight is not None and not isinstance(weight, str | Mapping):
        if np.shape(weight) != (len(truth),):
            raise WeightError(
                f"weight is of shape {np.shape(weight)} for {len(truth)} items; give one for each item."
            )
        weight = dict(enumerate(weight))
    return dict(enumerate(truth)), dict(enumerate(prediction)), weight


def _has_sets(given: Any) -> bool:
    """Say whether the first label of a list is a set."""
    if not (isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.dtype == object)):
        return False
    first = next((label for label in given if label is not None), None)
    return isinstance(first, set | frozenset)
