"""Checks of labels: too few, strings for missing values, white space, several in one string; counts as weights."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.odd_labels import is_missing
from fastbcubed.cells.contingency import SIDES
from fastbcubed.errors import ESTIMATE, Word, arg, first_few
from fastbcubed.metrics.metric import without_rounding
from fastbcubed.render.number_formats import count, percent
from fastbcubed.results.items import without_noise
from fastbcubed.results.notices import NOTE, WARNING, Notice
from fastbcubed.runtime.key_partitions import sampled_rows

#: With fewer items shares show nothing: so few can be read in full.
FEW_ITEMS = 20
#: Where the truth labels less than half of the prediction, the scores are about the smaller part of it.
MOSTLY_LABELLED = 0.5
#: The clusters of a side whose labels are looked at, the largest ones: of up to so many codes; of more, the largest.
LOOKED_AT, CODES_SORTED = 4096, 1 << 20
#: With more items than these, a sample of the rows is looked at.
SAMPLED_FROM = 1 << 17
#: Signs between several clusters in one string; a comma occurs in names, too.
SEPARATORS = "|;,"
#: Labels that a message shows.
SHOWN = 3


def few_items_labelled(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note that the truth labels less than half of the prediction; warn if this makes up a score."""
    n, common = ev.coverage.n_prediction_only, ev.coverage.n_common
    share = common / max(1, n + common)
    if n + common < FEW_ITEMS or share >= MOSTLY_LABELLED:
        return
    message = f"The truth labels {percent(share)} of the prediction's {count(n + common)} items."
    made_up = ev.policies.prediction == "singleton"
    if made_up or is_unchallenged(ev):
        message += (
            " The others are scored as if each were a singleton in the truth, and they dominate the score."
            if made_up
            else (
                " The others are left out, so precision is 1 by construction unless labelled clusters are "
                "merged with each other. It shows neither how good a prediction is nor which of two is "
                "better."
            )
        )
        message += f" If true clusters are complete, pass {arg('unmatched', {'prediction': 'outside'})}"
        message += f", or use {ESTIMATE} if they are a random sample of all." if is_estimable(ev) else "."
    else:
        message += (
            " The scores say nothing about the others, unless the labelled clusters were drawn at random"
        )
        message += (
            f"; in that case, {ESTIMATE} estimates the scores of all items." if is_estimable(ev) else "."
        )
    level = WARNING if made_up or is_unchallenged(ev) else NOTE
    yield Notice(level, message, {"share": share, "n_items": n + common})


def is_unchallenged(ev: Any) -> bool:
    """Return whether precision is 1 since most of the prediction, which the truth does not label, is left out."""
    n, common = ev.coverage.n_prediction_only, ev.coverage.n_common
    left_out = ev.policies.prediction == "drop" and common < MOSTLY_LABELLED * (n + common)
    return left_out and without_rounding(ev.overall.get("precision", math.nan) - 1.0) == 0


def is_estimable(ev: Any) -> bool:
    """Return whether scores of all items can be estimated from a sample of complete true clusters."""
    return not (ev.contingency.overlapping or ev.contingency.weighted)


