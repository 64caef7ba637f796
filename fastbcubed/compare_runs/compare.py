"""compare(): any number of runs against one truth, aligned and scored on the same items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.policies import Coverage, Duplicates, Nulls, Policies, Unmatched, Weighting
from fastbcubed.cells.contingency import MAX_PAIRS
from fastbcubed.choose_engine import choose
from fastbcubed.compare_runs.comparison import Comparison
from fastbcubed.compare_runs.differences import require_replicates
from fastbcubed.compare_runs.rankings import told
from fastbcubed.engines import memory
from fastbcubed.engines.request import Answer, Request, as_metrics, as_slices
from fastbcubed.errors import ColumnError, Either, OptionError, arg, first_few, naming, quoted
from fastbcubed.evaluate import Progress, evaluation
from fastbcubed.inputs.pair import Given, Pair, default_for_truth_only, open_pairs
from fastbcubed.inputs.side_columns import PerSide
from fastbcubed.inputs.tables import CLUSTER, ITEM, ColumnName
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.intervals import check_level
from fastbcubed.results.items import attribute_sides
from fastbcubed.results.origin import not_default
from fastbcubed.results.slices import ID, SliceKey, attribute_home, attribute_values, encoded, size_named
from fastbcubed.results.standard_errors import COMPONENT, TRUE_CLUSTER, check_unit
from fastbcubed.results.warnings import give, if_alone
from fastbcubed.runtime.arguments import is_one_of, is_utf8, refuse_idle, seed_of, true_or_false, whole_number
from fastbcubed.runtime.memory_budget import memory_limit as memory_limit_of
from fastbcubed.runtime.progress_bar import reporting
from fastbcubed.runtime.threads import Pool

__all__ = ["compare"]

Align = Literal["common", "each"]
#: Columns of both sides, or a pair: columns of the truth, and those of all runs or of each run by name.
PerRun = PerSide | Mapping[str, ColumnName] | tuple[ColumnName | None, Mapping[str, ColumnName]]
#: The name of the baseline that is chosen after scoring, unless a run has this name.
BEST = "best"


def compare(
    truth: Any,
    runs: Mapping[str, Any],
    *,
    baseline: str | None = None,
    align: Align = "common",
    level: float = 0.95,
    bootstrap: int = 0,
    seed: int = 0,
    unit: str = "component",
    item: PerRun = ITEM,
    cluster: PerRun = CLUSTER,
    weight: Any = None,
    slices: SliceKey | Iterable[SliceKey] = (),
    attributes: Any = None,
    metrics: str | Iterable[str | Callable[..., Any]] | Callable[..., Any] | None = None,
    beta: float = 1.0,
    weighting: Weighting = "pointwise",
    unmatched: Unmatched | Mapping[str, Unmatched] | None = None,
    nulls: Nulls = "raise",
    duplicates: Duplicates = "raise",
    noise: Any = None,
    overlapping: bool = False,
    max_pairs: float = MAX_PAIRS,
    table: Any = None,
    paths: bool = False,
    engine: Literal["memory", "disk"] | None = None,
    memory_limit: int | str | None = None,
    spill_dir: Any = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Comparison:
    """Score several runs against one truth on the same items, and test whether their scores differ.

    Parameters
    ----------
    truth : Clustering, table, path, dict, or array-like of shape (n_items,)
        The truth, as for `evaluate`; with `table`, the name of the column of true clusters.
    runs : dict from str to Clustering, table, path, dict, or array-like of shape (n_items,)
        The prediction of each run, by name of the run; with `table`, the name of each run's column of clusters.
    baseline : str, optional
        The run to compare all other runs with; by default, the first run. "best" means the run named "best" if there is
        one, and otherwise `Comparison.best`, the run with the best F1.
    align : {"common", "each"}
        "common" scores all runs on their common items: those that every run scores after policies have been applied.
        "each" scores each run on its own items, so differences also reflect the choice of items. If items of the truth
        are missing from runs, a warning and `Comparison.coverage` give two values of each run's F1: on the run's own
        items, and with missing items as singletons. Coreference scores always cover all mentions of the truth and of
        the run, as in `evaluate`.
    level : float
        The confidence level of intervals.
    bootstrap : int
        Number of bootstrap replicates; 0 for none. With replicates, percentile intervals replace intervals based on
        Student's t. At least 2 / (1 - `level`) replicates are required for each run other than the baseline (40 for two
        runs and a level of 0.95), so that at least one replicate lies beyond each end of an interval.
    seed : int
        Seed of the bootstrap replicates; passing a seed without replicates is an error. The same seed gives the same
        replicates, regardless of the engine and the order of rows and runs.
    unit : str
        The sampling unit: "component", "true_cluster", or a column of the truth. A component is a connected component
        of the truth and all runs or, if such a component is very large, of the truth and the two runs compared (see
        `Comparison.deltas`). "true_cluster" is valid only with ``unmatched="outside"``. A column requires the memory
        engine and ``align="common"``.
    item, cluster : str, list of str, dict, or tuple of two such values
        Columns of items and clusters, as for `evaluate`. The second element of a pair applies to all runs, or is a dict
        from run name to columns. If a dict is passed instead of a pair, the default columns are used for the truth and
        all runs missing from the dict.
    weight, slices, attributes, metrics, beta, weighting, unmatched, nulls, duplicates, noise
        As for `evaluate`. Policies apply to all runs. If any run is built from links, items that only the truth has are
        singletons by default.
    overlapping, max_pairs, table, paths, engine, memory_limit, spill_dir, threads, progress
        As for `evaluate`. For overlapping runs, differences have standard errors only if the unit is the component. The
        disk engine aligns the runs one by one, some of them twice. With ``align="common"``, the disk engine refuses
        runs with scored items that are missing from the truth. `compare` does not accept the arguments `out`, `keep`
        and `repairs` of `evaluate`; save the comparison with `Comparison.save`, or the evaluation of a run with
        `Evaluation.save`.

    Returns
    -------
    Comparison

    Raises
    ------
    OptionError
        If no run is given, the baseline is not one of the runs, or there are too few replicates.
    ColumnError, SliceError
        If the column that `unit` names does not exist, or items cannot be sliced by this column.
    EmptyInputError
        If no item is scored in every run.
    WeightError
        If an item has different weights in two runs.
    FastBCubedError
        In the same cases as for `evaluate`.

    References
    ----------
    S. van Staden, Pointwise Metrics for Clustering Evaluation, 2024.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> truth = {"a": 1, "b": 1, "c": 2, "d": 2}
    >>> old = {"a": 1, "b": 2, "c": 3, "d": 4}
    >>> new = {"a": 1, "b": 1, "c": 3}
    >>> cmp = fb.compare(truth, {"old": old, "new": new})
    >>> cmp["old"].recall, cmp["new"].recall, cmp.n_items  # on a, b and c, which both runs have
    (0.6666666666666666, 1.0, 3)
    """
    paths = true_or_false(paths, "paths")
    bootstrap, seed = whole_number(bootstrap, "bootstrap", "replicates"), seed_of(seed)
    arguments = not_default(compare, locals())
    names = names_of_runs(runs, baseline)
    wanted, baseline = baseline, baseline if baseline in names else names[0]
    if not is_one_of(align, ("common", "each")):
        raise OptionError(f'{arg("align")} must be "common" or "each", not {quoted(align)}')
    level = check_level(level)
    require_replicates(bootstrap, level, len(names) - 1)
    refuse_idle(seed != 0 and not bootstrap, "seed", arg("bootstrap", ...))
    refuse_idle(bootstrap > 0 and len(names) == 1, "bootstrap", "a second run")
    alone = any(default_for_truth_only(run) == "singleton" for run in runs.values())
    truth_only = "singleton" if alone else "drop"
    unit = check_unit(unit)
    policies = Policies.of(unmatched, nulls, duplicates, noise, truth_only=truth_only)
    columns = [columns_by_run(given, names, part) for part, given in (("item", item), ("cluster", cluster))]
    own = [of_runs[names[0]] for of_runs in columns]
    first = Request(
        Given(truth, runs[names[0]], own[0], own[1], weight, table, attributes, overlapping),
        policies,
        weighting=weighting,
        metrics=as_metrics(metrics, outside=policies.prediction == "outside"),
        beta=beta,
        max_pairs=max_pairs,
        slices=as_slices(slices),
        memory_limit=memory_limit_of(memory_limit),
        spill_dir=spill_dir,
    )
    with reporting(progress) as report, Pool(threads, report) as pool:
        found = _answers(first, runs, columns, names, baseline, engine, align, unit, pool)
        by_itself = [_by_itself(found, k) for k in range(len(names))]
    evs = {name: evaluation(*of_run, arguments) for name, of_run in zip(names, found.runs, strict=True)}
    _require_values(unit, evs[baseline])
    cmp = Comparison(
        evs,
        baseline=baseline,
        align=align,
        level=level,
        unit=unit,
        n_bootstrap=bootstrap,
        seed=seed,
        shared=found.shared,
        n_scored=found.n_scored,
        coverage=found.coverage,
        true_keys=found.true_keys,
        by_itself=by_itself,
    )
    give(told(cmp))
    return cmp.against() if wanted == BEST and BEST not in names else cmp


def names_of_runs(runs: Any, baseline: Any) -> list[str]:
    """Return the names of the runs, or raise OptionError if there are none."""
    if not isinstance(runs, Mapping):
        raise OptionError(
            'runs must be a dict from run name to clustering, such as {"old": old, "new": new}, not '
            f"{type(runs).__name__}"
        )
    if not runs:
        raise OptionError('runs is empty; give at least one, such as {"new": new}')
    if strange := [name for name in runs if not isinstance(name, str) or not name or not is_utf8(name)]:
        raise OptionError(
            f"run names must be strings, not {first_few(strange)}; a dict from item to cluster is a single run, to "
            'be passed as {"new": that dict}'
        )
    if not is_one_of(baseline, (None, BEST, *runs)):
        raise OptionError(
            f"the baseline {quoted(baseline)} is not one of the runs {', '.join(map(quoted, runs))}"
        )
    return list(runs)


def columns_by_run(given: PerRun, names: Sequence[Any], argument: str) -> dict[Any, PerSide]:
    """Return the columns of truth and prediction for each run."""
    of_truth, of_runs = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    if not isinstance(of_runs, Mapping):
        return dict.fromkeys(names, cast(PerSide, given))
    if strange := [name for name in of_runs if name not in names]:
        named, hint = Either(argument, f"--run-{argument}"), ". In a pair, the truth's column comes first"
        raise OptionError(
            f"{named} names a column of {first_few(strange)}, which is not one of the runs "
            f"{', '.join(map(repr, names))}{Either(hint, '')}"
        )
    return {name: (cast(Any, of_truth), of_runs.get(name)) for name in names}


class _Found(NamedTuple):
    """The engine's answers by run, and what is known about their rows and true clusters."""

    runs: list[tuple[Request, Answer]]
    shared: bool  #: whether all runs have the same rows and the same codes of true clusters
    n_scored: list[int]
    coverage: list[Coverage]
    true_keys: list[NDArray[np.int64]] | None = None  #: by run and code; None if unknown
    alone: Callable[[Request, int], Answer] | None = None  #: function that scores a run on all its own items


