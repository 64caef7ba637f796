"""Where recall is lost: blocking, threshold and merging, as evaluations of filtered links have them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import NotKeptError

#: Items a, b, c are one; d, e are one; f has no link. The right links are a-b and d-e; c is never proposed.
TRUTH = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2, "f": 3}
LINKS = [("a", "b", 0.9), ("b", "d", 0.5), ("d", "e", 0.4)]


def components(items: Iterable[Any], pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the representative of each item, found by walking up to it."""
    above = {item: item for item in items}

    def top(item: Any) -> Any:
        while above[item] != item:
            item = above[item]
        return item

    for left, right in pairs:
        above[top(left)] = top(right)
    return {item: top(item) for item in above}


def twin(
    truth: Any, links: Any, threshold: float, *, ascending: bool = False, **how: Any
) -> dict[str, list[float]]:
    """Return recall and pair recall of the three clusterings, each evaluated from its own links."""
    used = [(a, b) for a, b, s in links if (s <= threshold if ascending else s >= threshold)]

    def right(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        return [(a, b) for a, b in pairs if a in truth and b in truth and truth[a] == truth[b]]

    items = {item for a, b, _ in links for item in (a, b)}
    found: dict[str, list[float]] = {"recall": [], "pair_recall": []}
    for pairs in (right((a, b) for a, b, _ in links), right(used), used):
        how = {"unmatched": {"truth": "singleton", "prediction": "drop"}} | how
        outside = how["unmatched"]["prediction"] == "outside"
        names = ["recall"] if outside else list(found)
        ev = fb.evaluate(truth, components(items, pairs), metrics=names, **how)
        for name in names:
            found[name].append(ev.overall[name])
    return {name: values for name, values in found.items() if values}


def check(sweep: fb.Sweep, threshold: float, expected: dict[str, list[float]]) -> None:
    stages = sweep.stages(threshold)
    assert set(stages.recalls) == set(expected)
    for name, values in expected.items():
        assert list(stages.recalls[name]) == pytest.approx(values, abs=1e-12, nan_ok=True)
        lost = stages.recalls[name].lost
        assert sum(lost.values()) == pytest.approx(1 - values[2], abs=1e-12, nan_ok=True)
        if not math.isnan(values[2]):
            assert lost["blocking"] >= -1e-12 and lost["threshold"] >= -1e-12 and lost["merging"] <= 1e-12


def test_by_hand() -> None:
    """Of 4 right pairs, links have a-b at 0.9 and d-e at 0.4; recall of items: a, b 2/3, c 1/3, d, e 1/2 or 1, f 1."""
    sweep = fb.sweep(TRUTH, LINKS)
    stages = sweep.stages(0.9)
    assert stages.recalls["pair_recall"] == pytest.approx((2 / 4, 1 / 4, 1 / 4))
    assert stages.recalls["recall"] == pytest.approx(((5 / 3 + 3) / 6, (5 / 3 + 2) / 6, (5 / 3 + 2) / 6))
    assert (stages.n_links, stages.n_right, stages.n_used, stages.n_used_right) == (3, 2, 1, 1)
    assert stages.sentence == (
        "50.0 of the 75.0 points of pair recall lost at threshold 0.9 are lost before scoring: no threshold brings "
        "them back."
    )
    table = stages.table()
    assert table["stage"].to_pylist() == ["blocking", "threshold", "merging"]
    assert table["pair_recall_lost"].to_pylist() == pytest.approx([0.5, 0.25, 0.0])
    assert stages.notes == [] and sweep.stages() is sweep.stages(sweep.best("f1").threshold)


def test_what_wrong_links_regain_is_the_part_of_merging() -> None:
    """The pair a, c has no link, and the wrong links a-d and d-c join it all the same."""
    links = [("a", "d", 0.9), ("d", "c", 0.8), ("a", "b", 0.3)]
    stages = fb.sweep(TRUTH, links).stages(0.8)
    assert stages.recalls["pair_recall"].lost == pytest.approx(
        {"blocking": 3 / 4, "threshold": 1 / 4, "merging": -1 / 4}
    )
    assert stages.sentence.endswith("Wrong links regain 25.0 points.")


@pytest.mark.parametrize(
    ("threshold", "where"), [(0.7, "by the threshold: a weaker threshold"), (0.1, "no pair recall is")]
)
def test_the_stage_that_costs_most_is_told(threshold: float, where: str) -> None:
    truth = {"a": 1, "b": 1, "c": 2, "d": 2}
    assert (
        where
        in fb.sweep(truth, [("a", "b", 0.6), ("c", "d", 0.5), ("a", "c", 0.05)]).stages(threshold).sentence
    )


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@given(data=st.data())
def test_stages_are_evaluations_of_filtered_links(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 9))
    item = st.integers(0, n - 1)
    links = data.draw(
        st.lists(st.tuples(item, item, st.sampled_from([0.1, 0.25, 0.5, 1.0])), min_size=1, max_size=14)
    )
    known = data.draw(st.sets(item, min_size=1)) | {links[0][0]}
    truth = {each: data.draw(st.integers(0, 2)) for each in sorted(known)} | {"more": 0}
    weights = data.draw(st.none() | st.fixed_dictionaries({each: st.floats(0.1, 9) for each in truth}))
    how: dict[str, Any] = {} if weights is None else {"weight": weights}
    outside = data.draw(st.booleans())
    if outside:
        how["unmatched"] = {"truth": "singleton", "prediction": "outside"}
    if outside or weights is None or len(truth) == len(known | {"more"}):
        truth = {str(each): label for each, label in truth.items()}
        links = [(str(a), str(b), s) for a, b, s in links]
        how |= {} if weights is None else {"weight": {str(each): w for each, w in weights.items()}}
        if weights is not None:  # an item that the links alone have has no weight
            truth |= {str(each): 5 for a, b, _ in links for each in (a, b) if each not in truth}
            how["weight"] |= {each: 1.5 for each in truth if each not in how["weight"]}
        ascending = data.draw(st.booleans())
        sweep = fb.sweep(truth, links, ascending=ascending, **how)
        threshold = data.draw(st.sampled_from([0.1, 0.3, 0.5, 2.0, -1.0]))
        check(sweep, threshold, twin(truth, links, threshold, ascending=ascending, **how))


