"""Words on screen are explained where they stand, and what the next command needs is whole at 80 columns."""

from __future__ import annotations

import fastbcubed as fb
from fastbcubed.render.document import Grid
from fastbcubed.render.text import aligned

TRUTH = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3}
PREDICTION = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "z"}


def test_outcomes_of_predicted_clusters_are_explained_where_there_are_any() -> None:
    text = repr(fb.evaluate(TRUTH, PREDICTION))
    assert (
        "2 fragments" not in text
        and "1 mixed" in text
        and "Mixed: parts of several." in " ".join(text.split())
    )
    assert "Mixed: parts" not in repr(fb.evaluate(TRUTH, TRUTH))


def test_a_diff_says_what_good_and_bad_are_and_the_sets_of_its_definitions() -> None:
    text = " ".join(repr(fb.diff(PREDICTION, TRUTH, truth=TRUTH)).split())
    assert "Good and bad are the parts of it that the truth supports and contradicts" in text
    assert "B, E and I are the clusters of an item in baseline, experiment and truth" in text


def test_names_of_scores_are_whole_before_columns_go() -> None:
    name = "bcubed_precision_by_true_cluster"
    score = [0.9, 0.85, 0.95]
    runs = ["old", "new", "third"]
    grid = Grid(["score", *runs], [[name, score, score, score]], 1, ["text", *["interval"] * 3])
    lines = aligned(grid).splitlines()
    assert lines[1].startswith(f"{name} ") and max(map(len, lines)) <= 80
    assert lines[-1] == "(no room for intervals of old and new)"
