"""Units of a comparison: cells of several runs by unit, and units that could have been drawn otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import Message, NotKeptError, arg
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.inputs.keys import comparable_keys
from fastbcubed.metrics.metric import Metric
from fastbcubed.results import clusters
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.slices import slice_codes
from fastbcubed.results.standard_errors import COMPONENT, TRUE_CLUSTER, why_none
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.key_partitions import match, offsets
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes

if TYPE_CHECKING:
    from fastbcubed.compare_runs.comparison import Comparison

#: Where a component of all runs has a larger share of the weight, units are those of the two runs compared.
HEAVY_SHARE = 0.1
#: Into how many pieces the cells of a run are cut; each has a mark for every true cluster.
PIECES = 2
#: Bytes of the sums of a range of units, and ranges at most.
ROOM, MOST_RANGES = 1 << 19, 1 << 12


class Alone(NamedTuple):
    """True clusters that all runs find exactly: those that have weight."""

    n: int = 0
    squares: float = 0.0  #: of their weights, added up
    fourths: float = 0.0  #: fourth powers of these
    largest: float = 0.0  #: the largest weight


NONE_ALONE = Alone()


class Piece(NamedTuple):
    """The true clusters in a range of the cells of a run."""

    cells: np.ndarray  #: all of them
    places: Codes  #: of those whose two clusters differ, and of those whose true cluster was asked for
    codes: Codes  #: their true clusters
    linked: NDArray[np.bool_]  #: the true clusters of these; shape (n_true,)
    left: Codes  #: pairs of true clusters that a predicted one has items of
    right: Codes
    alone: Alone  #: the cells left out

    @classmethod
    def of(cls, table: Contingency, start: int, stop: int, wanted: NDArray[np.bool_], firsts: Codes) -> Piece:
        """Look through a stretch of cells; `firsts` is room for a true cluster by predicted one, -1 at first."""
        cells = table.cells[start:stop]
        linked = np.zeros(table.n_codes["true"], np.bool_)
        places, codes, merged, left, right = buffers.empty((5, cells.size), firsts.dtype)
        n, n_merged, *of_alone = kernels.components.find_cells(cells, wanted, linked, places, codes, merged)
        n_pairs = kernels.components.pair_clusters(
            cells, table.pred[start:stop], merged[:n_merged], firsts, left, right
        )
        return cls(cells, places[:n], codes[:n], linked, left[:n_pairs], right[:n_pairs], Alone(*of_alone))


def pieces_of_runs(tables: Sequence[Contingency], every: bool, pool: Pool) -> list[list[Piece]]:
    """Return the pieces of each run: of cells of true clusters that any run does not find exactly, or of `every` one.

    Without `every`, codes of true clusters are the same in all runs. What the others do not find exactly is asked for
    in the first one, whose cells tell the weights.
    """
    others = _pieces(tables[1:], every, None, pool)
    marks = [piece.linked for run in others for piece in run]
    wanted = np.logical_or.reduce(marks) if marks and not every else None
    return _pieces(tables[:1], every, wanted, pool) + others


def _pieces(
    tables: Sequence[Contingency], every: bool, wanted: NDArray[np.bool_] | None, pool: Pool
) -> list[list[Piece]]:
    """Return the pieces of each run; `wanted` are true clusters besides those that a run does not find exactly."""
    none = np.ones(0, np.bool_) if wanted is None else wanted
    pool.map(lambda table: table.pred, tables, stage="units")
    stretches = [_stretches(table) for table in tables]
    tasks = [
        (table, *stretch, np.ones(table.n_codes["true"], np.bool_) if every else none, firsts)
        for table, own, firsts in zip(tables, stretches, _room_for_firsts(tables), strict=True)
        for stretch in own
    ]
    found = iter(pool.map(lambda task: Piece.of(*task), tasks, stage="units"))
    return [[next(found) for _ in own] for own in stretches]


def _stretches(table: Contingency) -> list[tuple[int, int]]:
    """Cut the cells of a run so that no predicted cluster is in two stretches."""
    ends = np.searchsorted(table.parts, np.arange(PIECES + 1) * table.n_cells // PIECES)
    return list(pairwise(np.unique(table.parts[ends]).tolist()))


def _room_for_firsts(tables: Sequence[Contingency]) -> list[Codes]:
    """Return room for a true cluster by predicted one, for each run; in 32 bits, if these do, as it is met at random.

    That of all runs is one stretch of memory: there is used one of about that size.
    """
    most = max(sum(table.n_codes["true"] for table in tables), *(table.n_cells for table in tables), 0)
    dtype = np.int32 if most < 2**31 else np.int64
    ends = np.cumsum([0] + [table.n_codes["pred"] for table in tables])
    room = buffers.empty(int(ends[-1]), dtype)
    room[:] = -1
    return [room[start:stop] for start, stop in pairwise(ends.tolist())]


@dataclass(frozen=True, eq=False)
class CellsByUnit:
    """The cells of pieces by run, and by range of units in each; their `true` is their unit."""

    cells: np.ndarray
    bounds: NDArray[np.int64]  #: where the cells of each range begin; shape (n_runs, n_ranges + 1)
    shift: int  #: a range has 2**shift units
    n_units: int
    alone: Alone  #: true clusters that are units by themselves, and at no place

    @classmethod
    def of(
        cls, runs: Sequence[Sequence[Piece]], units: Sequence[Codes], n_units: int, width: int, pool: Pool
    ) -> CellsByUnit:
        """Bring the cells of pieces together; a unit has `width` sums, those of all runs. Pieces are written over."""
        per_range = max(kernels.partition.RUN, ROOM // (8 * width), n_units // MOST_RANGES)
        shift = int(per_range - 1).bit_length()
        pieces = [(piece, codes) for run, codes in zip(runs, units, strict=True) for piece in run]
        counts = np.zeros((len(pieces), 1 + ((n_units - 1) >> shift)), np.int64)
        pool.map(
            lambda piece, own: kernels.units.name_units(piece[0].codes, piece[1], shift, own),
            pieces, counts, stage="units",
        )  # fmt: skip
        of_run = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
        by_run = [offsets(counts[of_run == r]) for r in range(len(runs))]
        bases = np.cumsum([0] + [int(bounds[-1]) for bounds, _ in by_run])
        next_cell = np.concatenate([own + base for (_, own), base in zip(by_run, bases, strict=False)])
        out = buffers.empty(int(bases[-1]), pieces[0][0].cells.dtype)
        pool.map(
            lambda piece, to: kernels.units.scatter_units(*piece[0][:3], shift, to, out),
            pieces, next_cell, stage="units",
        )  # fmt: skip
        bounds = np.array([own + base for (own, _), base in zip(by_run, bases, strict=False)])
        n, squares, fourths, largest = zip(*(piece.alone for piece in runs[0]), strict=True)
        alone = Alone(sum(n), math.fsum(squares), math.fsum(fourths), max(largest))
        return cls(out, bounds, shift, n_units, alone)


@dataclass(frozen=True, eq=False)
class RunUnits:
    """The unit of each true cluster of each run."""

    #: run by run, by code of the true cluster; -1 for one that is a unit by itself, as all runs find it exactly
    of_true: list[Codes]
    n: int  #: units, with or without scored items, but for those


def components_of_runs(runs: Sequence[Sequence[Piece]], numbers: Sequence[Codes] | None) -> RunUnits:
    """Return the connected components of the truth and of the predictions of all runs.

    `numbers` are those of the true clusters of each run; None if their codes are the same in all runs. Then those in no
    piece are at -1.
    """
    pieces = [(piece, r) for r, run in enumerate(runs) for piece in run]
    if numbers is None:
        linked = np.logical_or.reduce([piece.linked for piece, _ in pieces])
        parents: Codes = np.where(linked, np.arange(linked.size, dtype=pieces[0][0].left.dtype), -1)
    else:
        parents = np.arange(1 + max(int(own.max(initial=-1)) for own in numbers))
    for piece, r in pieces:
        pairs = piece.left, piece.right
        if numbers is not None:
            pairs = numbers[r][piece.left], numbers[r][piece.right]
        kernels.components.join_pairs(*pairs, parents)
    n = int(kernels.components.number_components(parents))
    return RunUnits([parents] * len(runs) if numbers is None else [parents[own] for own in numbers], n)


def true_clusters_of_runs(tables: Sequence[Contingency], numbers: Sequence[Codes] | None) -> RunUnits:
    """Return the true clusters as units; parameters are those of `components_of_runs`."""
    if numbers is None:
        n = tables[0].n_codes["true"]
        return RunUnits([np.arange(n)] * len(tables), n)
    n = 1 + max(int(own.max(initial=-1)) for own in numbers)
    return RunUnits([np.asarray(own, np.int64) for own in numbers], n)


def number_keys(keys: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return numbers of the true clusters of each run from their keys by code; those of the first run are its codes."""
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
    """Return whether keys are the same in all runs; blocks are compared until one differs."""
    sizes = {own.size for own in keys}
    return len(sizes) == 1 and all(
        np.array_equal(keys[0][start:stop], own[start:stop])
        for start, stop in blocks(sizes.pop())
        for own in keys[1:]
    )


