"""`Evaluation.explain`: which kinds of items lose more than the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Confusion, Contingency
from fastbcubed.errors import ColumnError, FastBCubedError, MetricError, OptionError, SliceError, arg, quoted
from fastbcubed.find_slices.coded_columns import CodedColumn, code_column, without_repeats
from fastbcubed.find_slices.losses_by_unit import Claim, Losses, ValuedRows
from fastbcubed.find_slices.slice_search import Part, Proposal, candidates, propose, require_work
from fastbcubed.find_slices.unit_order import UnitOrder
from fastbcubed.inputs.arrays import take_rows
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.inputs.keys import write_both
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.render.number_formats import counted
from fastbcubed.results.evaluation_data import EvaluationData
from fastbcubed.results.figures import resolved
from fastbcubed.results.influences import is_mean, needed_by, score_of_means, slopes
from fastbcubed.results.intervals import degrees_of_freedom, of_slice, t_tail
from fastbcubed.results.items import AlignedItems, AttributeTable, Items, Kept, TableItems
from fastbcubed.results.slice_bins import Bins
from fastbcubed.results.slices import (
    attribute_values,
    id_parts,
    is_table,
    named_attributes,
    shared_attribute,
    size_named,
    slice_codes,
)
from fastbcubed.results.standard_errors import standard_error
from fastbcubed.runtime.arguments import number, seed_of, whole_number
from fastbcubed.runtime.memory_budget import Gate, release
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats, RowNumbers, Words

if TYPE_CHECKING:
    from fastbcubed.results.explanation import Explanation

#: Memory needed for the search: bytes per row, per row and run (its cell), per row and weight or item score that is not
#: shared by a cell, per row and column, per unit; and per row while a column is read, unless its strings are long.
ROW_BYTES, RUN_BYTES, VALUE_BYTES, COLUMN_BYTES, UNIT_BYTES, READ_BYTES = 16, 4, 8, 1.1, 16, 12
#: Bytes per cell and per cluster that each run holds already, and per row if the engine keeps rows in memory.
CELL_BYTES, CLUSTER_BYTES, KEPT_BYTES = 36, 8, 76
#: Bytes of columns that are coded at the same time, in addition to the first; bytes per row for the numbers of values.
AT_ONCE, NUMBER_BYTES = 1 << 30, 6
#: Maximum number of columns searched, and of columns that define one slice.
MOST_COLUMNS, DEEPEST = 1000, 4
#: Minimum number of components: they are split into a searched and a tested half, each of which needs several.
FEWEST = 20
#: Shares of items for which the detectable difference is stated, and the probability of detecting it.
SHARES, POWER = (0.1, 0.02), 0.8
#: The family of formulas of the user's own.
OWN = "own"
#: Seed of the hashes of item ids, unlike the seed of the split into halves.
WORDS = 0


class Options(NamedTuple):
    """The options of a search, checked."""

    depth: int
    min_items: int
    level: float
    limit: int
    seed: int

    @classmethod
    def of(cls, depth: Any, min_items: Any, level: Any, limit: Any, seed: Any) -> Options:
        """Check the arguments of `Evaluation.explain`."""
        return cls(
            whole_number(depth, "depth", "attributes", least=1, most=DEEPEST),
            whole_number(min_items, "min_items", "items", least=1),
            number(
                level,
                "level",
                "a false discovery rate between 0 and 1, such as 0.05",
                lambda found: 0 < found < 1,
            ),
            whole_number(limit, "limit", "slices", least=1, most=1000),
            seed_of(seed),
        )


def explain(
    self: EvaluationData,
    attributes: Any = None,
    *,
    loss: str | Metric | Callable[..., Any] = "f1",
    depth: int = 2,
    min_items: int = 50,
    level: float = 0.05,
    limit: int = 20,
    seed: int = 0,
) -> Explanation:
    """Search for kinds of items that lose more than all other items, and return these kinds as slices.

    Half of the connected components of truth and prediction are searched for slices that lose more than all other
    items. The slices found are tested on the other half of the components, by component, because the items of a
    component are not independent.

    Parameters
    ----------
    attributes : str, Bins, iterable of these, or table, optional
        Attributes to search, named as in `slices`; "true_size" and "pred_size" are searched only if named. By default,
        all columns of the inputs are searched, except columns that look like ids. The attributes in a table are matched
        by item or row by row, as for `slices`.
    loss : str or callable
        The score whose loss is explained: "f1", "precision", "recall", or any other mean over items, by name or as a
        formula (see `metric`). A formula receives None for the true negatives, and must have its best value where fp
        and fn are 0.
    depth : int
        Maximum number of attributes that define a slice, from 1 to 4.
    min_items : int
        Minimum number of items of a slice.
    level : float
        The false discovery rate: the expected share of false discoveries among the returned slices.
    limit : int
        Maximum number of slices to propose and test. Testing fewer slices gives each test more power.
    seed : int
        Seed of the random choice of components to search. The same seed finds the same slices, regardless of the
        engine, the number of threads and the order of rows.

    Returns
    -------
    Explanation
        The explanation, whose table `slices` lists the slices and whose text form describes the slices in sentences.

    Raises
    ------
    OptionError
        If there are too few components, or too many slices to search.
    ColumnError, SliceError
        If an attribute does not exist, or no attribute can be searched.
    MetricError
        If the score is not a mean over items, or has no best value.
    NotKeptError
        If the items were not kept.

    Notes
    -----
    The loss of an item is how much higher the overall score would be, to first order, if the item's contribution were
    perfect. The loss of F1 is the sum of the losses of precision and recall, each times the partial derivative of F1.
    Let e_u be the loss of a component u's items in the slice in excess of the mean loss, minus the share of the slice
    times the excess loss of all items of u. The test statistic of a slice is then Σ e_u / sqrt(Σ e_u²) [1]_. A slice is
    proposed if its own statistic on the searched half is at least 2, and so are the statistics of what the slice adds
    to other proposals and to the sum of its conditions. The p-value of a proposal is the largest p-value of these
    statistics on the other half, by Student's t. The p-values of all proposals are adjusted by the method of Benjamini
    and Hochberg. Values with few items are pooled; numbers and dates are cut where the loss changes on the searched
    half, as in a regression tree. The figures of a slice refer to all items, but p-values and held-out scores refer to
    the half that was not searched.

    References
    ----------
    .. [1] D. Boos, On generalized score tests, The American Statistician 46, 1992.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> truth = {k: k // 2 for k in range(2000)}
    >>> prediction = {k: k // 2 if k % 20 >= 4 else -k for k in truth}  # 4 of every 20 are singletons
    >>> where = {"item": list(truth), "country": ["JP" if k % 20 < 4 else "US" for k in truth]}
    >>> fb.evaluate(truth, prediction, attributes=where).explain(loss="recall").slices["slice"].to_pylist()
    ['country=JP']
    """
    options = Options.of(depth, min_items, level, limit, seed)
    kept, figures = self.kept, self.figures
    kept.require_items()
    metric = explained(kept.cells, loss, figures.beta, figures.metrics)
    kept.require_room(ROW_BYTES, "explaining the loss")
    columns = columns_of(kept, attributes)

    def units() -> Codes:
        return self.standard_errors.of_rows()

    question = Question([RowScore.of(kept.cells, metric, figures.beta)], loss_name(loss, metric))
    names = {side: name for side, name in self.names.items() if name}
    return explain_rows(kept, question, columns, units, options, names)


def loss_name(loss: Any, metric: Metric) -> str:
    """Return the name of a score in an explanation."""
    return loss if isinstance(loss, str) else metric.name


def explained(table: Contingency, loss: Any, beta: float, known: Sequence[Metric]) -> Metric:
    """Return the score whose loss is to be explained, or raise MetricError if this is not possible."""
    metric = resolved(table, loss, beta, known)
    if metric.family == OWN and metric.formula is not None:
        metric = _with_best(metric)
    if not is_mean(metric) or metric.saved:
        raise MetricError(
            f"{metric.name} is not a mean over items, so its loss cannot be attributed to items; explain "
            "precision, recall, f1 or a score of items, such as jaccard_distance"
        )
    if metric.best == "neither" or not all(
        math.isfinite(_perfect(each)) for each in needed_by([metric], beta)
    ):
        raise MetricError(
            f"{metric.name} has no best value to measure loss from; explain precision, recall or f1"
        )
    return metric


def _with_best(metric: Metric) -> Metric:
    """Return a user's own formula with its value at fp = fn = 0 as the best one; raise MetricError if it is not.

    It gets no true negatives, because their contribution depends on all items, not only on an item's component.
    """
    metric = replace(metric, uses_tn=False)
    tp, zero = np.array([1.0, 2.0, 7.0, 1000.0]), np.zeros(4)
    try:
        perfect = aggregation.apply_formula(metric, Confusion(tp, zero, zero, None))
    except MetricError as error:
        if not isinstance(error.__cause__, MetricError):
            raise
        raise MetricError(
            f"the formula {metric.name} takes true negatives, which depend on all items, so its loss cannot be "
            "attributed to items; explain a formula of tp, fp and fn"
        ) from error
    wrong = [
        aggregation.apply_formula(metric, Confusion(tp, tp * fp, tp * fn, None))
        for fp, fn in ((0.5, 0.0), (0.0, 0.5), (3.0, 0.0), (0.0, 3.0), (2.0, 2.0))
    ]
    best = float(perfect[0])
    if math.isfinite(best) and (perfect == best).all():
        if (np.array(wrong) <= best).all():
            return replace(metric, high=best, best="higher")
        if (np.array(wrong) >= best).all():
            return replace(metric, low=best, best="lower")
    raise MetricError(
        f"the formula {metric.name} has no best value to measure loss from: where fp and fn are 0, its value must be "
        "the same for all tp, and the largest or the smallest of all; explain a formula such as tp / (tp + fn)"
    )


def _perfect(metric: Metric) -> float:
    return metric.low if metric.best == "lower" else metric.high


@dataclass(frozen=True, eq=False)
class RowScore:
    """A score of one run, with the item scores whose means it depends on."""

    table: Contingency
    metric: Metric
    needed: Sequence[Metric]
    beta: float

    @classmethod
    def of(cls, table: Contingency, metric: Metric, beta: float) -> RowScore:
        """Return a score of a run with the item scores that it needs."""
        return cls(table, metric, needed_by([metric], beta), beta)

    @property
    def differs_within_cells(self) -> bool:
        """Whether items of a cell have different item scores, which are then stored by row."""
        return any(aggregation.differs_within_cells(self.table, each) for each in self.needed)

    def values(self, rows: Codes) -> Floats:
        """Return the item scores of each cell, or of these rows if they differ. Shape (n_needed, n)."""
        found = np.empty((len(self.needed), rows.size if self.differs_within_cells else self.table.n_cells))
        for each, own in zip(self.needed, found, strict=True):
            if self.differs_within_cells:
                own[:] = aggregation.item_scores(self.table, each, rows)
            else:
                own[:] = aggregation.cell_scores(self.table, each)
        return found

    def cells(self) -> Codes:
        """Return the cell of each row. Shape (n_rows,)."""
        assert self.table.rows is not None
        return self.table.rows.numbers(self.table.n_cells)

    def of_means(self, means: Floats) -> float:
        """Return the score, given the means of the item scores."""
        named = {each.name: float(mean) for each, mean in zip(self.needed, means, strict=True)}
        return float(score_of_means(self.metric, named, self.beta))

    def slopes(self, means: Floats) -> Floats:
        """Return the derivative of the score by each mean. Shape (n_needed,)."""
        names = [each.name for each in self.needed]
        found = np.zeros(len(names))
        for name, slope in slopes(self.metric, dict(zip(names, map(float, means), strict=True)), self.beta):
            found[names.index(name)] += slope
        return found

    def losses(self, means: Floats, values: Floats) -> Floats:
        """Return the losses of rows with these item scores, linearized at the means. Shapes: (n_needed, n) to (n,)."""
        sign, own = (1.0 if self.metric.best == "lower" else -1.0), self.slopes(means)
        perfect = np.array([_perfect(each) for each in self.needed])
        return sign * (own @ values - own @ perfect)


class Question(NamedTuple):
    """What is to be explained: the score of one run, or its difference between a baseline and another run."""

    runs: list[RowScore]
    loss: str
    names: tuple[str, ...] = ()  #: names of the baseline and of the run

    @property
    def signs(self) -> tuple[int, ...]:
        """The signs of effects to look for: for one run, only a larger loss."""
        return (1,) if len(self.runs) == 1 else (1, -1)


# -- The attributes ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attribute:
    """An attribute to search, under the name by which users refer to it."""

    key: str | Bins
    items: Items
    extra: AttributeTable | None
    cells: Contingency
    is_named: bool = False  #: whether the caller named it

    @property
    def name(self) -> str:
        """The name of the attribute in slices."""
        return str(self.key)

    @property
    def _is_cut(self) -> bool:
        """Whether its values are slices already, as for bins and cluster sizes."""
        own = () if self.extra is None else self.extra.names
        is_bins = isinstance(self.key, Bins)
        return is_bins or size_named(self.key, self.items.attribute_sides(), own) is not None

    def read(self) -> pa.ChunkedArray:
        """Return the value of each row."""
        if not self._is_cut:
            return attribute_values(self.name, self.items, self.extra)
        cut = slice_codes(self.key, self.cells, self.items, self.extra)
        (names,) = cut.values.values()
        codes = pa.array(cut.codes, mask=cut.codes < 0)
        return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, names)])

    def check(self) -> None:
        """Raise ColumnError if the attribute does not exist."""
        name = self.key.name if isinstance(self.key, Bins) else self.name
        if isinstance(self.key, Bins) or not self._is_cut:
            attribute_values(name, self.items, self.extra, np.zeros(0, np.int64))


def columns_of(kept: Kept, attributes: Any) -> list[Attribute]:
    """Return the attributes to search; raise, before the search, if any is unknown or there are none or too many."""
    items, extra = kept.require_items(), kept.attributes
    as_table = attributes is not None and is_table(attributes)
    if as_table:
        extra = AttributeTable.of(attributes, items)
    if attributes is None or as_table:
        names: Sequence[Any] = extra.names if as_table else _all_names(items, extra)
        if not names:
            raise ColumnError(
                "there is no attribute to search: the inputs have no columns besides items, clusters and "
                f"weights. Evaluate tables with more columns, or with {arg('attributes', ...)}"
            )
    else:
        names = named_attributes(attributes)
    if len(names) > MOST_COLUMNS:
        raise OptionError(
            f"there are {len(names):,} attributes, more than the limit of {MOST_COLUMNS:,}; name those that "
            "may matter in attributes"
        )
    is_named = attributes is not None and not as_table
    items = items.coded() if isinstance(items, TableItems) else items
    found = [Attribute(each, items, extra, kept.cells, is_named) for each in names]
    for each in found if is_named else ():
        each.check()
    what = f"explaining the loss by {counted(len(found), 'attribute')}"
    kept.require_room(ROW_BYTES + COLUMN_BYTES * len(found), what)
    return found


def _all_names(items: Items, extra: AttributeTable | None) -> list[str]:
    """Return the names of all attributes: parts of ids first; one of both sides once, if the sides agree."""
    sides = items.attribute_sides() | ({} if extra is None else {"attributes": tuple(extra.names)})
    homes: dict[str, list[str]] = {}
    for side, names in sides.items():
        for name in names:
            homes.setdefault(name, []).append(side)
    left_out, found = items.left_out(), [*id_parts(items)]
    for name, where in homes.items():
        prefixed = [f"{side}.{name}" for side in where]
        whole = where == ["truth", "prediction"] and not any(each in left_out for each in prefixed)
        if (len(where) == 1 and name not in found) or (
            whole and shared_attribute(items, name).values is not None
        ):
            prefixed = [name]
        found += prefixed
    return found


# -- The search ------------------------------------------------------------------------------------


def words_of(items: Items, scored: RowNumbers | None, pool: Pool) -> Callable[[slice], Words]:
    """Return a function for hashes of the ids of consecutive rows, which do not depend on the order of all rows."""

    def words(some: slice) -> Words:
        rows = np.arange(some.start, some.stop) if scored is None else scored[some]
        return write_both(as_column(items.ids(rows), "item").plain, WORDS, pool)[0].view(np.uint64)

    return words


def without_gaps(units: Codes) -> tuple[Codes, int]:
    """Return units, numbered without gaps, and their number. Shape (n,)."""
    there = np.zeros(int(units.max(initial=-1)) + 1, np.bool_)
    for start, stop in blocks(units.size):
        there[units[start:stop]] = True
    n = int(np.count_nonzero(there))
    return (units if n == there.size else (np.cumsum(there) - 1).astype(units.dtype)[units]), n


def bytes_needed(kept: Kept, runs: Sequence[RowScore], n_columns: int, n_units: int) -> int:
    """Return the bytes that a search takes, including what the runs hold."""
    of_row, of_cells, held = ROW_BYTES + COLUMN_BYTES * n_columns + VALUE_BYTES * kept.cells.weighted, 0, 0
    for run in runs:
        of_row += RUN_BYTES
        if run.differs_within_cells:
            of_row += VALUE_BYTES * len(run.needed)
        else:
            of_cells += VALUE_BYTES * len(run.needed) * run.table.n_cells
        held += CELL_BYTES * run.table.n_cells + CLUSTER_BYTES * sum(run.table.n_codes.values())
        held += KEPT_BYTES * kept.rows.n_rows * isinstance(kept.items, AlignedItems)
    reading = max(READ_BYTES * kept.rows.n_rows, of_cells)  # item scores of cells are dropped meanwhile
    return int(of_row * kept.rows.n_rows) + UNIT_BYTES * n_units + reading + held


def _release(kept: Kept) -> None:
    """Return freed memory to the system if there is a limit, as it counts until then."""
    if kept.memory_limit is not None:
        release()


def explain_rows(
    kept: Kept,
    question: Question,
    columns: Sequence[Attribute],
    units_of: Callable[[], Codes],
    options: Options,
    names: Mapping[str, str],
) -> Explanation:
    """Return the explanation; `units_of` returns the unit of each of the first rows, -1 for rows without scores."""
    from fastbcubed.results.explanation import Explanation

    units, scored = units_of(), None
    if units.size < kept.rows.n_rows or units.min(initial=0) < 0:
        scored = np.flatnonzero(units >= 0)
        units = units[scored]
    units, n_units = without_gaps(units)
    if n_units < FEWEST:
        raise OptionError(
            f"the items are in {counted(n_units, 'component')} of truth and prediction, but at least {FEWEST} are "
            "needed: half of the components are searched and half tested. To see "
            'which clusters join them, call .clusters("pred", limit=5). Slices that you name need no search: call '
            ".slices(...)"
        )
    if options.min_items > units.size:
        raise OptionError(
            f"{arg('min_items', options.min_items)} is more than the {counted(units.size, 'item')} that have scores"
        )
    what = f"explaining the loss by {counted(len(columns), 'attribute')}"
    needed = bytes_needed(kept, question.runs, len(columns), n_units)
    kept.require_room(0, what, needed)
    beside = AT_ONCE if kept.memory_limit is None else min(AT_ONCE, max(0, kept.memory_limit - needed))
    with Pool() as pool:
        _release(kept)
        order = UnitOrder.of(units, words_of(kept.require_items(), scored, pool), options.seed)
        del units
        _release(kept)
        work = Work.of(question.runs, kept, order, scored, pool)
        _release(kept)
        coded, left_out = _coded(columns, scored, work, options, Gate(beside), pool)
        _release(kept)
        n = require_work(coded, options.depth, order.n_search)
        best = candidates(coded, work.losses, options.depth, options.min_items, question.signs, pool)
        proposals = propose(best, coded, work.losses, options.limit)
        tested, sides = Part(coded, work.losses, order.halves[1]), len(question.signs)
        described = work.rows(proposals, coded, tested, sides, pool)
    described = [row for row in described if row["n_items"] >= options.min_items]
    _adjust(described, options.level)
    described.sort(key=lambda row: (-round(abs(row["excess"]), 9), row["slice"]))
    conditions = {row["slice"]: row.pop("conditions") for row in described}
    by_name: dict[str, dict[str, Any]] = {}
    for each in coded:
        own = {"kind": each.kind, "n_values": len(each.values), "rare": list(each.rare)}
        by_name[each.attribute] = own
    return Explanation(
        question.loss, options._asdict(), described, conditions, work.overall, n, by_name, left_out,
        work.power(options.level / max(1, len(described)), len(question.signs)),
        {"searched": (order.n_units + 1) // 2, "tested": order.n_units // 2}, names,
        *(reversed(question.names) if question.names else (None, None)),
    )  # fmt: skip


def _coded(
    columns: Sequence[Attribute],
    scored: RowNumbers | None,
    work: Work,
    options: Options,
    gate: Gate,
    pool: Pool,
) -> tuple[list[CodedColumn], dict[str, str]]:
    """Return the attributes as coded columns, and why others are left out; raise SliceError if no attribute is left."""
    every: list[CodedColumn] = []
    left_out: dict[str, str] = {}
    reading = Lock()

    def code(each: Attribute) -> list[CodedColumn] | str:
        with ExitStack() as held:
            try:
                with (
                    reading
                ):  # only one thread may read files at a time; it waits for room before the next may
                    values = each.read()
                    if scored is not None:
                        values = pa.chunked_array([take_rows(values, scored)])
                    held.enter_context(gate.holding(values.nbytes + NUMBER_BYTES * len(values)))
                return code_column(each.name, values, work.losses, options.min_items, named=each.is_named)
            except FastBCubedError as error:
                if each.is_named:
                    raise
                return str(error)

    for each, found in zip(columns, pool.map(code, columns, stage="slices"), strict=True):
        if isinstance(found, str):
            left_out[each.name] = found
        else:
            every += found
    coded, same = without_repeats(every, work.order.sampled)
    if not coded:
        reasons = "; ".join(f"{quoted(name)}: {reason}" for name, reason in list(left_out.items())[:3])
        raise SliceError(
            f"none of {counted(len(columns), 'attribute')} can be searched ({reasons}). Name attributes that "
            f"describe items, such as a country, a year or a source, or lower {arg('min_items', ...)}"
        )
    return coded, left_out | {name: f"it divides the items as {other} does" for name, other in same.items()}


def _adjust(rows: list[dict[str, Any]], level: float) -> None:
    """Add to each row the p-value adjusted by Benjamini and Hochberg, and whether it is at most `level`.

    >>> rows = [{"p": 0.04}, {"p": 0.01}, {"p": 0.03}]
    >>> _adjust(rows, 0.05)
    >>> [round(row["p_adjusted"], 3) for row in rows]  # 0.04 * 3 / 3, 0.01 * 3 / 1, 0.03 * 3 / 2 or what follows
    [0.04, 0.03, 0.04]
    """
    least = 1.0
    for rank, row in sorted(enumerate(sorted(rows, key=lambda row: row["p"]), 1), key=lambda each: -each[0]):
        least = min(least, row["p"] * len(rows) / rank)
        row["p_adjusted"], row["holds"] = least, least <= level


class Work:
    """The rows of one or two runs, in the order of their units, and the computation of figures for slices."""

    def __init__(
        self,
        runs: Sequence[RowScore],
        order: UnitOrder,
        scored: RowNumbers | None,
        weight: Floats,
        pool: Pool,
    ) -> None:
        """Look up the item scores of rows, whose weights, if any, are sorted by unit."""
        self.runs, self.order, self._scored = runs, order, scored
        self._cells = [
            np.empty(0, np.int32) if run.differs_within_cells else run.cells()[self._rows] for run in runs
        ]
        values, every = self._looked_up(), blocks(order.rows.size)

        def add(start: int, stop: int) -> tuple[Floats, NDArray[np.int64]]:
            own = values(slice(start, stop))
            sums = own @ weight[start:stop] if weight.size else own.sum(axis=2)
            return sums, np.count_nonzero(~np.isfinite(own).all(axis=1), axis=1)

        sums, unknown = zip(*pool.map(add, *zip(*every, strict=True), stage="slices"), strict=True)
        for run, n in zip(runs, np.sum(unknown, axis=0).tolist(), strict=True):
            if n:
                raise MetricError(
                    f"{run.metric.name} is not defined for {n:,} of {order.rows.size:,} items, so their loss is unknown"
                )
        total = float(weight.sum()) if weight.size else float(order.rows.size)
        self._means = list(np.sum(sums, axis=0) / total)
        lost = np.empty(order.rows.size)

        def lose(start: int, stop: int) -> None:
            lost[start:stop] = self._lost(list(values(slice(start, stop))))

        pool.map(lose, *zip(*every, strict=True), stage="slices")
        self.losses = Losses.of(order, lost, weight)
        self.overall = self._difference(
            [run.of_means(own) for run, own in zip(runs, self._means, strict=True)]
        )

    @classmethod
    def of(
        cls, runs: Sequence[RowScore], kept: Kept, order: UnitOrder, scored: RowNumbers | None, pool: Pool
    ) -> Work:
        """Look up the item scores and the weights of rows, sorted by unit."""
        rows = order.rows if scored is None else scored[order.rows]
        weight = kept.rows.weight[rows] if kept.cells.weighted else np.empty(0)
        return cls(runs, order, scored, weight, pool)

    @property
    def _rows(self) -> Codes:
        """The original positions of the rows, sorted by unit."""
        return self.order.rows if self._scored is None else self._scored[self.order.rows]

    def _looked_up(self) -> Callable[[slice], Floats]:
        """Return a function for the item scores of consecutive rows, of shape (n_runs, n_needed, n).

        Scores of cells are computed again rather than kept while columns are read, when most memory is used.
        """
        tables = [run.values(self._rows) for run in self.runs]

        def values(some: slice) -> Floats:
            every = zip(tables, self._cells, strict=True)
            return np.stack(
                [own.take(cell[some], axis=1) if cell.size else own[:, some] for own, cell in every]
            )

        return values

    def _lost(self, values: Sequence[Floats]) -> Floats:
        """Return the losses of rows with these item scores, or of two runs the difference. Shape (n,)."""
        every = zip(self.runs, self._means, values, strict=True)
        return self._difference([run.losses(means, own) for run, means, own in every])

    @staticmethod
    def _difference(values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else values[1] - values[0]

    def _means_of(self, sums: Floats) -> Floats:
        """Return the means of item scores by run, given the sums of a set of rows. Shape (n_runs, n_needed)."""
        return sums[2:].reshape(len(self.runs), -1) / max(float(sums[1]), 1e-300)

    def _score(self, sums: Floats) -> float:
        """Return the score of a set of rows, or its difference, from their sums; NaN without rows."""
        if not sums[1]:
            return math.nan
        return self._difference(
            [run.of_means(own) for run, own in zip(self.runs, self._means_of(sums), strict=True)]
        )

    def _factors(self, part: int, sums: Floats) -> Floats:
        """Return the factors of weights and values by which rows of a part influence its score, given its sums."""
        factors = np.zeros((2, sums.size - 1))
        signs = (1.0,) if len(self.runs) == 1 else (-1.0, 1.0)
        slopes = []
        for sign, run, means in zip(signs, self.runs, self._means_of(sums), strict=True) if sums[1] else ():
            slopes.append(sign / float(sums[1]) * run.slopes(means))
            factors[part, 0] -= float(means @ slopes[-1])
        factors[part, 1:] = np.concatenate(slopes) if slopes else 0.0
        return factors

    def _interval(self, influence: Claim, sums: Floats) -> tuple[float | None, float | None]:
        """Return the interval of the score of the rows of a part, from the claim made of their influences."""
        if not sums[1]:
            return None, None
        values = [run.of_means(own) for run, own in zip(self.runs, self._means_of(sums), strict=True)]
        n = int(sums[0])
        error = float(standard_error(influence.squares, n, max(map(abs, values))))
        metric = self.runs[0].metric
        ends = {} if len(self.runs) > 1 else {"low": metric.low, "high": metric.high}
        return of_slice(self._difference(values), error, n, **ends) or (None, None)

    def rows(
        self,
        proposals: Sequence[Proposal],
        columns: Sequence[CodedColumn],
        tested: Part,
        sides: int,
        pool: Pool,
    ) -> list[dict[str, Any]]:
        """Return the figures of the proposed slices, over all items and over the half that was not searched."""
        if not proposals:
            return []
        values, weight = self._looked_up(), self.losses.weight

        def weighted(some: slice) -> Floats:
            own = values(some).reshape(-1, some.stop - some.start)
            return own * weight[some] if weight.size else own

        def parts(proposal: Proposal, some: slice) -> NDArray[np.uint8]:
            return proposal.slice.rows(columns, some).view(np.uint8)

        valued = ValuedRows(self.order, weighted, weight)
        slices = [partial(parts, each) for each in proposals]
        searched, held_out = (valued.by_part(half, slices, 2, pool) for half in self.order.halves)
        factors = [[self._factors(k, own[k]) for k in range(2)] for own in searched + held_out]
        every = slice(0, self.order.rows.size)
        influences = valued.claims(every, list(zip(slices, factors, strict=True)), pool)
        row = partial(self._row, columns, tested, sides)
        return pool.map(row, proposals, searched + held_out, held_out, influences, stage="slices")

    def _row(
        self,
        columns: Sequence[CodedColumn],
        tested: Part,
        sides: int,
        proposal: Proposal,
        sums: Floats,
        held_out: Floats,
        influences: Sequence[Claim],
    ) -> dict[str, Any]:
        """Return the figures of a proposed slice, given its sums and claims outside and inside."""
        outside, inside = sums
        (other_low, other_high), (low, high) = map(self._interval, influences, sums)
        lost, lost_outside = (
            float(self._lost(list(self._means_of(own)))) if own[1] else 0.0 for own in (inside, outside)
        )
        share = float(inside[1]) / float(inside[1] + outside[1])
        all_lost = float(inside[1]) * lost + float(outside[1]) * lost_outside
        told = proposal.slice.values(columns)
        # Coarse and fine ranges of a column define some slices twice, such as the rows without a value.
        name, *alike = dict.fromkeys(
            _name(each.values(columns)) for each in (proposal.slice, *proposal.alike)
        )
        sign = math.copysign(1.0, proposal.slice.score)
        p = max(_p_value(own, sign, self.order.n_units // 2) for own in tested.claims(proposal))
        every = self.order.blocks(slice(0, self.order.rows.size))
        return {
            "slice": name,
            "conditions": [{"attribute": each.attribute, **each.is_} for each in told],
            "n_items": sum(int(np.count_nonzero(proposal.slice.rows(columns, rows))) for rows in every),
            "n_units": int(inside[0]), "share": share,
            "inside": self._score(inside), "inside_low": low, "inside_high": high,
            "outside": self._score(outside), "outside_low": other_low, "outside_high": other_high,
            "share_of_loss": None if len(self.runs) > 1 or not all_lost else float(inside[1]) * lost / all_lost,
            "excess": share * (lost - lost_outside) * (1.0 if len(self.runs) == 1 else -1.0),
            "held_out_inside": self._score(held_out[1]), "held_out_outside": self._score(held_out[0]),
            "p": min(1.0, sides * p),
            "alike": alike,
        }  # fmt: skip

    def power(self, level: float, sides: int) -> list[dict[str, Any]]:
        """Return, for slices with certain shares of the items, the difference that is detected 8 times in 10.

        If a slice with share a of the items is drawn by component, the difference from the rest has the standard error
        sqrt(V / (a (1 - a))), where V is the squared standard error of the mean loss on the tested half.
        """
        from statistics import NormalDist

        half = self.order.halves[1]
        moved, mass = self.losses.by_unit(half), self.losses.mass(half)
        variance = float(np.sum(moved * moved)) / max(mass, 1e-300) ** 2
        normal = NormalDist()
        reach = normal.inv_cdf(1 - level / sides) + normal.inv_cdf(POWER)
        metric, found = self.runs[0].metric, []
        most = (metric.high - metric.low) if math.isfinite(metric.high - metric.low) else math.inf
        for share in SHARES:
            least = reach * math.sqrt(variance / (share * (1 - share)))
            found.append({"share": share, "difference": least if least < most else None})
        return found


def _name(values: Iterable[Any]) -> str:
    return " & ".join(each.text for each in values)


def _p_value(claim: Claim, sign: float, n_units: int) -> float:
    """Return the one-sided p-value of a claim, given the number of units tested."""
    if not claim.squares > 0:
        return 1.0
    return t_tail(sign * claim.score, float(degrees_of_freedom(claim.squares, claim.fourths, n_units)))
