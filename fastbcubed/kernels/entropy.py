"""Entropies from the cells, and the information that two clusterings share by chance."""

from __future__ import annotations

import math

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.runs import RUN

#: Above this share of all weight, what a cluster leaves cannot be had by subtraction.
DOMINANT = 0.75
#: Terms of a hypergeometric sum below this share of the largest one are left out.
NEGLIGIBLE = 1e-22


@kernel
def log_of(x, logs):
    """Return the logarithm of a count, from the table as far as it goes."""
    return logs[x] if x < logs.size else math.log(x)


@kernel
def log_ratio(x, n, logs):
    """Return log(x / n) of counts x >= n; where they are close, their logarithms agree in too many digits."""
    return math.log1p((x - n) / n) if x - n < n >> 3 else log_of(x, logs) - log_of(n, logs)


@kernel
def count_losses(cells, start, stop, logs, true_items, pred_items, sums):
    """Sum n log(b / n) and n log(a / n) over runs of cells, and count the items by size of cluster.

    The fp and fn of `cells` are counts; a and b are the sizes of their true and predicted clusters, and
    `logs` the logarithms of 0 (any number), 1, 2, ... Outputs: both sums of each run; `true_items` and
    `pred_items`, the items in clusters of each size, those in larger clusters added to the first entry.
    Shapes: `sums` (n_runs, 2).
    """
    run = 0
    for begin in range(start, stop, RUN):
        of_true, of_pred = 0.0, 0.0
        for i in range(begin, min(begin + RUN, stop)):
            n = np.int64(cells[i].n)
            b, a = n + np.int64(cells[i].fp), n + np.int64(cells[i].fn)
            if b > n:
                of_true += n * log_ratio(b, n, logs)
            if a > n:
                of_pred += n * log_ratio(a, n, logs)
            true_items[a if a < true_items.size else 0] += n
            pred_items[b if b < pred_items.size else 0] += n
        sums[run, 0], sums[run, 1] = of_true, of_pred
        run += 1


@kernel
def log_rest(x, total, beside):
    """Return log(total / x), from what is beside x where that is nearly all; negative if it is not known."""
    if x <= DOMINANT * total:
        return math.log(total / x)
    return math.log1p((beside if beside >= 0.0 else max(0.0, total - x)) / x)


@kernel
def weigh_losses(cells, start, stop, total, beside_true, beside_pred, sums):
    """Sum w log(b / w), w log(a / w), w log(N / a) and w log(N / b) over runs of cells.

    Returns the weight of the heaviest cluster seen of each side.

    The fp and fn of `cells` are weights; a and b are those of their true and predicted clusters, N is
    `total`. `beside_true` and `beside_pred` are the weight outside the cluster that holds nearly all of it,
    negative if there is none. Shapes: `sums` (n_runs, 4).
    """
    most_true, most_pred = 0.0, 0.0
    run = 0
    for begin in range(start, stop, RUN):
        of_true, of_pred, true, pred = 0.0, 0.0, 0.0, 0.0
        for i in range(begin, min(begin + RUN, stop)):
            w = cells[i].weight
            a, b = w + cells[i].fn, w + cells[i].fp
            most_true, most_pred = max(most_true, a), max(most_pred, b)
            if cells[i].fp > 0.0:
                of_true += w * math.log1p(cells[i].fp / w)
            if cells[i].fn > 0.0:
                of_pred += w * math.log1p(cells[i].fn / w)
            of_a = log_rest(a, total, beside_true)
            true += w * of_a
            pred += w * (of_a if a == b and a <= DOMINANT * total else log_rest(b, total, beside_pred))
        sums[run, 0], sums[run, 1], sums[run, 2], sums[run, 3] = of_true, of_pred, true, pred
        run += 1
    return most_true, most_pred


@kernel
def expect_shared(n, sizes, clusters, start, stop, other_sizes, other_clusters):
    """Sum E[k log(k / mu)] over pairs of clusters that share k items by chance, mu on average.

    `sizes` and `other_sizes` are the cluster sizes of both sides, with how many `clusters` have each.

    Notes
    -----
    k is hypergeometric. Its terms come from the largest one, taken as 1, by their ratios, and are divided
    by their sum. As the mean of k is mu, each may have k log(k / mu) - k + mu instead, which is not negative.
    """
    total, error = 0.0, 0.0
    for i in range(start, stop):
        for j in range(other_sizes.size):
            a, b = float(sizes[i]), float(other_sizes[j])
            mu = a * (b / n)
            least, most = max(0.0, a + b - n), min(a, b)
            mode = min(most, max(least, math.floor((a + 1.0) * (b + 1.0) / (n + 2.0))))
            chance = 1.0
            whole, loss = 1.0, excess(mode, mu)
            k = mode
            while k < most and chance > NEGLIGIBLE:
                chance *= (a - k) * (b - k) / ((k + 1.0) * (n - a - b + k + 1.0))
                k += 1.0
                whole += chance
                loss += chance * excess(k, mu)
            chance = 1.0
            k = mode
            while k > least and chance > NEGLIGIBLE:
                chance *= k * (n - a - b + k) / ((a - k + 1.0) * (b - k + 1.0))
                k -= 1.0
                whole += chance
                loss += chance * excess(k, mu)
            pairs = float(clusters[i]) * float(other_clusters[j])
            total, error = add_exactly(total, error, pairs * (loss / whole))
    return total + error


@kernel
def excess(k, mu):
    """Return k log(k / mu) - k + mu, which is 0 at k = mu and more elsewhere."""
    if k == 0.0:
        return mu
    return k * math.log(k / mu) - (k - mu)


@kernel
def log_choices(sizes, others, out):
    """Return log C(size + others, others) for sizes in ascending order, as sums of logarithms."""
    total, error = 0.0, 0.0
    t = 0
    for j in range(sizes.size):
        if sizes[j] <= others:
            while t < sizes[j]:
                t += 1
                total, error = add_exactly(total, error, math.log1p(others / t))
            out[j] = total + error
        else:
            of_size, rest = 0.0, 0.0
            for k in range(1, others + 1):
                of_size, rest = add_exactly(of_size, rest, math.log1p(sizes[j] / k))
            out[j] = of_size + rest
