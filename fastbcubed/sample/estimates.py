"""The estimates from a sample: their table, text form and report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage
from fastbcubed.errors import MetricError, NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import from_numpy, from_texts, table_of
from fastbcubed.render.document import (
    ON_PAGE,
    Block,
    Chart,
    Document,
    Facts,
    Grid,
    Heading,
    Notices,
    Only,
    Prose,
    Section,
)
from fastbcubed.render.number_formats import amount, count, counted, label, not_computed, percent, score_text
from fastbcubed.results.evaluation_text import HEADLINE, lines_of_names
from fastbcubed.results.figures import Scores
from fastbcubed.results.gates import (
    Bound,
    Gate,
    as_bounds,
    checked,
    gate_of,
    gate_on_end,
    is_score,
    slice_of,
    slices_of,
    value_in_slice,
)
from fastbcubed.results.intervals import Interval, check_level, interval, share_not_seen, t_quantile
from fastbcubed.results.large_tables import apart
from fastbcubed.results.load import beta_in
from fastbcubed.results.page import IN_BRIEF, Asked
from fastbcubed.results.result import Result
from fastbcubed.results.save import save_tables
from fastbcubed.results.slices import SliceKey, beside, check_key, entry_of_slices, name_columns, slice_name
from fastbcubed.results.table import Table, refuse_table_verb
from fastbcubed.results.warnings import from_saved
from fastbcubed.runtime.object_attributes import documented
from fastbcubed.runtime.old_names import under_old_name
from fastbcubed.runtime.saved_figures import NUMBER, NUMBERS, require_shape, texts_in
from fastbcubed.sample.cluster_estimators import (
    DESCRIPTIVE,
    MAY_EXCEED,
    ClusterSample,
    Drawn,
    Estimate,
    choose,
    estimate_ratio,
    hill_numbers,
    ratio_of,
)
from fastbcubed.sample.sample_slices import ENOUGH, Slicing

#: The most rows of a chart, and of a table.
CHARTED, LISTED = 20, 100
#: The most slices that a sentence names.
NAMED = 5
#: The summary in a manifest.
_SUMMARY = {
    "sample": NUMBERS | dict.fromkeys(("n_clusters", "n_draws", "n_items", "n_missing"), int),
    "true": {"hill": NUMBERS, "mean_cluster_size": NUMBER},
    "pred": {"n_items": int, "n_clusters": int, "mean_cluster_size": NUMBER},
}


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Result):
    """Scores of a prediction, estimated from a sample of complete true clusters.

    `fastbcubed.estimate` returns an Estimates object, in which each estimate is also an attribute.

    Attributes
    ----------
    overall : Scores
        The estimates.
    errors : Scores
        The standard errors of the estimates; NaN if the sample does not determine them.
    unadjusted : Scores
        The plain ratios, not corrected for the bias of a ratio.
    summary : dict
        Three dicts of figures. "sample" contains n_clusters, n_draws, n_items, n_missing, n_singletons, largest,
        effective (the effective number of clusters), n_null (the number of rows with a null cluster) and n_duplicates
        (the number of rows dropped because they repeat an earlier row). "true" contains mean_cluster_size,
        matching_rate and hill (the effective number of cluster sizes of order 0, 1 and 2), as estimated from the
        sample. "pred" contains n_items, n_clusters, mean_cluster_size, n_null and n_duplicates.
    definition : dict
        How the sample was drawn, and the policies for missing items, nulls and duplicates.
    names : dict
        The names of the sample and the prediction.
    warnings : list of dict
        Warnings and notes, each with its code, level (warning or note), message and values.
    level : float
        The confidence level of intervals.
    not_computed : dict of str to str
        Scores of the requested families that cannot be estimated, with the reasons.
    reading : dict
        How the columns of sample and prediction were read; see `Evaluation`.
    sliced : dict of str to Table
        The slices passed to `estimate`, by name; see `slices`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> prediction = dict(zip(range(1, 9), [1, 1, 2, 3, 2, 4, 4, 4]))
    >>> est = fb.estimate({1: "c1", 2: "c1", 3: "c1", 4: "c2", 5: "c2", 8: "c4"}, prediction)
    >>> est.pair_recall, est.unadjusted.pair_recall, round(est.errors.pair_recall, 7)  # 19/64, 1/4
    (0.296875, 0.25, 0.1082532)
    """

    estimated: dict[str, Estimate]
    _ranges: dict[str, tuple[float, float]]
    summary: dict[str, dict[str, Any]]
    definition: dict[str, Any]
    names: dict[str, str]
    warnings: list[dict[str, Any]]
    level: float = 0.95
    not_computed: dict[str, str] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    sliced: dict[str, Table] = field(default_factory=dict)

    @property
    def overall(self) -> Scores:
        """The estimates by name of the score."""
        return Scores({name: each.value for name, each in self.estimated.items()})

    @property
    def errors(self) -> Scores:
        """The standard errors of the estimates by name of the score."""
        return Scores({name: each.error for name, each in self.estimated.items()})

    @property
    def unadjusted(self) -> Scores:
        """The plain ratios, without the bias correction, by name of the score."""
        return Scores({name: each.unadjusted for name, each in self.estimated.items()})

    def __getattr__(self, name: str) -> float:
        if not name.startswith("_") and "estimated" in self.__dict__:
            known = self.overall.named(name)
            if known is not None:
                return self.estimated[known].value
        refuse_table_verb(name, "this", ".scores()")
        raise AttributeError(f"there is no estimate of {name!r}; name it in metrics=")

    def __dir__(self) -> list[str]:
        return documented(self, self.estimated)

    def interval(self, which: str, *, level: float | None = None) -> Interval:
        """Return the confidence interval for an estimate.

        Parameters
        ----------
        which : str
            A score, such as "f1".
        level : float, optional
            The confidence level; by default, the level passed to `estimate`.

        Returns
        -------
        Interval
            The ends low and high of an interval based on Student's t. There are fewer degrees of freedom than draws if
            a few draws contribute most of the error (see `df` of `scores`). The interval for a rate is symmetric in the
            log odds and so stays within 0 and 1. The interval for a mean size is symmetric in the logarithm of the
            excess over 1. If an estimate is outside the range of its score, the interval is symmetric about the
            estimate. For scores whose estimates may be outside the range (precision and F of clusters and of MUC), the
            interval is also symmetric about the estimate, but truncated to the range. If all sampled clusters are right
            (or all are wrong), let q be the share of wrong (or right) clusters in the population, and n the effective
            number of sampled clusters. The interval then allows for every q for which (1-q)^n is at least (1-level)/2.
            The ends are NaN if fewer than two draws are informative about the score. The ends for a mean size are also
            NaN if all sampled clusters have the same size, because the data do not show how large other clusters could
            be. Both ends equal the estimate if all true clusters are in the sample, or if all sampled clusters have the
            same score between 0 and 1.

        Notes
        -----
        In simulations, a tenth of the predicted clusters merged three, six or fifteen true clusters. With 1,000 samples
        of each size (200 and 400 true clusters), 95 % intervals covered the scores of the population in 92 to 97 % of
        samples, with three exceptions. The intervals for recall by item and by true cluster, which only a few clusters
        reduced, covered the score in 95 to 99 % of samples, and the intervals for pair_recall in 91 to 97 % of samples.
        Whether two merged clusters are drawn together does not affect the intervals, because the errors of one cluster
        do not depend on whether the other cluster is drawn.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> truth = {k: k // 2 for k in range(40)}  # twenty clusters of two
        >>> est = fb.estimate(truth, {k: k // 2 if k < 30 else k for k in range(40)})  # five of them are split
        >>> low, high = est.interval("recall")
        >>> round(est.recall, 3), low < est.recall < high
        (0.875, True)
        """
        known = self.overall.named(which)
        if known is None:
            raise MetricError(f"there is no estimate of {quoted(which)}; name it in {arg('metrics', ...)}")
        level = self.level if level is None else check_level(level)
        return self._interval(known, self.estimated[known], level)

    def _interval(self, name: str, own: Estimate, level: float) -> Interval:
        """Return the interval of an estimate, over all items or in a slice."""
        low, high = self._ranges[name]
        if not own.error > 0 and not self._is_census:
            return _of_what_is_not_seen(own, level, high)
        if own.error == 0:
            return Interval(own.value, own.value)
        df, beyond = max(1, int(own.df)), not low < own.value < high
        if own.error > 0 and (beyond or name in MAY_EXCEED):
            reach = t_quantile(level, df) * own.error
            ends = own.value - reach, own.value + reach
            return Interval(*ends) if beyond else Interval(max(ends[0], low), min(ends[1], high))
        return interval(own.value, own.error, df=df, level=level, low=low, high=high)

    @property
    def _is_census(self) -> bool:
        """Whether all true clusters were drawn."""
        return bool(self.definition["population_clusters"] == self.summary["sample"]["n_clusters"])

    def scores(self, *, level: float | None = None) -> Table:
        """Return the estimates with standard errors and intervals.

        The methods `to_pandas`, `to_polars` and `to_arrow` of the estimates convert the table of estimates.

        Parameters
        ----------
        level : float, optional
            The confidence level; by default, the level passed to `estimate`.

        Returns
        -------
        Table
            The columns score, estimate, se, low, high, unadjusted, n_clusters (the number of informative draws; for
            pair scores, the draws with pairs) and df (the degrees of freedom, which are far fewer than n_clusters if a
            few clusters contribute most of the error).

        Examples
        --------
        Two true clusters were drawn; the prediction splits the second cluster, and adds an undrawn item to one of its
        parts.

        >>> import fastbcubed as fb
        >>> est = fb.estimate({"a": 1, "b": 1, "c": 2, "d": 2}, {"a": 1, "b": 1, "c": 2, "d": 3, "e": 3})
        >>> est.scores().select(["score", "estimate", "se", "n_clusters"]).slice(0, 2)
        score      estimate       se  n_clusters
        precision   0.87500  0.12500           2
        recall      0.75000  0.25000           2
        <BLANKLINE>
        2 rows
        """
        rows = [
            (own.value, own.error, *self.interval(name, level=level), own.unadjusted, own.n_clusters, own.df)
            for name, own in self.estimated.items()
        ]
        names = ("estimate", "se", "low", "high", "unadjusted", "n_clusters", "df")
        figures = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
        return Table(table_of({"score": from_texts(list(self.estimated)), **figures}))

    _main_table = scores
    estimates = under_old_name(scores, "estimates")

    def slices(self, by: SliceKey) -> Table:
        """Return the estimates of means over items, and of F scores of such means, by slice.

        Parameters
        ----------
        by : str, Bins, or tuple of these
            Columns of the sample that were passed as `slices` to `estimate`.

        Returns
        -------
        Table
            The slice, n_items (the number of sampled items), n_clusters (the number of draws with items of the slice),
            and each score followed by its _se, _low and _high, which are null in a slice with fewer than ten draws.

        Raises
        ------
        NotKeptError
            If the requested slices were not estimated.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> import pyarrow as pa
        >>> clusters, parts = [k // 2 for k in range(24)], ["x"] * 20 + ["y"] * 4
        >>> sample = pa.table({"item": range(24), "cluster": clusters, "part": parts})
        >>> est = fb.estimate(sample, dict(enumerate([-1, *clusters[1:]])), metrics="recall", slices="part")
        >>> est.slices("part").select(["part", "n_items", "n_clusters", "recall"])  # 19 / 20; too few clusters
        part  n_items  n_clusters   recall
        x          20          10  0.95000
        y           4           2
        <BLANKLINE>
        2 rows
        """
        name = slice_name(check_key(by))
        if name not in self.sliced:
            raise NotKeptError(f"slices by {name} were not estimated; pass {arg('slices', name)} to estimate")
        return self.sliced[name]

    def check(self, *gates: str, **scores: float) -> Table:
        """Raise GateError, which is an AssertionError, unless all estimates meet their bounds.

        Parameters
        ----------
        *gates : str
            Required bounds, such as "f1>=0.9" on an estimate, "f1.low>=0.8" on an end of its interval, or
            "f1>=0.9@country=US" in a requested slice.
        **scores : float
            Minimum of each score, or maximum of a score for which lower is better.

        Returns
        -------
        Table
            The columns gate, passed, value, at_least and at_most.

        Raises
        ------
        GateError
            If an estimate does not meet its bound or is unknown, as in a slice with too few clusters.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> est = fb.estimate({k: k // 2 for k in range(40)}, {k: k // 2 if k < 30 else k for k in range(40)})
        >>> est.check("recall.low>=0.7", precision=0.9)["passed"].to_pylist()
        [True, True]
        """
        return checked([try_estimate(bound, self) for bound in as_bounds(gates, scores)])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scores().__arrow_c_stream__(requested_schema)

    def save(self, directory: Any) -> None:
        """Write the estimates as JSON and Parquet; `fastbcubed.load` reads them back.

        Parameters
        ----------
        directory : path
            The directory to write to; a missing directory is created. Files of an earlier result in the directory are
            replaced together, after the new files have been written.

        Examples
        --------
        >>> import tempfile, fastbcubed as fb
        >>> sample = {"a": 1, "b": 1, "c": 2}
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     fb.estimate(sample, {"a": 1, "b": 1, "c": 1}).save(directory)
        ...     fb.load(directory).overall["precision"] < 1
        True
        """
        save_tables(directory, "estimates", self.to_dict(), {"estimates": self._to_saved()}, self.sliced)

    def _to_saved(self) -> pa.Table:
        """Return the table of scores, with the figures from which a loaded result recomputes intervals."""
        table = self.to_arrow()
        for name in ("effective", "ceiling"):
            own = np.array([getattr(each, name) for each in self.estimated.values()], np.float64)
            table = table.append_column(name, from_numpy(own))
        return table

    @classmethod
    def _restored(cls, head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Estimates:
        names = ("estimate", "se", "unadjusted", "n_clusters", "df", "effective", "ceiling")
        rows, definition = tables["estimates"].to_pylist(), dict(head["definition"])
        definition["beta"] = beta_in(definition)
        require_shape(
            definition, {"sampling": str, "missing": str, "population_clusters": (int, None)}, "definition"
        )
        check_level(definition["level"])
        require_shape(head["summary"], _SUMMARY, "summary")
        own = {row["score"]: Estimate(*(row[name] for name in names)) for row in rows}
        ranges = {each.name: (each.low, each.high) for each in choose(list(own), definition["beta"])[0]}
        sides = {side: head[side] for side in ("sample", "prediction")}
        rest = definition["level"], texts_in(head["not_computed"]), head.get("reading", dict.fromkeys(sides))
        sliced = apart(tables.get("slices"), head.get("saved", {}).get("sliced", {}))
        return cls(
            own, ranges, head["summary"], definition, sides, from_saved(head["warnings"]), *rest, sliced
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `to_json` as plain dicts, lists, numbers and strings."""
        return {
            "fastbcubed": __version__,
            **self.names,
            "definition": self.definition,
            "estimates": self.scores().to_pylist(),
            "summary": self.summary,
            "warnings": self.warnings,
            "not_computed": self.not_computed,
            "reading": self.reading,
            **entry_of_slices(self.sliced),
        }

    def _document(self, asked: Asked | None = None) -> Document:
        return document(self, asked or IN_BRIEF)


def _of_what_is_not_seen(own: Estimate, level: float, high: float) -> Interval:
    """Return the interval of a score that is equal in all sampled clusters, allowing for other values elsewhere.

    The interval is NaN for a score without an upper bound, because nothing limits the values of clusters that were not
    drawn.
    """
    if math.isnan(own.unadjusted) or own.n_clusters < 2 or math.isinf(high):
        return Interval(math.nan, math.nan)
    others = share_not_seen(own.effective, level)
    if own.unadjusted == 1:
        return Interval(1 - others, 1.0)
    if own.unadjusted == 0:
        return Interval(0.0, min(1.0, others * own.ceiling))
    return Interval(own.value, own.value)


def summarize(
    drawn: Drawn, sample: ClusterSample, coverage: Coverage, n_clusters: int
) -> dict[str, dict[str, Any]]:
    """Return the sizes of the sample and the prediction, and estimates of the sizes of true clusters."""
    weight = drawn.draws * drawn.weight
    n_items = coverage.n_common + coverage.n_prediction_only
    sizes = {name: estimate_ratio(ratio_of(name, drawn), drawn).value for name in DESCRIPTIVE}
    return {
        "sample": {
            "n_clusters": int(drawn.size.size),
            "n_draws": int(drawn.draws.sum()),
            "n_items": int(drawn.size.sum()),
            "n_missing": coverage.n_truth_only,
            "n_singletons": int(np.count_nonzero(drawn.size == 1)),
            "largest": int(drawn.size.max()),
            "effective": float(weight.sum() ** 2 / (weight**2).sum()),
            "n_null": sample.n_null,
            "n_duplicates": sample.n_duplicates,
        },
        "true": {**sizes, "hill": hill_numbers(drawn)},
        "pred": {
            "n_items": n_items,
            "n_clusters": n_clusters,
            "mean_cluster_size": n_items / n_clusters,
            "n_null": coverage.n_null,
            "n_duplicates": coverage.n_duplicates,
        },
    }


#: Explanations of columns and scores that evaluations do not have.
MEANT = {
    "unadjusted": "unadjusted: the ratio in the sample, before the bias correction, which is large for few draws.",
    "clusters": "clusters: draws that are informative about the score; for pair scores, those with pairs.",
    "matching_rate": "matching_rate: share of items whose true cluster has other items.",
}


def document(estimates: Estimates, asked: Asked = IN_BRIEF) -> Document:
    """Return the document of estimates: the sample, sentences, warnings, the table and the basis of the estimates."""
    first, *_ = lines = heading(estimates)
    facts = [(side.capitalize(), name) for side, name in estimates.names.items()]
    table, notices = estimates.scores(), Notices.of(estimates.warnings)
    told = {"unadjusted", "clusters", *estimates.estimated}
    of_1 = [row for row in table.to_pylist() if estimates._ranges[row["score"]] == (0, 1)]
    columns: list[tuple[Any, ...]] = [
        ("score", "score", "text"),
        ("estimate", ("estimate", "low", "high"), "interval"),
        ("se", "se", "score", ON_PAGE),
        ("unadjusted", "unadjusted", "score", 3),
        ("clusters", "n_clusters", "count", 1),
    ]
    grid = Grid.of(table.to_pylist()[:LISTED], columns, about="Figures")
    sentences: list[Block] = [Only("page", [Prose([first], "lead")]), Prose(said(estimates), "lead")]
    sections = [
        Section("estimates", "Estimates", [*sentences, *charts(of_1, estimates.level), notices]),
        Section("figures", "Figures", [grid, Prose([text for name, text in MEANT.items() if name in told])]),
        Section("slices", "Slices", [block for by in estimates.sliced for block in in_slices(estimates, by)]),
        Section("basis", "What it is based on", [Prose([how(estimates)])]),
    ]
    sections = [each for each in sections if each.blocks]
    head: list[Block] = [Only("text", [Prose(lines, "title")]), Only("page", [Facts(facts, "sides")])]
    return Document("estimate", asked.title or "Estimated scores", head, sections)


def in_slices(estimates: Any, by: str) -> list[Block]:
    """Return the blocks on the slices by some columns: heading, table, and a note on slices left out."""
    table = estimates.sliced[by]
    names, every = name_columns(table.column_names), slices_estimated(table)
    scores = [name for name in HEADLINE if name in every] or every[:3]
    of_runs = f"{scores[0]}_delta" in table.column_names
    rows = [row for row in table.to_pylist() if row["n_clusters"] >= ENOUGH]
    columns: list[tuple[Any, ...]] = [(name, name, "name") for name in names]
    columns += [("items", "n_items", "count", ON_PAGE), ("clusters", "n_clusters", "count", 1)]
    lead = "f1" if "f1" in scores else scores[0]
    for score in sorted(scores, key=lambda name: name == lead):
        rank = 0 if score == lead else ON_PAGE if of_runs else 2
        columns.append((score, (score, f"{score}_low", f"{score}_high"), "interval", rank))
        delta = tuple(f"{score}_delta{end}" for end in ("", "_low", "_high"))
        columns += [(f"Δ {score}", delta, "change", rank)] * of_runs
    few = {
        tuple(row[name] for name in names if name != "run")
        for row in table.to_pylist()
        if row["n_clusters"] < ENOUGH
    }
    are = "is" if len(few) == 1 else "are"
    named = sorted(",".join(map(label, each)) for each in few)
    said = (
        f"{counted(len(few), 'slice')} with fewer than {ENOUGH} clusters {are} left out "
        f"({', '.join(named[:NAMED])}{', …' * (len(named) > NAMED)})."
    )
    grid = Grid.of(rows[:LISTED], columns, len(names), about=f"By {by}")
    return [Heading(f"By {label(by)}"), *[grid] * bool(rows), *[Prose([said], "note")] * bool(few)]


def slices_estimated(table: Table) -> list[str]:
    """Return the names of the scores in a table of slices."""
    return [
        name.removesuffix("_se")
        for name in table.column_names
        if name.endswith("_se") and "_delta_" not in name
    ]


def slices_of_run(
    estimates: Estimates, slicing: Slicing, estimated: Sequence[Mapping[str, Estimate]]
) -> Table:
    """Return the table of a run's slices and their estimates, which are null in slices of few draws."""
    figures: dict[str, Any] = {"n_items": slicing.n_items, "n_clusters": slicing.n_draws}
    chosen = choose(list(estimates.estimated), estimates.definition["beta"])[0]
    for name in (each.name for each in chosen if each.of_items):
        found = [own.get(name) for own in estimated]
        ends = [None if own is None else estimates._interval(name, own, estimates.level) for own in found]
        columns = {
            name: [None if own is None else own.value for own in found],
            f"{name}_se": [None if own is None else own.error for own in found],
            f"{name}_low": [None if own is None else own.low for own in ends],
            f"{name}_high": [None if own is None else own.high for own in ends],
        }
        figures |= {column: pa.array(values, pa.float64()) for column, values in columns.items()}
    return Table(table_of(beside(slicing.values, figures)))


def try_estimate(bound: Bound, estimates: Estimates) -> Gate:
    """Return the outcome of a bound on an estimate, which fails if the estimate is NaN."""
    if not is_score(bound.name):
        raise OptionError(f"only scores are estimated, not {bound.name}; the summary has sizes")
    if bound.where:
        value = value_in_slice(bound, slices_of(estimates))
        gate = gate_of(bound, value)
        if bound.end and value == value:
            row = slice_of(bound, slices_of(estimates))
            ends = Interval(row[f"{bound.name}_low"], row[f"{bound.name}_high"])
            return gate_on_end(bound, value, ends, estimates.level)
        return (
            gate
            if value == value
            else replace(gate, reason=f"The slice has fewer than {ENOUGH} clusters, which is too few")
        )
    value = estimates.overall[bound.name]
    if bound.end:
        return gate_on_end(bound, value, estimates.interval(bound.name), estimates.level)
    return gate_of(bound, value)


def heading(estimates: Estimates) -> list[str]:
    """Return the lines of the heading: the sizes of the sample and the prediction, and their names."""
    sample, pred = estimates.summary["sample"], estimates.summary["pred"]
    drawn = counted(sample["n_clusters"], "sampled true cluster")
    if sample["n_draws"] != sample["n_clusters"]:
        drawn += f" in {counted(sample['n_draws'], 'draw')}"
    lines = [
        f"Scores of a prediction of {counted(pred['n_items'], 'item')} in {counted(pred['n_clusters'], 'cluster')}, "
        f"estimated from {drawn} ({counted(sample['n_items'], 'item')})."
    ]
    return [*lines, *lines_of_names(estimates.names)]


def said(estimates: Estimates) -> list[str]:
    """Return sentences on the scores by item, exactly matched clusters, and mean cluster sizes."""
    lines = []
    by_item = {"precision": "precision", "recall": "recall", "f1": "F1"}
    known = [
        f"{name} {_with_interval(estimates, each, _short)}"
        for each, name in by_item.items()
        if each in estimates.estimated
    ]
    if known:
        text = ", ".join(known)
        lines.append(f"{text[0].upper()}{text[1:]} by item.")
    if {"cluster_precision", "cluster_recall"} <= estimates.estimated.keys():
        p, r = (_with_interval(estimates, f"cluster_{name}", percent) for name in ("precision", "recall"))
        lines.append(
            f"{p} of predicted clusters match a true cluster exactly; {r} of true clusters are matched "
            "exactly."
        )
    if "mean_cluster_size" in estimates.estimated:
        size = _with_interval(estimates, "mean_cluster_size", _size)
        lines.append(
            f"A true cluster has {size} item{'s' * (size != '1')} on average, a predicted one "
            f"{_size(estimates.summary['pred']['mean_cluster_size'])}."
        )
    if any(")" in line for line in lines):
        lines[0] += f" (In parentheses, {100 * estimates.level:.4g} % intervals.)"
    return lines


def how(estimates: Estimates) -> str:
    """Return sentences on the assumptions and options of the estimates, and on scores that were not estimated."""
    definition = estimates.definition
    ways = {
        "uniform": "every true cluster had the same probability of being drawn",
        "cluster_size": "true clusters were drawn in proportion to their size",
    }
    way = ways.get(
        definition["sampling"],
        f"true clusters are weighted by {label(definition['sampling'])}, the inverse of their sampling "
        "probability",
    )
    text = f"Valid if the sampled clusters are complete and {way}. "
    text += f"Intervals are at the {100 * estimates.level:.4g} % level"
    if definition["population_clusters"] is not None:
        text += f", for {count(definition['population_clusters'])} true clusters in all"
    if definition["beta"] != 1:
        text += f"; beta is {definition['beta']:g}"
    left = not_computed(estimates.not_computed, "Not estimated")
    return " ".join([f"{text}.", *left])


def _with_interval(estimates: Estimates, name: str, write: Callable[[float], str]) -> str:
    """Return an estimate as text, with its interval in parentheses if it has one."""
    low, high = estimates.interval(name)
    text = write(estimates.estimated[name].value)
    return f"{text} ({write(low)} to {write(high)})" if low < high else text


def _short(value: float) -> str:
    """Return a score with three decimals, or with more if it would otherwise round to 0 or 1.

    >>> _short(0.9976), _short(0.99997), _short(1.0), _short(0.875)
    ('0.998', '0.99997', '1', '0.875')
    """
    return f"{value:.3f}" if 0.0005 <= abs(value) < 0.9995 else score_text(value)


def _size(value: float) -> str:
    return amount(round(value, 2))


def charts(rows: Sequence[Mapping[str, Any]], level: float) -> list[Block]:
    """Return the chart of the estimates with their intervals; an empty list if there are no rows."""
    shown = [
        {"name": ": ".join(str(row[name]) for name in ("stratum", "run", "score") if name in row),
         "value": row["estimate"], "low": row["low"], "high": row["high"]}
        for row in rows[:CHARTED]
    ]  # fmt: skip
    text = f"Lines are {100 * level:g} % intervals."
    said = f"Estimates. {text}"
    return [Chart("intervals", "intervals", ({"rows": shown},), said, "Estimates", text)] if shown else []
