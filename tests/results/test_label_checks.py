"""Labels that stand for none, differ by white space, or hold several clusters; counts that are given as weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.results.items import AlignedItems

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
engines = pytest.mark.parametrize("engine", ["memory", "disk"])


def found(code: str, *sides: Any, **options: Any) -> list[dict[str, Any]]:
    return [each for each in fb.evaluate(*sides, **options).warnings if each["code"] == code]


def test_labels_that_read_as_missing_are_warned_of_on_both_sides() -> None:
    odd, other = ["", "", "NA", "NA", "nan", "a", "a"], [1, 2, 3, 3, 4, 5, 6]
    for sides, side in (((odd, other), "truth"), ((other, odd), "prediction")):
        (entry,) = found("labels-like-nulls", *sides)
        assert (entry["level"], entry["side"], entry["n_items"]) == (
            "warning",
            side,
            4,
        )  # one 'nan' joins nothing
        assert sorted(entry["labels"]) == ["", "NA"] and "nulls=" in entry["message"]
    both = found("labels-like-nulls", odd, odd[::-1])
    assert [each["side"] for each in both] == ["truth", "prediction"]


def test_labels_that_are_numbers_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading some of them would load `pyarrow.compute`, which takes longer than scoring a few."""
    read: list[str] = []
    monkeypatch.setattr(AlignedItems, "labels", lambda self, side, rows=None: read.append(side))
    assert fb.evaluate([1, 1, 2], [1, 2, 2]).warnings is not None
    assert read == []


ODD = {"item": list("abcdefgh"), "cluster": ["", "", "NA", "NA", "nan", "a", " a", None]}
OTHER = {"item": list("abcdefgh"), "cluster": ["x", "x\u00a0", "y", "y", "z", "z", "z", "n/a"]}


def told(warnings: Any) -> list[tuple[Any, ...]]:
    """The odd labels that were found: side, number of items, and texts; one 'nan' joins nothing, nor does 'n/a'."""
    return [
        (each["code"], each["side"], each["n_items"], sorted(each["labels"]))
        for each in warnings
        if each["code"].startswith("labels-")
    ]


def expected(truth: str, prediction: str) -> list[tuple[Any, ...]]:
    return [
        ("labels-like-nulls", truth, 4, ["", "NA"]),
        ("labels-with-spaces", truth, 1, [" a"]),
        ("labels-with-spaces", prediction, 1, ["x\u00a0"]),
    ]


@pytest.mark.cases(2, 99)
@engines
@pytest.mark.parametrize("coded", [False, True])
def test_odd_labels_are_found_by_all_verbs_on_disk_too(engine: Any, coded: bool) -> None:
    odd, other = (pa.table(each) for each in (ODD, OTHER))
    if coded:
        odd = odd.set_column(1, "cluster", odd["cluster"].dictionary_encode())
    options: dict[str, Any] = {"engine": engine, "nulls": "singleton"}
    for keep in ("cells", "items"):
        assert told(fb.evaluate(odd, other, keep=keep, **options).warnings) == expected("truth", "prediction")
    assert told(fb.compare(odd, {"new": other}, **options).runs["new"].warnings) == expected(
        "truth", "prediction"
    )
    diff = fb.diff(odd, other, **options)
    assert told(diff.warnings) == expected("baseline", "experiment")
    read = fb.estimate(other, odd, **options).warnings
    assert ("labels-with-spaces", "sample", 1, ["x\u00a0"]) in told(read)
    assert ("labels-like-nulls", "prediction", 4, ["", "NA"]) in told(read)


def test_items_that_are_not_scored_are_not_counted_on_disk_either() -> None:
    """Of the three items called NA, the prediction has two."""
    truth = {"item": list("abcd"), "cluster": ["NA", "NA", "NA", "x"]}
    prediction = {"item": list("abd"), "cluster": [1, 1, 2]}
    for engine in ("memory", "disk"):
        (entry,) = found("labels-like-nulls", pa.table(truth), pa.table(prediction), engine=engine)
        assert (entry["n_items"], entry["labels"]) == (2, ["NA"])
    table = pa.table({"item": np.arange(40), "cluster": ["NA"] * 40})
    (note,) = found("not-checked", table, table, engine="disk", keep="scores")
    assert note["codes"][-2:] == ["labels-like-nulls", "labels-with-spaces"]