def _by_itself(found: _Found, k: int) -> dict[str, Any] | None:
    """Return a run's scores on its own items, with and without missing items; None if its evaluation covers them."""
    request, answer = found.runs[k]
    if found.alone is None or answer.mentions is not None:
        return None
    lacks = request.policies.truth == "drop" and found.coverage[k].n_truth_only > 0
    if not lacks and found.n_scored[k] == answer.cells.n_items:
        return None
    request = replace(request, metrics=["precision", "recall"], slices=[], keep="scores")
    return if_alone(evaluation(request, found.alone(request, k), {}))


def _answers(
    first: Request,
    runs: Mapping[str, Any],
    columns: list[dict[str, PerSide]],
    names: list[str],
    baseline: str,
    engine: Any,
    align: str,
    unit: str,
    pool: Pool,
) -> _Found:
    """Score all runs with the engine that the largest one needs, after checking that the unit exists."""
    items, clusters = columns
    given = [
        replace(first.given, prediction=runs[run], item=items[run], cluster=clusters[run], run=run)
        for run in names
    ]
    requests = [replace(first, given=each) for each in given]
    if is_one_of(engine, ("spark",)) or any(own.on_spark for own in given):
        raise OptionError(
            "runs are compared in memory or on disk, not on Spark; write Spark DataFrames as Parquet files "
            "and pass their paths"
        )
    on_disk = choose(engine, *requests) is not memory.run
    if not first.given.overlapping:
        _require_unit(unit, align, on_disk=on_disk)
    if on_disk:
        from fastbcubed.engines import disk

        done = disk.run_several(requests, names, pool, common=align == "common")
        return _Found(list(zip(requests, done.runs, strict=True)), False, *done[1:])
    pairs = open_pairs([request.given for request in requests], names)
    _require_column(unit, pairs[names.index(baseline)])
    if align == "common" and not first.given.overlapping:
        done = memory.run_several(pairs, names, first, pool)
        return _Found(list(zip(requests, done.runs, strict=True)), True, *done[1:])
    answers = []
    for name, pair in zip(names, pairs, strict=True):
        with naming(name, *pair.names):
            answers.append(memory.answer(pair, memory.build(pair, first, pool), first, pool))
    coverage = [answer.coverage for answer in answers]
    if align == "common":
        _require_same_items(first.policies, names, coverage)
    n_scored = [answer.cells.n_items for answer in answers]
    return _Found(list(zip(requests, answers, strict=True)), False, n_scored, coverage)


