"""One cluster in all runs: how each of them treats its items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import OptionError
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.render.document import Grid
from fastbcubed.render.html import escaped, html_table
from fastbcubed.render.text import aligned
from fastbcubed.render.wording import count, label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.members import chosen_columns, rows_of_cluster, with_attributes
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import is_one_of, whole_number
from fastbcubed.runtime.attributes import documented


class ClusterInRuns(dict[str, Any]):
    """A true cluster in all runs, as a dict with a readable display; returned by `Comparison.cluster`.

    Its keys are side, cluster, n_items, columns, and "runs": for each run the number of clusters that its items are in.

    Attributes
    ----------
    table : Table
        All items: item, true_cluster, what each run puts it into as ``<run>.pred_cluster``, the attributes, and part:
        items that are in the same clusters are one part, and the largest comes first.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> truth = {"a": 1, "b": 1, "c": 1, "d": 2}
    >>> cmp = fb.compare(truth, {"old": {"a": 5, "b": 5, "c": 7, "d": 8}, "new": {"a": 5, "b": 5, "c": 5, "d": 8}})
    >>> cmp.cluster("true", 1)
    True cluster 1: 3 items; in old in 2 clusters, in new in 1
    <BLANKLINE>
    old  new  items  item
    5    5    2      a
                     b
    7    5    1      c
    """

    def __init__(self, figures: Mapping[str, Any], table: Table, members: int) -> None:
        super().__init__(figures)
        self.table = table
        self._members = members

    def __reduce__(self) -> tuple[Any, ...]:
        return ClusterInRuns, (dict(self), self.table, self._members)

    __dir__ = documented

    def __repr__(self) -> str:
        return "\n\n".join([self.heading(), aligned(self.grid()), *self.notes()])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escaped(note)}</p>" for note in self.notes())
        return f"<div><p><b>{escaped(self.heading())}</b></p>{html_table(self.grid())}{notes}</div>"

    def heading(self) -> str:
        """Return the cluster's label, and the number of clusters its items have in each run."""
        where = [f"in {label(name)} in {count(n)}" for name, n in self["runs"].items()]
        first = next(iter(self["runs"].values()))
        where[0] += " cluster" if first == 1 else " clusters"
        kind = "True cluster" if self["side"] == "true" else f"Cluster of {label(self['side'])}"
        n_items = self["n_items"]
        return f"{kind} {label(self['cluster'])}: {count(n_items)} item{'s' * (n_items != 1)}; {', '.join(where)}"

    def grid(self) -> Grid:
        """Return members part by part: of each part one, then another of each, as many as are to be shown."""
        sizes = self._sizes()
        clusters = [f"{name}.pred_cluster" for name in self["runs"]]
        clusters = [*(["true_cluster"] if self["side"] != "true" else []), *clusters]
        named = ["item", *self["columns"]]
        header = [
            name.removesuffix(".pred_cluster").replace("true_cluster", "true cluster") for name in clusters
        ]
        rows = []
        first = 0
        for size, shown in zip(sizes, _allotted(sizes, self._members), strict=True):
            for k, row in enumerate(self.table.slice(first, shown).to_pylist()):
                own = [label(row[name]) if k == 0 else "" for name in clusters]
                rows.append([*own, count(size) if k == 0 else "", *(label(row[name]) for name in named)])
            first += size
        header = [*map(label, header), "items", *map(label, named)]
        return Grid(header, rows, len(header))

    def notes(self) -> list[str]:
        """Return how many parts and members are not shown."""
        sizes = self._sizes()
        shown = _allotted(sizes, self._members)
        left, unseen = sum(sizes) - sum(shown), sum(n == 0 for n in shown)
        parts = f", {count(unseen)} more part{'s' * (unseen != 1)}" if unseen else ""
        return [f"… {count(left)} more item{'s' * (left != 1)}{parts}"] if left > 0 else []

    def _sizes(self) -> list[int]:
        """Return how many items each part has."""
        return np.bincount(self.table["part"].to_numpy()).tolist() if self.table.num_rows else []


def _allotted(sizes: Sequence[int], members: int) -> list[int]:
    """Return how many members of each part are shown.

    >>> _allotted([5, 2, 1], 6), _allotted([5, 2, 1], 2)
    ([3, 2, 1], [1, 1, 0])
    """
    found, left = [0] * len(sizes), members
    while left and (open_ := [k for k, size in enumerate(sizes) if found[k] < size][:left]):
        for k in open_:
            found[k] += 1
        left -= len(open_)
    return found


def open_in_runs(
    runs: Mapping[str, Evaluation],
    baseline: str,
    side: str,
    which: Any,
    n_rows: int,
    columns: str | Iterable[str] | None,
    members: int,
) -> ClusterInRuns:
    """Return a true cluster, or one of a run, and where each run has its items."""
    members = whole_number(members, "members")
    if is_one_of(side, ("true", "truth")):
        rows = rows_of_cluster(runs[baseline], "true", which)
        side = "true"
    elif is_one_of(side, runs):
        rows = rows_of_cluster(runs[side], "pred", which)
    else:
        raise OptionError(
            f'side is "true", or the run whose cluster is meant ({", ".join(map(repr, runs))}), not {side!r}'
        )
    first = runs[baseline]
    names = [] if columns is None else chosen_columns(first, columns)
    rows = rows[rows < n_rows]
    table = {"item": first.kept_items().ids(rows), "true_cluster": first.kept_items().labels("true", rows)}
    codes = {}
    for name, ev in runs.items():
        table[f"{name}.pred_cluster"] = ev.kept_items().labels("pred", rows)
        cells = ev.contingency.rows
        assert cells is not None
        codes[name] = ev.contingency.pred[cells.cell[rows]]
    part = _parts(list(codes.values()), rows.size)
    n_before = len(table)
    shown = with_attributes(pa.table({**table, "part": part}), first, names, rows, n_before)
    order = np.argsort(part, kind="stable")
    label = first.kept_items().labels("true", rows[:1])[0].as_py() if side == "true" and rows.size else which
    figures = {
        "side": side,
        "cluster": label,
        "n_items": int(rows.size),
        "columns": shown.column_names[n_before:-1],
        "runs": {name: int(np.unique(own).size) for name, own in codes.items()},
    }
    return ClusterInRuns(figures, Table(shown.take(from_numpy(order))), members)


def _parts(codes: Sequence[NDArray[np.integer]], n: int) -> NDArray[np.int64]:
    """Return numbers of rows, alike where all codes are: the largest groups first, then those that begin first."""
    group = np.zeros(n, np.int64)
    for own in codes:
        _, group = np.unique(np.stack([group, own]), axis=1, return_inverse=True)
        group = group.reshape(-1)
    if not n:
        return group
    _, first, sizes = np.unique(group, return_index=True, return_counts=True)
    rank = np.empty(sizes.size, np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(sizes.size)
    return rank[group]
