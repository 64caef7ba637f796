"""What a reader of the scores should know, by code: one small function finds each, and this is the list of them all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from fastbcubed.errors import OptionError
from fastbcubed.results.warnings import of_coverage, of_input, of_shape
from fastbcubed.results.warnings.notices import Notice

__all__ = ["CODES", "Code", "found_in", "require_code"]


@dataclass(frozen=True)
class Code:
    """A kind of warning: when it is given, in a sentence, and what finds it; None if no evaluation by itself does."""

    meaning: str
    find: Callable[[Any], Iterable[Notice]] | None = None


#: In the order in which they are given.
CODES = {
    "same-input": Code("Truth and prediction are the same data.", of_input.same_input),
    "maybe-swapped": Code("Truth and prediction may be in the wrong order.", of_input.maybe_swapped),
    "few-ids-match": Code(
        "Most items of either side are not on the other: ids may be written in different ways.",
        of_coverage.few_ids_match,
    ),
    "dropping-truth-flatters": Code(
        "Items that only the truth has were dropped; the scores would be lower if they were alone.",
        of_coverage.dropping_truth_flatters,
    ),
    "runs-lack-items": Code(
        "Runs that are compared lack items of the truth, which were dropped; the scores would be lower if these were "
        "alone, or are of a smaller part of the truth in one run than in another."
    ),
    "unlinked-alone": Code(
        "Items that only the truth has are alone in the prediction, which was made of links.",
        of_coverage.unlinked_alone,
    ),
    "dropping-flatters": Code(
        "Items that the truth does not label were dropped; the precision could be very different.",
        of_coverage.dropping_flatters,
    ),
    "few-items-labelled": Code(
        "The truth labels a small share of the prediction.", of_coverage.few_items_labelled
    ),
    "all-singleton-truth": Code("Every item is alone in the truth.", of_shape.all_singleton_truth),
    "pure-by-construction": Code(
        "Precision or recall is 1 whatever the clusters hold.", of_shape.pure_by_construction
    ),
    "giant-cluster": Code(
        "One predicted cluster holds a large share of all items, of many true clusters.",
        of_shape.giant_cluster,
    ),
    "few-units": Code("The scores stand on few clusters, or on one of great weight.", of_shape.few_units),
    "slices-without-scores": Code(
        "There are slices, and no score that slices have.", of_shape.slices_without_scores
    ),
    "small-slice": Code("Some slices have very few items.", of_shape.small_slices),
    "columns-recognised": Code("Columns of ids and clusters were found by their names."),
    "whole-floats": Code("Floats or decimals were read as integers."),
    "made-of-links": Code("The clusters of a side are the connected components of links."),
}


def found_in(ev: Any, codes: Collection[str] = CODES) -> list[dict[str, Any]]:
    """Return the warnings and notes of these codes that an evaluation's results give: code, level, message, figures."""
    return [
        {"code": code, "level": notice.level, "message": notice.message, **notice.figures}
        for code, kind in CODES.items()
        if kind.find is not None and code in codes
        for notice in kind.find(ev)
    ]


def require_code(code: str) -> str:
    """Return a code, or raise OptionError with those that there are."""
    if code in CODES:
        return code
    raise OptionError(f"no warning has the code {code!r}. Codes: {', '.join(CODES)}")