def labels_like_nulls(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn of clusters of several items whose label is blank, or a text that stands for a missing value."""
    about = "About " if _is_sampled(ev, n_items) else ""
    for word, labels, n in _labels(ev, n_items):
        yield from like_nulls(word, dict(zip(labels, n.tolist(), strict=True)), about)


def like_nulls(
    word: str, sizes: Mapping[str, int], about: str = "", *, noise: bool = True
) -> Iterator[Notice]:
    """Warn of labels of a side, of these sizes, that stand for a missing value; one may be passed as `noise`."""
    found = {text: size for text, size in sizes.items() if size > 1 and is_missing(text)}
    if not found:
        return
    total, first = sum(found.values()), next(iter(found))
    they, each = ("it stands", "it") if len(found) == 1 else ("they stand", "them")
    advice = f"write {each} as null, and pass {arg('nulls', ...)}"
    if len(found) == 1 and noise:
        advice = (
            f"pass {arg('noise', {word: first})}, which treats each such item as a singleton; or {advice}"
        )
    message = (
        f"{about}{count(total)} items have labels in the {Word(word)} that read as missing values "
        f"({first_few(found, SHOWN)}), and each such label is one cluster. If {they} for no cluster, {advice}."
    )
    yield Notice(WARNING, message, {"side": word, "n_items": total, "labels": list(found)})


def labels_with_spaces(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn of clusters whose labels differ only in the white space around them."""
    for word, labels, n in _labels(ev, n_items):
        yield from with_spaces(word, dict(zip(labels, n.tolist(), strict=True)))


def with_spaces(word: str, sizes: Mapping[str, int]) -> Iterator[Notice]:
    """Warn of labels of a side, of these sizes, that differ from another by white space."""
    spaced = [text for text in sizes if text != text.strip() and not is_missing(text)]
    times = Counter(map(str.strip, sizes)) if spaced else Counter[str]()
    found = [text for text in spaced if times[text.strip()] > 1]
    if not found:
        return
    pairs = ", ".join(f"{first_few([text])} and {first_few([text.strip()])}" for text in found[:SHOWN])
    several = len(found) > 1
    message = (
        f"{count(len(found))} label{'s' * several} of the {Word(word)} differ{'' if several else 's'} from "
        f"another only by surrounding white space ({pairs}{', …' * (len(found) > SHOWN)}), so that one "
        "cluster becomes two. Strip the labels."
    )
    figures = {"side": word, "n_clusters": len(found), "n_items": sum(sizes[text] for text in found)}
    yield Notice(WARNING, message, {**figures, "labels": found[:SHOWN]})


def several_in_one_label(ev: Any, n_items: int) -> Iterator[Notice]:
    """Warn if clusters may overlap, each item has one label, and labels look like several clusters in one string."""
    table = ev.contingency
    if not table.overlapping:
        return
    for word, labels, _ in _labels(ev, n_items):
        if getattr(table, word).overlaps:
            continue
        for sign in SEPARATORS:
            cells = [text for text in labels if re.search(rf"\S\s*{re.escape(sign)}\s*\S", text)]
            parts = Counter(part.strip() for text in labels for part in set(text.split(sign)))
            if cells and (
                sign != "," or any(parts[part.strip()] > 1 for text in cells for part in text.split(sign))
            ):
                message = (
                    f"Each item has one label in the {Word(word)}, and {count(len(cells))} of these labels look like "
                    f"several clusters in one string ({first_few(cells, SHOWN)}). Each is read as one cluster: split "
                    f"the strings at {sign!r}, and give an item a row for each of its clusters."
                )
                figures = {"side": word, "n_clusters": len(cells), "separator": sign, "labels": cells[:SHOWN]}
                yield Notice(WARNING, message, figures)
                break


def counts_as_weights(ev: Any, n_items: int) -> Iterator[Notice]:
    """Note that scores of pairs take a row as one item, if the weights look like the counts of a contingency table."""
    table = ev.contingency
    of_pairs = [metric.name for metric in ev.metrics if metric.family == "pairs"]
    if not of_pairs or table.overlapping or not table.has_cells or not table.weighted:
        return
    if not 1 < table.n_cells == n_items <= CODES_SORTED:
        return
    weight = table.weight
    if not (weight > 1).any() or (weight % 1 != 0).any():
        return
    shown = ", ".join(of_pairs[:SHOWN]) + ", …" * (len(of_pairs) > SHOWN)
    message = (
        f"The weights are whole numbers, and no two of the {count(n_items)} rows have the same labels on "
        "both sides, as in a contingency table. A row counts as one item, whatever its weight, so pair "
        f"scores count no pairs within it ({shown}). If the weights are numbers of items, pass "
        f"fb.Contingency.from_cells(true, pred, n) as {arg('contingency', ...)} to the functions of "
        "fb.metrics."
    )
    yield Notice(NOTE, message, {"n_rows": n_items, "scores": of_pairs})


def _labels(ev: Any, n_items: int) -> Iterator[tuple[str, list[str], NDArray[np.integer]]]:
    """Yield the texts of the largest clusters of each side whose labels are texts, and their numbers of items.

    On disk these are the texts that were found to be odd while they were read, and others that differ from them only in
    white space.
    """
    table = ev.contingency
    if not table.has_cells:
        return
    for side, word in zip(SIDES, ("truth", "prediction"), strict=True):
        if odd := ev.kept.odd_labels.get(side):
            labels, codes = ev.kept.labels.codes_of(side, list(dict.fromkeys([*odd, *map(str.strip, odd)])))
            yield word, labels, (table.true_n if side == "true" else table.pred_n)[codes]
        if not hasattr(ev.kept.items, "label_keys") or not table.n_codes[side]:
            continue
        if not table.overlapping and ev.kept.items.label_kind(side) != "string":
            continue  # without reading any, which loads `pyarrow.compute`
        labels, n = (_of_sample if _is_sampled(ev, n_items) else _of_largest)(ev, side)
        texts = labels.to_pylist()
        known = np.array([isinstance(text, str) for text in texts], bool)
        yield word, [text for text in texts if isinstance(text, str)], n[known]


def _is_sampled(ev: Any, n_items: int) -> bool:
    return n_items > SAMPLED_FROM and not ev.contingency.overlapping


def _of_sample(ev: Any, side: str) -> tuple[pa.Array, NDArray[np.integer]]:
    """Return labels of clusters with several rows in a sample, so that none need be counted, and about their sizes."""
    keys = ev.kept.items.label_keys()[SIDES.index(side)]
    rows = sampled_rows(keys.size)
    _, first, n = np.unique(keys[rows], return_index=True, return_counts=True)
    chosen = np.flatnonzero(n > 1)
    chosen = chosen[np.argsort(n[chosen])[-LOOKED_AT:]]
    labels = ev.kept.items.labels(side, rows[first[chosen]])
    return without_noise(labels, ev.kept.policies, side), n[chosen] * keys.size // rows.size


def _of_largest(ev: Any, side: str) -> tuple[pa.Array, NDArray[np.integer]]:
    n = ev.contingency.true_n if side == "true" else ev.contingency.pred_n
    codes = np.arange(n.size)
    if n.size > CODES_SORTED:
        codes = np.array([np.argmax(n)])
    elif n.size > LOOKED_AT:
        codes = np.sort(np.argpartition(n, -LOOKED_AT)[-LOOKED_AT:])
    return ev.kept.cluster_labels(side, codes), n[codes]
