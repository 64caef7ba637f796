"""The runs of a comparison and their units: common numbers of true clusters, components of all runs, and limits."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastbcubed.align.policies import Coverage
from fastbcubed.errors import Message, NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs.id_columns import as_column, comparable_keys
from fastbcubed.metrics.metric import Metric
from fastbcubed.results import clusters
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.influences import is_mean
from fastbcubed.results.result import ClusterResult
from fastbcubed.results.slices import SliceKey, slice_codes
from fastbcubed.results.standard_errors import COMPONENT, TRUE_CLUSTER, why_none
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import CellUnits, components_of_tables
from fastbcubed.results.warnings import if_alone
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.key_partitions import match
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.spill import readable
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats

#: If a component of all runs has a larger share of the weight, each difference uses the units of its two runs.
HEAVY_SHARE = 0.1


def number_keys(keys: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return common numbers of true clusters by run and code, given their keys; the first run's are its codes."""
    known, others = keys[0], keys[1:]
    found = [np.arange(known.size)]
    with Pool() as pool:
        for own in others:
            numbers = match(known, own, pool).true_of_pred
            new = np.flatnonzero(numbers < 0)
            numbers[new] = known.size + np.arange(new.size)
            found.append(numbers)
            known = np.concatenate([known, own[new]])
    return found


def are_alike(keys: Sequence[NDArray[np.int64]]) -> bool:
    """Return whether the keys are the same in all runs."""
    sizes = {own.size for own in keys}
    return len(sizes) == 1 and all(
        np.array_equal(keys[0][start:stop], own[start:stop])
        for start, stop in blocks(sizes.pop())
        for own in keys[1:]
    )


def number_true_clusters(runs: Sequence[Evaluation]) -> list[NDArray[np.int64]]:
    """Return numbers of true clusters by run and code; clusters with the same label have the same number.

    A cluster that a policy made has no label, and is identified by its one item if items are kept. A cluster without a
    scored item has a number of its own.
    """
    found = [np.full(ev.contingency.n_codes["true"], -1) for ev in runs]
    there = [np.flatnonzero(ev.contingency.true_n > 0) for ev in runs]
    labels = [
        as_column(ev.kept.cluster_labels("true", codes), "cluster")
        for ev, codes in zip(runs, there, strict=True)
    ]
    nameless = [
        np.zeros(codes.size, np.bool_) if (nulls := each.null_rows) is None else nulls
        for codes, each in zip(there, labels, strict=True)
    ]
    keys = zip(comparable_keys(labels), nameless, strict=True)
    named = [codes[~mask] for codes, mask in zip(there, nameless, strict=True)]
    total = _number(found, named, [own[~mask] for own, mask in keys], 0)
    if all(ev.has_items for ev in runs):
        alone = [codes[mask] for codes, mask in zip(there, nameless, strict=True)]
        items = [
            as_column(ev.kept_items().ids(ev.kept.first_rows["true"][codes]), "item")
            for ev, codes in zip(runs, alone, strict=True)
        ]
        total = _number(found, alone, comparable_keys(items), total)
    for own in found:
        rest = np.flatnonzero(own < 0)
        own[rest] = total + np.arange(rest.size)
        total += rest.size
    return found


def _number(
    found: Sequence[NDArray[np.int64]],
    codes: Sequence[NDArray[np.int64]],
    keys: Sequence[NDArray[np.int64]],
    first: int,
) -> int:
    """Assign numbers, counted from `first`, to these codes of each run by key, and return the next free number."""
    with Pool(1) as pool:
        numbered = number(np.concatenate(keys), pool)
    start = 0
    for numbers, own in zip(found, codes, strict=True):
        numbers[own] = first + numbered.codes[start : start + own.size]
        start += own.size
    return first + numbered.firsts.size


# -- The units of a comparison ---------------------------------------------------------------------


def is_heavy(share: float) -> bool:
    """Return whether a component with this share of the weight is too heavy; the threshold allows for rounding."""
    return share > HEAVY_SHARE + 1e-9


#: Cached values that depend only on the runs; all others also depend on the baseline.
OF_RUNS = (
    "_own_scores",
    "_values",
    "_counted_apart",
    "_scores",
    "_same_codes",
    "_true_numbers",
    "_components",
    "warnings",
)


