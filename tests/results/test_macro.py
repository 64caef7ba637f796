"""Means over slices: each slice counts once, and an F is averaged unless it is to come from the means."""

from __future__ import annotations

import math
from fractions import Fraction as Fr
from pathlib import Path

import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.errors import MetricError, OptionError, SliceError

#: Three data sets: one split (P 1, R 1/2, F 2/3), one merged (P 1/2, R 1, F 2/3), one of three items that is right.
TRUE, PRED = list("aabcddd"), [1, 2, 3, 3, 4, 4, 4]
SOURCE = list("xxyyzzz")
SCORES = ["precision", "recall", "f1", "mean_f1"]


def table(**columns: list[object]) -> pa.Table:
    return pa.table({"item": list(range(7)), **columns})


def by_score(found: fb.Table) -> dict[str, dict[str, float]]:
    return {row["score"]: row for row in found.to_pylist()}


def evaluated(**options: object) -> fb.Evaluation:
    return fb.evaluate(
        table(cluster=TRUE, source=SOURCE), table(cluster=PRED), metrics=SCORES, slices="source", **options
    )


def test_each_slice_counts_once_and_f_is_averaged() -> None:
    found = by_score(evaluated().macro("source"))
    mean = float((Fr(1) + Fr(1, 2) + Fr(1)) / 3)
    assert found["precision"]["mean"] == found["recall"]["mean"] == pytest.approx(mean, abs=1e-15)
    assert found["f1"]["mean"] == pytest.approx(float((Fr(2, 3) + Fr(2, 3) + 1) / 3), abs=1e-15)
    assert found["precision"]["sd"] == pytest.approx(math.sqrt(1 / 12), abs=1e-15)  # of 1, 1/2, 1
    assert {row["n_slices"] for row in found.values()} == {3}


def test_data_sets_of_the_elm_paper() -> None:
    """METRICS 2.3: two sets of two items, P and R 3/4; F is 2/3 when averaged, 3/4 when worked out from these."""
    ev = fb.evaluate(TRUE[:4], PRED[:4], attributes={"source": SOURCE[:4]}, metrics=SCORES)
    assert by_score(ev.macro("source"))["f1"]["mean"] == pytest.approx(2 / 3, abs=1e-15)
    again = by_score(ev.macro("source", f_of_means=True))
    assert again["f1"]["mean"] == 3 / 4
    assert math.isnan(again["f1"]["sd"]) and again["f1"]["n_slices"] == 2
    assert again["mean_f1"]["mean"] == pytest.approx(2 / 3, abs=1e-15)


def test_small_slices_are_left_out() -> None:
    found = by_score(evaluated().macro("source", min_items=3))
    assert {(row["mean"], row["n_slices"]) for row in found.values()} == {(1.0, 1)}
    assert all(math.isnan(row["sd"]) for row in found.values())
    with pytest.raises(SliceError, match="no slice of 'source' has at least 4 items; the largest has 3"):
        evaluated().macro("source", min_items=4)
    for wrong in (0, True, 1.5):
        with pytest.raises(OptionError, match="min_items must be a number of items"):
            evaluated().macro("source", min_items=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", ["scores", "items"])
def test_engines_and_saved_results_agree(tmp_path: Path, keep: str) -> None:
    fresh = evaluated().macro("source")
    evaluated(engine="disk", out=tmp_path / "saved", keep=keep)
    assert fb.load(tmp_path / "saved").macro("source") == fresh


def test_what_slices_there_can_be() -> None:
    ev = evaluated()
    assert by_score(ev.macro(("source", "true_size")))["precision"]["n_slices"] == 3
    subsets = {"split": [0, 1], "right": [4, 5, 6]}
    assert by_score(ev.macro(subsets))["recall"]["mean"] == 3 / 4
    with pytest.raises(SliceError, match="no slice of the subsets has at least 9 items"):
        ev.macro(subsets, min_items=9)
    ages = ev.macro("age", attributes=table(age=[1, 1, 1, 1, 2, 2, 2]))
    assert by_score(ages)["precision"]["mean"] == pytest.approx((3 / 4 + 1) / 2, abs=1e-15)


def test_a_slice_without_weight_has_no_score() -> None:
    weight = [1, 1, 0, 0, 1, 1, 1]
    ev = fb.evaluate(TRUE, PRED, weight=weight, weighting="outer", attributes={"source": SOURCE})
    found = by_score(ev.macro("source"))
    assert (found["precision"]["mean"], found["precision"]["n_slices"]) == (1.0, 2)


def test_f_of_means_takes_their_scores() -> None:
    ev = fb.evaluate(TRUE, PRED, attributes={"source": SOURCE}, metrics=["f1", "recall"])
    assert by_score(ev.macro("source"))["f1"]["n_slices"] == 3
    with pytest.raises(MetricError, match="f_of_means computes f1 from precision"):
        ev.macro("source", f_of_means=True)


def test_scores_of_all_items_at_once_are_not_there() -> None:
    ev = fb.evaluate(TRUE, PRED, attributes={"source": SOURCE}, metrics=["adjusted_rand"])
    assert len(ev.macro("source")) == 0
