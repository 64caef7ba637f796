"""Clusters of large saved results, read part by part: the costliest, their members, and repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.cells.contingency import (
    CELL,
    SIDES,
    CellExcerpt,
    Codes,
    Contingency,
    OneSided,
    ScoredRows,
    chosen_of,
    of_any,
)
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.metrics.pointwise import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.score import Metric
from fastbcubed.results.concentration import POINTS, ROWS, LossCurve, SizeClasses
from fastbcubed.results.evaluation_base import Evaluated
from fastbcubed.results.evaluation_members import Openings
from fastbcubed.results.members import (
    FirstMembers,
    Opened,
    chosen_columns,
    of_rows,
    plain_id,
    rows_of_cluster,
)
from fastbcubed.results.outcomes import outcome_code
from fastbcubed.results.repairs import Ranked, Repairs, Start, f_gain, first_repairs
from fastbcubed.results.stored_items import StoredTable
from fastbcubed.results.table import LOSS, Table, contenders, listed, rank_of, require_known, require_limit
from fastbcubed.results.views import Cluster
from fastbcubed.runtime.attributes import cached_property
from fastbcubed.types import Floats

#: Where a part has the cluster of the other side, by code.
CODE = "code"
#: Clusters by side and code.
Keyed = Mapping[str, Mapping[int, "KnownCluster"]]


@dataclass(frozen=True, eq=False)
class KnownCluster:
    """Figures and first parts of a cluster, by code, with the rows of the first members of each."""

    figures: Mapping[str, Any]
    first: FirstMembers


class FirstOfCluster(Cluster):
    """A cluster of which the first members are known."""

    @property
    def n_listed(self) -> int:
        """How many parts it has."""
        return int(self["n_parts"])


def none_known() -> Keyed:
    """Return that nothing is known of any cluster."""
    return {side: {} for side in SIDES}


def look_up(ev: Openings, codes: Codes, members: int, most: int) -> Keyed:
    """Return an opener of some clusters with limited members; none if they have more than `most` rows together."""
    part = ev.excerpt(codes, most=most) if any(own.size for own in codes.values()) else None
    if part is None:
        return none_known()
    rows = part.kept_items().rows  # type: ignore[attr-defined]
    return {
        side: {
            code: _looked_up(part, side, plain_id(label), members, rows)
            for code, label in zip(
                codes[side].tolist(), ev.cluster_labels(side, codes[side]).to_pylist(), strict=True
            )
            if label is not None
        }
        for side in SIDES
    }


def _looked_up(part: Openings, side: str, label: Any, members: int, rows: NDArray[np.int64]) -> KnownCluster:
    """Return the known data of a cluster of an excerpt, whose rows are these of the whole."""
    opened = Opened.of(part, side, rows_of_cluster(part, side, label))
    first, table = opened.first_members(part, members), part.contingency
    assert isinstance(table, CellExcerpt)
    codes = table.true if opened.other == "true" else table.pred
    whole = table.in_whole[opened.other][codes[opened.cells[: first.parts.num_rows]]]
    parts = first.parts.set_column(0, CODE, from_numpy(whole))
    return KnownCluster(opened.figures(part, label), replace(first, parts=parts).at(rows))


class KnownClusters:
    """Opener of looked-up clusters with limited members; each column of these is read once."""

    def __init__(self, ev: Openings, known: Keyed, members: int) -> None:
        self._ev = ev
        found = {(side, code): each for side, own in known.items() for code, each in own.items()}
        self._figures = {key: each.figures for key, each in found.items()}
        first = [each.first.fewer(members) for each in found.values()]
        rows = [each.every_row() for each in first]
        starts = np.cumsum([0, *(own.size for own in rows)]).tolist()
        first = [each.numbered_from(start) for each, start in zip(_named(ev, first), starts, strict=False)]
        self._first = dict(zip(found, first, strict=True))
        self._part = _of_rows(ev, np.concatenate([np.empty(0, np.int64), *rows]))

    def cluster(self, side: str, code: int, label: Any, columns: Any) -> Cluster:
        """Return a cluster as `Evaluation.cluster` does."""
        shown = self._first[side, code].shown(self._part, chosen_columns(self._part, columns))
        figures = {"side": side, "cluster": label, **self._figures[side, code], **shown}
        parts = Table(self._first[side, code].parts)
        return FirstOfCluster(figures, parts, lambda: self._ev.cluster(side, label, columns=columns).table)


def _of_rows(ev: Openings, rows: NDArray[np.int64]) -> Openings:
    """Return the data of some rows, renumbered, without cells."""
    cells, own = ev.contingency, ScoredRows.of(np.full(rows.size, -1), ev._rows().weights_of(rows))
    none = NoCells(rows.size, cells.weighted, cells.weighting, cells.outside, rows=own)
    return of_rows(ev, none, rows, Openings)


def _named(ev: Openings, first: Sequence[FirstMembers]) -> list[FirstMembers]:
    """Return views of clusters with labels of their parts in place of codes, read once a side."""
    named = list(first)
    for side, other in (SIDES, SIDES[::-1]):
        own = [k for k, each in enumerate(first) if each.side == side]
        codes = [to_numpy(first[k].parts[CODE]) for k in own]
        labels = ev.cluster_labels(other, np.concatenate([np.empty(0, np.int64), *codes]))
        start = 0
        for k, n in zip(own, map(len, codes), strict=True):
            parts = first[k].parts.set_column(0, f"{other}_cluster", labels.slice(start, n))
            named[k], start = replace(first[k], parts=parts), start + n
    return named


#: Clusters of a side and repairs that are listed, clusters that can be opened, and members of each that are shown.
LISTED, OPENED, MEMBERS = 1000, 50, 20
#: Rows of a curve in a digest.
LIMITS = (POINTS, ROWS)


@dataclass(frozen=True, eq=False)
class Digest:
    """Totals of all clusters by side, the first of listings by code, and clusters to open by side and code."""

    classes: Mapping[str, SizeClasses]
    curves: Mapping[str, LossCurve]
    codes: Mapping[str, NDArray[np.int64]]  #: of the costliest that have a loss
    repairs: Ranked | None  #: of both kinds; None if they are not known
    opened: Keyed

    def curve(self, side: str, limit: int | None) -> LossCurve | None:
        """Return a curve of the loss for a table of a given number of rows; None if not known that finely."""
        return self.curves[side] if limit in LIMITS else None

    def first_codes(self, side: str, limit: int) -> NDArray[np.int64] | None:
        """Return the costliest clusters of a side; None if fewer are known."""
        return None if limit > self.codes[side].size else self.codes[side][:limit]

    def first_repairs(self, limit: int) -> Ranked | None:
        """Return the first repairs; None if fewer are known, and there are more."""
        if self.repairs is None or limit > len(self.repairs.running) >= LISTED:
            return None
        return self.repairs.first(limit)

    def some_opened(self, codes: Codes, members: int) -> Keyed:
        """Return which clusters can be opened with a given number of members."""
        if members > MEMBERS:
            return {}
        return {
            side: {code: self.opened[side][code] for code in own.tolist() if code in self.opened[side]}
            for side, own in codes.items()
        }


#: What is added up of a cluster, and the columns that it takes.
COLUMNS = ("n_items", "weight", *LOSSES)
#: Clusters that may tie before their labels decide; and the rounding allowance of a bound.
TIES, ROUNDING = 1 << 16, 1e-9


class Totals:
    """Totals of all clusters of a side, by size and by loss."""

    def __init__(self, side: str, *, outer: bool) -> None:
        self.classes = SizeClasses.none()
        self._own, self._outer = LOSS_OF_SIDE[side], outer
        self._losses, self._counts = [np.zeros(0)], [np.zeros(0, np.int64)]

    def add(self, table: pa.Table) -> None:
        """Take consecutive clusters."""
        n, weight, *lost = (to_numpy(table[name]) for name in COLUMNS)
        self.classes += SizeClasses.of(n, weight, dict(zip(LOSSES, lost, strict=True)), outer=self._outer)
        found = LossCurve.of(0, to_numpy(table[self._own]))
        self._losses.append(found.losses)
        self._counts.append(found.counts)

    @property
    def held(self) -> int:
        """How many losses are held."""
        return sum(each.size for each in self._losses)

    @property
    def curve(self) -> LossCurve:
        """The curve of the loss that the clusters are blamed for."""
        losses, counts = np.concatenate(self._losses), np.concatenate(self._counts)
        n_clusters = int(self.classes.n_clusters.sum())
        return LossCurve.of(n_clusters, losses, None if (counts == 1).all() else counts)


class Costliest:
    """Candidates for the first of a listing: their codes, and their sort values.

    With `lossy`, only clusters for which that is above 0.
    """

    def __init__(
        self,
        order_by: str,
        limit: int,
        metrics: Iterable[Metric] = (),
        outcome: str | None = None,
        *,
        lossy: bool = False,
    ) -> None:
        self._order_by, self._limit, self._metrics, self._outcome = order_by, limit, list(metrics), outcome
        self._lossy = lossy
        ordered = LOSSES if order_by == LOSS else (order_by,)
        self._figures = list(dict.fromkeys([*ordered, "weight", "n_items"]))
        self.columns = [*self._figures, *([] if outcome is None else ["outcome"])]
        self.found: pa.Table | None = None
        self._last = np.inf  # the rank of the last of those that are listed

    def add(self, first: int, table: pa.Table) -> None:
        """Take consecutive clusters from a code on; labels, where given, break ties."""
        own = [name for name in ("cluster", *self._figures) if name in table.column_names]
        there = np.flatnonzero(self._listed(table))
        more = table.select(own).take(from_numpy(there)).add_column(0, "code", from_numpy(first + there))
        found = more if self.found is None else pa.concat_tables([self.found, more])
        found = contenders(found, self._metrics, self._order_by, self._limit)
        if found.num_rows > self._limit + TIES and "cluster" in own:
            found = self._first_of(found)
        self.found = found.combine_chunks()
        if found.num_rows >= self._limit > 0:
            self._last = float(rank_of(self.found, self._order_by, self._metrics).max())

    def in_order(self) -> pa.Table:
        """Return the first clusters in their order, where their labels are there."""
        assert self.found is not None
        return self._first_of(self.found)

    def _first_of(self, found: pa.Table) -> pa.Table:
        places = from_numpy(np.arange(found.num_rows))
        plain = found.drop_columns(["cluster"]).add_column(0, "place", places)
        named_by = ("place", "cluster", lambda rows: found["cluster"].take(from_numpy(rows)))
        listing = listed(plain, self._metrics, self._order_by, self._limit, named_by=named_by).to_arrow()
        return listing.select(found.column_names)

    def _listed(self, table: pa.Table) -> NDArray[np.bool_]:
        """Return the scored clusters of a table that match the query and may be among the first."""
        there: NDArray[np.bool_] = to_numpy(table[self._order_by if self._lossy else "n_items"]) > 0
        if self._outcome is not None:
            there &= to_numpy(pc.equal(table["outcome"].cast(pa.string()), self._outcome))
        if np.isfinite(self._last):
            there &= rank_of(table, self._order_by, self._metrics) <= self._last
        return there


class MayGather:
    """The true clusters of which gathering may be among the first `limit` repairs.

    Gathering one brings what its items lose, and at most as much again of precision, for what they were clustered
    with. `lost` is 1 minus precision and recall. Weights have to count in the confusion matrices.
    """

    def __init__(self, lost: tuple[float, float], limit: int) -> None:
        self._lost, self._limit = lost, limit
        self.codes, self._most, self._least = np.empty(0, np.int64), np.empty(0), np.empty(0)
        self._floor = -np.inf  # lower bound of the gain of the first `limit`

    def add(self, first: int, table: pa.Table) -> None:
        """Take consecutive clusters from a code on."""
        precision, recall = (to_numpy(table[name]) for name in ("precision_loss", "recall_loss"))
        there = np.flatnonzero(precision + recall)
        if "cluster" in table.column_names and table["cluster"].null_count:
            # those without a label a policy has made: there is nothing to gather
            there = there[to_numpy(table["cluster"].is_valid())[there]]
        if self._limit and there.size:
            self._take(there + first, precision[there], recall[there])

    def _take(self, codes: NDArray[np.int64], precision: Floats, recall: Floats) -> None:
        most = f_gain(self._lost, 2 * precision, recall) * (1 + ROUNDING)
        own = np.flatnonzero(most >= self._floor)
        self.codes = np.concatenate([self.codes, codes[own]])
        self._most = np.concatenate([self._most, most[own]])
        self._least = np.concatenate([self._least, f_gain(self._lost, precision[own], recall[own])])
        if self.codes.size > self._limit:
            self._floor = np.partition(self._least, -self._limit)[-self._limit]
            kept = self._most >= self._floor
            self.codes, self._most, self._least = self.codes[kept], self._most[kept], self._least[kept]


#: What a listing has of a cluster besides its label and scores.
FIGURES = ("n_items", "weight", "n_parts", "exact", "outcome", *LOSSES)
#: What scored items of a cluster are, and those that the other side lacks.
ONLY_HERE = "n_items_only_here"


class SavedClusters:
    """The cluster tables of a saved result, whose row numbers are codes; known totals are not read."""

    def __init__(
        self,
        files: Mapping[str, StoredTable],
        *,
        outer: bool,
        digest: Digest | None = None,
        totals: Mapping[str, Totals] = {},
    ) -> None:
        self.files, self.digest, self._outer = files, digest, outer
        self._totals = dict(totals)

    def totals(self, side: str) -> Totals:
        """Return totals of all clusters of a side, from one pass over their table."""
        if side not in self._totals:
            found = Totals(side, outer=self._outer)
            for _, table in self.files[side].stretches(COLUMNS):
                found.add(table)
            self._totals[side] = found
        return self._totals[side]

    def classes(self, side: str) -> SizeClasses:
        """Return totals of the clusters of a side by size."""
        return self.totals(side).classes if self.digest is None else self.digest.classes[side]

    def curve(self, side: str, limit: int | None = POINTS) -> LossCurve:
        """Return the loss curve of the clusters of a side, for a table of a given number of rows."""
        known = None if self.digest is None else self.digest.curve(side, limit)
        return self.totals(side).curve if known is None else known

    def take(self, side: str, name: str, codes: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return a column of some clusters."""
        return self.files[side].take(name, codes)

    def sizes_of(self, side: str, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many scored items some clusters have."""
        return to_numpy(self.take(side, "n_items", codes))

    def best(
        self,
        side: str,
        metrics: list[Metric],
        beta: float,
        order_by: str,
        limit: int,
        named_by: tuple[str, str, Callable[[NDArray[np.int64]], pa.Array]],
        outcome: str | None = None,
    ) -> pa.Table:
        """Return the clusters that may be among the first `limit`; see `ClusterRanges.best`."""
        known = [*FIGURES, *(m.name for m in metrics if not m.overall_only)]
        require_known(order_by, known)
        codes = None
        if self.digest is not None and outcome is None and order_by == LOSS_OF_SIDE[side]:
            codes = self.digest.first_codes(side, limit)
        if codes is None:
            codes = to_numpy(self.first(side, order_by, limit, metrics, outcome)["code"])
        return self.files[side].take_columns(known, codes).add_column(0, "code", from_numpy(codes))

    def first(
        self, side: str, order_by: str, limit: int, metrics: list[Metric], outcome: str | None = None
    ) -> pa.Table:
        """Return the same clusters with code, items, weight, and sort values."""
        require_limit(limit)
        if outcome is not None:
            outcome_code(side, outcome)
        return self.passed(side, Costliest(order_by, limit, metrics, outcome))

    def passed(self, side: str, costliest: Costliest) -> pa.Table:
        """Return the picked figures of the clusters of a side, from one pass over their table."""
        for first, table in self.files[side].stretches(costliest.columns):
            costliest.add(first, table)
        assert costliest.found is not None
        return costliest.found


#: True clusters that may be among the first, beyond which all cells are read.
MOST = 1 << 20
Lost = tuple[float, float]


def rank_first_repairs(
    ev: Evaluated,
    clusters: SavedClusters,
    cells_of: Callable[[Codes], CellExcerpt],
    lost: Lost,
    kinds: Sequence[str],
    limit: int,
) -> Ranked | None:
    """Return the first repairs of some kinds, as `rank_repairs` does; None if too many clusters tie.

    Splitting a predicted cluster brings what it loses of precision; of gathering a true one see `MayGather`: so the
    tables tell which clusters may be among the first. Weights have to count in the confusion matrices.
    """
    costliest = Costliest("precision_loss", limit, lossy=True)
    splits = clusters.passed("pred", costliest) if "split" in kinds else None
    gathers = _that_may_be_first(ev, clusters, lost, limit) if "gather" in kinds else None
    return rank_some(ev, clusters, cells_of, lost, splits, gathers, limit)


def rank_some(
    ev: Evaluated,
    clusters: SavedClusters,
    cells_of: Callable[[Codes], CellExcerpt],
    lost: Lost,
    splits: pa.Table | None,
    gathers: NDArray[np.int64] | None,
    limit: int,
) -> Ranked | None:
    """Return the first repairs among splits of listed clusters and gatherings of some; None if these are too many."""
    if gathers is not None and gathers.size > MOST:
        return None
    found, total = [Repairs.none()], ev.contingency.total_weight
    if splits is not None:
        found.append(_splits(splits, lost))
    if gathers is not None and gathers.size:
        found.append(_gathers(_Preds.of(clusters, cells_of({"true": gathers})), total, lost))
    every = Repairs(*map(np.concatenate, zip(*(vars(each).values() for each in found), strict=True)))
    every = every.take(np.flatnonzero(every.gain > 0))
    kinds = [kind for kind, there in (("split", splits), ("gather", gathers)) if there is not None]
    chosen = first_repairs(ev, kinds, every, limit)
    if not chosen.codes.size:
        return Ranked(chosen, np.empty((0, 2)))
    own = {"true": np.unique(chosen.codes[~chosen.splits]), "pred": np.unique(chosen.codes[chosen.splits])}
    table = cells_of(own)
    start = _Preds.of(clusters, table).start(total, lost)
    return Ranked(chosen, start.running(_in_excerpt(chosen, table)))


def _splits(table: pa.Table, lost: Lost) -> Repairs:
    """Return the splits of listed predicted clusters."""
    names = ("code", "n_items", "weight", "precision_loss")
    code, n, weight, gain = (to_numpy(table[name]) for name in names)
    none = np.zeros(gain.size)
    return Repairs(np.ones(gain.size, bool), code, n, weight, f_gain(lost, gain, none), gain, none)


def _that_may_be_first(ev: Evaluated, clusters: SavedClusters, lost: Lost, limit: int) -> NDArray[np.int64]:
    """Return the true clusters of which gathering may be among the first `limit` repairs."""
    found = MayGather(lost, limit)
    names = [*LOSSES, *(["cluster"] if ev.policies.may_leave_alone else [])]
    for first, table in clusters.files["true"].stretches(names):
        found.add(first, table)
    return found.codes


def _gathers(preds: _Preds, total: float, lost: Lost) -> Repairs:
    """Return the gatherings of all true clusters of some cells."""
    table, correct = preds.table, preds.correct(total)
    gains = np.zeros((table.n_codes["true"], 4))
    kernels.clusters.add_gains(table.cells, table.pred, False, correct, np.zeros_like(correct), gains)
    precision, recall = ((gains[:, ::2] + gains[:, 1::2]) / total).T
    return Repairs(
        np.zeros(recall.size, bool), table.in_whole["true"], table.true_n, table.true_weight,
        f_gain(lost, precision, recall), precision, recall,
    )  # fmt: skip


def _in_excerpt(repairs: Repairs, table: CellExcerpt) -> Repairs:
    """Return repairs with the codes that their clusters have in an excerpt."""
    own = np.where(
        repairs.splits,
        np.searchsorted(table.in_whole["pred"], repairs.codes),
        np.searchsorted(table.in_whole["true"], repairs.codes),
    )
    return replace(repairs, codes=own)


@dataclass(frozen=True, eq=False)
class _Preds:
    """Figures of the predicted clusters of some cells, from their table; shapes are (n_pred,)."""

    table: CellExcerpt
    weight: Floats
    lost: Floats
    n_parts: NDArray[np.int64]
    strangers: OneSided | None  #: items that only the prediction has, if they count

    @classmethod
    def of(cls, clusters: SavedClusters, table: CellExcerpt) -> _Preds:
        """Look them up."""
        file = clusters.files["pred"]
        names = ["weight", "precision_loss", "n_parts"]
        has_strangers = table.outside and ONLY_HERE in file.column_names
        names += [ONLY_HERE, "weight_only_here"] if has_strangers else []
        weight, lost, n_parts, *own = map(to_numpy, file.take_columns(names, table.in_whole["pred"]).columns)
        return cls(table, weight, lost, n_parts, OneSided(np.arange(weight.size), *own) if own else None)

    def correct(self, total: float) -> Floats:
        """Return, for each predicted cluster, weight * tp of all of its cells, added up. Shape (n_pred, 2)."""
        whole = self.weight if self.strangers is None else self.weight + self.strangers.mass
        return _as_sums((self.weight - self.lost * total) * whole)

    def start(self, total: float, lost: Lost) -> Start:
        """Return the start of repairs of clusters with these cells."""
        if self.strangers is not None:
            self.table.take_one_sided({"pred": self.strangers})
        none = np.zeros(self.weight.size), np.zeros((self.table.n_codes["true"], 2))
        sums = _as_sums(self.weight), self.correct(total)
        return Start(self.table, self.table.pred, self.n_parts.copy(), *sums, *none, lost)


def _as_sums(values: Floats) -> Floats:
    """Return sums as two numbers side by side: the sum, and its rounding error."""
    return np.stack([values, np.zeros(values.size)], axis=1)


class UnreadCells(Contingency):
    """Cells in a file, read in part; any other access reads all of them."""

    def __init__(
        self,
        file: StoredTable,
        clusters: SavedClusters,
        rows: ScoredRows | None,
        read: Callable[[], Contingency],
        how: Mapping[str, Any],
    ) -> None:
        self._file, self._clusters, self.rows, self._whole, self._how = file, clusters, rows, read, how
        self.__dict__.update(how, n_codes={side: clusters.files[side].num_rows for side in SIDES})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_whole" not in self.__dict__:
            raise AttributeError(name)
        whole = self._whole()
        self.__dict__.update({**whole.__dict__, **self.__dict__})
        return getattr(whole, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return same, (self._whole(),)

    @property
    def n_cells(self) -> int:
        """Non-empty pairs of clusters."""
        return self._file.num_rows

    @cached_property
    def n_items(self) -> int:
        """Scored items."""
        return int(self._clusters.classes("true").n_items.sum())

    @cached_property
    def total_weight(self) -> float:
        """Weight of the scored items."""
        return float(self._clusters.classes("true").weight.sum())

    def excerpt(self, codes: Codes) -> CellExcerpt:
        """Return the cells of some clusters, in one pass over all."""
        chosen = {side: chosen_of(own, self.n_codes[side]) for side, own in codes.items()}
        names, places, tables = CELL.names or (), [np.empty(0, np.int64)], []
        for first, table in self._file.stretches([*names, "pred"]):
            there = np.flatnonzero(of_any(chosen, to_numpy(table["true"]), to_numpy(table["pred"])))
            places.append(first + there)
            tables.append(table.take(from_numpy(there)))
        found = pa.concat_tables(tables).combine_chunks()
        cells = np.empty(found.num_rows, CELL)
        for name in names:
            cells[name] = to_numpy(found[name])
        pred, place = to_numpy(found["pred"]), np.concatenate(places)
        return CellExcerpt(place, cells, pred, self._clusters.sizes_of, self.total_weight, **self._how)


class UnreadLabels:
    """The labels of clusters, by side and code, in files."""

    def __init__(self, clusters: SavedClusters) -> None:
        self._clusters = clusters

    def __call__(self, side: str, codes: NDArray[np.int64]) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made."""
        return self._clusters.take(side, "cluster", codes).combine_chunks()


class InFiles(Openings):
    """The cluster data of an evaluation whose tables are in files.

    Attributes
    ----------
    saved_clusters : SavedClusters
        The tables of clusters.
    cells_at_hand : CellExcerpt, optional
        All cells of the requested clusters, where these have been looked up.
    """

    saved_clusters: SavedClusters
    cells_at_hand: CellExcerpt | None = None

    def cell_excerpt(self, codes: Codes) -> CellExcerpt:
        """Return the cells of some clusters, by side and code."""
        cells: Any = self.contingency if self.cells_at_hand is None else self.cells_at_hand
        found: CellExcerpt = cells.excerpt(codes)
        return found


def same(result: Any) -> Any:
    """Return the argument: placeholders for files are pickled as their content."""
    return result
