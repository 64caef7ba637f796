"""The bootstrap of differences: units drawn anew, the same ones in all runs.

How often a unit is drawn follows from what it holds, the seed and the number of the replicate alone: not from the order
of rows or runs, the engine or the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.comparison.paired import MIRRORED, RunScores, UnitSums
from fastbcubed.comparison.units_of_runs import RunUnits
from fastbcubed.errors import IdTypeError, NotKeptError
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources.attributes import readable
from fastbcubed.sources.columns import as_column

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Replicates that a thread draws at once.
AT_ONCE = 25
#: The hash function of what units hold; another one would draw other replicates.
SEED = 0


def content_of_values(values: pa.Array) -> Keys:
    """Return a hash of each value of an attribute, of those that cannot be ids as text; 0 for a null."""
    try:
        return content_of(values, "unit")
    except IdTypeError:
        return content_of(readable(values).cast(pa.string()), "unit")


def content_of(values: Any, name: str) -> Keys:
    """Return a hash of each value, whatever holds it; 0 for a null."""
    from fastbcubed.sources.fingerprints import write_both

    column = as_column(values, name)
    with Pool() as pool:
        found, _ = write_both(column.plain, SEED, pool)
    nulls = column.null_rows
    return found if nulls is None else np.where(nulls, 0, found)


def keys_of_units(runs: Sequence[Evaluation], units: RunUnits, numbers: Sequence[Keys] | None) -> Keys:
    """Return what tells the units apart: the keys of the true clusters that any run has of them, added up.

    `numbers` are those of the true clusters of each run; None if their codes are the same in all runs.
    """
    if numbers is None:
        runs, numbers = runs[:1], [np.arange(runs[0].contingency.n_codes["true"])]
    keys = np.zeros(units.n, np.int64)
    known = np.zeros(1 + max(int(own.max(initial=-1)) for own in numbers), np.bool_)
    for r, ev in enumerate(runs):
        new = np.flatnonzero((ev.contingency.true_n > 0) & ~known[numbers[r]])
        np.add.at(keys, units.of_true[r][new], _keys_of_true_clusters(ev, new))
        known[numbers[r][new]] = True
    return keys


def _keys_of_true_clusters(ev: Evaluation, codes: Keys) -> Keys:
    """Return the hashes of the labels of true clusters, mixed.

    A true cluster that a policy has made has no label, and its item stands for it.
    """
    labels = ev.cluster_labels("true", codes)
    keys = content_of(labels, "cluster")
    nameless = np.flatnonzero(labels.is_null())
    if nameless.size and not ev.has_items:
        raise NotKeptError(
            f"the bootstrap draws true clusters by their labels, and {nameless.size:,} that a policy has made have "
            'none; compare with engine="memory", where their items stand for them'
        )
    if nameless.size:
        ids = ev.kept_items().ids(ev.first_rows("true")[codes[nameless]])
        keys[nameless] = ~content_of(ids, "item")
    return np.asarray(kernels.partition.mix_all(keys))


def replicates(
    runs: Mapping[str, RunScores],
    sums: UnitSums,
    baseline: str,
    metrics: Sequence[Metric],
    beta: float,
    keys: Keys,
    n: int,
    seed: int,
) -> dict[tuple[str, str], Floats]:
    """Return the differences from the baseline in n replicates, by run and score; NaN where no unit was drawn."""
    values = np.concatenate([sums.shares.T, *sums.sums], axis=1)
    there = np.flatnonzero(values.any(axis=1))
    order = there[np.argsort(keys[there], kind="stable")]
    keys, values = keys[order], values[order]
    totals = np.zeros((n, values.shape[1]))
    ranges = blocks(n, AT_ONCE)
    with Pool() as pool:
        pool.map(
            lambda a, b: kernels.resampling.resample(seed % 2**63, a, b, keys, values, totals[a:b]),
            *zip(*ranges, strict=True),
            stage="bootstrap",
        )
    n_shares = len(sums.shares)
    of_runs = np.split(totals[:, n_shares:], len(runs), axis=1)
    scores = {
        name: _scores(run, metrics, beta, totals[:, min(r, n_shares - 1)], of_runs[r])
        for r, (name, run) in enumerate(runs.items())
    }
    return {(name, m.name): scores[name][m.name] - scores[baseline][m.name] for name in runs for m in metrics}


def _scores(
    run: RunScores, metrics: Sequence[Metric], beta: float, shares: Floats, totals: Floats
) -> dict[str, Floats]:
    """Return the scores of each replicate from what its units add up to."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {name: run.origins[k] + totals[:, k] / shares for k, name in enumerate(run.needed)}
        means |= {name: 1.0 - means[own] for name, (own, _) in MIRRORED.items() if own in means}
        return {
            m.name: means[m.name] if m.combine is None else np.asarray(m.combine(means, beta), np.float64)
            for m in metrics
        }