class ComparisonData(ClusterResult):
    """The runs of a comparison, and the data from which listings and errors of differences are computed."""

    #: the requested slices of a loaded comparison; None for any other
    _saved_slices: Mapping[str, Table] | None = None

    def __init__(
        self,
        runs: Mapping[str, Evaluation],
        *,
        baseline: str,
        align: str,
        level: float,
        unit: str,
        n_bootstrap: int = 0,
        seed: int = 0,
        shared: bool = False,
        n_scored: Sequence[int],
        coverage: Sequence[Coverage],
        true_keys: Sequence[NDArray[np.int64]] | None = None,
        by_itself: Sequence[dict[str, Any] | None] = (),
    ) -> None:
        """Compare these evaluations; `shared` means that their scored rows and codes of true clusters are the same.

        Otherwise, `true_keys`, if known, has keys of true clusters by code, which are comparable between runs.
        `by_itself` has the result of `if_alone` for a run on all its own items; None if its evaluation covers them.
        """
        self._runs = dict(runs)
        self.baseline, self.align, self.level, self.unit = baseline, align, level, unit
        self.n_bootstrap, self.seed = n_bootstrap, seed
        self._shared = shared
        self._n_scored = dict(zip(runs, n_scored, strict=True))
        #: the coverage of the truth by each run, before restriction to common items
        self._coverage = dict(zip(runs, coverage, strict=True))
        self._true_keys = None if true_keys is None else dict(zip(runs, true_keys, strict=True))
        self._by_itself = dict(zip(runs, by_itself, strict=False))

    def _copy(self, runs: Iterable[str], baseline: str) -> Self:
        """Return a comparison of these runs on the same items, without scoring any run again."""
        found = copy.copy(self)
        found._runs, found.baseline = {name: self._runs[name] for name in runs}, baseline
        if self._true_keys is not None:
            found._true_keys = {name: self._true_keys[name] for name in found._runs}
        kept = OF_RUNS if len(found) == len(self) else ()
        # what the class has under the same name is a cached property, or the default of a part of a loaded comparison
        for name in [name for name in vars(found) if hasattr(type(self), name) and name not in kept]:
            del vars(found)[name]
        return found

    @property
    def runs(self) -> Mapping[str, Evaluation]:
        """The evaluation of each run by name, in the order in which the runs were given."""
        return MappingProxyType(self._runs)

    def __getitem__(self, name: str) -> Evaluation:
        if not is_one_of(name, self._runs):
            raise OptionError(
                f"there is no run {quoted(name)}; the runs are {', '.join(map(repr, self._runs))}"
            )
        return self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, name: object) -> bool:
        return name in self._runs

    @property
    def experiments(self) -> tuple[str, ...]:
        """The names of the runs other than the baseline."""
        return tuple(name for name in self._runs if name != self.baseline)

    @property
    def metrics(self) -> list[Metric]:
        """The scores that all runs have."""
        named = [{m.name for m in ev.metrics} for ev in self._runs.values()]
        return [m for m in self[self.baseline].metrics if all(m.name in own for own in named)]

    @cached_property
    def _values(self) -> dict[str, Floats]:
        """The scores by name, each with its value in every run."""
        evs = self._runs.values()
        return {m.name: np.array([ev.overall[m.name] for ev in evs], np.float64) for m in self.metrics}

    @cached_property
    def _counted_apart(self) -> list[Metric]:
        """The scores that count mentions that are not among the items that all runs score."""
        apart = any(ev.figures.of_mentions for ev in self._runs.values())
        return [m for m in self.metrics if m.of_mentions] if apart else []

    @property
    def n_items(self) -> int:
        """Number of scored items of the baseline; with ``align="common"``, all runs are scored on the same items."""
        return self[self.baseline].contingency.n_items

    @property
    def _drops(self) -> bool:
        """Whether items of the truth that a run lacks are dropped."""
        return self[self.baseline].policies.truth == "drop"

    @cached_property
    def _own_scores(self) -> dict[str, dict[str, Any]]:
        """Scores of each run on all its own items, and on these with the truth's missing items as singletons."""
        return {
            name: self._by_itself.get(name)
            or if_alone(own if isinstance(own := ev.figures.of_mentions, Evaluation) else ev)
            for name, ev in self._runs.items()
        }

    @cached_property
    def _same_codes(self) -> bool:
        """Whether the items and the codes of true clusters are known to be the same in all runs."""
        keys = self._true_keys
        return self._shared or (
            keys is not None and self.align == "common" and are_alike(list(keys.values()))
        )

    @cached_property
    def _true_numbers(self) -> list[NDArray[np.int64]] | None:
        """Common numbers of true clusters by run and code; None if items and codes are the same in all runs."""
        if self._same_codes:
            return None
        if (reason := why_no_room(self, numbers=True)) is not None:
            raise OptionError(f"true clusters are renumbered when runs lack different items: {reason}")
        keys = None if self._true_keys is None else list(self._true_keys.values())
        evs = list(self.runs.values())
        made = any(map(_makes_true_clusters, evs))  # keys of such clusters are not comparable between runs
        return number_true_clusters(evs) if keys is None or made else number_keys(keys)

    @cached_property
    def _components(self) -> list[CellUnits]:
        """The component of each true cluster, for each run; components connect the truth and all runs."""
        tables = [ev.contingency for ev in self.runs.values()]
        with Pool() as pool:
            return components_of_tables(tables, self._true_numbers, True, pool)[0]

    @cached_property
    def _slicings(self) -> dict[str, SliceKey]:
        """The keys of the requested slices, by name; in a loaded comparison, the names are the keys."""
        saved = self._saved_slices
        return self[self.baseline].figures.slicings if saved is None else {name: name for name in saved}

    @cached_property
    def _large_slices(self) -> dict[str, Table]:
        """Slices of all runs with their differences, by name, that were written to files when first needed."""
        return {}

    def _pair(self, run: str | None) -> tuple[str, str]:
        """Return the baseline, and the requested experiment."""
        if run is None:
            run = (*self.experiments, self.baseline)[0]
        self[run]
        return self.baseline, run


