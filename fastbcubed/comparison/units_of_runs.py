"""Units of a comparison: what could have been drawn otherwise, in the truth and in all runs at once.

Two true clusters belong to one unit if any run puts items of both into one cluster. So a unit is a set of true
clusters, which are known by numbers that are the same in all runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.comparison.cells_by_unit import Piece
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.joining import match
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources import as_column
from fastbcubed.sources.keys import comparable_keys

Numbers = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class RunUnits:
    """The unit of each true cluster of each run."""

    #: run by run, by code of the true cluster; -1 for one that is a unit by itself, as all runs find it exactly
    of_true: list[Numbers]
    n: int  #: units, with or without scored items, but for those


def components_of_runs(runs: Sequence[Sequence[Piece]], numbers: Sequence[Numbers] | None) -> RunUnits:
    """Return the connected components of the truth and of the predictions of all runs.

    `numbers` are those of the true clusters of each run; None if their codes are the same in all runs. Then those in no
    piece are at -1.
    """
    pieces = [(piece, r) for r, run in enumerate(runs) for piece in run]
    if numbers is None:
        linked = np.logical_or.reduce([piece.linked for piece, _ in pieces])
        parents: Numbers = np.where(linked, np.arange(linked.size, dtype=pieces[0][0].left.dtype), -1)
    else:
        parents = np.arange(1 + max(int(own.max(initial=-1)) for own in numbers))
    for piece, r in pieces:
        pairs = piece.left, piece.right
        if numbers is not None:
            pairs = numbers[r][piece.left], numbers[r][piece.right]
        kernels.components.join_pairs(*pairs, parents)
    n = int(kernels.components.number_components(parents))
    return RunUnits([parents] * len(runs) if numbers is None else [parents[own] for own in numbers], n)


def true_clusters_of_runs(tables: Sequence[Contingency], numbers: Sequence[Numbers] | None) -> RunUnits:
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
    """Tell whether keys are the same in all runs; they are compared block by block, so that a difference ends it."""
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
        as_column(ev.cluster_labels("true", codes), "cluster") for ev, codes in zip(runs, there, strict=True)
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
            as_column(ev.kept_items().ids(ev.first_rows("true")[codes]), "item")
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
