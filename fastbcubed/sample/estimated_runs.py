"""Several runs estimated from one sample: the estimates of each run, and differences paired by sampled clusters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NoReturn, Self

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage
from fastbcubed.compare_runs import rankings
from fastbcubed.compare_runs.comparison import Comparison
from fastbcubed.compare_runs.comparison_document import (
    FEW,
    RUNS,
    against_baseline,
    best_by_score,
    differences_section,
    has_intervals,
    intervals_of,
    lead,
    ranking_grid,
    slices_chart,
    title_of_runs,
)
from fastbcubed.compare_runs.differences import Differences, adjusted, differences_of, with_units
from fastbcubed.compare_runs.gates_of_runs import (
    gate_of_change,
    gate_of_difference,
    of_run,
    require_experiments,
    require_worse,
)
from fastbcubed.errors import FileFormatError, MetricError, NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import from_texts, table_of, to_numpy
from fastbcubed.metrics.metric import Metric, without_rounding
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.document import Block, Document, Facts, Grid, Notices, Only, Prose, Section
from fastbcubed.render.html import Report
from fastbcubed.render.number_formats import count, counted, label
from fastbcubed.results.evaluation_text import HEADLINE
from fastbcubed.results.gates import (
    SIGNIFICANT,
    Bound,
    Gate,
    as_bounds,
    checked,
    is_score,
    slices_of,
    value_in_slice,
)
from fastbcubed.results.intervals import of_difference
from fastbcubed.results.large_tables import apart
from fastbcubed.results.page import IN_BRIEF, MESSAGES, Asked
from fastbcubed.results.save import save_tables
from fastbcubed.results.slices import SliceKey, check_key, entry_of_slices, name_columns, slice_name
from fastbcubed.results.standard_errors import TRUE_CLUSTER
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import Units
from fastbcubed.results.warnings import from_saved
from fastbcubed.runtime.arguments import number, true_or_false
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.sample.cluster_estimators import DESCRIPTIVE, F_OF_BETA, Moved, Paired, difference
from fastbcubed.sample.estimates import Estimates, how, in_slices, slices_estimated, try_estimate
from fastbcubed.types import Floats

#: The F1 score that belongs to each F of another beta.
F1_OF = {name: f1 for f1, name in F_OF_BETA.items()}


class EstimatedComparison(Comparison):
    """Several runs, estimated from one sample of complete true clusters, and the differences between them.

    `fastbcubed.estimate` returns an EstimatedComparison for runs by name. ``cmp["old"]`` is the `Estimates` of a run.
    Deltas, ranks, the ranking, the best run, other baselines, the text form and reports work as in a `Comparison`, but
    items and clusters are not available.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> sample = {k: k // 2 for k in range(40)}
    >>> old = {k: k // 2 if k < 30 else k for k in range(60)}
    >>> cmp = fb.estimate(sample, {"old": old, "new": {k: k // 2 if k < 36 else k for k in range(60)}})
    >>> cmp.best, round(cmp["old"].recall, 3), round(cmp["new"].recall, 3)
    ('new', 0.875, 0.95)
    >>> cmp.deltas().select(["experiment", "score", "delta", "holds"]).slice(1, 1)
    experiment  score      delta  holds
    new         recall  0.075000     no
    <BLANKLINE>
    1 row
    """

    _of_pairs = (
        "Intervals of pair scores and whole-cluster scores may be too narrow: with 50 drawn clusters, their "
        "coverage was 80 % at worst."
    )
    _without_drops = arg("missing", "singleton")

    def __init__(
        self,
        runs: Mapping[str, Estimates],
        baseline: str,
        paired: Paired | None,
        coverage: Mapping[str, Coverage],
        content: Mapping[str, Any],
    ) -> None:
        """Compare the estimates of runs; `content` has a value that equal runs share, or None if it is unknown."""
        of_runs: Mapping[str, Any] = runs
        super().__init__(
            of_runs, baseline=baseline, align="each", level=next(iter(runs.values())).level, unit=TRUE_CLUSTER,
            n_scored=[each.summary["pred"]["n_items"] for each in runs.values()], coverage=[*coverage.values()],
        )  # fmt: skip
        self._paired, self._content = paired, content

    def _estimates(self, run: str) -> Estimates:
        found: Any = self[run]
        return found

    @property
    def metrics(self) -> list[Metric]:
        """The estimated scores, except those that describe the true clusters."""
        names = [name for name in self._estimates(self.baseline).estimated if name not in DESCRIPTIVE]
        return [METRICS.get(name) or replace(METRICS[F1_OF[name]], name=name) for name in names]

    @property
    def n_items(self) -> int:
        """Number of sampled items."""
        return int(self._estimates(self.baseline).summary["sample"]["n_items"])

    @property
    def _drops(self) -> bool:
        return bool(self._estimates(self.baseline).definition["missing"] == "drop")

    def _is_unchallenged(self, run: str) -> bool:
        return False

    @cached_property
    def _own_scores(self) -> dict[str, dict[str, Any]]:
        return {name: {"f1_if_alone": math.nan} for name in self}

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings and notes, each with its code, level (warning or note), message, runs concerned and values."""
        return rankings.shared_notices(self)

    # Figures

    def scores(self) -> Table:
        """Return the estimates of each run, with standard errors and intervals.

        Returns
        -------
        Table
            The column run, and the columns of `Estimates.scores`.
        """
        tables = [self._estimates(name).scores().to_arrow() for name in self]
        runs = from_texts([name for name, own in zip(self, tables, strict=True) for _ in range(own.num_rows)])
        return Table(pa.concat_tables(tables).add_column(0, "run", runs))

    _main_table = scores

    def coverage(self) -> Table:
        """Return the size of each run, and its coverage of the sampled items.

        Returns
        -------
        Table
            The columns run, n_items, n_clusters, n_missing (the number of sampled items missing from the run) and
            truth_coverage (the share of sampled items in the run).
        """
        own = [self._estimates(name).summary for name in self]
        columns: dict[str, Any] = {"run": from_texts(list(self))}
        columns |= {
            name: np.array([each["pred"][name] for each in own], np.int64)
            for name in ("n_items", "n_clusters")
        }
        columns["n_missing"] = np.array([each["sample"]["n_missing"] for each in own], np.int64)
        columns["truth_coverage"] = np.array(
            [self._coverage[name].truth_coverage for name in self], np.float64
        )
        return Table(table_of(columns))

    @cached_property
    def _differences(self) -> Differences:
        """The standard errors of the differences from the baseline, with their degrees of freedom.

        If runs agree in all sampled clusters, the degrees of freedom are the effective number of these clusters. The
        degrees of freedom are infinite for equal runs and for a census, where no other cluster can differ. The error is
        NaN if all sampled clusters differ by the same amount, because nothing shows by how much other clusters differ.
        """
        paired = self._require_paired()
        errors, df, not_drawn = (dict[tuple[str, str], float]() for _ in range(3))
        before = paired.moved[self.baseline].scores
        for run in self.experiments:
            sure = paired.left_to_draw == 0 or self._is_equal(run)
            for name, after in paired.moved[run].scores.items():
                error, freedom, missed = difference(before[name], after, paired.draws, paired.left_to_draw)
                effective = [self._estimates(each).estimated[name].effective for each in (run, self.baseline)]
                delta = self[run].overall[name] - self[self.baseline].overall[name]
                known = not math.isnan(delta) and (error or sure or not without_rounding(delta))
                errors[run, name] = error if known else math.nan
                df[run, name] = freedom if error else math.inf if sure else max(min(effective), 1.0)
                not_drawn[run, name] = missed
        return Differences(self._draws, errors, df, self._units_against(self.baseline), not_drawn=not_drawn)

    @property
    def _draws(self) -> Units:
        n = int(self._estimates(self.baseline).summary["sample"]["n_draws"])
        return Units(n, n, 0.0)

    def _units_against(self, baseline: str) -> dict[str, Units]:
        if self._draws.n < 2 or not self.metrics:
            return {}
        first = self.metrics[0].name
        effective = {run: self._estimates(run).estimated[first].effective for run in self}
        return {
            run: Units(self._draws.n, min(own, effective[baseline]), 0.0)
            for run, own in effective.items()
            if run != baseline
        }

    @property
    def _units_against_best(self) -> Mapping[str, Units]:
        return self._units_against(self.best)

    def _is_equal(self, run: str) -> bool:
        """Return whether a run has the same clusters as the baseline, whatever their labels."""
        own, other = self._content[run], self._content[self.baseline]
        return own is not None and type(own) is type(other) and bool(own == other)

    def _require_paired(self) -> Paired:
        if self._paired is None:
            raise NotKeptError(
                "a saved comparison has only the differences from its baseline; estimate the runs again"
            )
        return self._paired

    def _copy(self, runs: Iterable[str], baseline: str) -> Self:
        self._require_paired()
        return super()._copy(runs, baseline)

    def deltas(self, *, adjust: str = "bonferroni") -> Table:
        """Return the differences between each experiment's and the baseline's estimates, as `Comparison.deltas` does.

        Runs are paired by the drawn clusters. For a run with the same clusters as the baseline, the difference and both
        ends of its interval are 0. If a run differs from the baseline in none of the sampled clusters, the interval
        covers the differences that the sample does not rule out.
        """
        return self._deltas(adjusted(self.level, len(self.experiments), adjust))

    def slices(
        self, by: SliceKey, *, deltas: bool = True, order_by: str | None = None, limit: int | None = None
    ) -> Table:
        """Return the estimates of all runs by slice, and the differences from the estimates of the baseline.

        Parameters
        ----------
        by : str, Bins, or tuple of these
            Columns of the sample that were passed as `slices` to `estimate`.
        deltas : bool
            Whether to add the differences from the baseline.
        order_by, limit
            Not supported, because all slices are returned, in ascending order.

        Returns
        -------
        Table
            The column run, and the columns of `Estimates.slices`. With `deltas`, each score also has _delta, _delta_se,
            _delta_low and _delta_high, which are null for the baseline and in slices with fewer than ten draws.

        Raises
        ------
        NotKeptError
            If the requested slices were not estimated.
        OptionError
            If `deltas` is neither True nor False, or an order or a limit is passed.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> import pyarrow as pa
        >>> clusters = [k // 2 for k in range(24)]
        >>> sample = pa.table({"item": range(24), "cluster": clusters, "part": ["x"] * 24})
        >>> old = dict(enumerate([-1, *clusters[1:]]))
        >>> runs = {"old": old, "new": dict(enumerate(clusters))}
        >>> cmp = fb.estimate(sample, runs, metrics="recall", slices="part")
        >>> cmp.slices("part").select(["run", "part", "recall", "recall_delta"])  # 23 / 24 for old
        run  part   recall  recall_delta
        old  x     0.95833
        new  x           1      0.041667
        <BLANKLINE>
        2 rows
        """
        deltas = true_or_false(deltas, "deltas")
        if order_by is not None or limit is not None:
            raise OptionError("slices of estimates take neither order nor limit; sort the returned table")
        name = slice_name(check_key(by))
        self._estimates(self.baseline).slices(by)
        table = self._sliced[name].to_arrow()
        if not deltas:
            table = table.select([column for column in table.column_names if "_delta" not in column])
        return Table(table)

    @property
    def sliced(self) -> Mapping[str, Table]:
        """The slices passed to `estimate`, by name; see `slices`."""
        return self._sliced

    @cached_property
    def _slicings(self) -> dict[str, SliceKey]:
        return {name: name for name in self._estimates(self.baseline).sliced}

    @cached_property
    def _sliced(self) -> dict[str, Table]:
        return {by: self._of_slicing(by) for by in self._estimates(self.baseline).sliced}

    def _of_slicing(self, by: str) -> Table:
        """Return the estimates of all runs by slice, with differences from the baseline."""
        paired, parts = self._require_paired(), []
        before = self._estimates(self.baseline).sliced[by]
        scores = slices_estimated(before)
        level = adjusted(self.level, len(self.experiments), "bonferroni")
        for run in self:
            own = self._estimates(run).sliced[by].to_arrow()
            own = own.rename_columns(
                ["attribute.run" if name == "run" else name for name in own.column_names]
            )
            own = own.add_column(0, "run", from_texts([run] * own.num_rows))
            for score in scores:
                rows = [
                    self._delta_in_slice(paired, run, by, at, score, values, level)
                    for at, values in enumerate(
                        zip(before[score].to_pylist(), own[score].to_pylist(), strict=True)
                    )
                ]
                for end, column in zip(("", "_se", "_low", "_high"), zip(*rows, strict=True), strict=True):
                    own = own.append_column(f"{score}_delta{end}", pa.array(column, pa.float64()))
            parts.append(own)
        whole = pa.concat_tables(parts, promote_options="permissive")
        n = len(before)  # slice by slice, as in other comparisons
        order = np.arange(len(parts) * n).reshape(len(parts), n).T.ravel()
        return Table(whole.take(pa.array(order)))

    def _delta_in_slice(
        self, paired: Paired, run: str, by: str, at: int, score: str, values: tuple[Any, Any], level: float
    ) -> tuple[float | None, ...]:
        before, after = (paired.moved[each].slicings[by][at] for each in (self.baseline, run))
        if run == self.baseline or score not in before or None in values:
            return (None,) * 4
        own: tuple[Moved, Moved] = before[score], after[score]
        error, df, not_drawn = difference(*own, paired.draws, paired.left_to_draw)
        sure = paired.left_to_draw == 0 or self._is_equal(run)
        n = self._estimates(run).sliced[by]["n_clusters"].to_pylist()[at]
        delta = float(without_rounding(values[1] - values[0], values[1]))
        (metric,) = (each for each in self.metrics if each.name == score)
        freedom = df if error else math.inf if sure else n
        ends = of_difference(metric, delta, error, df=freedom, not_drawn=not_drawn, level=level)
        return delta, error, *ends

    def _deltas_in_slices(self, run: str, by: str, score: str) -> Iterator[Floats]:
        table = self._sliced[by].to_arrow()
        if f"{score}_delta" in table.column_names:
            rows = [row[f"{score}_delta"] for row in table.to_pylist() if row["run"] == run]
            yield to_numpy(pa.array(rows, pa.float64()).fill_null(math.nan))

    # Not available for estimates

    def items(self, *args: Any, **options: Any) -> NoReturn:
        """Raise NotKeptError, because only sampled items are known; a comparison made by `compare` lists items."""
        raise NotKeptError(
            "estimates cover all items, so they list no items or clusters. To see those of the sample, pass "
            f"it to compare with {arg('unmatched', {'truth': 'singleton', 'prediction': 'outside'})}"
        )

    clusters = cluster = explain = items

    # Gates

    def check(self, *gates: str, worse: Mapping[str, float | str] | None = None) -> Table:
        """Raise GateError, which is an AssertionError, unless the estimates of all runs meet their bounds.

        Parameters
        ----------
        *gates : str
            Bounds on scores of each run, as for `Estimates.check`.
        worse : dict of str to float or "significant", optional
            How much worse than the baseline a score may be. "significant" means that no score may be worse by a
            difference whose interval excludes 0.

        Returns
        -------
        Table
            The columns gate, passed, value, at_least and at_most.

        Raises
        ------
        GateError
            If an estimate does not meet its bound or is unknown.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> old = {k: k // 2 for k in range(60)}
        >>> cmp = fb.estimate({k: k // 2 for k in range(40)}, {"old": old, "new": old}, metrics="f1")
        >>> cmp.check("f1.low>=0.8", worse={"f1": "significant"})["gate"].to_pylist()
        ['old: f1.low', 'new: f1.low', 'new: f1']
        """
        worse = {} if worse is None else worse
        if not isinstance(worse, Mapping) or not all(isinstance(name, str) for name in worse):
            raise OptionError(
                f"{arg('worse')} must be a dict from score to number, or to {SIGNIFICANT!r}, not {quoted(worse)}"
            )
        bounds = as_bounds(gates, {}) if gates or not worse else []
        asked = [require_worse(_worse_by(name, value), f"{name}={value}") for name, value in worse.items()]
        return checked([*self._try(bounds), *self._try_worse(asked)])

    def _try(self, bounds: Sequence[Bound]) -> list[Gate]:
        """Return a gate for each bound and run, which says whether the estimate is within the bound."""
        return [
            of_run(run, bound, try_estimate(bound, self._estimates(run))) for bound in bounds for run in self
        ]

    def _try_worse(self, bounds: Sequence[Bound]) -> list[Gate]:
        """Return a gate for each bound and experiment, which says whether the estimate is no worse than allowed."""
        return [
            of_run(run, bound, self._worse(run, bound))
            for bound in bounds
            for run in require_experiments(self)
        ]

    def _worse(self, run: str, bound: Bound) -> Gate:
        if not is_score(bound.name):
            raise OptionError(f"only scores are estimated, not {bound.name}")
        if not bound.end:
            now, before = (
                value_in_slice(bound, slices_of(own)) if bound.where else own.overall[bound.name]
                for own in map(self._estimates, (run, self.baseline))
            )
            return gate_of_change(bound, now, before, label(self.baseline))
        rows = {row["score"]: row for row in self._deltas().to_pylist() if row["experiment"] == run}
        row = rows.get(self[run].overall.named(bound.name) or "")
        if row is None or row["holds"] is None:
            raise MetricError(f"{bound.name}={SIGNIFICANT}: no interval of the difference is known")
        return gate_of_difference(self, bound, row)

    # Output

    def save(self, directory: Any) -> None:
        """Write the estimates of the runs and their differences; `fastbcubed.load` reads them back.

        A loaded comparison shows the same results, but cannot use another baseline.

        Parameters
        ----------
        directory : path
            The directory to write to; a missing directory is created. Files of an earlier result in the directory are
            replaced together, after the new files have been written.

        Examples
        --------
        >>> import tempfile, fastbcubed as fb
        >>> truth, old = ({k: k // 2 if k < n else k for k in range(40)} for n in (40, 30))
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     fb.estimate(truth, {"old": old, "new": truth}).save(directory)
        ...     fb.load(directory).best
        'new'
        """
        own = {"coverage": {name: asdict(each) for name, each in self._coverage.items()}}
        saved = [self._estimates(name)._to_saved() for name in self]
        runs = from_texts(
            [name for name, each in zip(self, saved, strict=True) for _ in range(each.num_rows)]
        )
        tables = {
            "estimates": pa.concat_tables(saved).append_column("run", runs),
            "deltas": with_units(self._deltas().to_arrow(), self._differences),
        }
        content = {**self.to_dict(), "saved": own}
        save_tables(directory, "estimated_runs", content, tables, self._sliced)

    @classmethod
    def _restored(cls, head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> EstimatedComparison:
        """Return the comparison that `save` wrote."""
        whole, own = tables["estimates"], head["saved"]
        sliced = apart(tables.get("slices"), own["sliced"])
        runs = {
            name: Estimates._restored(content, {"estimates": _rows_of(whole, name)})
            for name, content in head["runs"].items()
        }
        if len({tuple(each.estimated) for each in runs.values()}) > 1:
            raise FileFormatError("the runs do not have estimates of the same scores")
        for by, table in sliced.items():
            if table["n_clusters"].null_count:
                raise FileFormatError(f"slices by {label(by)} lack numbers of drawn clusters")
            columns = [column for column in table.column_names if column != "run" and "_delta" not in column]
            for name, each in runs.items():
                own_rows = _rows_of(table.to_arrow(), name).select(columns)
                own_names = ["run" if column == "attribute.run" else column for column in columns]
                each.sliced[by] = Table(own_rows.rename_columns(own_names))
        coverage = {name: Coverage.of(own["coverage"][name]) for name in runs}
        found = cls(runs, head["baseline"], None, coverage, {})
        found.__dict__ |= {
            "_differences": differences_of(tables["deltas"], found._draws, ()),
            "_sliced": sliced,
            "_ranking": head["ranking"],
            "warnings": from_saved(head["warnings"]),
        }
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        first = self._estimates(self.baseline)
        return {
            "fastbcubed": __version__,
            "sample": first.names["sample"],
            "baseline": self.baseline,
            "definition": first.definition,
            "estimates": self.scores().to_pylist(),
            "deltas": self._deltas().to_pylist(),
            "ranks": None if rankings.why_no_ranks(self) else self.ranks().to_pylist(),
            "ranking": self._ranking,
            "warnings": self.warnings,
            "runs": {name: self._estimates(name).to_dict() for name in self},
            **entry_of_slices(self._sliced),
        }

    @cached_property
    def _verdict(self) -> tuple[str, list[str]]:
        return lead(self), list(_sentences(self))

    def _document(self, asked: Asked | None = None) -> Document:
        return document(self, asked or IN_BRIEF)

    def _report(self, path: Any, overwrite: bool, **asked: Any) -> Report:
        options = Asked.of(**asked)
        for key in options.by:
            self.slices(key)
        if not replace(options, by=()).is_usual:
            raise NotKeptError(
                f"estimates list no items or clusters, so a report of them takes {arg('title', ...)} and "
                f"{arg('by', ...)}, but not {arg('worst')}, {arg('members')}, {arg('columns')} or {arg('explain')}"
            )
        return super()._report(path, overwrite, **asked)


def _worse_by(name: str, value: Any) -> Bound:
    """Return the bound on how much worse a score may be than the baseline's."""
    if isinstance(value, str) and value == SIGNIFICANT:
        return Bound(name, 0.0, end=SIGNIFICANT)
    return Bound(name, number(value, f"worse of {name}", f"a number, or {SIGNIFICANT!r}"))


def _rows_of(table: pa.Table, run: str) -> pa.Table:
    """Return the rows of a run, without the column of run names."""
    at = [k for k, name in enumerate(table["run"].to_pylist()) if name == run]
    return table.take(pa.array(at, pa.int64())).drop_columns(["run"])


def document(cmp: EstimatedComparison, asked: Asked = IN_BRIEF) -> Document:
    """Return the document of several runs on a sample: the verdict, estimates, differences, slices and their basis."""
    first = cmp._verdict[0]
    shown, estimates = [cmp.baseline, *cmp.experiments[:RUNS]], cmp._estimates(cmp.baseline)
    sample = estimates.summary["sample"]
    drawn = counted(sample["n_clusters"], "sampled true cluster")
    items = counted(sample["n_items"], "item")
    text = f"Estimates of {counted(len(cmp), 'run')} from the same {drawn} ({items})."
    facts = [(label(name), cmp._estimates(name).names["prediction"]) for name in shown]
    facts += [("Runs", f"{count(len(shown))} of {count(len(cmp))} shown")] * (len(cmp) > len(shown))
    facts.append(("Sample", estimates.names["sample"]))
    head: list[Block] = [
        Only("text", [Prose([first], "title"), Prose([text])]),
        Only("page", [Prose([first], "lead"), Prose([text]), Facts(facts, "sides")]),
    ]
    notices = rankings.told(cmp)
    verdict: list[Block] = [
        Prose(cmp._verdict[1], "lead"),
        Notices.of(notices[: MESSAGES if asked.page else None], n=len(notices)),
        estimates_grid(cmp, shown),
        ranking_grid(cmp._ranking if len(cmp) > 2 else ()),
    ]
    sections = [
        Section("verdict", "Verdict", verdict),
        Section(
            "differences",
            "Differences",
            list(differences_section(cmp, asked, shown)) if cmp.experiments else [],
        ),
        Section("slices", "Slices", list(_slices(cmp, asked))),
        Section("basis", "What it is based on", [Prose([how(estimates)])]),
    ]
    title = asked.title or f"{title_of_runs(cmp)}, estimated"
    return Document("estimate", title, head, [each for each in sections if each.blocks])


def _sentences(cmp: EstimatedComparison) -> Iterator[str]:
    """Yield sentences: how runs differ from the baseline, which is best by each score, and the basis of intervals."""
    if not cmp.experiments:
        return
    for run in cmp.experiments if len(cmp.experiments) <= FEW else ():
        yield from against_baseline(cmp, run)
    yield from best_by_score(cmp)
    n = count(cmp._estimates(cmp.baseline).summary["sample"]["n_draws"])
    if has_intervals(cmp):
        yield (
            f"In parentheses, {intervals_of(cmp)}: runs are compared on the same {n} draws of true clusters."
        )
    else:
        yield "No interval is known: a single cluster was drawn."


def estimates_grid(cmp: EstimatedComparison, shown: Sequence[str]) -> Grid:
    """Return a table of the estimates with their intervals: a row for each score or, for many runs, for each run."""
    found = {(row["run"], row["score"]): row for row in cmp.scores().to_pylist()}
    scores = list(cmp._estimates(cmp.baseline).estimated)
    if len(shown) > FEW:
        few = [name for name in HEADLINE if name in scores] or scores[:3]
        rows = [
            {"run": run, **{s: [found[run, s][each] for each in ("estimate", "low", "high")] for s in few}}
            for run in shown
        ]
        columns = [("run", "run", "name"), *((score, score, "interval") for score in few)]
    else:
        rows = [
            {
                "score": s,
                **{f"run {r}": [found[r, s][each] for each in ("estimate", "low", "high")] for r in shown},
            }
            for s in scores
        ]
        columns = [("score", "score", "text"), *((label(run), f"run {run}", "interval") for run in shown)]
    return Grid.of(rows, columns, caption="Estimates of each run")


def _slices(cmp: EstimatedComparison, asked: Asked) -> Iterator[Block]:
    """Yield the requested slices of all runs and, on a page, a chart of the differences in the last headline score."""
    for k, by in enumerate(cmp.sliced):
        heading, *listed = in_slices(cmp, by)
        yield heading
        scores = [name for name in HEADLINE if f"{name}_delta" in cmp.sliced[by].column_names]
        rows = [
            row for row in cmp.sliced[by].to_pylist() if scores and row[f"{scores[-1]}_delta"] is not None
        ]
        if asked.page and rows:
            names = [name for name in name_columns(cmp.sliced[by].column_names) if name != "run"]
            yield slices_chart(cmp, by, names, scores, [_renamed(row, scores[-1]) for row in rows], k)
        yield from listed


def _renamed(row: Mapping[str, Any], score: str) -> dict[str, Any]:
    """Return the row of a slice with the interval of the difference under the names that the chart of slices uses."""
    return {**row, **{f"{score}_{end}": row[f"{score}_delta_{end}"] for end in ("low", "high")}}