def test_positions_and_pairs_that_the_sweep_does_not_have() -> None:
    truth = [0, 0, 1, 1, 1]
    links = [(0, 1, 0.9), (2, 3, 0.5), (1, 2, 0.7)]
    sweep = fb.sweep(truth, links, metrics="f1")
    check(sweep, 0.7, twin(dict(enumerate(truth)), links, 0.7))


def test_links_cut_at_one_threshold_are_said() -> None:
    for links, threshold, why in (
        ([("a", "b", 1.0), ("b", "d", 1.0)], 1.0, "all links have one score"),
        (LINKS, 0.4, "no link is weaker than threshold 0.4"),
    ):
        stages = fb.sweep(TRUTH, links).stages(threshold)
        (note,) = stages.notes
        assert note["code"] == "links-cut" and f"cannot be separated because {why}" in note["message"]
        assert "by blocking and scoring, which cannot be separated." in stages.sentence


def test_a_truth_that_lacks_items_is_said() -> None:
    links = [("a", "x", 0.9), ("x", "b", 0.8), ("a", "c", 0.1)]
    with pytest.warns(fb.EvaluationWarning, match="items that the truth does not label"):
        stages = fb.sweep({"a": 1, "b": 1, "c": 2}, links).stages(0.8)
    (note,) = stages.notes
    assert note["code"] == "links-not-judged" and "2 of 3 links have an item without" in note["message"]
    assert stages.recalls["pair_recall"].lost == {"blocking": 1.0, "threshold": 0.0, "merging": -1.0}


def test_without_pairs_in_the_truth_recall_of_pairs_is_that_of_an_evaluation() -> None:
    links = [("a", "b", 0.9), ("b", "c", 0.4)]
    check(fb.sweep({"a": 1, "b": 2, "c": 3}, links), 0.9, twin({"a": 1, "b": 2, "c": 3}, links, 0.9))


@pytest.mark.slow
def test_the_one_document_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("truth.csv").write_text("item,cluster\n" + "".join(f"{k},{v}\n" for k, v in TRUTH.items()))
    Path("links.csv").write_text("left,right,score\n" + "".join(f"{a},{b},{s}\n" for a, b, s in LINKS))
    assert (
        cli.main("sweep truth.csv links.csv --stages --merges 0 --out swept --report page.html".split()) == 0
    )
    out = capsys.readouterr().out
    sweep = fb.sweep("truth.csv", "links.csv")
    stages = sweep.stages()
    assert "Where recall is lost" in out and stages.sentence in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    page = Path("page.html").read_text()
    assert "Where recall is lost" in page and stages.sentence in page
    loaded = fb.load("swept")
    assert loaded.stages() == stages == loaded.stages(stages.threshold)
    assert loaded.to_dict()["stages"] == json.loads(json.dumps(stages.to_dict()))
    assert cli.main("show swept".split()) == 0 and "Where recall is lost" in capsys.readouterr().out
    with pytest.raises(NotKeptError, match="stages need the links, which a sweep drops when"):
        loaded.stages(0.9 if stages.threshold != 0.9 else 0.4)
    assert cli.main("sweep truth.csv links.csv --stages --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["stages"] == json.loads(json.dumps(stages.to_dict()))
    assert "Where recall is lost" not in sweep.report().html


def test_links_that_have_no_room_are_let_go() -> None:
    from dataclasses import replace

    sweep = fb.sweep(TRUTH, LINKS)
    sweep.tree = replace(sweep.tree, pairs=None)
    with pytest.raises(NotKeptError, match="larger memory_limit"):
        sweep.stages(0.9)
    assert np.isfinite(fb.sweep(TRUTH, LINKS, memory_limit="1GiB").stages(0.9).recalls["recall"].found)