def number_true_clusters(runs: Sequence[Evaluation]) -> list[NDArray[np.int64]]:
    """Return numbers of the true clusters of each run by code: the same label, the same number.

    A cluster that a policy has made has no label; its one item stands for it, if the items are at hand. One without
    a scored item has a number of its own.
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
    """Write numbers from `first` on at codes of each run, equal keys alike, and return the next one."""
    with Pool(1) as pool:
        numbered = number(np.concatenate(keys), pool)
    start = 0
    for numbers, own in zip(found, codes, strict=True):
        numbers[own] = first + numbered.codes[start : start + own.size]
        start += own.size
    return first + numbered.firsts.size


# -- The units of a comparison ---------------------------------------------------------------------


def is_heavy(share: float) -> bool:
    """Return whether a component of all runs is too heavy for units; rounding does not decide."""
    return share > HEAVY_SHARE + 1e-9


def why_no_errors(comparison: Comparison) -> Message | None:
    """Return why differences have no standard errors; None if they have."""
    evs = comparison.runs.values()
    if any(ev.contingency.overlapping for ev in evs):
        return Message("clusters may overlap, and paired errors are computed for partitions only")
    require_cells(comparison)
    if comparison._true_keys is not None and any(map(_makes_true_clusters, evs)):
        return Message(
            "policies have made true clusters of single items, which the disk engine does not distinguish in "
            f"several runs; compare with {arg('engine', 'memory')}"
        )
    return None


def _makes_true_clusters(ev: Evaluation) -> bool:
    """Return whether policies may have made true clusters of single items."""
    made = [(ev.policies.prediction, ev.coverage.n_prediction_only), (ev.policies.nulls, ev.coverage.n_null)]
    return ev.coverage.n_noise > 0 or any(policy == "singleton" and n > 0 for policy, n in made)


def metrics_with_errors(comparison: Comparison) -> list[Metric]:
    """Return the scores whose differences have standard errors."""
    found = [m for m in comparison.metrics if why_none(m) is None]
    for ev in comparison.runs.values():
        found = clusters.known_by_unit(ev.contingency, found, ev.beta)
    return found


def numbers_of_true_clusters(comparison: Comparison) -> list[NDArray[np.int64]] | None:
    """Return numbers of the true clusters of each run by code; None if items and codes are the same in all runs."""
    if comparison._shared:
        return None
    keys = None if comparison._true_keys is None else list(comparison._true_keys.values())
    if keys is not None and comparison.align == "common" and are_alike(keys):
        return None
    evs = list(comparison.runs.values())
    made = any(map(_makes_true_clusters, evs))  # whose keys are of one run
    return number_true_clusters(evs) if keys is None or made else number_keys(keys)


def components_of_comparison(comparison: Comparison) -> RunUnits:
    """Return the connected component, of the truth and all runs, of each true cluster of each run."""
    tables = [ev.contingency for ev in comparison.runs.values()]
    with Pool() as pool:
        return components_of_runs(pieces_of_runs(tables, True, pool), comparison._true_numbers)


def components_of_rows(comparison: Comparison) -> NDArray[np.int64]:
    """Return the component of each row that all runs score."""
    table = comparison[comparison.baseline].contingency
    assert table.rows is not None
    of_true = comparison._components.of_true[list(comparison).index(comparison.baseline)]
    return of_true[table.true[table.rows.cell[: require_rows(comparison)]]]


def units_of_rows(comparison: Comparison) -> NDArray[np.integer]:
    """Return the requested unit of each row that all runs score."""
    if comparison.unit == COMPONENT:
        return components_of_rows(comparison)
    first, n = comparison[comparison.baseline], require_rows(comparison)
    if comparison.unit == TRUE_CLUSTER:
        assert first.contingency.rows is not None
        return first.contingency.true[first.contingency.rows.cell[:n]]
    return slice_codes(comparison.unit, first.contingency, first.kept_items(), first.attributes).codes[:n]


def beside_baseline(comparison: Comparison, name: str) -> Comparison:
    """Return the baseline and one other run alone."""
    return comparison._copy(
        [run for run in comparison if run in (comparison.baseline, name)], comparison.baseline
    )


#: The beginning of messages on what a comparison lacks that was loaded.
NOT_SAVED = "a comparison is saved without clusters and items; compare the runs again to have"


def require_cells(comparison: Comparison) -> None:
    """Raise if the comparison was loaded, and has no cells of the runs."""
    if isinstance(comparison[comparison.baseline].contingency, NoCells):
        raise NotKeptError(f"{NOT_SAVED} them, other slices or another baseline")


def require_rows(comparison: Comparison) -> int:
    """Return how many rows, the first ones, all runs have in common; raise if they are not in one order."""
    require_cells(comparison)
    if not comparison._shared:
        raise NotKeptError(
            f"the items of all runs are not kept in one order; compare in memory, with {arg('align', 'common')}"
        )
    return comparison.n_items


def of_all_rows(comparison: Comparison, values: NDArray[np.integer], other: int) -> NDArray[np.int64]:
    """Return values of the rows that all runs score for all rows of the baseline, where `other` stands for the rest."""
    rows = comparison[comparison.baseline].contingency.rows
    assert rows is not None
    found = np.full(rows.cell.size, other)
    found[: values.size] = values
    return found
