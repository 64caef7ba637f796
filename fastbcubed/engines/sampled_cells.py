"""The cells of a sample of true clusters in a prediction, found by either engine.

The prediction is read once. Only the sizes of the clusters that contain sampled items are kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.item_join import Aligner
from fastbcubed.align.odd_labels import odd_and_alike
from fastbcubed.align.policies import Coverage
from fastbcubed.align.row_blocks import Choice
from fastbcubed.align.rows import align
from fastbcubed.cells.shards import Layout, RowShards, pred_codes, require_limit
from fastbcubed.engines import disk
from fastbcubed.engines.request import Request
from fastbcubed.errors import AlignmentError, OptionError, arg, quoted
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.files import open_files
from fastbcubed.inputs.id_columns import comparable_keys, in_order_of
from fastbcubed.inputs.keys import write_both
from fastbcubed.inputs.pair import Cut, Given, one_side, open_pair
from fastbcubed.inputs.reading_notes import notes_of_side, reading_of
from fastbcubed.results.warnings import ROWS_COMPARED, agree
from fastbcubed.runtime.arguments import is_one_of, is_path
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.spill import Packed, Spill
from fastbcubed.runtime.threads import Pool

#: Files with more rows than this are read block by block unless an engine is named.
READ_WHOLE = 1_000_000


class Touched(NamedTuple):
    """The cells of a sample, and totals of the whole prediction."""

    true: NDArray[np.int64]  #: the integer label of the true cluster of each cell
    n: NDArray[np.int64]  #: the number of items of each cell
    pred_n: NDArray[np.int64]  #: the whole size of each cell's predicted cluster
    pred: NDArray[np.int64]  #: the code of each cell's predicted cluster
    n_clusters: int  #: number of predicted clusters, including those without sampled items
    coverage: Coverage
    name: str  #: the name of the prediction
    notes: list[dict[str, Any]]  #: notes on how the prediction was read
    reading: dict[str, Any] | None  #: how its columns were read
    odd_labels: Mapping[str, int]  #: its labels that may stand for a missing value, and their numbers of rows
    same_names: bool = False  #: whether sampled items are in the same clusters with the same labels
    content: Any = None  #: equal for predictions that differ only in cluster labels; None if unknown


def touch(
    engine: str | None,
    sample: Clustering,
    labels: Clustering,
    request: Request,
    pool: Pool,
    *,
    alike: bool = False,
) -> Touched:
    """Return the cells of a sample, in arbitrary order, found by the named or a suitable engine.

    The sample has integer labels and no nulls; `labels` has the original labels, of all its rows. The request has the
    prediction and how to read it. If `alike`, `content` is computed, by which equal predictions are recognized.
    """
    if not is_one_of(engine, (None, "memory", "disk")):
        raise OptionError(f'{arg("engine")} must be "memory" or "disk", not {quoted(engine)}')
    if engine is None:
        engine = "disk" if _is_large_file(request.given.prediction) else "memory"
    found, first = (_in_blocks if engine == "disk" else _as_a_whole)(sample, request, pool)
    order = np.lexsort((found.pred_n, found.n, found.true))
    same = np.unique(found.true).size == found.true.size and _are_called_alike(labels, first)
    cells = {name: getattr(found, name)[order] for name in ("true", "n", "pred_n", "pred")}
    content = None
    if alike:
        whole, given = engine == "memory", request.given.prediction
        content = _content(first, pool) if whole else os.path.abspath(given) if is_path(given) else None
    return found._replace(**cells, same_names=same, content=content)


def _content(prediction: Clustering, pool: Pool) -> int:
    """Return a hash of the sets of items in the clusters, which does not depend on the order of rows."""
    assert prediction.items is not None
    codes = number(prediction.labels.keys(pool), pool).codes
    of_cluster = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    items, _ = write_both(prediction.items.plain, 0, pool)
    np.add.at(of_cluster, codes, kernels.partition.mix_all(items))
    return int(kernels.partition.mix_all(of_cluster).sum())


def _are_called_alike(labels: Clustering, prediction: Clustering) -> bool:
    """Return whether the labels of common items are equal by value; the prediction may be its first rows only."""
    if prediction.links is not None:  # clusters made from links have numbers for labels
        return False
    some = prediction.slice(0, min(len(prediction), ROWS_COMPARED))
    assert labels.items is not None and some.items is not None
    own, others = comparable_keys([labels.items, in_order_of(labels.items, some.items, strict=False)])
    _, rows, at = np.intersect1d(own, others, return_indices=True)
    return agree(labels.labels.take(rows), some.labels.take(at))


def _is_large_file(source: Any) -> bool:
    """Return whether a prediction consists of large files that can be read block by block."""
    if not is_path(source):
        return False
    rows = open_files(source)
    return rows.can_be_cut and len(rows) > READ_WHOLE


def _as_a_whole(sample: Clustering, request: Request, pool: Pool) -> tuple[Touched, Clustering]:
    """Read the whole prediction into memory, and count its clusters."""
    prediction = _prediction(request.given)
    if prediction.items is None:
        raise AlignmentError(
            "the prediction has labels without item ids, so the sample cannot be matched to it. Pass a "
            "table, a dict, or Clustering.from_labels(labels, items=ids)."
        )
    rows = align(sample, prediction, request.policies, pool)
    there = _is_there(rows.pred_keys, rows.absent_pred)
    clusters = number(rows.pred_keys[there], pool)
    sizes = np.bincount(clusters.codes)
    sampled = _is_there(rows.true_keys[there], rows.absent_true)
    true_keys = rows.true_keys[there][sampled]
    true, firsts = number(true_keys, pool)
    pairs, n = np.unique(true * sizes.size + clusters.codes[sampled], return_counts=True)
    true, pred = true_keys[firsts[pairs // sizes.size]], pairs % sizes.size
    found = Touched(
        true, n, sizes[pred], pred, sizes.size, rows.coverage, prediction.name,
        notes_of_side(prediction), reading_of(prediction), odd_and_alike(prediction.labels),
    )  # fmt: skip
    return found, prediction


def _is_there(keys: NDArray[np.int64], absent: int | None) -> NDArray[np.bool_]:
    return np.ones(keys.size, np.bool_) if absent is None else keys != absent


def _prediction(given: Given) -> Clustering:
    """Return the prediction without any weights, since its items count equally."""
    found = one_side(given.prediction, given.requests[1], None, False)
    return found if found.weight is None else replace(found, weight=None)


def _in_blocks(sample: Clustering, request: Request, pool: Pool) -> tuple[Touched, Clustering]:
    """Read the prediction in blocks, and shard its rows like the disk engine."""
    require_limit(request.limit)
    given = request.given
    if isinstance(given.prediction, Clustering | Mapping):
        both = Given(sample, _prediction(given))
    else:
        both = Given(sample, given.prediction, given.item, given.cluster, truth_is_read=True)
    pair = open_pair(both, Cut(disk.block_rows(request.limit, pool.threads), request.spill_dir))

    def count(choice: Choice) -> tuple[Touched, Clustering]:
        with Spill(request.spill_dir, named=request.spill_dir is not None) as spill:
            aligner = Aligner(pair, request.policies, choice, spill, request.limit, pool, outer=False)
            layout = Layout.of(pair.n_rows, request.limit)
            disk.announce(pair, aligner, layout, None, False, request.limit, spill, pool)
            rows = disk.ShardedRows(aligner, layout, spill, pool, None, request.limit)
            with pool.wider() as readers:
                coverage = aligner.run(rows.take, readers)
            true, n, pred_n, pred, n_clusters = _cells(rows.all_shards(), spill, pool)
            _, first = aligner.firsts
            told = notes_of_side(first), reading_of(first), aligner.odd_labels[1].rows()
            return Touched(true, n, pred_n, pred, n_clusters, coverage, pair.names[1], *told), first

    return disk.attempt(count)


def _cells(
    shards: RowShards, spill: Spill, pool: Pool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """Return the cells of the sample (true label, items, predicted size and code), and the number of clusters."""
    keys = Packed(np.dtype(np.int64), spill.directory)
    cells = shards.cells(pool, outer=False, keys=keys)
    n_clusters = int(shards.spread.keys.size)
    found: list[list[NDArray[np.int64]]] = [[], [], [], []]
    for _, built, _ in pool.ahead(cells.close(pool, outer=False, outside=True)):
        heavy = np.full(int(built.pred_base[-1]), -1) if built.heavy is None else built.heavy
        codes = pred_codes(heavy, n_clusters)
        n_clusters += int(np.count_nonzero(heavy < 0))
        there = (built.cells["true"] >= 0) & (built.pred_in_part >= 0)
        scored, base = built.cells[there], np.repeat(built.pred_base[:-1], np.diff(built.bounds))
        mates = np.rint(scored["fp"]).astype(np.int64) + scored["n"]
        pred = codes[(built.pred_in_part + base)[there]]
        for column, values in zip(found, (scored["true"], scored["n"], mates, pred), strict=True):
            column.append(values.astype(np.int64))
    true, n, pred_n, pred = map(np.concatenate, found)
    labels = kernels.partition.unmix_all(np.array(keys.finish()))
    return labels[true], n, pred_n, pred, n_clusters