#: Bytes for each run, measured and rounded up: per numbered true cluster; per true cluster and score in a bootstrap;
#: per cluster and per cell while units are searched; and per cluster and per cell while scores other than means are
#: summed.
NUMBERED_BYTES, DRAWN_BYTES, OF_UNITS, OF_SUMS = 24, 24, (5, 16), (20, 64)
#: Bytes that may exceed the limit, because the engine has already freed its own memory.
BESIDE = 64 << 20


def why_no_room(comparison: ComparisonData, *, numbers: bool = False) -> Message | None:
    """Return why standard errors, or only `numbers` of true clusters, exceed the memory limit; None if they do not."""
    evs = comparison.runs.values()
    limits = [ev.kept.memory_limit for ev in evs if ev.kept.memory_limit is not None]
    if not limits or any(not ev.contingency.has_cells or ev.contingency.overlapping for ev in evs):
        return None
    same, needed, metrics = comparison._same_codes, 0, metrics_with_errors(comparison)
    others, n_drawn = any(m.overall_only for m in metrics), (1 + len(metrics)) * (comparison.n_bootstrap > 0)
    for table in (ev.contingency for ev in evs):
        n_clusters = sum(table.n_codes.values())
        needed += 0 if same else NUMBERED_BYTES * table.n_codes["true"]
        if not numbers:
            n_cells = table.n_cells - (table.n_exact if same and not others else 0)
            (of_cluster, of_cell), (more, most) = OF_UNITS, OF_SUMS if others else (0, 0)
            needed += n_clusters * (of_cluster + more) + n_cells * max(of_cell, most)
            needed += n_drawn * table.n_codes["true"] * DRAWN_BYTES
    if needed <= min(limits) + BESIDE:
        return None
    return Message(
        f"they would need about {readable(needed)} of memory to hold clusters and cells of all runs at once; "
        f"a memory_limit of at least {(needed - BESIDE >> 20) + 1} MiB suffices"
    )


def why_no_errors(comparison: ComparisonData) -> Message | None:
    """Return why no difference has a standard error; None if differences may have one."""
    evs = comparison.runs.values()
    require_cells(comparison)
    if comparison.unit != COMPONENT and any(ev.contingency.overlapping for ev in evs):
        return Message(
            f"with overlapping clusters, the only units are components; pass {arg('unit', COMPONENT)}"
        )
    if comparison._true_keys is not None and any(map(_makes_true_clusters, evs)):
        return Message(
            "policies have created singleton true clusters, which the disk engine cannot match across runs; "
            f"compare with {arg('engine', 'memory')}"
        )
    return why_no_room(comparison)


def _makes_true_clusters(ev: Evaluation) -> bool:
    """Return whether policies may have created singleton true clusters."""
    made = [(ev.policies.prediction, ev.coverage.n_prediction_only), (ev.policies.nulls, ev.coverage.n_null)]
    return ev.coverage.n_noise > 0 or any(policy == "singleton" and n > 0 for policy, n in made)


