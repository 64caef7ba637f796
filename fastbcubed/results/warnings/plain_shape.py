"""Whether a few rows rule out what there is to warn of in the shape of the sides, before clusters are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: From so many scored items on it is worth looking: below, all clusters are counted in a few milliseconds.
LARGE = 1 << 20
#: Rows that are looked at, spread over all: a cluster with a tenth of them has about 1,600.
SAMPLE = 1 << 14
#: Clusters with a smaller share of the sample do not have a tenth of all rows.
SURELY_SMALL = 0.08
#: Fewer clusters than these are counted.
FEW_CLUSTERS = 100


def n_scored(ev: Any) -> int:
    """Return how many items are scored, from the coverage."""
    found, policies = ev.coverage, ev.policies
    alone = (found.n_truth_only, policies.truth), (found.n_prediction_only, policies.prediction)
    return int(found.n_common + sum(n for n, policy in alone if policy == "singleton"))


def is_plain(ev: Any) -> bool:
    """Tell whether no side has few clusters, a very large one, or one for each item; False if that is not known."""
    n = n_scored(ev)
    keys = getattr(ev._items, "label_keys", None)
    if n < LARGE or keys is None:
        return False
    n_clusters = ev.contingency.n_codes.values()
    if min(n_clusters) < FEW_CLUSTERS or max(n_clusters) >= n:
        return False
    return all(_largest_share(of_side) < SURELY_SMALL for of_side in keys())


def _largest_share(keys: NDArray[np.int64]) -> float:
    """Return the share of the most frequent key in a sample spread over all."""
    rows = np.random.default_rng(0).integers(0, keys.size, SAMPLE)
    return float(np.unique(keys[rows], return_counts=True)[1].max() / SAMPLE)
