"""Evaluations by the disk engine, in many shards, beside those by the memory engine, which they have to equal."""

from __future__ import annotations

import re
import warnings

import hypothesis
import pytest
from effort import examples
from hypothesis import HealthCheck

import fastbcubed as fb
from fastbcubed.cells import shards as disk
from fastbcubed.errors import EvaluationWarning, WeightError

__all__ = ["HALF", "LIMIT", "SETTINGS", "SPILLS", "assert_same", "both"]

LIMIT = disk.SMALLEST_LIMIT
#: How much is spilled, as the fixture many_shards takes it.
SPILLS = ["all in memory", "all spilled", "some spilled"]
SETTINGS = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: For a test that is run with two sizes of the ranges of clusters, too.
HALF = examples(12, suppress_health_check=[HealthCheck.function_scoped_fixture])


def both(*args, **options):
    """Evaluate with either engine, without the warning that dropping flatters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        try:
            on_disk = fb.evaluate(*args, engine="disk", memory_limit=LIMIT, **options)
        except WeightError as error:  # all scored items may weigh 0
            with pytest.raises(WeightError, match=re.escape(str(error))):
                fb.evaluate(*args, engine="memory", **options)
            hypothesis.reject()
        return on_disk, fb.evaluate(*args, engine="memory", **options)


def assert_same(on_disk, in_memory):
    assert list(on_disk.overall) == list(in_memory.overall)
    for name, value in in_memory.overall.items():
        assert on_disk.overall[name] == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True), name
    assert on_disk.summary == in_memory.summary
    assert on_disk.definition == in_memory.definition
    for name in ("n_common", "n_truth_only", "n_prediction_only", "n_null", "n_noise", "n_duplicates"):
        assert getattr(on_disk.coverage, name) == getattr(in_memory.coverage, name), name
    assert on_disk.coverage.weight_common == pytest.approx(in_memory.coverage.weight_common, nan_ok=True)
    assert (on_disk.bounds is None) == (in_memory.bounds is None)
    if in_memory.bounds is not None:
        for name in ("precision_lower", "precision_upper", "unlabelled_mates"):
            expected = getattr(in_memory.bounds, name)
            assert getattr(on_disk.bounds, name) == pytest.approx(expected, nan_ok=True), name
    assert on_disk.not_computed == in_memory.not_computed
    cells, expected = on_disk.contingency, in_memory.contingency
    for name in ("n_items", "n_cells", "n_true", "n_pred", "n_exact"):
        assert getattr(cells, name) == getattr(expected, name), name