def metrics_with_errors(comparison: ComparisonData) -> list[Metric]:
    """Return the scores whose differences have standard errors computed from the cells of the compared items."""
    evs, apart = comparison.runs.values(), comparison._counted_apart
    overlapping = any(ev.contingency.overlapping for ev in evs)
    every = [m for m in comparison.metrics if m not in apart]
    found = [m for m in every if why_none(m, overlapping=overlapping) is None]
    for ev in evs:
        found = clusters.known_by_unit(ev.contingency, found, ev.beta)
    return found


def scores_without_errors(comparison: ComparisonData, cautions: Sequence[str]) -> dict[str, list[str]]:
    """Return the scores that have no standard error although others may have one, by reason."""
    known = {m.name for m in metrics_with_errors(comparison)}
    evs = comparison.runs.values()
    overlapping = any(ev.contingency.overlapping for ev in evs)
    by_column = comparison.unit not in (COMPONENT, TRUE_CLUSTER)
    found: dict[str, list[str]] = {}
    for metric in comparison.metrics:
        if metric in comparison._counted_apart:
            reason = "mentions that only one side has lack a value of the column" * by_column
        elif metric.name in known:
            torn = comparison.unit != COMPONENT and not is_mean(metric) and cautions
            reason = (
                f"clusters whose items are in several units belong to no unit; pass {arg('unit', COMPONENT)}"
                * bool(torn)
            )
        elif why_none(metric, overlapping=overlapping) is not None:
            reason = "they cannot be written as functions of sums over independent units"
        else:
            reason = (
                f"they need the weight of each item; compare with {arg('engine', 'memory')} to compute them"
            )
        if reason:
            found.setdefault(Message(reason), []).append(metric.name)
    return found


def components_of_rows(comparison: ComparisonData) -> Codes:
    """Return the connected component of each row that all runs score."""
    table = comparison[comparison.baseline].contingency
    assert table.rows is not None
    units = comparison._components[list(comparison).index(comparison.baseline)]
    return units.by_cell()[table.rows.cell[: require_rows(comparison)]]


def units_of_rows(comparison: ComparisonData) -> NDArray[np.integer]:
    """Return the requested unit of each row that all runs score."""
    if comparison.unit == COMPONENT:
        return components_of_rows(comparison)
    first, n = comparison[comparison.baseline], require_rows(comparison)
    if comparison.unit == TRUE_CLUSTER:
        assert first.contingency.rows is not None
        return first.contingency.true[first.contingency.rows.cell[:n]]
    return slice_codes(comparison.unit, first.contingency, first.kept_items(), first.attributes).codes[:n]


def beside_baseline(comparison: ComparisonData, name: str) -> ComparisonData:
    """Return the comparison of only the baseline and one other run."""
    return comparison._copy(
        [run for run in comparison if run in (comparison.baseline, name)], comparison.baseline
    )


#: The beginning of messages about parts that a loaded comparison does not have.
NOT_SAVED = "a saved comparison does not contain clusters and items; compare the runs again to get"


def require_cells(comparison: ComparisonData) -> None:
    """Raise NotKeptError if the comparison was loaded, and therefore has no cells."""
    if not comparison[comparison.baseline].contingency.has_cells:
        raise NotKeptError(f"{NOT_SAVED} them, other slices or another baseline")


def require_rows(comparison: ComparisonData) -> int:
    """Return how many of the first rows all runs have in common; raise NotKeptError if they have no common order."""
    require_cells(comparison)
    if any(ev.contingency.overlapping for ev in comparison.runs.values()):
        raise NotKeptError(
            "listing the items or opening a cluster of a comparison needs the items of all runs in one "
            "order, which overlapping clusterings do not have; open the runs one by one, as in "
            "cmp[name].items()"
        )
    if not comparison._shared:
        each = comparison.align == "each"
        lacking, own, instead = ("align", "each", "common") if each else ("engine", "disk", "memory")
        raise NotKeptError(
            "clusters and items of a comparison need the items of all runs in one order, which "
            f"{arg(lacking, own)} does not keep; pass {arg(lacking, instead)}"
        )
    return comparison.n_items


def of_all_rows(comparison: ComparisonData, values: NDArray[np.integer], other: int) -> NDArray[np.int64]:
    """Return values for all rows of the baseline: those of the rows that all runs score, and `other` for the rest."""
    rows = comparison[comparison.baseline].contingency.rows
    assert rows is not None
    found = np.full(rows.cell.size, other)
    found[: values.size] = values
    return found
