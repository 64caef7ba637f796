"""What slices lose beyond their share of the weight, and pairs of a slice, against naive twins."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastbcubed as fb
from fastbcubed.cli import main as cli

#: Ten items: x is large and as good as all, y small and bad, z small and perfect.
FRAME = pd.DataFrame({
    "item": [f"i{k}" for k in range(10)], "t": [1, 1, 1, 1, 1, 2, 3, 4, 5, 6],
    "p": [1, 1, 1, 1, 2, 3, 3, 4, 5, 6], "s": list("xxxxxyyzzz"), "w": [1.0, 2, 1, 1, 3, 1, 4, 1, 2, 1],
})  # fmt: skip


def naive(frame: pd.DataFrame, by: str, weighted: bool) -> pd.DataFrame:
    """Return excess and excess per item of each slice: losses of items looked at one by one."""
    weight = frame["w"] if weighted else pd.Series(1.0, frame.index)
    lost = []
    for k in frame.index:
        true, pred = frame["t"] == frame["t"][k], frame["p"] == frame["p"][k]
        both = weight[true & pred].sum()
        lost.append(2 - both / weight[pred].sum() - both / weight[true].sum())
    found = pd.DataFrame({by: frame[by], "weight": weight, "loss": weight * lost}).groupby(by).sum()
    mean = found["loss"].sum() / found["weight"].sum()
    found["excess"] = (found["loss"] - mean * found["weight"]) / found["weight"].sum()
    found["excess_per_item"] = found["loss"] / found["weight"] - mean
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["excess", "excess_per_item"])
def test_slices_are_ordered_by_excess(order: str, weighted: bool) -> None:
    how: dict[str, Any] = {
        "item": "item",
        "cluster": ("t", "p"),
        "slices": "s",
        **({"weight": "w"} if weighted else {}),
    }
    ev = fb.evaluate(FRAME[["item", "t", "s", "w"]], FRAME[["item", "p"]], **how)
    expected = naive(FRAME, "s", weighted)[order].sort_values(ascending=False)
    found = ev.slices("s", order_by=order)
    assert found["s"].to_pylist() == [*expected.index]
    assert found.column_names == ev.slices("s").column_names
    assert ev.slices("s", order_by=order, limit=1)["s"].to_pylist() == [expected.index[0]]
    subsets = {name: FRAME["item"][FRAME["s"] == name].to_list() for name in "zyx"}
    assert ev.slices(subsets, order_by=order)["slice"].to_pylist() == [*expected.index]
    del subsets["z"]  # the excess is beyond all items, not beyond those of the subsets
    assert ev.slices(subsets, order_by=order)["slice"].to_pylist() == [*expected.drop("z").index]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_excess_of_an_item_stands_beside_shares_of_the_loss(weighted: bool) -> None:
    from fastbcubed.results.chart_data import slicing_of

    how: dict[str, Any] = {"item": "item", "cluster": ("t", "p"), **({"weight": "w"} if weighted else {})}
    ev = fb.evaluate(FRAME[["item", "t", "s", "w"]], FRAME[["item", "p"]], **how)
    shown = {row["slice"][0]: row["excess"] for row in slicing_of(ev, "s")["rows"]}
    expected = naive(FRAME, "s", weighted)["excess_per_item"]
    np.testing.assert_allclose([shown[name] for name in expected.index], expected, atol=1e-12)
    scores = {row["s"]: row for row in ev.slices("s").to_pylist()}
    assert shown["y"] == pytest.approx(
        ev.precision - scores["y"]["precision"] + ev.recall - scores["y"]["recall"]
    )


def test_excess_adds_up_to_nothing_on_disk_too(tmp_path: Path) -> None:
    """Requested slices of a run on disk are listed from their table, without items."""
    paths = [tmp_path / "truth.parquet", tmp_path / "pred.parquet"]
    FRAME[["item", "t", "s"]].to_parquet(paths[0])
    FRAME[["item", "p"]].to_parquet(paths[1])
    ev = fb.evaluate(*paths, item="item", cluster=("t", "p"), slices="s", engine="disk", keep="scores")
    expected = naive(FRAME, "s", False)["excess"]
    assert expected.sum() == pytest.approx(0)
    assert ev.slices("s", order_by="excess")["s"].to_pylist() == [
        *expected.sort_values(ascending=False).index
    ]


def test_a_typing_error_lists_the_orders_by_excess() -> None:
    ev = fb.evaluate([1, 1], [1, 2], attributes={"s": ["a", "b"]})
    with pytest.raises(fb.errors.MetricError, match="excess, excess_per_item, loss"):
        ev.slices("s", order_by="exces")


@pytest.mark.parametrize(
    ("order", "first"),
    [("loss", ["x", "y", "z"]), ("excess", ["y", "x", "z"]), ("precision", ["y", "x", "z"])],
)
def test_the_command_orders_slices(
    order: str, first: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / name) for name in ("truth.csv", "pred.csv")]
    FRAME[["item", "t", "s"]].to_csv(paths[0], index=False)
    FRAME[["item", "p"]].to_csv(paths[1], index=False)
    names = ["--item", "item", "--cluster", "t,p", "--slice", "s"]
    assert cli.main(["evaluate", *paths, *names, "--order-by", order]) == 0
    text = capsys.readouterr().out
    lines = text[text.index("By s") :].splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("s "))
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == first
    assert "excess" in lines[at] and "excess: loss per item" in text


def test_pairs_of_a_slice_in_both_readings() -> None:
    """Each pair is looked at: in the slice with both items, or with at least one."""
    ev = fb.evaluate(FRAME["t"].to_numpy(), FRAME["p"].to_numpy(), attributes=FRAME[["s"]])
    found = {(row["s"], row["pairs"]): row for row in ev.source_pairs("s", by_slice=True).to_pylist()}
    for name in "xyz":
        for reading, least in (("within", 2), ("touching", 1)):
            pairs = [
                (FRAME["t"][a] == FRAME["t"][b], FRAME["p"][a] == FRAME["p"][b])
                for a, b in combinations(range(10), 2)
                if (FRAME["s"][a] == name) + (FRAME["s"][b] == name) >= least
            ]
            tp, fp, fn = (
                sum(pair == kind for pair in pairs) for kind in ((True, True), (False, True), (True, False))
            )
            row = found[name, reading]
            assert (row["pair_tp"], row["pair_fp"], row["pair_fn"]) == (tp, fp, fn)
            assert row["pair_f1"] == (2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 1)
    assert len(found) == 6


def test_an_attribute_called_as_a_column_of_pairs_is_kept() -> None:
    ev = fb.evaluate([1, 1], [1, 2], attributes={"pairs": ["a", "b"]})
    assert ev.source_pairs("pairs", by_slice=True)["attribute.pairs"].to_pylist() == ["a", "a", "b", "b"]