def test_noise_that_a_diff_advises_is_called_as_its_sides_are() -> None:
    sides = {"a": "-", "b": "-", "c": "x"}, {"a": "1", "b": "2", "c": "1"}
    (entry,) = [each for each in fb.diff(*sides).warnings if each["code"] == "labels-like-nulls"]
    assert 'noise={"baseline": "-"}' in entry["message"]
    assert told(fb.diff(*sides, noise={"baseline": "-"}).warnings) == []


def test_what_is_advised_helps() -> None:
    truth, prediction = ["-", "-", "a", "a"], ["x", "x", "y", "y"]
    (entry,) = found("labels-like-nulls", truth, prediction)
    assert "noise={'truth': '-'}" in entry["message"] or 'noise={"truth": "-"}' in entry["message"]
    assert found("labels-like-nulls", truth, prediction, noise={"truth": "-"}) == []
    nulls = [None, None, "a", "a"]
    assert found("labels-like-nulls", nulls, prediction, nulls="singleton") == []


@pytest.mark.slow
def test_few_of_many_items_are_found_in_a_sample() -> None:
    labels = np.array([f"c{k}" for k in range(1 << 16)], object).repeat(3)
    other = np.arange(labels.size) // 2
    assert found("labels-like-nulls", labels, other) == []
    labels[::10] = "None"
    (entry,) = found("labels-like-nulls", labels, other)
    assert entry["message"].startswith("About ") and entry["n_items"] == pytest.approx(
        labels.size / 10, rel=0.1
    )


def test_labels_that_differ_by_white_space() -> None:
    (entry,) = found("labels-with-spaces", [1, 1, 2, 2], ["x", " x", "y ", "y "])
    assert (entry["level"], entry["side"], entry["n_clusters"], entry["n_items"]) == (
        "warning",
        "prediction",
        1,
        1,
    )
    assert "' x' and 'x'" in entry["message"]
    assert found("labels-with-spaces", ["x ", "y "], ["x ", "y "]) == []  # of one width


def test_several_clusters_in_one_text(tmp_path: Path) -> None:
    for sign in "|;,":
        path = tmp_path / f"{ord(sign)}.csv"
        path.write_text(f'item,cluster\ni,"a{sign}b"\nj,b\n')
        (entry,) = found("several-in-one-label", path, {"i": "a", "j": "b"}, overlapping=True)
        assert (entry["side"], entry["separator"], entry["labels"]) == ("truth", sign, [f"a{sign}b"])
    split = {"i": {"a", "b"}, "j": {"b"}}
    assert found("several-in-one-label", split, {"i": {"a"}, "j": {"b"}}, overlapping=True) == []
    names = {"i": "Smith, John", "j": "Doe, Jane"}
    assert found("several-in-one-label", names, {"i": "a", "j": "b"}, overlapping=True) == []
    several = {"i": {"a|b", "c"}, "j": {"c"}}  # an item has two
    assert found("several-in-one-label", several, {"i": {"a"}, "j": {"b"}}, overlapping=True) == []


@engines
def test_counts_of_a_contingency_table_as_weights(engine: Any) -> None:
    """Three cells of 3, 1 and 4 items: within the cells 3 + 0 + 6 pairs are together on both sides; as rows, none."""
    true, pred, n = [0, 0, 1], [0, 1, 1], [3, 1, 4]
    sides = (true, pred)
    (entry,) = found("counts-as-weights", *sides, weight=n, metrics=["f1", "pair_tp"], engine=engine)
    assert (entry["level"], entry["n_rows"], entry["scores"]) == ("note", 3, ["pair_tp"])
    assert fb.evaluate(*sides, weight=n, metrics=["pair_tp"], engine=engine).pair_tp == 0
    assert fb.metrics.pair_tp(contingency=fb.Contingency.from_cells(true, pred, n)) == 9
    assert found("counts-as-weights", *sides, weight=n, metrics=["f1"], engine=engine) == []
    assert found("counts-as-weights", *sides, weight=[0.5, 1, 2], metrics=["pair_tp"], engine=engine) == []
    assert found("counts-as-weights", [0, 0], [1, 1], weight=[2, 3], metrics=["pair_tp"], engine=engine) == []
