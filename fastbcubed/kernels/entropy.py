"""Entropies from the cells, and the information that two clusterings share by chance."""

from __future__ import annotations

import math

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import at, kernel
from fastbcubed.kernels.runs import RUN

#: Above this share of all weight, what a cluster leaves cannot be had by subtraction.
DOMINANT = 0.75
#: The bits of 1.0, of about sqrt(1/2), and those of a float beside its exponent.
ONE, ROOT, MANTISSA = 0x3FF << 52, 0x3FE6A09E << 32, (1 << 52) - 1
LARGEST, LOG_2 = 1.7e308, math.log(2.0)
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
def take_logs(y, below, n):
    """Replace the first n of some numbers, not negative, by log(1 + y / below), within a few units of the last place.

    With 1 + y = m 2^e, m from sqrt(1/2) to sqrt(2), and s = (m - 1) / (m + 1), log(m) is 2 (s + s^3 / 3 + ...). All
    steps are ones that the processor takes for several numbers at a time.
    """
    m = np.empty(n)
    bits = m.view(np.int64)
    for k in range(n):
        y[k] = min(y[k] / below[k], LARGEST)
        m[k] = 1.0 + y[k]
    for k in range(n):
        x = m[k]
        lost = (y[k] - (x - 1.0)) / x
        shifted = bits[k] + (ONE - ROOT)
        e = (shifted >> 52) - 1023
        bits[k] = (shifted & MANTISSA) + ROOT
        s = (m[k] - 1.0) / (m[k] + 1.0)
        z = s * s
        even = 1 / 3 + z * (
            1 / 5
            + z
            * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19)))))))
        )
        y[k] = e * LOG_2 + (2.0 * (s + s * z * even) + lost)


@kernel
def read_ratios(cells, begin, length, total, beside_true, y, below):
    """Write what take_logs makes log(N / a) of a run of cells, then log(b / w) and log(a / w) where these are not 0.

    Return how many there are, and the weight of the heaviest cluster of each side. See `weigh_losses`.
    """
    most_true, most_pred = 0.0, 0.0
    n = length
    for k in range(length):
        i = at(begin + k)
        w, fp, fn = cells[i].weight, cells[i].fp, cells[i].fn
        a, b = w + fn, w + fp
        most_true, most_pred = max(most_true, a), max(most_pred, b)
        known = a > DOMINANT * total and beside_true >= 0.0
        y[at(k)], below[at(k)] = beside_true if known else max(0.0, total - a), a
        y[at(n)], below[at(n)] = fp, w
        n += fp > 0.0
        y[at(n)], below[at(n)] = fn, w
        n += fn > 0.0
    return n, most_true, most_pred


@kernel
def weigh_losses(cells, start, stop, total, beside_true, beside_pred, sums):
    """Sum w log(b / w), w log(a / w), w log(N / a) and w log(N / b) over runs of cells.

    Returns the weight of the heaviest cluster seen of each side.

    The fp and fn of `cells` are weights; a and b are those of their true and predicted clusters, N is
    `total`. `beside_true` and `beside_pred` are the weight outside the cluster that holds nearly all of it,
    negative if there is none. Shapes: `sums` (n_runs, 4).
    """
    most_true, most_pred = 0.0, 0.0
    y, below = np.empty(3 * RUN + 2), np.empty(3 * RUN + 2)
    run = 0
    for begin in range(start, stop, RUN):
        length = min(RUN, stop - begin)
        n, of_most_true, of_most_pred = read_ratios(cells, begin, length, total, beside_true, y, below)
        most_true, most_pred = max(most_true, of_most_true), max(most_pred, of_most_pred)
        take_logs(y, below, n)
        of_true, of_pred, true, pred = 0.0, 0.0, 0.0, 0.0
        n = length
        for k in range(length):
            i = at(begin + k)
            w, fp, fn = cells[i].weight, cells[i].fp, cells[i].fn
            b, to_pred = w + fp, y[at(n)]  # which is read where it is not meant, too: no branch is taken
            n += fp > 0.0
            to_pred = to_pred if fp > 0.0 else 0.0
            to_true = y[at(n)]
            n += fn > 0.0
            to_true = to_true if fn > 0.0 else 0.0
            of_b = y[at(k)] + (to_true - to_pred)
            if b > DOMINANT * total:  # of little there would be left
                of_b = math.log1p((beside_pred if beside_pred >= 0.0 else max(0.0, total - b)) / b)
            of_true += w * to_pred
            of_pred += w * to_true
            true += w * y[at(k)]
            pred += w * of_b
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
