"""Test whether a score is better than chance, by shuffling predicted labels, which preserves cluster sizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import MetricError, NotKeptError, OptionError, TooMuchWorkError, arg
from fastbcubed.metrics.metric import ROUNDED, Metric, meets, without_rounding
from fastbcubed.metrics.sums import overall
from fastbcubed.render.number_formats import count, counted, score_text
from fastbcubed.results.figures import resolved
from fastbcubed.runtime.arguments import seed_of, whole_number
from fastbcubed.types import Int64s

#: Up to this many labelings, all are tried; of more, some are drawn.
ALL = 20_000
#: Maximum number of labels shuffled over all draws, which takes some minutes.
MOST = 1_000_000_000


@dataclass(frozen=True)
class ChanceTest:
    """The result of a test of whether a score is better than chance, given the cluster sizes.

    Attributes
    ----------
    score : str
        The score.
    statistic : float
        The value of the score.
    p_value : float
        The share of labelings that are at least as good as the prediction. If labelings are drawn at random, the
        prediction counts as one labeling.
    expected, deviation : float
        Mean and standard deviation of the score by chance, over the labelings tried.
    as_good : int
        Number of labelings that are at least as good as the prediction.
    draws : int
        Number of labelings tried, either drawn at random or all that exist.
    exact : bool
        Whether all existing labelings were tried.
    seed : int or None
        Seed of the random labelings.
    """

    score: str
    statistic: float
    p_value: float
    expected: float
    deviation: float
    as_good: int
    draws: int
    exact: bool
    seed: int | None

    def __str__(self) -> str:
        by_chance = f"{score_text(self.expected)} by chance (standard deviation {score_text(self.deviation)})"
        if self.exact:
            of = (
                f"{count(self.as_good)} of all {counted(self.draws, 'labeling')} with clusters of these sizes"
            )
        else:
            found = "none" if not self.as_good else count(self.as_good)
            of = f"{found} of {counted(self.draws, 'random labeling')} with clusters of these sizes (seed {self.seed})"
        is_good = "is" if self.as_good <= 1 else "are"
        return (
            f"{self.score} is {score_text(self.statistic)}, and {by_chance}. p = {score_text(self.p_value)}: {of} "
            f"{is_good} at least as good."
        )

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return asdict(self)


def better_than_chance(self: Any, score: str, *, draws: int = 999, seed: int = 0) -> ChanceTest:
    """Test whether a score is better than chance, by shuffling the predicted labels among the items.

    If at most 20,000 labelings with the given cluster sizes exist, all labelings are tried, and the test is exact;
    otherwise, `draws` labelings are drawn at random. The run time is the time of computing the score times the number
    of labelings tried. The test requires partitions without weights.

    Parameters
    ----------
    score : str
        A score with a direction (higher or lower is better), such as "adjusted_rand".
    draws : int
        Number of random labelings.
    seed : int
        Seed of the draws. The same seed draws the same labelings, regardless of the labels, the order of rows and the
        engine.

    Returns
    -------
    ChanceTest
        The result, with the attributes score, statistic, p_value, expected and deviation (the mean and the standard
        deviation by chance), as_good (the number of labelings that are at least as good), draws, exact and seed.

    Raises
    ------
    MetricError
        If the score has no direction or counts items missing from one side.
    OptionError
        If clusters overlap, items have weights, or the prediction has items that are missing from the truth
        ("outside").
    TooMuchWorkError
        If more than 1e9 labels would be shuffled.

    Notes
    -----
    A score that is better than chance need not be good: with many items, nearly every clustering that is made from the
    data scores better than chance. For the uncertainty of a score, see `interval`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> ev = fb.evaluate(list("aaabbb"), [1, 1, 1, 2, 2, 2])
    >>> ev.test("adjusted_rand")  # of 6! / (3! 3!) labelings, the right one and its mirror image
    adjusted_rand is 1, and 0 by chance (standard deviation 0.33333). p = 0.10000: 2 of all 20 labelings with clusters of these sizes are at least as good.
    """  # noqa: E501
    draws, seed = whole_number(draws, "draws", "labelings", least=1), seed_of(seed)
    table: Contingency = self.contingency
    if not table.has_cells:
        raise NotKeptError(
            f"a test needs the cluster sizes, which were not kept; save with {arg('keep', 'cells')}"
        )
    fault = _why_not(table)
    if fault:
        raise OptionError(f"the test needs partitions without weights, but {fault}")
    metric = resolved(table, score, self.beta, self.metrics)
    if (own := self.figures.elsewhere(metric)) is not None:
        return better_than_chance(own, score, draws=draws, seed=seed)
    if metric.best == "neither":
        raise MetricError(f"{metric.name} has no direction; test a score that has a best value")
    statistic = overall(table, [metric], beta=self.beta)[metric.name]
    true, pred = (np.sort(sizes[sizes > 0])[::-1] for sizes in (table.true_n, table.pred_n))
    alone = Contingency.from_cells(table.true, table.pred, table.n)
    if not _equal(overall(alone, [metric], beta=self.beta)[metric.name], statistic):
        raise MetricError(
            f"{metric.name} counts items missing from one side, which cannot be shuffled; evaluate only the "
            "items that both sides have"
        )
    every = _n_labelings(pred)
    exact = every <= ALL
    if not exact and draws * table.n_items > MOST:
        fewer = MOST // table.n_items
        how = f"pass {arg('draws', fewer)} or fewer" if fewer else "test a sample of whole clusters"
        raise TooMuchWorkError(
            f"{draws:,} draws of {table.n_items:,} items would shuffle {draws * table.n_items:.2g} labels, more than "
            f"{MOST:.0e}; {how}"
        )
    labelings = _all_labelings(pred) if exact else _random_labelings(pred, draws, seed)
    return _tested(metric, float(statistic), true, labelings, self.beta, seed=None if exact else seed)


def _why_not(table: Contingency) -> str:
    """Return why labels cannot be shuffled with cluster sizes preserved; "" if they can."""
    if table.overlapping:
        return "clusters overlap, so labels cannot be shuffled without changing cluster sizes"
    if table.weighted:
        return "items have weights, so shuffling would change the cluster weights"
    return "the prediction has items that the truth lacks" if table.outside else ""


def _tested(
    metric: Metric,
    statistic: float,
    true_sizes: Int64s,
    labelings: Iterator[Int64s],
    beta: float,
    seed: int | None,
) -> ChanceTest:
    """Return the result of a test from the scores of all labelings; each distinct table is scored only once."""
    true = np.repeat(np.arange(true_sizes.size), true_sizes)
    times: Counter[tuple[bytes, bytes]] = Counter()
    known: dict[tuple[bytes, bytes], float] = {}
    few = seed is None
    scores = []
    for pred in labelings:
        keys, n = np.unique(true * true.size + pred, return_counts=True)
        key = (keys.tobytes(), n.tobytes())
        if few and key in known:
            times[key] += 1
            continue
        table = Contingency.from_cells(*np.divmod(keys, true.size), n)
        scored = float(overall(table, [metric], beta=beta)[metric.name])
        if few:
            times[key], known[key] = 1, scored
        else:
            scores.append(scored)
    values = np.array(list(known.values()) if few else scores)
    weights = np.array([times[key] for key in known] if few else [1] * values.size)
    n = int(weights.sum())
    sign = 1.0 if metric.best == "higher" else -1.0
    good = meets(sign * values, ">=", sign * statistic)
    as_good = int(weights[good].sum())
    mean = math.fsum(weights * values) / n
    deviation = math.sqrt(math.fsum(weights * (values - mean) ** 2) / n)
    expected = 0.0 if abs(mean) < ROUNDED else mean
    p_value = as_good / n if few else (as_good + 1) / (n + 1)
    return ChanceTest(metric.name, statistic, p_value, expected, deviation, as_good, n, few, seed)


def _equal(a: float, b: float) -> bool:
    return bool(without_rounding(a - b, b) == 0)


def _n_labelings(sizes: Int64s) -> float:
    """Return the number of distinct labelings, or infinity if it is too large to be counted."""
    logs = math.lgamma(int(sizes.sum()) + 1) - math.fsum(math.lgamma(n + 1) for n in sizes.tolist())
    return math.exp(logs) - 0.5 if logs < 100 else math.inf


def _all_labelings(sizes: Int64s) -> Iterator[Int64s]:
    """Yield all distinct labelings, in lexicographic order."""
    labels = np.repeat(np.arange(sizes.size), sizes).tolist()
    while True:
        yield np.array(labels)
        last = len(labels) - 2
        while last >= 0 and labels[last] >= labels[last + 1]:
            last -= 1
        if last < 0:
            return
        other = len(labels) - 1
        while labels[other] <= labels[last]:
            other -= 1
        labels[last], labels[other] = labels[other], labels[last]
        labels[last + 1 :] = reversed(labels[last + 1 :])


def _random_labelings(sizes: Int64s, draws: int, seed: int) -> Iterator[Int64s]:
    """Yield randomly shuffled labels, `draws` times."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(sizes.size), sizes)
    for _ in range(draws):
        yield rng.permutation(labels)
