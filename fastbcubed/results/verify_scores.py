"""Verification: items drawn at random, and the overall scores, recomputed from the rows by their definition.

Nothing here goes through the cells: labels are compared row by row, with pandas and NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import SIDES
from fastbcubed.errors import ColumnError, OptionError, SliceError, VerificationError, first_few
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import to_numpy
from fastbcubed.metrics.sums import overall
from fastbcubed.render.number_formats import count
from fastbcubed.results.items import without_noise
from fastbcubed.results.slice_bins import element_of
from fastbcubed.results.slices import name_columns
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import seed_of, whole_number
from fastbcubed.runtime.memory_budget import require_within

if TYPE_CHECKING:
    from fastbcubed.results.evaluation import Evaluation

#: Tolerance of figures added up in another order, relative to the larger one and 1.
ROUNDING = 1e-9
#: Bytes of a row while rows are compared, if its labels are numbers.
ROW_BYTES = 150
#: Differences that a message shows.
SHOWN = 5


@dataclass(frozen=True)
class Verified:
    """The results of verification: recomputed items, scores over all items, slicings."""

    n_items: int
    scores: tuple[str, ...]
    slices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        items = f"{count(self.n_items)} item{' agrees' if self.n_items == 1 else 's agree'}"
        scores = f"{count(len(self.scores))} score{'' if len(self.scores) == 1 else 's'} over all items"
        slices = f" and {count(len(self.slices))} slicing{'' if len(self.slices) == 1 else 's'}"
        return f"verified: {items} with the rows, and so do {scores}{slices if self.slices else ''}"


def verify(ev: Evaluation, n: int, seed: int) -> Verified:
    """Return the verified figures, or raise VerificationError; see `Evaluation.verify`."""
    n, seed = whole_number(n, "n", "items", least=1), seed_of(seed)
    needed = ROW_BYTES * len(ev.kept_items())
    require_within(ev.kept.memory_limit, needed, "verification", "rows", ", or a part of the items")
    rows = Rows(ev)
    chosen = rows.draw(n, seed)
    faults: dict[str, list[str]] = {"items": [], "scores": []}
    for row in chosen.tolist():
        told = _differences(rows.stored(row), rows.anew(row))
        if told:
            faults["items"].append(
                f"item {first_few(ev.kept_items().ids(np.array([row])).to_pylist())}: {told}"
            )
    anew = {name: value for name, value in rows.scores().items() if name in ev.overall}
    here = [m for m in ev.metrics if not (m.saved or (m.of_mentions and ev.figures.of_mentions))]
    of_cells = overall(ev.contingency, here, beta=ev.beta)
    stored = dict(ev.overall)
    for source, found in (("the rows", anew), ("the cells", of_cells)):
        told = _differences({name: stored[name] for name in found if name in stored}, found, source)
        if told:
            faults["scores"].append(told)
    slices, of_slices = _slices_differ(ev)
    faults["scores"] += of_slices
    if any(faults.values()):
        raise VerificationError(_message(ev, chosen.size, faults))
    return Verified(int(chosen.size), tuple(of_cells), tuple(slices))


def _message(ev: Evaluation, n: int, faults: dict[str, list[str]]) -> str:
    items, scores = faults["items"], faults["scores"]
    parts = []
    if items:
        shown = "; ".join(items[:SHOWN]) + ("; …" if len(items) > SHOWN else "")
        parts.append(f"{count(len(items))} of {count(n)} items differ from what their rows say ({shown})")
    if scores:
        parts.append(f"over all items, {'; '.join(scores[:SHOWN])}")
    return (
        f"the result does not hold: {'; '.join(parts)}. If it was loaded, its files were changed: evaluate and save "
        "anew. If it was not, please report it: this is an error of fastbcubed"
    )


def _differences(stored: dict[str, float], anew: dict[str, float], source: str = "the rows") -> str:
    """Describe which figures differ; empty if none does. NaN equals NaN."""
    found = []
    for name, value in stored.items():
        other = anew[name]
        if math.isnan(value) and math.isnan(other):
            continue
        if not abs(value - other) <= ROUNDING * max(
            1.0 if name not in Rows.MATRIX else 0.0, abs(value), abs(other)
        ):
            found.append(f"{name} is {value:.10g}, and {other:.10g} from {source}")
    return ", ".join(found)


def _slices_differ(ev: Evaluation) -> tuple[list[str], list[str]]:
    """Return the recomputed slicings and their differences; subsets cannot be recomputed."""
    done, faults = [], []
    for by, table in ev.sliced.items():
        anew = _sliced_anew(ev, by)
        if anew is None:
            continue
        done.append(by)
        shared = [name for name in table.column_names if name in anew.column_names]
        if anew.num_rows != table.num_rows or not all(_equal(table[name], anew[name]) for name in shared):
            faults.append(f"slices by {by} are not those that the cells give")
    return done, faults


def _sliced_anew(ev: Evaluation, by: str) -> Table | None:
    """Return a requested slicing once more, by attributes or else by bins; None if it is of subsets by name."""
    columns = name_columns(ev.sliced[by].column_names)
    ways = columns, [column.removeprefix("attribute.") for column in columns]
    names = next((names for names in ways if ",".join(names) == by), ())
    for read in (str, element_of):
        try:
            elements = tuple(map(read, names))
            key = elements[0] if len(elements) == 1 else elements
            return ev.slices(key)  # of none, SliceError
        except (ColumnError, SliceError, OptionError):
            continue
    return None


def _equal(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    if not (pa.types.is_floating(a.type) and pa.types.is_floating(b.type)):
        return bool(a.to_pylist() == b.to_pylist())
    return bool(np.allclose(to_numpy(a), to_numpy(b), rtol=ROUNDING, atol=ROUNDING, equal_nan=True))


class Rows:
    """The rows of an evaluation as they were given: labels, weights, and which of them count."""

    #: Figures of one item; compared relative to their size alone.
    MATRIX = ("tp", "fp", "fn")

    def __init__(self, ev: Any) -> None:
        items, rows = ev.kept_items(), ev.kept.rows
        self._table = ev.contingency
        self._cell = rows.cell
        self._scored = rows.cell >= 0
        counts = self._table.weighting == "outer" or not self._table.weighted
        self._weight = np.ones(self._scored.size) if not self._table.weighted else np.asarray(rows.weight)
        self._mass = np.ones(self._scored.size) if counts else self._weight
        labels = {side: items.labels(side) for side in SIDES}
        self._counts = self._scored
        if ev.policies.prediction == "outside":
            lacks_true, lacks_pred = (to_numpy(labels[side].is_null()) for side in SIDES)
            self._counts = self._scored | (lacks_true & ~lacks_pred)
        # the weight of an item that is left out may be NaN
        self._mass = np.where(self._counts, self._mass, 0.0)
        make = _sets if self._table.overlapping else _codes
        self._labels: dict[str, Any] = {
            side: make(labels[side], ev.policies.noise_of(side), self._counts) for side in SIDES
        }

    def draw(self, n: int, seed: int) -> NDArray[np.int64]:
        """Return scored rows, drawn at random."""
        scored = np.flatnonzero(self._scored)
        return np.sort(np.random.default_rng(seed).choice(scored, min(n, scored.size), replace=False))

    def stored(self, row: int) -> dict[str, float]:
        """Return the figures that the cells give an item."""
        cell, table = int(self._cell[row]), self._table
        tp, fp, fn = float(table.tp[cell]), float(table.fp[cell]), float(table.fn[cell])
        if table.overlapping:
            return {"precision": tp / (tp + fp), "recall": tp / (tp + fn)}
        return dict(zip(self.MATRIX, (tp, fp, fn), strict=True))

    def anew(self, row: int) -> dict[str, float]:
        """Return the same from the items that share a label with it."""
        if (
            self._table.overlapping
        ):  # Extended BCubed: how many clusters are shared with each item on either side
            true, pred = (self._labels[side].shared(row, self._scored.size) for side in SIDES)
            true = np.where(self._scored, true, 0)
            found = {}
            for name, own in (("precision", pred), ("recall", true)):
                mates = np.flatnonzero(own)
                alike = np.minimum(true[mates], pred[mates]) / own[mates]
                found[name] = float((self._mass[mates] * alike).sum() / self._mass[mates].sum())
            return found
        true, pred = (self._labels[side] == self._labels[side][row] for side in SIDES)
        with_true, with_pred = true & self._scored, pred & self._counts
        return {
            "tp": float(self._mass[with_true & with_pred].sum()),
            "fp": float(self._mass[with_pred & ~with_true].sum()),
            "fn": float(self._mass[with_true & ~with_pred].sum()),
        }

    def scores(self) -> dict[str, float]:
        """Return precision, recall and F1 over all items, from how many share both labels or one; none of covers."""
        if self._table.overlapping:
            return {}
        pred_mass = np.bincount(self._labels["pred"], self._mass)
        true_mass = np.bincount(self._labels["true"], self._mass * self._scored)
        pairs = [self._labels[side][self._scored] for side in SIDES]
        _, pair = np.unique(pairs[0] * pred_mass.size + pairs[1], return_inverse=True)
        together = np.bincount(pair, self._mass[self._scored])[pair]
        weight = self._weight[self._scored]
        found = {
            "precision": float((weight * (together / pred_mass[pairs[1]])).sum() / weight.sum()),
            "recall": float((weight * (together / true_mass[pairs[0]])).sum() / weight.sum()),
        }
        p, r = found.values()
        return {**found, "f1": 2 * p * r / (p + r) if p + r else 0.0}


def _codes(labels: Any, noise: Any, counts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a number for each row, equal where labels are; rows without label, and with that of noise, are alone."""
    import pandas as pd

    labels = without_noise(_whole(labels), noise)
    parts = labels.flatten() if pa.types.is_struct(labels.type) else [labels]
    alone = np.zeros(len(labels), np.bool_)
    columns = {}
    for k, part in enumerate(parts):
        part = part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
        alone |= to_numpy(part.is_null())
        columns[k] = (part.fill_null(0) if pa.types.is_integer(part.type) else part).to_pandas()
    codes = pd.DataFrame(columns).groupby(list(columns), sort=False, dropna=False).ngroup().to_numpy().copy()
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    return codes.astype(np.int64)


class _Sets:
    """Labels of rows that may have several: the row and the label of each membership."""

    def __init__(self, rows: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        self._rows, self._codes = rows, codes

    def shared(self, row: int, n: int) -> NDArray[np.int64]:
        """Return how many labels each of some rows shares with a row."""
        own = self._codes[self._rows == row]
        return np.bincount(self._rows[np.isin(self._codes, own)], minlength=n)


def _sets(labels: Any, noise: Any, counts: NDArray[np.bool_]) -> _Sets:
    lists = _whole(labels)
    rows = to_numpy(pc.list_parent_indices(lists)).astype(np.int64)
    codes = _codes(pc.list_flatten(lists), noise, counts)
    lacking = np.flatnonzero(counts & (np.bincount(rows, minlength=len(lists)) == 0))  # alone by policy
    fresh = codes.max(initial=-1) + 1 + np.arange(lacking.size)
    here = counts[rows]
    return _Sets(np.concatenate([rows[here], lacking]), np.concatenate([codes[here], fresh]))


def _whole(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
