"""Standard errors by slice: of scores with true negatives against a twin, and where they are shown."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import naive_resampling as twin
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli import output
from fastbcubed.cli.main import main
from fastbcubed.render.number_formats import with_interval
from fastbcubed.results import standard_errors
from fastbcubed.results.intervals import of_slice
from fastbcubed.results.slices import slice_name

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
NAMES = ["accuracy", "specificity", "balanced_accuracy", "mcc", "pointwise_ari"]


def sample(seed: int) -> tuple[list[str], list[str], list[str]]:
    """Return labels of components that merge or split, and a slice of each item; one slice has a single component."""
    rng = np.random.default_rng(seed)
    true, pred, part = [], [], []
    for k in range(40):
        for cluster in range(int(rng.integers(1, 4))):
            for item in range(int(rng.geometric(0.4))):
                true.append(f"{k}.{cluster}")
                pred.append(f"{k}.{item % 2 if k % 3 else 0}")
                part.append("alone" if k == 7 else "ab"[int(rng.random() < 0.3)])
    return true, pred, part


def scores_of(tp: float, fp: float, fn: float, tn: float) -> dict[str, float]:
    def share(a: float, b: float) -> float:
        return a / b if b else 1.0

    whole, specificity = tp + fp + fn + tn, share(tn, tn + fp)
    found = {"accuracy": (tp + tn) / whole, "specificity": specificity}
    found["balanced_accuracy"] = (tp / (tp + fn) + specificity) / 2
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    found["mcc"] = (tp * tn - fp * fn) / math.sqrt(below) if below else math.nan
    below = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    found["pointwise_ari"] = 2 * (tp * tn - fn * fp) / below if below else math.nan
    return found


def means(
    true: Sequence[str], pred: Sequence[str], part: Sequence[str], times: dict[str, float], which: str
) -> dict[str, float]:
    """Return the scores of a slice where each component counts so many times."""
    sizes, n = [Counter(side) for side in (true, pred)], sum(times[t.split(".")[0]] for t in true)
    cells, weight, added = Counter(zip(true, pred, strict=True)), 0.0, Counter()
    for t, p, own in zip(true, pred, part, strict=True):
        if own == which:
            tp, w = cells[t, p], times[t.split(".")[0]]
            fp, fn = sizes[1][p] - tp, sizes[0][t] - tp
            weight += w
            for name, score in scores_of(tp, fp, fn, n - tp - fp - fn).items():
                added[name] += w * score
    return {name: added[name] / weight for name in NAMES}


def errors(
    true: Sequence[str],
    pred: Sequence[str],
    part: Sequence[str],
    which: str,
    before: Sequence[str] | None = None,
) -> dict[str, float]:
    """Return errors from what each component moves, of scores or of their differences from those of a run before.

    They are in proportion to units of the slice.
    """

    def scores(times: dict[str, float]) -> dict[str, float]:
        found = means(true, pred, part, times, which)
        old = dict.fromkeys(NAMES, 0.0) if before is None else means(true, before, part, times, which)
        return {name: found[name] - old[name] for name in NAMES}

    units = sorted({t.split(".")[0] for t in true})
    inside = {t.split(".")[0] for t, own in zip(true, part, strict=True) if own == which}
    step, found = 1e-4, []
    for unit in units:
        up, down = (scores({u: 1 + (u == unit) * d for u in units}) for d in (step, -step))
        found.append({name: (up[name] - down[name]) / (2 * step) for name in NAMES})
    n = len(inside)
    return {name: math.sqrt(twin._squares([each[name] for each in found]) * n / (n - 1)) for name in NAMES}


def evaluated(seed: int, order: np.ndarray | None = None, **options: object) -> fb.Evaluation:
    true, pred, part = (np.array(side) for side in sample(seed))
    order = np.arange(true.size) if order is None else order
    return fb.evaluate(
        true[order], pred[order], metrics=NAMES, attributes={"part": part[order]}, keep="items", **options
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_errors_are_those_of_the_twin(seed: int) -> None:
    true, pred, part = sample(seed)
    rows = {row["part"]: row for row in evaluated(seed).slices("part", errors=True).to_pylist()}
    assert all(math.isnan(rows["alone"][f"{name}_se"]) for name in NAMES)
    for which in "ab":
        values, expected = (
            means(true, pred, part, Counter(dict.fromkeys({t.split(".")[0] for t in true}, 1)), which),
            errors(true, pred, part, which),
        )
        for name in NAMES:
            assert rows[which][name] == pytest.approx(values[name], rel=1e-12)
            assert rows[which][f"{name}_se"] == pytest.approx(expected[name], rel=1e-4), name


def test_errors_of_differences_are_those_of_the_twin() -> None:
    true, pred, part = sample(6)
    before = [f"{label}.{i % 3}" if i % 5 == 0 else label for i, label in enumerate(pred)]
    runs = {"before": np.array(before), "after": np.array(pred)}
    cmp = fb.compare(np.array(true), runs, metrics=NAMES, attributes={"part": np.array(part)})
    rows = {row["part"]: row for row in cmp.slices("part").to_pylist() if row["run"] == "after"}
    assert all(math.isnan(rows["alone"][f"{name}_delta_se"]) for name in NAMES)
    for which in "ab":
        expected = errors(true, pred, part, which, before)
        for name in NAMES:
            assert rows[which][f"{name}_delta_se"] == pytest.approx(expected[name], rel=1e-4), name


def test_one_slice_of_all_items_has_the_errors_of_all() -> None:
    ev = evaluated(3)
    found = ev.slices({"all": np.ones(ev.contingency.n_items, bool)}, errors=True).to_pylist()[0]
    for name in NAMES:
        assert found[f"{name}_se"] == pytest.approx(ev.errors[name], rel=1e-9)


def test_order_and_threads_do_not_count() -> None:
    ev = evaluated(4, threads=1)
    order = np.random.default_rng(5).permutation(ev.contingency.n_items)
    tables = (each.slices("part", errors=True).to_pydict() for each in (ev, evaluated(4, order, threads=3)))
    first, second = tables
    assert list(first) == list(second)
    for name in NAMES:
        assert first[f"{name}_se"] == pytest.approx(second[f"{name}_se"], rel=1e-9, nan_ok=True)


def test_alike_components_have_no_error() -> None:
    true = [f"{k}.{label}" for k in range(7) for label in (0, 2, 1, 1, 2)]
    pred = [f"{k}.{label}" for k in range(7) for label in (0, 2, 0, 1, 0)]
    part = [label for _ in range(7) for label in "aabba"]
    ev = fb.evaluate(true, pred, metrics=NAMES, attributes={"part": part}, keep="items")
    found = ev.slices("part", errors=True)
    assert {value for name in NAMES for value in found[f"{name}_se"].to_pylist()} == {0.0}


DATA = Path(fb.__file__).parent / "data" / "patentsview"
SCORE = {"evaluation": "f1", "diff": "split_rate"}
FILES = [str(DATA / f"{name}.parquet") for name in ("truth", "pred_20200929", "pred_20211230")]


def rows_by_name(table: Any) -> list[dict[str, Any]]:
    return [
        {name: None if value != value else value for name, value in row.items()} for row in table.to_pylist()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["scores", "items"])
@pytest.mark.parametrize("of", ["evaluation", "diff"])
def test_requested_slices_are_printed_and_written_with_errors(of, keep, tmp_path, capsys) -> None:
    """Also those that are crossed, binned or named; `sliced` itself has the scores alone, before and after."""
    own = "true_size" if of == "evaluation" else "baseline_size"
    some = fb.evaluate(*FILES[1:]).items(limit=99)["item"].to_pylist()
    keys = ["country", (own, "country"), fb.bins("n_coinventors", 5), {"early": some[:60], "late": some[60:]}]
    if of == "evaluation":
        result = fb.evaluate(*FILES[:2], slices=keys)
    else:
        result = fb.diff(*FILES[1:], truth=FILES[0], slices=keys)
    result.save(tmp_path / "saved", keep=keep)
    result.report(tmp_path / "page.html")
    loaded, written = fb.load(tmp_path / "saved"), json.loads(result.to_json())["slices"]
    for key in keys:
        name = slice_name(key)
        assert written[name] == rows_by_name(result.slices(key, errors=True))
        assert rows_by_name(loaded.sliced[name]) == rows_by_name(result.sliced[name])
        assert rows_by_name(result.sliced[name]) == rows_by_name(result.slices(key))
    assert json.loads(loaded.to_json())["slices"] == written
    assert main(["show", str(tmp_path / "saved")]) == 0
    listed = result.slices("country", errors=True)
    row = next(row for row in listed.to_pylist() if row["country"] == "US")
    ends = of_slice(row[SCORE[of]], row[f"{SCORE[of]}_se"], row["n_units"], low=0.0, high=1.0)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("US "))
    assert f" {with_interval(row[SCORE[of]], *ends)} " in line


def test_slices_of_several_runs_are_written_with_errors(tmp_path) -> None:
    """Subsets by name, too, and attributes that are called like a column which a comparison adds."""
    truth, runs = [0, 0, 1, 1, 2, 2], {"a": [0, 0, 1, 1, 2, 3], "b": [0, 1, 2, 2, 3, 3]}
    parts = {"n_units": list("xyxyxy"), "f1_delta_se": [1.5, 2.5] * 3, "run": list("stsuts")}
    subsets = {"first": [0, 1, 2], "last": [3, 4, 5]}
    cmp = fb.compare(truth, runs, attributes=parts, slices=[*parts, subsets])
    cmp.save(tmp_path / "saved")
    cmp.report(tmp_path / "page.html")
    loaded, written = fb.load(tmp_path / "saved"), json.loads(cmp.to_json())["slices"]
    assert json.loads(loaded.to_json())["slices"] == written
    assert list(written) == [*parts, "first,last"]
    for name, values in {**parts, "first,last": ["first", "last"]}.items():
        column = f"attribute.{name}" if name in parts else "slice"
        assert {row[column] for row in written[name]} == set(values)
        assert all({"n_units", "f1_delta_se"} <= set(row) for row in written[name])


def test_a_terminal_without_room_shows_the_interval_of_f1_alone(monkeypatch, capsys, tmp_path) -> None:
    few = pc.field("item").isin(pq.read_table(FILES[0])["item"][:1500])
    files = [str(tmp_path / f"{k}.parquet") for k in range(2)]
    for path, file in zip(FILES, files, strict=False):
        pq.write_table(pq.read_table(path).filter(few), file)
    for columns, shown in ((200, True), (79, False)):
        monkeypatch.setattr(output.Terminal, "width", columns)
        main(["evaluate", *files, "--slice", "country", "--no-progress", "--worst", "1"])
        out = capsys.readouterr().out
        (header,) = (line for line in out.splitlines() if line.startswith("country "))
        (row,) = (line for line in out.splitlines() if line.startswith("US "))
        assert row.count(" to ") == (3 if shown else 1)
        assert ("of items" in header) == shown and "precision" in header


def test_slices_of_many_cells_have_no_errors_that_nobody_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(standard_errors, "ALWAYS", 10)
    ev = fb.evaluate(*FILES[:2], slices="country")
    assert [*ev.to_dict()["slices"]["country"][0]] == ev.slices("country").column_names
