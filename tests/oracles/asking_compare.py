"""How tests ask `compare` of a generated case, and read what it says."""

from __future__ import annotations

import math

import hypothesis
import naive_compare
import pytest

import fastbcubed as fb
from fastbcubed.cells import shards
from fastbcubed.errors import FastBCubedError, NotKeptError, OptionError

__all__ = [
    "CELLWISE",
    "NAMES",
    "both_ways",
    "close",
    "compared",
    "deltas",
    "number",
    "on_disk",
    "options_of_evaluate",
]

NAMES = [
    *("precision", "recall", "f1", "mean_f1", "jaccard_index", "jaccard_distance"),
    *("over_merge_rate", "under_merge_rate", "fbeta", "mean_fbeta", "elm_f1"),
]
#: Those that the disk engine has with weights, too.
CELLWISE = [name for name in NAMES if not name.startswith("elm")]


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)


def number(value):
    """Return a number of a table, in which null and NaN both say that there is none."""
    return math.nan if value is None else float(value)


def asked(case, **others):
    return fb.compare(
        case.truth, case.runs, weight=case.weight, **{"metrics": NAMES, **case.options, **others}
    )


def compared(case, **others):
    """Return a comparison; reject a case that has none, such as one where all scored items weigh 0."""
    try:
        return asked(case, **others)
    except FastBCubedError:
        hypothesis.reject()


def on_disk(case, **others):
    """Return a comparison by the disk engine; reject runs with items of their own that are scored, which it refuses."""
    try:
        found = asked(
            case, engine="disk", memory_limit=shards.SMALLEST_LIMIT, **{"metrics": CELLWISE, **others}
        )
        if not has_errors(found):  # of clusters that policies make
            hypothesis.reject()
        return found
    except OptionError as error:
        if "The disk engine does not check which of these all runs share" in str(error):
            hypothesis.reject()
        raise


def has_errors(cmp):
    """Return whether the differences of runs have standard errors."""
    try:
        return cmp.units is not None
    except NotKeptError:
        return False


def both_ways(case, **others):
    """Return a comparison and what the twin makes of it, or None where both refuse."""
    try:
        expected = naive_compare.compare(case.truth, case.runs, case.weight, **case.options)
    except ValueError:
        with pytest.raises(FastBCubedError):
            asked(case, **others)
        return None
    return asked(case, **others), expected


def deltas(cmp):
    """Return the rows of the deltas by experiment and score, each interval at the level that was asked for."""
    return {(row["experiment"], row["score"]): row for row in cmp.deltas(adjust="none").to_pylist()}


def options_of_evaluate(case):
    return {name: value for name, value in case.options.items() if name not in ("align", "baseline")}