def _require_unit(unit: str, align: str, *, on_disk: bool) -> None:
    """Raise OptionError if the unit is a column, but the rows of the runs are not in one common order."""
    if is_one_of(unit, (COMPONENT, TRUE_CLUSTER)) or (align == "common" and not on_disk):
        return
    lacking, instead = (
        ("the disk engine", f"{arg('engine', 'memory')}")
        if on_disk
        else (f"{arg('align', 'each')}", f"{arg('align', 'common')}")
    )
    raise OptionError(
        f"units by the column {unit!r} need the items of all runs in one order, which {lacking} does not "
        f"provide. Pass {arg('unit', 'component')}, or {instead}"
    )


def _require_column(unit: str, pair: Pair) -> None:
    """Raise ColumnError if the unit is a column that does not exist; columns of both sides are checked later."""
    truth, prediction = pair.first
    own = attribute_sides(truth, prediction)
    if (
        is_one_of(unit, (COMPONENT, TRUE_CLUSTER))
        or size_named(unit)
        or all(unit in names for names in own.values())
    ):
        return
    extra: Sequence[str] = ()
    if pair.attribute_table is not None:
        ids, table = pair.attribute_table
        extra = [name for name in table.names if name not in ids.names]
    parts = () if truth.items is None or len(truth.items.names) == 1 else truth.items.names
    try:
        attribute_home(unit, {**own, ID: parts}, extra)
    except ColumnError as error:
        raise ColumnError(f'unit must be "component", "true_cluster" or a column, but {error}') from None


def _require_values(unit: str, ev: Evaluation) -> None:
    """Raise if the unit is a column whose values differ between the sides, or whose type cannot define units."""
    if is_one_of(unit, (COMPONENT, TRUE_CLUSTER)) or size_named(unit) or ev.contingency.overlapping:
        return
    none = attribute_values(unit, ev.kept_items(), ev.attributes, np.empty(0, np.int64))
    if pa.types.is_nested(none.type):
        encoded(unit, none)  # raises


def _require_same_items(policies: Policies, names: list[str], coverage: list[Coverage]) -> None:
    """Raise if runs with overlapping clusters score different items, because these cannot be restricted."""
    for name, each in zip(names, coverage, strict=True):
        lacking = each.n_truth_only if policies.truth != "singleton" else 0
        further = each.n_prediction_only if policies.prediction == "singleton" else 0
        if len(names) > 1 and lacking + further:
            raise OptionError(
                f"the runs do not score the same items: {name!r} lacks {lacking:,} items of the truth and "
                f"has {further:,} other scored items. Overlapping clusters cannot be restricted to common "
                f"items. Pass {arg('unmatched', {'truth': 'singleton'})}, or {arg('align', 'each')}"
            )
