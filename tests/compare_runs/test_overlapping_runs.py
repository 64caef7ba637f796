"""Runs whose items may be in several clusters: scores and deltas as of each by itself."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from asking_compare import close, deltas, number
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from naive_overlap import align, extended_bcubed, items_of
from strategies_overlap import Covers, covers

import fastbcubed as fb
from fastbcubed.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
SCORES = ["precision", "recall", "f1", "mean_f1"]


def clustering(family):
    rows = [(e, number) for number, cluster in enumerate(family) for e in sorted(cluster)]
    return fb.Clustering.from_table({"item": [e for e, _ in rows], "cluster": [k for _, k in rows]})


def runs_of(pair: Covers, lost: int) -> dict[str, list[set]]:
    """Return a run as drawn, the truth, and the run without one of its clusters."""
    less = [cluster for k, cluster in enumerate(pair.prediction) if k != lost]
    found = {"old": pair.prediction, "truth": pair.truth, "less": less}
    return {name: run for name, run in found.items() if set(items_of(run)) & set(items_of(pair.truth))}


def compare(pair, families, **options):
    runs = {name: clustering(family) for name, family in families.items()}
    return fb.compare(clustering(pair.truth), runs, metrics=SCORES, overlapping=True, **options)


def check(cmp, pair, families, unmatched):
    scores = {name: extended_bcubed(*align(pair.truth, run, unmatched)) for name, run in families.items()}
    found = deltas(cmp)
    for name, expected in scores.items():
        for score in SCORES:
            assert cmp[name].overall[score] == close(float(getattr(expected, score)))
            if name != "old":
                row = found[name, score]
                delta = getattr(expected, score) - getattr(scores["old"], score)
                assert row["delta"] == close(float(delta))
                if math.isnan(number(row["se"])):  # there is one component
                    assert row["holds"] is None
    assert repr(cmp)


@pytest.mark.slow
@examples(50)
@given(covers(), st.data(), st.sampled_from(["drop", "singleton"]))
def test_each_on_its_own_items(pair, data, unmatched):
    families = runs_of(pair, data.draw(st.integers(0, len(pair.prediction) - 1)))
    check(compare(pair, families, align="each", unmatched=unmatched), pair, families, unmatched)


@pytest.mark.slow
@examples(50)
@given(covers(unmatched=False), st.data())
def test_on_common_items(pair, data):
    """These runs have them all, or are told that overlapping ones are not restricted to them."""
    families = runs_of(pair, data.draw(st.integers(0, len(pair.prediction) - 1)))
    if all(set(items_of(run)) == set(items_of(pair.truth)) for run in families.values()):
        check(compare(pair, families), pair, families, "drop")
    else:
        with pytest.raises(OptionError, match="each"):
            compare(pair, families)


@pytest.mark.slow
@examples(50)
@given(covers(), st.data())
def test_items_that_runs_lack_are_alone(pair, data):
    """All items of the truth are then scored in every run."""
    pair = Covers(pair.truth, [cluster & set(items_of(pair.truth)) for cluster in pair.prediction])
    pair = Covers(pair.truth, [cluster for cluster in pair.prediction if cluster])
    families = runs_of(pair, data.draw(st.integers(0, len(pair.prediction) - 1)))
    check(compare(pair, families, unmatched={"truth": "singleton"}), pair, families, "singleton")


def test_clusters_that_a_policy_has_made_are_those_of_their_items_in_every_run():
    """By hand: x and y, which the truth lacks, are together in old, 1/2 each, and alone in new, of 5 items."""

    def table(*rows):
        return pa.table({"item": [e for e, _ in rows], "cluster": [k for _, k in rows]})

    truth = table(("a", 1), ("b", 1), ("b", 2), ("c", 2))
    old = table(("a", 1), ("b", 1), ("c", 2), ("x", 3), ("y", 3))
    new = table(("y", 4), ("x", 3), ("a", 1), ("b", 1), ("b", 2), ("c", 2))
    options = {"overlapping": True, "unmatched": "singleton", "align": "each"}
    found = fb.compare(truth, {"old": old, "new": new}, **options).clusters()
    made = [row for row in found.to_pylist() if row["cluster"] is None]
    assert [(row["old.precision"], row["new.precision"]) for row in made] == [(0.5, 1), (0.5, 1)]
    assert [row["precision_delta"] for row in made] == [close(0.5 / 5)] * 2
    assert {row["cluster"] for row in found.to_pylist()} == {1, 2, None}


def test_notes_of_few_runs_are_of_each() -> None:
    """The number of independent groups of the first run stood there for both."""
    truth = {f"i{k}": {k // 2} for k in range(60)}
    runs = {
        "pairs": {item: set(own) for item, own in truth.items()},
        "tens": {f"i{k}": {k // 2 // 5} for k in range(60)},
    }
    notes = [w for w in fb.compare(truth, runs, overlapping=True).warnings if w["code"] == "few-units"]
    assert [(note["runs"], note["message"].split(" and ")[0]) for note in notes] == [
        (["tens"], "These scores rest on only about 6 independent groups"),
    ]
    runs["pairs"]["i0"] = set(range(30))
    notes = [w for w in fb.compare(truth, runs, overlapping=True).warnings if w["code"] == "few-units"]
    assert [note["runs"] for note in notes] == [["pairs"], ["tens"]]


def test_runs_on_items_of_their_own_are_not_on_these_items() -> None:
    truth = {"a": {1}, "b": {1}, "c": {2}}
    runs = {"old": {"a": {1}, "b": {2}}, "new": {"a": {1}, "b": {1}, "c": {2}}}
    said = repr(fb.compare(truth, runs, overlapping=True, align="each", unmatched="singleton"))
    first = "No clear difference between old and new: F1 0.800 → 1.000, +0.200 (-1.000 to +1.000), which"
    assert " ".join(said.split()).startswith(first)
