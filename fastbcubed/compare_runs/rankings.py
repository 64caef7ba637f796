"""Compared runs: scores, differences and slices, ranks, the agreement of scores on them, and notices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any, Self

import numpy as np
import pyarrow as pa

from fastbcubed.compare_runs.comparison_listings import deltas_by_slice, slices_of_runs
from fastbcubed.compare_runs.differences import Differences, adjusted, table_of_deltas
from fastbcubed.compare_runs.mentions import differences_of_all
from fastbcubed.compare_runs.units import ComparisonData
from fastbcubed.errors import EvaluationWarning, Message, OptionError, arg, first_few
from fastbcubed.inputs.arrays import from_texts, from_values, table_of
from fastbcubed.metrics.metric import Metric, directed, lead_score, without_rounding
from fastbcubed.render.number_formats import label
from fastbcubed.results.label_checks import is_unchallenged
from fastbcubed.results.slices import SliceKey, check_key
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import Units
from fastbcubed.results.warnings import OfRun, runs_lack_items
from fastbcubed.results.warnings import lacks_more as coverage_lacks_more
from fastbcubed.runtime.arguments import true_or_false
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.types import Floats

#: The warning about runs that lack items, and the warning of their evaluations that it replaces.
LACKING, INSTEAD_OF = "runs-lack-items", "dropping-truth-flatters"


class ComparedRuns(ComparisonData):
    """Runs with their differences, ranks and slices, which the document of a comparison shows."""

    def scores(self) -> Table:
        """Return the scores of each run.

        The methods `to_pandas`, `to_polars` and `to_arrow` of the comparison convert the table of scores.

        Returns
        -------
        Table
            The columns run, n_items, weight, n_clusters (the number of predicted clusters with a scored item), and the
            scores.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3]}, metrics=["precision", "recall"])
        >>> cmp.scores()
        run  n_items  weight  n_clusters  precision   recall
        a          3       3           1    0.55556        1
        b          3       3           3          1  0.66667
        <BLANKLINE>
        2 rows
        """
        return self._scores

    _main_table = scores

    @cached_property
    def _scores(self) -> Table:
        evs = self.runs.values()
        columns: dict[str, Any] = {
            "run": from_texts(list(self.runs)),
            "n_items": np.array([ev.contingency.n_items for ev in evs], np.int64),
            "weight": np.array([ev.contingency.total_weight for ev in evs], np.float64),
            "n_clusters": np.array([ev.summary["pred"]["clusters"] for ev in evs], np.int64),
        }
        return Table(table_of(columns | self._values))

    @cached_property
    def _differences(self) -> Differences:
        return differences_of_all(self)

    #: The caution on intervals of differences of pair scores.
    _of_pairs = (
        "Intervals of pair scores may be far too narrow, because a few large clusters dominate these scores."
    )
    #: The argument with which no item of the truth is dropped from a run.
    _without_drops = arg("unmatched", {"truth": "singleton"})

    def _is_unchallenged(self, run: str) -> bool:
        return is_unchallenged(self[run])

    def _deltas_in_slices(self, run: str, by: str, score: str) -> Iterator[Floats]:
        return deltas_by_slice(self, run, by, score)

    def _deltas(self, level: float | None = None) -> Table:
        """Return the table of deltas; by default, intervals are adjusted for the number of experiments."""
        level = adjusted(self.level, len(self.experiments), "bonferroni") if level is None else level
        return Table(table_of_deltas(self, self._differences, level))

    @property
    def best(self) -> str:
        """The run with the best F1 or, if F1 is missing, with the best value of the first score with a direction.

        If runs are tied, the first of them is chosen. If no score has a direction, or runs drop so many items of the
        truth that `ranks` raises an error, access raises an OptionError.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3], "c": [1, 1, 2]}).best
        'c'
        """
        return ranked(self)[0]

    def against(self, run: str | None = None) -> Self:
        """Return the same comparison with another baseline, without scoring any run again.

        Parameters
        ----------
        run : str, optional
            The new baseline; by default, the best run.

        Returns
        -------
        Comparison

        Raises
        ------
        OptionError
            If `run` is not the name of a run, or `best` raises an error.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"a": [1, 1, 1], "b": [1, 2, 3], "c": [1, 1, 2]}
        >>> cmp = fb.compare([1, 1, 2], runs)
        >>> cmp.baseline, cmp.against("b").baseline, cmp.against().baseline
        ('a', 'b', 'c')
        """
        run = self.best if run is None else run
        self[run]
        if run == self.baseline:
            return self
        return self._copy(self._runs, run)

    @cached_property
    def _against_best(self) -> Self:
        return self.against()

    @property
    def _units_against_best(self) -> Mapping[str, Units]:
        """The units of the differences of the other runs from the best; none without standard errors."""
        return self._against_best._differences.units_of

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The runs ordered by the score that `best` uses, best first, with their differences from the best run.

        Each run is a dict with the keys run, score, value, delta, se, low, high and as_good. The key delta is the
        difference from the best run, se its standard error, and low and high are the ends of its interval (None for the
        best run). The key as_good says whether the interval includes 0 (None if there is no interval). If `ranks`
        raises an error, the list is empty, and a warning gives the reason.
        """
        if (reason := why_no_ranks(self)) is not None:
            message = Message("The ranking is empty: ") + reason.marked + "."
            warnings.warn(EvaluationWarning(message, LACKING), stacklevel=2)
        return self._ranking

    @cached_property
    def _ranking(self) -> list[dict[str, Any]]:
        """The runs, ordered by the score that `best` uses, with their differences from the best."""
        score = lead_score(self.metrics)
        if score is None or why_no_ranks(self) is not None:
            return []
        best = self._against_best
        shown = ("delta", "se", "low", "high")
        found = {
            row["experiment"]: {name: row[name] for name in shown}
            | {"as_good": None if row["holds"] is None and row["delta"] else not row["holds"]}
            for row in best._deltas().to_pylist()
            if row["score"] == score
        } | {best.baseline: dict.fromkeys(shown) | {"as_good": True}}
        return [
            {"run": name, "score": score, "value": self[name].overall[score], **found[name]}
            for name in ranked(self)
        ]

    def ranks(self) -> Table:
        """Return the rank of each run by each score, where 1 is the best rank and tied runs share a rank.

        Returns
        -------
        Table
            The column run, and a column of ranks for each score that has a direction. The rank of a run without a
            defined score is null.

        Raises
        ------
        OptionError
            If a run drops more of the truth than another run (by more than 1 % of the truth's weight), but is not
            ranked below that run by every score.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3]}, metrics=["precision", "recall"])
        >>> cmp.ranks().to_pylist()
        [{'run': 'a', 'precision': 2, 'recall': 1}, {'run': 'b', 'precision': 1, 'recall': 2}]
        """
        if (reason := why_no_ranks(self)) is not None:
            raise OptionError(reason)
        return self._ranks()

    def _ranks(self) -> Table:
        """Return the rank of each run by each score; equal runs share the best of their ranks."""
        columns: dict[str, pa.Array] = {"run": from_texts(list(self))}
        for metric in directed(self.metrics):
            values = _goodness(self, metric)
            own = [
                None if math.isnan(value) else 1 + sum(_order(other, value) > 0 for other in values)
                for value in values
            ]
            columns[metric.name] = from_values(own, pa.int64())
        return Table(table_of(columns))

    def agreement(self) -> Table:
        """Return how well each pair of scores agrees on the ranking of the runs, as Kendall's tau-b.

        Returns
        -------
        Table
            The column score, and a column for each score. The agreement is 1 if both scores rank all runs in the same
            order, -1 if they rank the runs in opposite orders, and NaN if either score is the same for all runs.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare([1, 1, 2], {"a": [1, 1, 1], "b": [1, 2, 3]}, metrics=["precision", "recall"])
        >>> cmp.agreement()["recall"].to_pylist()
        [-1.0, 1.0]
        """
        orders = {
            metric.name: [_order(a, b) for a, b in combinations(_goodness(self, metric), 2)]
            for metric in directed(self.metrics)
        }
        columns: dict[str, pa.Array] = {"score": from_texts(list(orders))}
        for name, own in orders.items():
            columns[name] = np.array([_tau(own, other) for other in orders.values()], np.float64)
        return Table(table_of(columns))

    def coverage(self) -> Table:
        """Return how many items of the truth each run has, before runs are restricted to their common items.

        Returns
        -------
        Table
            The columns, in which unknown values are NaN:

            - run;
            - n_common, n_truth_only and n_prediction_only, the numbers of items on both sides, only in the truth and
              only in the run;
            - truth_coverage and prediction_coverage, the weight of the common items as a share of the truth and of the
              run;
            - n_scored, the number of items that the run scores, and n_left_out, the number of items that the run scores
              but another run does not;
            - own_precision, own_recall and own_f1, the scores on all items that the run scores;
            - precision_if_alone, recall_if_alone and f1_if_alone, the scores if items of the truth that are missing
              from the run count as singletons.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> cmp = fb.compare({"a": 1, "b": 1}, {"old": {"a": 1}, "new": {"a": 1, "b": 1}})
        >>> cmp.coverage().select(["run", "n_common", "n_truth_only", "n_left_out"]).to_pylist()[1]
        {'run': 'new', 'n_common': 2, 'n_truth_only': 0, 'n_left_out': 1}
        """
        of, own = self._coverage.values(), self._own_scores.values()
        columns: dict[str, Any] = {"run": from_texts(list(self))}
        for name in ("n_common", "n_truth_only", "n_prediction_only"):
            columns[name] = np.array([getattr(each, name) for each in of], np.int64)
        for name in ("truth_coverage", "prediction_coverage"):
            columns[name] = np.array([getattr(each, name) for each in of], np.float64)
        scored = np.array(list(self._n_scored.values()), np.int64)
        kept = np.array([ev.contingency.n_items for ev in self.runs.values()], np.int64)
        columns |= {"n_scored": scored, "n_left_out": scored - kept}
        for before, after in (("own_", ""), ("", "_if_alone")):
            for name in ("precision", "recall", "f1"):
                columns[f"{before}{name}{after}"] = np.array([each[name + after] for each in own], np.float64)
        return Table(table_of(columns))

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes, each with its code, level (warning or note), message, runs concerned and values."""
        notices = shared_notices(self)
        of_items = [metric for metric in self.metrics if not metric.of_mentions]
        if not of_items or not any(n_dropped(self, name) for name in self):
            return notices
        runs = {
            name: OfRun(self._coverage[name], own, self[name].overall.get("f1", math.nan), drops=True)
            for name, own in self._own_scores.items()
        }
        common, mentions = self.align == "common", len(of_items) < len(self.metrics)
        return [*runs_lack_items(runs, common=common, mentions=mentions), *notices]

    def slices(
        self, by: SliceKey, *, deltas: bool = True, order_by: str | None = None, limit: int | None = None
    ) -> Table:
        """Return the scores of all runs by slice, and the differences in scores from the baseline.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            As for `Evaluation.slices`.
        deltas : bool
            Whether to add the differences in scores from the baseline.
        order_by : {"delta", "worse", "better"}, optional
            Order of the rows by how much a slice adds to the differences in precision and recall. "delta" lists the
            largest change first, "worse" the largest loss, and "better" the largest gain; the baseline is omitted. By
            default, all runs are listed slice by slice.
        limit : int, optional
            The number of rows to return; all by default.

        Returns
        -------
        Table
            The columns run, the slice, n_items, weight, the scores and the losses. With `deltas`, each score is
            followed by the difference <score>_delta and, if known, the standard error of the difference,
            <score>_delta_se; both are null for the baseline. Standard errors are known if all runs have the same items
            in each slice, the runs are in memory with ``align="common"``, clusters do not overlap, and the score has a
            standard error. With standard errors, the column n_units is the number of units (see the method `deltas`)
            with items in the slice; for the baseline, n_units is null if the number differs between runs. An attribute
            named run appears as attribute.run.

        Raises
        ------
        ColumnError, SliceError
            In the same cases as for `Evaluation.slices`.
        OptionError
            If `deltas` is not a bool, or `order_by` or `limit` is invalid.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> runs = {"old": dict(a=1, b=2, c=3, d=4), "new": dict(a=1, b=1, c=3, d=3)}
        >>> parts = {"item": list("abcd"), "part": list("xxyy")}
        >>> cmp = fb.compare(dict(a=1, b=1, c=2, d=2), runs, metrics="recall", attributes=parts)
        >>> cmp.slices("part").select(["run", "part", "n_items", "recall", "recall_delta"])
        run  part  n_items   recall  recall_delta
        old  x           2  0.50000
        new  x           2        1       0.50000
        old  y           2  0.50000
        new  y           2        1       0.50000
        <BLANKLINE>
        4 rows
        """
        deltas = true_or_false(deltas, "deltas") or order_by is not None
        return slices_of_runs(self, check_key(by), deltas, order_by, limit)

    @cached_property
    def _sliced(self) -> dict[str, Table]:
        """The requested slices of all runs by name."""
        return {name: self.slices(key) for name, key in self._slicings.items()}


def _goodness(comparison: ComparedRuns, metric: Metric) -> list[float]:
    """Return the score of each run, negated if lower is better."""
    sign = 1.0 if metric.best == "higher" else -1.0
    return [sign * ev.overall[metric.name] for ev in comparison.runs.values()]


def _order(a: float, b: float) -> int:
    """Return 1 if a is higher than b, -1 if it is lower, and 0 if they are equal or one is NaN."""
    delta = without_rounding(a - b, max(abs(a), abs(b)))
    return int(delta > 0) - int(delta < 0)


def _tau(a: Sequence[int], b: Sequence[int]) -> float:
    """Return tau-b from the orders of pairs by two scores; NaN if all runs are equal by one of them.

    >>> round(_tau([1, 1, 0], [1, -1, 1]), 6), _tau([0, 0], [1, 1])
    (0.0, nan)
    """
    both = math.sqrt(sum(map(abs, a)) * sum(map(abs, b)))
    return sum(x * y for x, y in zip(a, b, strict=True)) / both if both else math.nan


def n_dropped(comparison: ComparedRuns, run: str) -> int:
    """Return the number of items of the truth that are dropped because a run lacks them."""
    return comparison._coverage[run].n_truth_only if comparison._drops else 0


def lacks_more(comparison: ComparedRuns, run: str, other: str) -> bool:
    """Return whether a run lacks so much more of the truth than another that their scores are not comparable."""
    coverage = comparison._coverage
    return comparison._drops and coverage_lacks_more(coverage[run], coverage[other])


def why_no_ranks(comparison: ComparedRuns) -> Message | None:
    """Return why runs are not ranked; None if they are."""
    by_run = {row["run"]: row for row in comparison._ranks().to_pylist()}
    names = [metric.name for metric in directed(comparison.metrics) if not metric.of_mentions]
    for run, other in permutations(comparison, 2):
        places = ((by_run[run][name], by_run[other][name]) for name in names)
        if lacks_more(comparison, run, other) and any(
            a is not None and b is not None and a <= b for a, b in places
        ):
            return Message(
                f"{run!r} lacks more items of the truth than {other!r}, and since these are dropped, some "
                f"scores would rank it higher. Pass {comparison._without_drops}, or compare runs of the "
                "same items"
            )
    return None


def ranked(comparison: ComparedRuns) -> list[str]:
    """Return the names of the runs, the best first; raise OptionError if no score distinguishes them."""
    score, names = lead_score(comparison.metrics), list(comparison)
    if score is None:
        scores = first_few([metric.name for metric in comparison.metrics])
        why = f"{scores} has no direction or no values that differ" if scores else "no score was computed"
        raise OptionError(
            f"no run is best: {why}. Name the run, or add another score, such as {arg('metrics', 'f1')}"
        )
    rank = dict(zip(names, comparison.ranks()[score].to_pylist(), strict=True))
    return sorted(names, key=lambda name: rank[name] or len(names) + 1)


#: The most runs that have messages of their own if these differ.
FEW_RUNS = 3


def shared_notices(comparison: ComparedRuns) -> list[dict[str, Any]]:
    """Return the warnings and notes of the runs, in order and without repetition.

    If the messages of a code differ, each of a few runs has its own; of many runs, only the first is quoted.
    """
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for name, ev in comparison.runs.items():
        for said in ev.warnings:
            kind = said["code"], said["level"], *(said.get(key) for key in ("side", "by", "score"))
            if said["code"] != INSTEAD_OF:
                found.setdefault(kind, {})[name] = said
    notices = []
    for by_run in found.values():
        if len(by_run) <= FEW_RUNS:
            notices += _each_once(by_run)
            continue
        first, said = next(iter(by_run.items()))
        differ = any(each["message"] != said["message"] for each in by_run.values())
        details = f" (Details are for {label(first)}.)" if differ else ""
        notices.append({**said, "message": said["message"] + details, "runs": list(by_run)})
    return notices


def _each_once(by_run: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the distinct messages, each with the runs that have it."""
    runs: dict[str, list[str]] = {}
    for name, said in by_run.items():
        runs.setdefault(said["message"], []).append(name)
    return [{**by_run[names[0]], "runs": names} for names in runs.values()]


def told(comparison: ComparedRuns) -> list[dict[str, Any]]:
    """Return the warnings and notes, whose messages now begin with the names of their runs."""
    found = []
    for said in comparison.warnings:
        every = 1 < len(said["runs"]) == len(comparison)
        whose = "all runs" if every else ", ".join(map(label, said["runs"]))
        of_runs = "" if said["code"] == LACKING else f"{whose}: "
        found.append({**said, "message": Message(of_runs + Message(said["message"]).marked)})
    return found
