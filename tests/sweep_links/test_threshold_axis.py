"""The axis of thresholds in terminals and charts: thresholds in few digits, even in log odds where these tell more."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.sweep_links.threshold_axis import ThresholdAxis


def logit(p: float) -> float:
    return float(np.log(p / (1 - p)))


def sweep_of(scores: list[float], **how: object) -> fb.Sweep:
    """Return a sweep of a path of items, with a score for each of its links; every third link is wrong."""
    items = [f"i{k}" for k in range(len(scores) + 1)]
    truth = {item: k // 3 for k, item in enumerate(items)}
    return fb.sweep(truth, [(items[k], items[k + 1], score) for k, score in enumerate(scores)], **how)


def axis_lines(sweep: fb.Sweep) -> tuple[str, str]:
    """Return the line below the letters of the drawn curve, and the thresholds below that."""
    lines = repr(sweep).splitlines()
    at = next(k for k, line in enumerate(lines) if re.fullmatch(r" +[-+^]{60}", line))
    return lines[at], lines[at + 1]


DECIDED_AT_THE_END = [0.003, 0.2, 0.97, 0.991, 0.995, 0.9991, 0.9995, 0.9998, 0.99993, 0.99999]


def test_probabilities_that_are_decided_near_an_end_are_drawn_by_their_log_odds() -> None:
    sweep = sweep_of(DECIDED_AT_THE_END)
    line, texts = axis_lines(sweep)
    named = {text: texts.index(text) + len(text) // 2 for text in texts.split()}
    assert {"0.01", "0.5", "0.99", "0.9999"} <= set(named)
    low, high = logit(0.003), logit(0.99999)
    for text, column in named.items():  # the margin has five characters
        assert column - 5 == pytest.approx((logit(float(text)) - low) / (high - low) * 59, abs=1)
        assert line[column] in "+^"
    assert "by the log odds of the threshold" in " ".join(repr(sweep).split())
    assert max(map(len, repr(sweep).splitlines())) <= 80


@pytest.mark.parametrize(
    ("scores", "texts"),
    [
        ([0.2, 0.4, 0.5, 0.7, 0.8], ["0.2", "0.4", "0.6", "0.8"]),
        ([-3.0, 1.5, 8.0, 21.0], ["0", "5", "10", "15", "20"]),  # match weights
        (
            [0.96, 0.97, 0.98],
            ["0.96", "0.965", "0.97", "0.975", "0.98"],
        ),  # near an end, and within one power of ten
        ([1.97, 0.001, 0.002, 0.003], ["0.5", "1", "1.5"]),  # not all are probabilities
    ],
)
def test_other_thresholds_are_even_and_ascend(scores: list[float], texts: list[str]) -> None:
    assert axis_lines(sweep_of(scores))[1].split() == texts
    assert axis_lines(sweep_of(scores, ascending=True))[1].split() == texts


def test_the_mark_is_where_the_best_threshold_is() -> None:
    sweep = sweep_of([0.9, 0.8, 0.2, 0.85, 0.7])
    assert sweep.best("f1").threshold == 0.7
    line, _ = axis_lines(sweep)
    assert line.index("^") - 5 == round((0.7 - 0.2) / (0.9 - 0.2) * 59)


@pytest.mark.parametrize("scores", [[0.5], [0.5, 0.5 + 1e-12], [-1.7e308, 1.7e308]])
def test_no_curve_is_drawn_where_thresholds_have_no_axis(scores: list[float]) -> None:
    sweep = sweep_of(scores)
    assert "P precision" not in repr(sweep) and "f1 is best" in repr(sweep)


def test_places_and_thresholds_go_back_and_forth_with_ends_of_0_and_1() -> None:
    thresholds = np.array([0.0, 1e-9, 0.3, 0.999, 1 - 1e-12, 1.0])
    axis = ThresholdAxis.of(thresholds)
    assert axis is not None and axis.log_odds
    places = axis.places(thresholds)
    assert (np.diff(places) > 0).all() and axis.thresholds(places) == pytest.approx(thresholds, abs=1e-15)
    texts = [text for _, text in axis.ticks(60)]
    assert texts[0] == "0" and texts[-1] == "1" and len(set(texts)) == len(texts)


@pytest.mark.cases(0)
@pytest.mark.parametrize("scores", [DECIDED_AT_THE_END, [0.2, 0.4, 0.5, 0.7, 0.8]])
def test_charts_have_the_same_axis(scores: list[float]) -> None:
    pytest.importorskip("altair")
    sweep = sweep_of(scores)
    spec = fb.charts.thresholds(sweep).to_dict()
    x = spec["layer"][0]["encoding"]["x"]
    log_odds = scores is DECIDED_AT_THE_END
    ends = [logit(min(scores)), logit(max(scores))] if log_odds else [0.2, 0.8]
    assert x["scale"]["domain"] == pytest.approx(ends) and ("log odds" in x["title"]) == log_odds
    texts = axis_lines(sweep)[1].split()
    assert x["axis"]["labelExpr"].startswith(str(texts).replace("'", '"'))
    expected = [logit(float(t)) if log_odds else float(t) for t in texts]
    assert x["axis"]["values"] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.pictures
def test_pages_write_thresholds_below_the_axis() -> None:
    page = sweep_of(DECIDED_AT_THE_END).report().html
    assert ">0.99</text>" in page and ">0.9999</text>" in page
