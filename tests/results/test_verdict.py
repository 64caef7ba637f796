"""The sentences that a result begins with, from figures worked out by hand."""

import pytest

import fastbcubed as fb

#: Eight items in two true clusters of four.
TRUTH = list("aaaabbbb")


def _said(prediction, **options) -> str:
    """Return what is printed, but for the headline."""
    return _printed(fb.evaluate(TRUTH, prediction, **options)).removeprefix("Evaluation of 8 items ")


def _printed(ev) -> str:
    return " ".join(repr(ev).split())


def test_where_splitting_costs_most_it_is_said_first() -> None:
    # a is in two halves: an item of a lacks 1/2 of its cluster, on average of all items 1/4 is missing
    said = _said([1, 1, 2, 2, 3, 3, 3, 3])
    assert "Splitting dominates: on average, 25.0 % of an item's true cluster is missing" in said
    assert "and all of its predicted cluster belongs with it." in said


def test_where_merging_costs_most_it_is_said_first() -> None:
    said = _said([1] * 8)
    assert (
        "Merging dominates: on average, 50.0 % of an item's predicted cluster does not belong with it" in said
    )
    assert "and nothing of its true cluster is missing." in said


def test_where_both_cost_both_are_said() -> None:
    # b3 goes to a: precision (4 * 4/5 + 1/5 + 3) / 8 = 0.8, recall (4 + 3 * 3/4 + 1/4) / 8 = 0.8125
    said = _said([1, 1, 1, 1, 2, 2, 2, 1])
    assert (
        "Both wrong merges and wrong splits contribute: on average, 20.0 % of an item's predicted cluster"
        in said
    )
    assert "18.8 % of its true cluster is missing" in said


def test_the_same_clusterings_are_said_to_be_the_same() -> None:
    assert "The two clusterings are the same on these items." in _said(list("xxxxyyyy"))


def test_the_headline_has_intervals_by_component() -> None:
    said = _said([1, 1, 2, 2, 3, 3, 3, 3])
    ev = fb.evaluate([1, 1, 1, 1, 3, 3, 3, 3], [1, 1, 2, 2, 3, 3, 3, 3])
    low, high = ev.interval("recall")  # of 3/4
    assert f", recall 0.750 ({low:.3f} to {high:.3f}), F1 0.857 (" in said
    assert said.startswith("Precision 1.000 (") and "95 % intervals, from 2 groups of items" in said


def test_one_component_has_no_error_to_print() -> None:
    assert _said([1] * 8).startswith("Precision 0.50000, recall 1, F1 0.66667. ")


def test_other_scores_make_no_headline_but_the_kind_of_error_is_said() -> None:
    assert _said([1] * 8, metrics=["adjusted_rand"]).startswith("Merging dominates")


def test_warnings_and_notes_are_part_of_what_is_printed() -> None:
    with pytest.warns(fb.EvaluationWarning):
        ev = fb.evaluate({k: 1 for k in range(40)}, {k: 1 for k in range(20)}, slices=["true_size"])
    text = _printed(ev)
    assert ev.warnings and "No warnings." not in text
    for found in ev.warnings:
        assert " ".join(found["message"].split()) in text and f"[{found['code']}]" in text
    pairs = [k // 2 for k in range(60)]
    assert "No warnings." in repr(fb.evaluate(pairs, [*pairs[:-1], 99]))


def test_scores_kept_alone_still_have_a_verdict(tmp_path) -> None:
    fb.evaluate(TRUTH, [1, 1, 2, 2, 3, 3, 3, 3]).save(tmp_path, keep="scores")
    loaded = fb.load(tmp_path)
    text = _printed(loaded)
    assert "Splitting dominates" in text
    assert (
        "Of 2 true clusters 1 (50.0 %) is exact, 1 split. Of 3 predicted clusters 1 (33.3 %) is exact" in text
    )


def test_overlapping_clusters_have_no_outcomes() -> None:
    ev = fb.extended_bcubed({1: {"a"}, 2: {"a", "b"}}, {1: {"c"}, 2: {"c"}})
    text = _printed(ev)
    assert "Splitting dominates" in text and " exact, " not in text and "exactly recovered" in text


def test_scores_that_repeat_others_are_in_json_alone() -> None:
    ev = fb.evaluate(TRUTH, [1] * 8)
    assert "over_merge_rate" not in repr(ev) and "over_merge_rate" in ev.to_json()
    assert "over_merge_rate" in repr(fb.evaluate(TRUTH, [1] * 8, metrics=["over_merge_rate", "recall"]))
