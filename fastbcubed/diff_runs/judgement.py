"""The judgement of a diff by a truth: the items with a true cluster, and their attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.attributes import attribute, refused
from fastbcubed.align.policies import Policies
from fastbcubed.align.rows import align
from fastbcubed.cells.build import cells_of_keys
from fastbcubed.cells.three_way import Joint, join
from fastbcubed.diff_runs.vocabulary import TRUE_CLUSTER
from fastbcubed.errors import ColumnError, FastBCubedError, IdTypeError, NotKeptError, OptionError, arg
from fastbcubed.inputs import arrays
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.metrics import aggregation as groups
from fastbcubed.metrics import bcubed
from fastbcubed.metrics.change import judged
from fastbcubed.metrics.metric import Metric, f_measure
from fastbcubed.metrics.sums import overall
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.influences import Errors
from fastbcubed.results.items import AlignedItems, AttributeTable
from fastbcubed.results.standard_errors import RowUnits, components, errors_of_units, units_of_codes
from fastbcubed.results.unit_cells import CellUnits, Units
from fastbcubed.results.warnings import OfRun, runs_lack_items
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Codes, Floats, RowNumbers


@dataclass(frozen=True, eq=False)
class Labelled:
    """The rows of a diff whose items the truth labels, and the keys of their true clusters."""

    rows: RowNumbers  #: scored rows, then new rows, which the policy "outside" counts as merged with scored ones
    keys: NDArray[np.int64]  #: key of each row's true cluster
    #: code of the experiment cluster of each new row; not a code of the cells if the cluster has no scored item
    new: NDArray[np.int64]

    @property
    def judged(self) -> RowNumbers:
        """The scored rows."""
        return self.rows[: self.rows.size - self.new.size]


@contextmanager
def weighed_by(truth: Clustering | None) -> Iterator[None]:
    """Make errors about the truth's weights name the truth, although these are joined like a table of weights."""
    try:
        yield
    except FastBCubedError as error:
        text = str(error)
        if truth is None or truth.weight is None or "the weight table" not in text:
            raise
        raise type(error)(text.replace("the weight table", truth.name)) from error


def label(
    ev: Evaluation, truth: Clustering, policies: Policies, pool: Pool
) -> tuple[Labelled, TruthAttributes]:
    """Return the rows of a diff that the truth labels, and the truth's attributes of all rows."""
    items, cell = ev.kept_items(), ev.kept.rows.cell
    ids = as_column(items.ids(), "item", "the items of baseline and experiment") if items.item_names else None
    if ids is not None and truth.items is not None:
        ids.order = truth.items.order  # values do not show the order
    both = Clustering.from_labels(cell, items=ids, name="baseline and experiment")
    policies = replace(policies, truth="drop", prediction="drop", noise=_noise_of_truth(policies))
    found = align(truth, both, policies, pool)
    true_rows, rows = (
        np.arange(len(found)) if own is None else own for own in (found.true_rows, found.pred_rows)
    )
    known = (rows >= 0) & (true_rows >= 0)
    row_of = np.full(cell.size, -1)
    row_of[rows[known]] = true_rows[known]
    if found.absent_true is not None:
        known &= found.true_keys != found.absent_true
    rows, keys = rows[known], found.true_keys[known]
    if not (cell[rows] >= 0).any():
        raise OptionError(
            f"none of the items that {truth.name} labels is in both the baseline and the experiment, so no change "
            f"can be judged; omit {arg('truth', ...)}"
        )
    assert isinstance(items, AlignedItems)
    labelled = _labelled(ev, rows, keys, items.in_prediction)
    return labelled, TruthAttributes(truth, row_of, ev.attributes, policies)


def _labelled(
    ev: Evaluation,
    rows: RowNumbers,
    keys: NDArray[np.int64],
    in_experiment: Callable[[], tuple[NDArray[np.bool_], NDArray[Any]]],
) -> Labelled:
    """Return the rows that the truth labels; `in_experiment` returns the experiment's rows and cluster keys."""
    scored = ev.kept.rows.cell[rows] >= 0
    new = codes = np.empty(0, np.int64)
    if ev.policies.prediction == "outside" and not scored.all():
        there, clusters = in_experiment()
        new, first = np.flatnonzero(~scored & there[rows]), ev.kept.first_rows["pred"]
        known = np.flatnonzero(first >= 0)
        every = np.concatenate([clusters[first[known]], clusters[rows[new]]])
        _, at, place = np.unique(every, return_index=True, return_inverse=True)
        codes = np.concatenate([known, first.size + np.arange(new.size)])[at[place]][known.size :]
    chosen = np.concatenate([np.flatnonzero(scored), new])
    return Labelled(rows[chosen], keys[chosen], codes)


