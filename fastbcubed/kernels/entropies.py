"""What one of two clusters that overlap tells of the other, in bits: for overlapping mutual information."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel


@kernel
def surprise(count, whole):
    """Return -p log2 p for p = count / whole, exactly 0 at p = 0 and p = 1."""
    if count == 0:
        return 0.0
    return -(count / whole) * np.log2(count / whole)


@kernel
def surprise_of_rest(count, whole):
    """Return -q log2 q for q = 1 - count / whole, to full precision where q is near 1."""
    if count == whole:
        return 0.0
    return -((whole - count) / whole) * np.log1p(-(count / whole)) / np.log(2.0)


@kernel
def entropy(count, whole):
    """Return the entropy of membership in a cluster of `count` of `whole` items, in bits."""
    return surprise(count, whole) + surprise_of_rest(count, whole)


@kernel
def keep_least(both, a, b, n_items, i, j, least_true, least_pred):
    """Lower H(X|Y) and H(Y|X) of two clusters of a and b items that share `both`, if they can be.

    Clusters that tell no more by where they agree than by where they differ tell nothing of each
    other. A tie is none: the difference must exceed what rounding does.
    """
    agree = surprise(both, n_items) + surprise_of_rest(a + b - both, n_items)
    differ = surprise(a - both, n_items) + surprise(b - both, n_items)
    if agree <= differ * (1.0 + 1e-13):
        return
    # H(X|Y) as the mean of two entropies: no difference of large numbers
    given_pred = (b * entropy(both, b) + (n_items - b) * entropy(a - both, n_items - b)) / n_items
    given_true = (a * entropy(both, a) + (n_items - a) * entropy(b - both, n_items - a)) / n_items
    least_true[i] = min(least_true[i], given_pred)
    least_pred[j] = min(least_pred[j], given_true)


@kernel
def least_entropies(bounds, pred, shared_n, true_n, pred_n, n_items, apart, least_true, least_pred):
    """Find the least conditional entropy of each cluster, given one of the other side.

    The overlaps of a true cluster are those of `bounds`. Where `apart`, clusters that share nothing are
    candidates, too, at a cost of true times predicted clusters. `least_true` and `least_pred`, of
    shapes (K,) and (M,), come as the entropies of the clusters and leave as the least ones.
    """
    shared = np.zeros(pred_n.size, dtype=np.int64)
    for i in range(true_n.size):
        for o in range(bounds[i], bounds[i + 1]):
            if apart:
                shared[pred[o]] = shared_n[o]
            else:
                j = pred[o]
                keep_least(shared_n[o], true_n[i], pred_n[j], n_items, i, j, least_true, least_pred)
        if apart:
            for j in range(pred_n.size):
                keep_least(shared[j], true_n[i], pred_n[j], n_items, i, j, least_true, least_pred)
            for o in range(bounds[i], bounds[i + 1]):
                shared[pred[o]] = 0
