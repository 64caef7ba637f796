"""What the truth says of a diff: scores of the joint cells of truth, baseline and experiment, at every level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.build import cells_of_keys
from fastbcubed.cells.joint import Joint, join
from fastbcubed.changes.labelling import Labelled
from fastbcubed.metrics import aggregation, groups
from fastbcubed.metrics import quality as formulas
from fastbcubed.metrics.change_quality import judged
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.rates import f_measure
from fastbcubed.results.estimates import Estimated
from fastbcubed.results.warnings.of_coverage import OfRun, runs_lack_items
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.pool import Pool
from fastbcubed.uncertainty.standard_errors import RowUnits, errors_of_cells, errors_of_rows
from fastbcubed.uncertainty.units import CellUnits, Units, components, count_units, units_by_code

#: What baseline and experiment are by themselves, beside the truth.
LEVELS = {
    "baseline": {
        "precision": formulas.precision_of_baseline,
        "recall": formulas.recall_of_baseline,
        "jaccard_distance": formulas.distance_of_baseline,
    },
    "experiment": {
        "precision": formulas.precision_of_experiment,
        "recall": formulas.recall_of_experiment,
        "jaccard_distance": formulas.distance_of_experiment,
    },
}


@dataclass(frozen=True)
class Verdict:
    """What the truth says of all items together.

    Attributes
    ----------
    n_items, weight
        The items that truth, baseline and experiment have, which the truth is asked about.
    n_unlabelled, weight_unlabelled
        Those that baseline and experiment have and the truth lacks.
    unlabelled : {"drop", "outside"}
        What was done with these.
    scores : dict of str to float
        The scores that judge the change, by name.
    levels : dict of str to dict
        By "baseline" and "experiment": precision, recall and jaccard_distance against the truth, on these items.
    """

    n_items: int
    weight: float
    n_unlabelled: int
    weight_unlabelled: float
    unlabelled: str
    scores: Mapping[str, float]
    levels: Mapping[str, Mapping[str, float]]


NONE_LACKS: Mapping[str, OfRun] = {}


class Judgement:
    """The items that truth, baseline and experiment have, and the joint cells that they are in.

    Items that the baseline lacks are mates of these where the policy "outside" merges them.
    """

    def __init__(
        self, ev: Estimated, labelled: Labelled, unlabelled: str, alone: Mapping[str, OfRun] = NONE_LACKS
    ) -> None:
        """Take what is judged; `alone` is what the truth says of each side by itself, where one lacks items of it."""
        self._ev, self._labelled, self.unlabelled, self._alone = ev, labelled, unlabelled, alone

    @cached_property
    def joint(self) -> Joint:
        """The joint cells."""
        table, cell, new = self._ev.contingency, self._cell, self._labelled.new
        known = None
        if self.unlabelled == "outside" or (cell.size == table.n_items and not table.outside):
            known = table, cell
        before = np.concatenate([table.true[cell], table.n_codes["true"] + np.arange(new.size)])
        keys = self._labelled.keys, before, np.concatenate([table.pred[cell], new])
        with Pool() as pool:
            return join(*keys, self._weight, pool, weighting=table.weighting, change=known, n_new=new.size)

    @property
    def _cell(self) -> NDArray[np.int64]:
        """The cell of each judged row among those of baseline and experiment."""
        return self._ev._rows().cell[self._labelled.judged]

    @property
    def _weight(self) -> NDArray[np.float64] | None:
        rows = self._ev._rows()
        return rows.weight[self._labelled.rows] if self._ev.contingency.weighted else None

    def at_rest(self) -> Judgement:
        """Return it without what can be worked out again."""
        return Judgement(self._ev, self._labelled, self.unlabelled, self._alone)

    def lacking(self, verdict: Verdict) -> list[dict[str, Any]]:
        """Return a warning, or a note, if a side lacks items of the truth, which are judged on neither."""
        shown = {}
        for side, run in self._alone.items():
            level = verdict.levels[side]
            shown[side] = run._replace(shown_f1=float(f_measure(level["precision"], level["recall"])))
        return list(runs_lack_items(shown, common=True, policy='"singleton"'))

    # Scores

    def verdict(self, metrics: Sequence[Metric]) -> Verdict:
        """Return scores over all labelled items, and what baseline and experiment are by themselves."""
        joint, table = self.joint, self._ev.contingency
        scores = self.overall(metrics)
        levels = {
            side: {name: self._mean(formula(joint.sets)) for name, formula in own.items()}
            for side, own in LEVELS.items()
        }
        n, weight = joint.cells.n_items, joint.cells.total_weight
        rest = table.n_items - n, max(0.0, table.total_weight - weight) if table.n_items > n else 0.0
        return Verdict(n, weight, *rest, self.unlabelled, scores, levels)

    def overall(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return scores over all labelled items."""
        with Pool() as pool:
            return aggregation.overall(self.joint.cells, judged(self.joint, metrics), pool=pool)

    def _mean(self, scores: NDArray[np.float64]) -> float:
        cells = self.joint.cells
        ones = np.zeros(cells.n_cells, np.int64)
        return float(cells.add_by_cluster(ones, 1, scores)[0] / cells.total_weight)

    def of_slices(
        self, codes: NDArray[np.integer], n: int, metrics: Sequence[Metric], *, errors: bool
    ) -> dict[str, Any]:
        """Return n_labelled and scores of slices of all rows, by their codes; with errors if asked."""
        own, joint = codes[self._labelled.judged], self.joint
        lifted = judged(joint, metrics)
        found = _means(joint, own, n, lifted, by_row=True)
        if not errors:
            return found
        rows = RowUnits.of(joint.cells, own, n, self._units_of_cells[joint.cells.rows.cell])  # type: ignore[union-attr]
        of = errors_of_rows(joint.cells, lifted, 1.0, rows).errors
        return {
            name: each
            for known, values in found.items()
            for name, each in ((known, values), (f"{known}_se", of.get(known)))
            if each is not None
        }

    def of_clusters(self, side: str, metrics: Sequence[Metric]) -> dict[str, Any]:
        """Return n_labelled and scores of the clusters of a side of the evaluation, by their codes."""
        table, joint = self._ev.contingency, self.joint
        codes = (table.true if side == "true" else table.pred)[self._cell[joint.row]]
        return _means(joint, np.ascontiguousarray(codes), table.n_codes[side], judged(joint, metrics))

    def of_items(self, metrics: Sequence[Metric]) -> dict[str, NDArray[np.float64]]:
        """Return scores of each row of the evaluation; NaN where it is not labelled."""
        found = {}
        assert self.joint.cells.rows is not None
        for metric in metrics:
            if metric.of_sets is not None and metric.item_name is not None:
                scores = np.full(self._ev._rows().n_rows, np.nan)
                scores[self._labelled.judged] = metric.of_sets(self.joint.sets)[self.joint.cells.rows.cell]
                found[metric.item_name] = scores
        return found

    # Standard errors

    @cached_property
    def _units_of_cells(self) -> NDArray[np.int64]:
        """The connected component of truth, baseline and experiment that each joint cell is in."""
        table, cell = self._ev.contingency, self._cell
        linked, new = self._ev._components.by_cell(table.n_cells), self._labelled.new
        by_cluster = table.n_cells + np.arange(table.n_codes["pred"] + new.size)
        by_cluster[table.pred] = linked
        joined = np.concatenate([linked[cell], by_cluster[new]])
        with Pool() as pool:
            every = cells_of_keys(self._labelled.keys, joined, None, pool, weighting="pointwise")
        assert every.rows is not None
        return components(every).by_cell(every.n_cells)[every.rows.cell[self.joint.row]]

    @cached_property
    def _cell_units(self) -> CellUnits:
        codes = self._units_of_cells
        return units_by_code(codes, int(codes.max()) + 1)

    @cached_property
    def units(self) -> Units:
        """How many components the labelled items come in."""
        return count_units(self.joint.cells, self._cell_units)

    def errors(self, metrics: Iterable[Metric]) -> dict[str, float]:
        """Return the standard errors of scores over all labelled items."""
        lifted = judged(self.joint, metrics)
        with Pool() as pool:
            return errors_of_cells(self.joint.cells, lifted, 1.0, self._cell_units, self.units.n, pool)


def _means(
    joint: Joint, codes: NDArray[np.integer], n: int, metrics: Sequence[Metric], *, by_row: bool = False
) -> dict[str, Any]:
    found = groups.group_means(joint.cells, codes, n, metrics, beta=1.0, by_row=by_row)
    return {"n_labelled": found["n_items"], **{m.name: found[m.name] for m in metrics}}