def labelled_again(ev: Evaluation) -> Labelled:
    """Return the labelled rows of a loaded diff, from the true clusters that were saved with the items."""
    if ev.policies.nulls == "singleton":
        raise NotKeptError(
            f"with {arg('nulls', 'singleton')} a saved diff cannot distinguish items whose true cluster is "
            "null from items missing from the truth; call fastbcubed.diff again"
        )
    values = ev.kept_items().attribute("attributes", TRUE_CLUSTER)
    known, keys = _keys(values, _noise_of_truth(ev.policies))
    rows = np.flatnonzero(known)
    return _labelled(
        ev, rows, keys[rows], lambda: _keys(ev.kept_items().labels("pred"), ev.policies.noise_of("pred"))
    )


def _noise_of_truth(policies: Policies) -> Any:
    """Return the noise label of the truth; None if noise labels were given by side."""
    return None if isinstance(policies.noise, Mapping) else policies.noise


def _keys(values: Any, noise: Any) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which rows have a label, and keys of clusters; rows with the noise label or none are singletons."""
    labels = as_column(values, "cluster")
    alone = np.zeros(len(labels), np.bool_) if labels.null_rows is None else labels.null_rows.copy()
    known = ~alone
    if noise is not None:
        with suppress(IdTypeError):  # the noise label may have the type of another side's labels
            alone[labels.find(noise)] = True
    keys: NDArray[np.int64] = labels.keys().astype(np.int64, copy=False)
    if alone.any():
        keys = np.unique(keys, return_inverse=True)[1]
        keys[alone] = keys.size + np.arange(np.count_nonzero(alone))
    return known, keys


class TruthAttributes(AttributeTable):
    """The attributes from the truth, including the true cluster, and those from a separate table."""

    def __init__(
        self, truth: Clustering, rows: RowNumbers, others: AttributeTable | None, policies: Policies
    ) -> None:
        self._truth, self._row_of, self._others, self._noise = truth, rows, others, _noise_of_truth(policies)
        own = () if others is None else others.names
        for where, names in ((truth.name, truth.attribute_names), ("the table of attributes", own)):
            if TRUE_CLUSTER in names:
                raise ColumnError(
                    f"{where} has a column {TRUE_CLUSTER!r}, a name that a diff reserves for the clusters of "
                    "the truth; rename the column"
                )
        known = [name for name in (TRUE_CLUSTER, *truth.attribute_names) if name not in own]
        self.names = (*dict.fromkeys(known), *own)

    def attribute(self, name: str, rows: RowNumbers | None = None) -> pa.ChunkedArray:
        """Return an attribute of these rows, or of all; null if the truth does not have the item."""
        if self._others is not None and name in self._others.names:
            return self._others.attribute(name, rows)
        at = self._row_of if rows is None else np.where(rows < 0, -1, self._row_of[rows])
        if name == TRUE_CLUSTER:
            return pa.chunked_array([self._truth.labels.take_or_null(at)])
        assert self._truth.attributes is not None
        return arrays.take_or_null(attribute(self._truth.attributes, name), at)

    def left_out(self) -> dict[str, str]:
        """Return the attributes that cannot be kept, with the reasons."""
        found = {} if self._others is None else self._others.left_out()
        table = self._truth.attributes
        if table is None:
            return found
        own = [name for name in self.names if name != TRUE_CLUSTER and name in self._truth.attribute_names]
        return found | {f"attributes.{name}": reason for name, reason in refused(table, own).items()}


#: The scores of the baseline, and of the experiment, against the truth.
LEVELS: Mapping[str, Callable[..., Floats]] = {
    "precision": bcubed.precision,
    "recall": bcubed.recall,
    "jaccard_distance": bcubed.jaccard_distance,
}


@dataclass(frozen=True)
class Verdict:
    """How much of the change is right according to the truth, over all items.

    Attributes
    ----------
    n_items, weight
        The number and the weight of the items in truth, baseline and experiment, on which the change is judged.
    n_unlabelled, weight_unlabelled
        The number and the weight of the items in baseline and experiment that the truth does not label.
    unlabelled : {"drop", "outside"}
        The policy for items that the truth does not label.
    scores : dict of str to float
        The scores that judge the change, by name.
    levels : dict of str to dict
        For "baseline" and "experiment": precision, recall and jaccard_distance against the truth, on the judged items.
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
    """The items in truth, baseline and experiment, and their joint cells.

    With the policy "outside", items that the baseline lacks count as mates.
    """

    def __init__(
        self, ev: Evaluation, labelled: Labelled, unlabelled: str, alone: Mapping[str, OfRun] = NONE_LACKS
    ) -> None:
        """Prepare the judgement; `alone` has the scores of each side alone if one lacks items of the truth."""
        self._ev, self._labelled, self.unlabelled, self._alone = ev, labelled, unlabelled, alone

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_ev", "_labelled", "unlabelled", "_alone")}

    @cached_property
    def joint(self) -> Joint:
        """The joint cells of truth, baseline and experiment."""
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
        """The cell of baseline and experiment that each judged row is in."""
        return self._ev.kept.rows.cell[self._labelled.judged]

    @property
    def _weight(self) -> NDArray[np.float64] | None:
        rows = self._ev.kept.rows
        return rows.weight[self._labelled.rows] if self._ev.contingency.weighted else None

    def lacking(self, verdict: Verdict) -> list[dict[str, Any]]:
        """Return a warning, or a note, if a side lacks items of the truth, which are then judged on neither side."""
        shown = {}
        for side, run in self._alone.items():
            level = verdict.levels[side]
            shown[side] = run._replace(shown_f1=float(f_measure(level["precision"], level["recall"])))
        return list(runs_lack_items(shown, common=True, policy="singleton"))

    # Scores

    def verdict(self, metrics: Sequence[Metric]) -> Verdict:
        """Return the scores over all labelled items, and the levels of baseline and experiment."""
        joint, table = self.joint, self._ev.contingency
        scores, ones = self.overall(metrics), np.zeros(joint.cells.n_cells, np.int64)

        def mean(of_cells: NDArray[np.float64]) -> float:
            return float(joint.cells.add_by_cluster(ones, 1, of_cells)[0] / joint.cells.total_weight)

        levels = {
            side: {name: mean(formula(*matrix, 0.0)) for name, formula in LEVELS.items()}
            for side, matrix in (("baseline", joint.sets.baseline), ("experiment", joint.sets.experiment))
        }
        n, weight = joint.cells.n_items, joint.cells.total_weight
        rest = table.n_items - n, max(0.0, table.total_weight - weight) if table.n_items > n else 0.0
        return Verdict(n, weight, *rest, self.unlabelled, scores, levels)

    def overall(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return scores over all labelled items."""
        with Pool() as pool:
            return overall(self.joint.cells, judged(self.joint, metrics), pool=pool)

    def of_slices(
        self, codes: NDArray[np.integer], n: int, metrics: Sequence[Metric], *, errors: bool
    ) -> dict[str, Any]:
        """Return n_labelled and scores by slice, given the slice of each row; with `errors`, also standard errors."""
        own, joint = codes[self._labelled.judged], self.joint
        lifted = judged(joint, metrics)
        found = _means(joint, own, n, lifted, by_row=True)
        if not errors:
            return found
        rows = RowUnits.of(joint.cells, own, n, self._units_of_cells[joint.cells.rows.cell])  # type: ignore[union-attr]
        of = rows.errors(joint.cells, lifted, 1.0)
        return {
            name: each
            for known, values in found.items()
            for name, each in ((known, values), (f"{known}_se", of.get(known)))
            if each is not None
        }

    def of_clusters(self, side: str, metrics: Sequence[Metric]) -> dict[str, Any]:
        """Return n_labelled and scores of the clusters of a side of the evaluation, by code."""
        table, joint = self._ev.contingency, self.joint
        codes = (table.true if side == "true" else table.pred)[self._cell[joint.row]]
        return _means(joint, np.ascontiguousarray(codes), table.n_codes[side], judged(joint, metrics))

    def of_items(self, metrics: Sequence[Metric]) -> dict[str, NDArray[np.float64]]:
        """Return the scores of each row of the evaluation, by name; NaN for unlabelled rows."""
        found = {}
        assert self.joint.cells.rows is not None
        for metric in metrics:
            if metric.of_sets is not None and metric.item_name is not None:
                scores = np.full(self._ev.kept.rows.n_rows, np.nan)
                scores[self._labelled.judged] = metric.of_sets(self.joint.sets)[self.joint.cells.rows.cell]
                found[metric.item_name] = scores
        return found

    # Standard errors

    @cached_property
    def _units_of_cells(self) -> Codes:
        """The connected component of truth, baseline and experiment of each joint cell."""
        table, cell = self._ev.contingency, self._cell
        linked, new = self._ev.standard_errors.components.by_cell(), self._labelled.new
        by_cluster = table.n_cells + np.arange(table.n_codes["pred"] + new.size)
        by_cluster[table.pred] = linked
        joined = np.concatenate([linked[cell], by_cluster[new]])
        with Pool() as pool:
            every = cells_of_keys(self._labelled.keys, joined, None, pool, weighting="pointwise")
        assert every.rows is not None
        return components(every).by_cell()[every.rows.cell[self.joint.row]]

    @cached_property
    def _cell_units(self) -> CellUnits:
        return units_of_codes(self.joint.cells, self._units_of_cells)

    @cached_property
    def units(self) -> Units:
        """The number and the weights of the components of labelled items."""
        return self.errors(()).units

    @cached_property
    def _known(self) -> dict[tuple[str, ...], Errors]:
        return {}

    def errors(self, metrics: Iterable[Metric]) -> Errors:
        """Return the standard errors, by component, of scores over all labelled items; results are cached."""
        metrics = list(metrics)
        names = tuple(metric.name for metric in metrics)
        if names not in self._known:
            with Pool() as pool:
                lifted = judged(self.joint, metrics)
                self._known[names] = errors_of_units(self._cell_units, lifted, 1.0, ((), {}), pool)
        return self._known[names]


def _means(
    joint: Joint, codes: NDArray[np.integer], n: int, metrics: Sequence[Metric], *, by_row: bool = False
) -> dict[str, Any]:
    found = groups.group_means(joint.cells, codes, n, metrics, beta=1.0, by_row=by_row)
    return {"n_labelled": found["n_items"], **{m.name: found[m.name] for m in metrics}}
