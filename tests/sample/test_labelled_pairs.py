"""Labelled pairs of any origin: shares of pairs that match, and of matches that are together, with errors."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive_pairs_judged as twins
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    FastBCubedError,
    JudgementError,
    OptionError,
    OverlapError,
    WeightError,
)

#: a, b and c are one component, and are together but for c; of the four others only d and e are together, wrongly.
PAIRS = [
    ("a", "b", "same"),
    ("a", "c", "same"),
    ("d", "e", "different"),
    ("f", "g", "yes"),
    ("x", "y", "unsure"),
]
CLUSTERS = {"a": 1, "b": 1, "c": 2, "d": 3, "e": 3, "f": 4, "g": 4}
FRAME = pd.DataFrame(PAIRS, columns=["left", "right", "verdict"])


def scores(labelled: Any, prediction: Any, **options: Any) -> dict[str, dict[str, Any]]:
    return {
        row["score"]: row for row in fb.estimate_pairs(labelled, prediction=prediction, **options).to_pylist()
    }


def test_worked_by_hand() -> None:
    """Of ab, de and fg, together, two match; of ab, ac and fg, matches, two are together; 4 of 3 + 3 for F1.

    Precision: three components of one pair, which move 1/9, -2/9 and 1/9: the root of 3/2 * 6/81 is 1/3. Recall: abc
    has 1 of 2, fg 1 of 1, which move (1 - 4/3) / 3 = -1/9 and 1/9: the root of 2 * 2/81 is 2/9.
    """
    found = scores(PAIRS, CLUSTERS)
    precision, recall, f1 = (found[f"pair_{name}"] for name in ("precision", "recall", "f1"))
    assert [each["estimate"] for each in (precision, recall, f1)] == pytest.approx([2 / 3] * 3, abs=1e-15)
    assert (precision["se"], recall["se"]) == pytest.approx((1 / 3, 2 / 9), abs=1e-15)
    assert [each["n_components"] for each in (precision, recall, f1)] == [3, 2, 3]
    assert [each["n_judged"] for each in (precision, recall, f1)] == [3, 3, 4]
    # xy is unsure, and apart, as neither is in a cluster: were it a match, one of four more would be missed
    assert [each["n_unsure"] for each in (precision, recall, f1)] == [0, 1, 1]
    assert [(each["low_unsure"], each["high_unsure"]) for each in (precision, recall)] == [
        (2 / 3, 2 / 3), (2 / 4, 2 / 3),
    ]  # fmt: skip
    assert f1["low_unsure"] == pytest.approx(4 / 7)
    assert {each["n_outside"] for each in (precision, recall, f1)} == {1}
    assert all(0 <= each["low"] < each["estimate"] < each["high"] <= 1 for each in found.values())


@pytest.mark.parametrize("seed", range(6))
def test_the_naive_twin_agrees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = [f"i{k}" for k in range(30)]
    cluster = {item: int(rng.integers(12)) for item in items[:-2]}
    chosen = {tuple(sorted(rng.choice(items, 2, replace=False).tolist())) for _ in range(18)}
    pairs = [
        (i, j, str(rng.choice(["same", "different", "unsure"], p=[0.6, 0.3, 0.1])), int(rng.integers(1, 5)))
        for i, j in sorted(chosen)
    ]
    expected = twins.labelled_scores([(i, j, v, Fraction(w)) for i, j, v, w in pairs], cluster)
    frame = pd.DataFrame(pairs, columns=["left", "right", "is_match", "w"])
    frame = pd.concat([frame, frame.head(3).rename(columns={"left": "right", "right": "left"})])  # once each
    found = scores(frame, cluster, weight="w")
    for name, row in found.items():
        value, error, m = expected.get(name, (math.nan, math.nan, 0))
        assert (row["estimate"], row["se"], row["n_components"]) == pytest.approx(
            (float(value), error, m), abs=1e-12, nan_ok=True
        )


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: rows,
        lambda rows: pd.DataFrame(rows, columns=["id_l", "id_r", "is_match"]),
        lambda rows: pa.table(pd.DataFrame(rows, columns=["left", "right", "label"])),
        lambda rows: pa.table(pd.DataFrame(rows, columns=["left", "right", "label"])).to_reader(2),
        lambda rows: {name: list(values) for name, values in zip(("left", "right", "verdict"), zip(*rows))},  # noqa: B905
        lambda rows: np.array(rows, dtype=object),
    ],
)
def test_any_container(made: Any, tmp_path: Path) -> None:
    found = scores(made(PAIRS), CLUSTERS)
    assert found == scores(FRAME, pd.DataFrame({"item": list(CLUSTERS), "cluster": list(CLUSTERS.values())}))


def test_rows_without_a_verdict_are_left_out() -> None:
    more = [*PAIRS, ("a", "g", None), ("b", "g", None)]
    found = scores(pd.DataFrame(more, columns=["left", "right", "verdict"]), CLUSTERS)
    assert {row["n_unjudged"] for row in found.values()} == {2}
    assert [row["estimate"] for row in found.values()] == [
        row["estimate"] for row in scores(PAIRS, CLUSTERS).values()
    ]


def test_several_runs_and_what_the_text_says() -> None:
    better = CLUSTERS | {"c": 1, "e": 9}
    found = fb.estimate_pairs(PAIRS, prediction={"old": CLUSTERS, "new": better})
    assert found["run"].to_pylist() == ["old"] * 3 + ["new"] * 3
    assert found["estimate"].to_pylist() == pytest.approx([2 / 3] * 3 + [1] * 3)
    said = " ".join(found.sentences)
    assert "old: 66.7 % of the pairs within predicted clusters match (" in said
    assert "1 pair has an item in no cluster and counts as not within a cluster" in said
    assert "no blocking rule proposed" in said and "weight=" in said
    assert "weight=" not in " ".join(
        fb.estimate_pairs(FRAME.assign(w=1), prediction=better, weight="w").sentences
    )
    assert pickle.loads(pickle.dumps(found)).sentences == found.sentences


def test_one_component_has_no_interval() -> None:
    found = fb.estimate_pairs(
        [("a", "b", "same"), ("b", "c", "different")], prediction={"a": 1, "b": 1, "c": 1}
    )
    precision = found.to_pylist()[0]
    assert precision["estimate"] == 0.5 and math.isnan(precision["se"]) and math.isnan(precision["low"])
    assert "into one component" in " ".join(found.sentences)


def test_two_tables_and_links_as_clusters() -> None:
    pairs = {"ltable_id": [1, 2], "rtable_id": [1, 3], "gold": [1, 0]}
    made = fb.Clustering.from_links({"ltable_id": [1], "rtable_id": [1]}, sources=("A", "B"))
    found = scores(pairs, made, sources=("A", "B"))
    assert (found["pair_recall"]["estimate"], found["pair_precision"]["n_outside"]) == (1.0, 0)


@pytest.mark.parametrize(
    ("labelled", "prediction", "options", "error", "said"),
    [
        ([*PAIRS, ("b", "a", "no")], CLUSTERS, {}, JudgementError, "contradicts another"),
        ([*PAIRS, ("b", "b", "yes")], CLUSTERS, {}, JudgementError, "an item with itself"),
        (FRAME.assign(verdict=None), CLUSTERS, {}, JudgementError, "No pair of .* has a verdict"),
        (FRAME, {"q": 1}, {}, AlignmentError, "No item of the labelled pairs"),
        (FRAME, [1, 1, 2], {}, ColumnError, "Give a table with items"),
        (FRAME, pd.DataFrame({"item": ["a", "a"], "cluster": [1, 2]}), {}, OverlapError, "a second cluster"),
        (FRAME.assign(w=-1), CLUSTERS, {"weight": "w"}, WeightError, "5 of 5 in column 'w'"),
        (FRAME.assign(w="x"), CLUSTERS, {"weight": "w"}, FastBCubedError, "w"),
        (FRAME.rename(columns={"verdict": "said"}), CLUSTERS, {}, ColumnError, r"No column of .*verdict="),
        (FRAME.assign(label=1, gold=1).drop(columns="verdict"), CLUSTERS, {}, ColumnError, "Several columns"),
        (FRAME, CLUSTERS, {"by_stratum": True}, OptionError, "applies to pairs drawn by sample_pairs, not to labelled"),
        (FRAME, None, {"weight": "w"}, OptionError, "prediction="),
        (FRAME, None, {}, ColumnError, "prediction="),
        (FRAME, {1: FRAME}, {}, OptionError, "Run names must be strings, not"),
    ],
)  # fmt: skip
def test_named_errors(labelled: Any, prediction: Any, options: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        fb.estimate_pairs(labelled, prediction=prediction, **options)


def test_weights_of_one_pair_differ() -> None:
    twice = pd.concat([FRAME.assign(w=1.0), FRAME.assign(w=2.0)])
    with pytest.raises(WeightError, match="a different weight"):
        fb.estimate_pairs(twice, prediction=CLUSTERS, weight="w")


def test_saved_and_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, old = tmp_path / "pairs.csv", tmp_path / "old.csv"
    FRAME.to_csv(pairs, index=False)
    pd.DataFrame({"item": list(CLUSTERS), "cluster": list(CLUSTERS.values())}).to_csv(old, index=False)
    out, page = tmp_path / "out", tmp_path / "page.html"
    assert (
        main(
            [
                "estimate-pairs",
                str(pairs),
                "--prediction",
                f"old={old}",
                "--out",
                str(out),
                "--report",
                str(page),
            ]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "pair_recall" in said and "no blocking rule proposed" in " ".join(said.split())
    expected = fb.estimate_pairs(PAIRS, prediction={"old": CLUSTERS}).to_dict()
    assert fb.load(out).to_dict()["estimates"] == expected["estimates"]
    assert "no blocking rule proposed" in page.read_text()
    assert main(["show", str(out)]) == 0 and "pair_recall" in capsys.readouterr().out
    assert main(["estimate-pairs", str(pairs)]) == 2 and "--prediction" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9])
def test_intervals_hold_what_they_say(level: float) -> None:
    """Records of clusters of 1 to 4 of 2,000; 150 components drawn by one record, all of whose pairs are labelled."""
    rng, held = np.random.default_rng(1), []
    for _ in range(200):
        n = rng.integers(1, 4, 120)
        good = rng.random(120)
        pairs, cluster = [], {}
        for k, (size, share) in enumerate(zip(n, 0.6 + 0.4 * good, strict=True)):
            for j in range(size):
                same = rng.random() < share
                pairs.append((f"{k}", f"{k}.{j}", "same" if same else "different"))
                cluster[f"{k}"] = cluster[f"{k}.{j}"] = k
        row = fb.estimate_pairs(pairs, prediction=cluster, level=level).to_pylist()[0]
        held.append(row["low"] <= 0.8 <= row["high"])
    assert 0.85 <= np.mean(held) <= 0.96
