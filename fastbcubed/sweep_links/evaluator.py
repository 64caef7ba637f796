"""The evaluation of the clusters at a threshold, with the options of the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fastbcubed.align.policies import Policies
from fastbcubed.align.rows import Alignment
from fastbcubed.cells.build import build_cells
from fastbcubed.engines import memory
from fastbcubed.engines.request import Request
from fastbcubed.evaluate import evaluate, evaluation
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.inputs.pair import Given, Pair, open_pair
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import AlignedItems
from fastbcubed.runtime.threads import Pool


class Evaluator:
    """Evaluates clusterings of the items of the links against the truth, with the options of the sweep."""

    def __init__(self, pair: Pair, how: dict[str, Any]) -> None:
        self._truth, self._how = pair.first[0], how
        self._tables: dict[str, Any] = {
            "weight_table": pair.weight_table,
            "attribute_table": pair.attribute_table,
        }

    def __call__(self, clustering: Clustering, options: Mapping[str, Any]) -> Evaluation:
        """Return the result of `evaluate`; `options` override the arguments of the sweep."""
        return evaluate(self._truth, past_noise(self._how["noise"], clustering), **{**self._how, **options})

    def aligned(self, clustering: Clustering, rows: Alignment, policies: Policies) -> Evaluation:
        """Return the evaluation with the default scores, reusing `rows`, the alignment of the same items."""
        clustering = past_noise(self._how["noise"], clustering)
        keys, own = clustering.labels.keys(), rows.pred_rows
        if own is not None:
            there = own >= 0
            keys = rows.pred_keys.copy()
            keys[there] = clustering.labels.keys()[own[there]]
        rows = replace(rows, prediction=clustering, pred_keys=keys)
        given = Given(self._truth, clustering)
        request = Request(given, policies, beta=self._how["beta"])
        with Pool(self._how["threads"]) as pool:
            cells = build_cells(rows, pool, weighting="pointwise", outside=request.outside)
            built = memory.Built(rows.coverage, cells, AlignedItems(rows))
            return evaluation(
                request, memory.answer(replace(open_pair(given), **self._tables), built, request, pool), {}
            )


def past_noise(noise: Any, clustering: Clustering) -> Clustering:
    """Return a clustering whose labels, numbers from 0, are shifted past the label of noise if it is a number."""
    if isinstance(noise, bool) or not isinstance(noise, (int, np.integer)) or not 0 <= noise < 2**62:
        return clustering
    labels = clustering.labels.keys() + (int(noise) + 1)
    return replace(clustering, labels=as_column(labels, "cluster", clustering.labels.where))
