"""Standard errors as an evaluation tells them: by name, by unit, in slices, saved, within a limit, and when not."""

from __future__ import annotations

import json
import math
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import of_section

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import (
    ColumnError,
    EvaluationWarning,
    MetricError,
    NotKeptError,
    OptionError,
    SliceError,
)
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results import standard_errors, unit_cells
from fastbcubed.results import warnings as of_shape
from fastbcubed.runtime import threads as pool

#: Components by hand: three of recall 1 and one of recall 1/2, with two items each.
pytestmark = pytest.mark.filterwarnings("ignore:few of .* units")
HALVED = list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5]


def sides(n: int = 600, seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n // 4, n)
    pred = np.where(rng.random(n) < 0.1, rng.integers(0, n // 4, n), true)
    return true, pred, rng.uniform(0.5, 2.0, n)


def test_intervals_are_written_and_shown_unless_they_shall_not_be(tmp_path: Path, capsys) -> None:
    true, pred, weight = sides()
    ev = fb.evaluate(true, pred, weight=weight)
    assert ev.to_dict()["intervals"] == {name: ev.interval(name)._asdict() for name in ev.overall}
    ev.save(tmp_path / "saved", keep="scores")
    assert fb.load(tmp_path / "saved").to_dict()["intervals"] == ev.to_dict()["intervals"]
    for name, labels in (("true", true), ("pred", pred)):
        pq.write_table(
            pa.table({"item": np.arange(true.size), "cluster": labels}), tmp_path / f"{name}.parquet"
        )
    command = ["evaluate", str(tmp_path / "true.parquet"), str(tmp_path / "pred.parquet")]
    low, high = fb.evaluate(true, pred).interval("f1")
    assert main(command) == 0 and f"({low:.3f} to {high:.3f})" in capsys.readouterr().out
    assert main([*command, "--no-intervals"]) == 0 and " to 0." not in capsys.readouterr().out


def test_by_hand() -> None:
    """Squared deviations are 3 (2 - 7/8 2)^2 + (1 - 7/8 2)^2 = 3/4, times 4/3; the root of that is 1, of 8 items."""
    ev = fb.evaluate(*HALVED)
    assert ev.errors.recall == pytest.approx(1 / 8, abs=1e-15)
    assert ev.errors.under_merge_rate == pytest.approx(1 / 8, abs=1e-15)
    assert ev.errors.precision == 0
    assert ev.errors.f1 == pytest.approx(2 / (1 + 7 / 8) ** 2 / 8, abs=1e-15)  # dF/dR = 2 P^2 / (P + R)^2
    assert ev.units == (4, pytest.approx(4.0), pytest.approx(0.25))
    (row,) = [row for row in ev.scores().to_pylist() if row["score"] == "recall"]
    low, high = ev.interval("recall")
    assert row == {
        "score": "recall", "value": 0.875, "se": pytest.approx(0.125), "low": low, "high": high, "n_units": 4,
        "effective_units": pytest.approx(4.0),
    }  # fmt: skip
    wider = ev.interval("recall", level=0.99)
    assert wider.low < low < 0.875 < high <= wider.high <= 1


def repeated(*columns: list[int], times: int = 7) -> list[list[str]]:
    """Return labels of as many components that are all alike, so that no score differs between them."""
    return [[f"{k}.{label}" for k in range(times) for label in column] for column in columns]


#: Components of five items: means that no float holds, by which rounding is left of deviations from them.
ALIKE = [0, 2, 1, 1, 2], [0, 2, 0, 1, 0], [0, 0, 1, 1, 1]


def test_errors_of_rounding_are_none_wherever_they_are_shown() -> None:
    """All components have the same scores, so each standard error is 0, in sums over items, over runs and in sweeps."""
    true, pred, other = repeated(*ALIKE)
    parts = {"item": range(35), "part": list("xxxxy") * 7}
    ev = fb.evaluate(dict(enumerate(true)), dict(enumerate(pred)), attributes=parts, slices="part")
    assert set(ev.errors.values()) == {0.0} and ev.interval("f1") == (ev.f1, ev.f1)
    assert not re.search(r"e-1\d|±", repr(ev))
    of_slices = ev.slices("part", errors=True)
    assert {
        v for name in of_slices.column_names if name.endswith("_se") for v in of_slices[name].to_pylist()
    } == {0}
    page = ev.report()
    assert not re.search(
        r"e-1\d", json.dumps([of_section(page.content, name) for name in ("slices", "verdict")])
    )
    runs = {"old": dict(enumerate(pred)), "new": dict(enumerate(other))}
    cmp = fb.compare(dict(enumerate(true)), runs, attributes=parts)
    assert cmp.deltas()["se"].to_pylist() == [0.0] * len(cmp.metrics)
    assert not re.search(r"e-1\d", repr(cmp) + repr(cmp.slices("part")))
    assert fb.diff(dict(enumerate(true)), dict(enumerate(pred))).errors.split_distance == 0
    links = [(5 * k + i, 5 * k + i + 1, score) for k in range(7) for i, score in ((0, 0.9), (1, 0.5))]
    columns = dict(zip(("left", "right", "score"), map(list, zip(*links, strict=True)), strict=True))
    curve = fb.sweep(dict(enumerate(true)), pa.table(columns)).curve(errors=True)
    assert {v for name in curve.column_names if name.endswith("_se") for v in curve[name].to_pylist()} == {0}


def test_scores_that_differ_by_rounding_do_not_differ() -> None:
    """One run mirrors the other in components whose truth is the same both ways, so all scores are; sums are not."""
    true = repeated([0, 1, 1, 0, 0, 0, 0, 1, 1, 0], times=5)[0]
    old = [1, 1, 2, 0, 0, 7, 6, 7, 7, 6]
    runs = dict(zip(("old", "new"), repeated(old, old[::-1], times=5), strict=True))
    cmp = fb.compare(true, runs)
    for row in cmp.deltas().to_pylist():
        assert (row["delta"], row["se"], row["holds"]) == (0, 0, False) and row["low"] == -row["high"] < 0
    assert "no difference in any score" in repr(cmp)


def test_asking_costs_nothing_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def components(*_: object) -> None:
        raise AssertionError("nobody asked")

    monkeypatch.setattr(standard_errors, "components", components)
    monkeypatch.setattr(of_shape, "FEW_CELLS", 0)  # up to so many, units are looked at unasked
    ev = fb.evaluate(*HALVED, slices="true_size")
    ev.clusters("true")


def without_errors() -> fb.Evaluation:
    """Return scores by the likeness of clusters that counts true negatives."""
    truth, prediction = {1: {"a"}, 2: {"a", "b"}, 3: {"c"}, 4: {"d"}}, {1: {1}, 2: {1}, 3: {2}, 4: {2}}
    return fb.cice_bcubed(truth, prediction, similarity="rand")


def test_scores_by_name() -> None:
    ev = fb.evaluate(*sides()[:2], metrics=["precision", "recall", "f1", "adjusted_rand", "onmi_lfk"])
    assert list(ev.errors) == ["precision", "recall", "f1", "adjusted_rand", "onmi_lfk"]
    assert ev.errors["bcubed_f1"] == ev.errors.f1 and ev.errors["ari"] == ev.errors.adjusted_rand
    ev = without_errors()
    with pytest.raises(MetricError, match=r"has no standard error: .*; evaluate samples of whole components"):
        ev.errors["cice_bcubed_f1"]
    with pytest.raises(MetricError, match="has no standard error"):
        ev.interval("cice_bcubed_f1")
    with pytest.raises(MetricError, match="was not computed"):
        ev.errors["elm_f1"]
    low, high = ev.interval("elm_f1")  # worked out when asked for
    assert low < ev.metric("elm_f1") < high
    with pytest.raises(MetricError, match="'pairs' is a family"):
        ev.interval("pairs")
    with pytest.raises(MetricError, match="Unknown score 'f7'"):
        ev.interval("f7")


def test_formulas_of_ones_own() -> None:
    """They may take the true negatives, where there are any."""

    def dice(tp, fp, fn, tn):  # type: ignore[no-untyped-def]
        return tp / (tp + (fp + fn) / 2)

    true, pred, _ = sides()
    ev = fb.evaluate(true, pred, metrics=["mean_f1", dice])
    assert ev.errors["dice"] == pytest.approx(ev.errors.mean_f1, rel=1e-10)
    labelled = {"truth": dict(enumerate(true[:200].tolist())), "prediction": dict(enumerate(pred.tolist()))}
    ev = fb.evaluate(*labelled.values(), unmatched="outside", metrics=["mean_f1", dice])
    assert ev.errors["dice"] == pytest.approx(ev.errors.mean_f1, rel=1e-12)


def test_units_that_depend_on_each_other_are_told() -> None:
    true, pred, _ = sides()
    whole = np.where(np.arange(true.size) < 300, "a", "b")
    component = standard_errors.components(fb.contingency(true, pred))
    cells = fb.contingency(true, pred)
    of_items = component.by_cell()[cells.rows.cell]
    attributes = pa.table({"country": whole, "lab": [f"lab {k % 40}" for k in of_items]})
    ev = fb.evaluate(true, pred, attributes=attributes)
    with pytest.warns(
        EvaluationWarning, match="by true_cluster are too small: true clusters that share"
    ) as told:
        ev.interval("f1", unit="true_cluster")
    assert told[0].filename == __file__
    with pytest.warns(
        EvaluationWarning, match=r"by country are too small: \d+ of \d+ components have items of"
    ) as told:
        ev.scores(unit="country")
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "few of")
        assert ev.scores(unit="lab")["n_units"][0].as_py() == 40
        prediction = dict(enumerate(pred.tolist()))
        outside = fb.evaluate(dict(enumerate(true[:200].tolist())), prediction, unmatched="outside")
        assert outside.interval("f1", unit="true_cluster").low < outside.f1
    with pytest.raises(ColumnError, match="there is no attribute 'town'"):
        ev.interval("f1", unit="town")
    with pytest.raises(OptionError, match='unit must be "component", "true_cluster" or a column, not 3'):
        ev.interval("f1", unit=3)  # type: ignore[arg-type]


def test_covers_have_no_units_by_true_cluster() -> None:
    truth = {1: {"a"}, 2: {"a", "b"}, 3: {"c"}, 4: {"d"}, 5: {"d"}}
    ev = fb.evaluate(truth, {1: {1}, 2: {1}, 3: {2}, 4: {3}, 5: {4}}, overlapping=True)
    assert ev.units.n == 3 and 0 < ev.errors.f1 < 1
    with pytest.raises(OptionError, match="true clusters that share no items"):
        ev.interval("f1", unit="true_cluster")


def test_cice_with_a_similarity_of_all_items_has_none() -> None:
    truth, prediction = {1: {"a"}, 2: {"a", "b"}, 3: {"c"}}, {1: {1}, 2: {1}, 3: {2}}
    assert "cice_bcubed_f1" in fb.cice_bcubed(truth, prediction, similarity="f1").errors
    with pytest.raises(MetricError, match="has no standard error: it needs the true negatives"):
        fb.cice_bcubed(truth, prediction, similarity="rand").errors["cice_bcubed_f1"]


def test_slices_have_errors_on_request() -> None:
    true, pred, weight = sides()
    ev = fb.evaluate(true, pred, weight=weight, slices="true_size", metrics=["f1", "adjusted_rand", "recall"])
    assert not [name for name in ev.slices("true_size").column_names if name.endswith("_se")]
    found = ev.slices("true_size", errors=True)
    assert [name for name in found.column_names if "loss" not in name] == [
        "true_size", "n_items", "weight", "n_units", "f1", "f1_se", "recall", "recall_se",
    ]  # fmt: skip
    everybody = ev.slices(
        {"all": np.ones(true.size, bool)}, errors=True, order_by="f1_se", limit=1
    ).to_pylist()[0]
    assert everybody["f1_se"] == pytest.approx(ev.errors.f1, rel=1e-12)
    assert everybody["n_units"] == ev.units.n
    crossed = ev.slices(("true_size", "pred_size"), errors=True)
    assert crossed.column_names[:2] == ["true_size", "pred_size"] and "f1_se" in crossed.column_names


# Saved


@pytest.mark.cases(1, 99)
@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
def test_saved_results_keep_them(tmp_path, keep: str) -> None:
    true, pred, weight = sides()
    ev = fb.evaluate(true, pred, weight=weight, metrics=["pointwise", "elm", "pairs"])
    ev.save(tmp_path, keep=keep)
    loaded = fb.load(tmp_path)
    assert dict(loaded.errors) == dict(ev.errors) and loaded.units == ev.units
    assert loaded.scores() == ev.scores()
    assert loaded.interval("elm_f1") == ev.interval("elm_f1")
    assert json.loads(loaded.to_json())["errors"] == dict(ev.errors)
    if keep == "scores":
        with pytest.raises(NotKeptError, match='keep="cells"'):
            loaded.interval("f1", unit="true_cluster")
        return
    with pytest.warns(EvaluationWarning, match="by true_cluster"):
        again = loaded.interval("f1", unit="true_cluster")
    with pytest.warns(EvaluationWarning, match="by true_cluster"):
        assert again == pytest.approx(ev.interval("f1", unit="true_cluster"), rel=1e-12)
    if keep == "cells":
        with pytest.raises(NotKeptError, match='keep="items"'):
            loaded.slices("true_size", errors=True)
    else:
        fresh = ev.slices("true_size", errors=True)["f1_se"].to_pylist()
        assert loaded.slices("true_size", errors=True)["f1_se"].to_pylist() == pytest.approx(fresh, rel=1e-12)


@pytest.mark.cases(1)
@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
def test_large_results_keep_them_once_asked_for(tmp_path, keep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true, pred, weight = sides()
    ev = fb.evaluate(true, pred, weight=weight, metrics=["f1", "elm_f1"])
    ev.standard_errors.shown = False
    assert not {"errors", "intervals", "units"} & ev.to_dict().keys()
    ev.save(tmp_path / "before", keep=keep)
    ev.standard_errors.shown = True
    expected = dict(ev.errors)
    assert ev.to_dict()["errors"] == expected and ev.to_dict()["units"] == ev.units._asdict()
    ev.save(tmp_path / "after", keep=keep)
    assert dict(fb.load(tmp_path / "after").errors) == expected
    loaded = fb.load(tmp_path / "before")
    if keep == "scores":
        with pytest.raises(NotKeptError, match=re.escape('access .errors before saving with keep="scores"')):
            _ = loaded.errors
        with pytest.raises(NotKeptError):
            _ = loaded.units
    elif keep == "cells":
        assert dict(loaded.errors) == pytest.approx({"f1": expected["f1"]}, rel=1e-12)
        with pytest.raises(MetricError, match=r'elm_f1 needs the weight of each item.*keep="items"'):
            loaded.errors["elm_f1"]
    else:
        assert dict(loaded.errors) == pytest.approx(expected, rel=1e-12)


def test_a_single_component_is_saved_without_a_number(tmp_path) -> None:
    ev = fb.evaluate([0, 0, 1], [5, 6, 6])
    ev.save(tmp_path, keep="scores")
    assert set(json.loads(ev.to_json())["errors"].values()) == {None}
    with pytest.warns(EvaluationWarning, match="no standard error because all items are in one"):
        assert all(map(math.isnan, fb.load(tmp_path).errors.values()))


def test_uneven_units_are_told() -> None:
    """One component has half of the items: (1/2)^2 + 50 (1/100)^2 = 0.255 is the share of 1 / 0.255 = 3.9 units."""
    true = np.concatenate([np.zeros(50, int), np.arange(1, 51)])
    ev = fb.evaluate(true, np.concatenate([np.arange(50) % 2 - 2, true[50:]]))
    assert ev.units == (51, pytest.approx(1 / 0.255), pytest.approx(0.5))
    told = r"one of 51 units \(component\) has 50% of the weight, and their effective number is 3.9"
    with pytest.warns(EvaluationWarning, match=told) as warned:
        _ = ev.errors
        ev.interval("f1")
    assert [each.filename for each in warned] == [__file__] * 2
    assert "so uneven that their effective number is only 3.9" in " ".join(repr(ev).split())


@pytest.mark.filterwarnings("default:few of")
def test_few_units_that_carry_an_error_are_told() -> None:
    """Of 40 components one is wrong: it alone has what recall lacks."""
    true = np.repeat(np.arange(40), 3)
    ev = fb.evaluate(
        true, np.where(np.arange(true.size) == 0, 99, true), metrics=["recall", "pair_recall", "pair_f1"]
    )
    told = (
        r"few of 40 units \(component\) account for 'pair_recall' or the error: intervals may be too narrow"
    )
    with pytest.warns(EvaluationWarning, match=told) as warned:
        low, high = ev.interval("pair_recall")
    assert [each.filename for each in warned] == [__file__] and low < 0.9 and high > 0.999
    assert warned[0].message.code == "few-carry-error"
    with pytest.warns(
        EvaluationWarning, match="account for 'recall', 'pair_recall', 'pair_f1' or the error: "
    ):
        ev.scores()
    with pytest.warns(EvaluationWarning, match="account for 'recall' or the error: "):
        low, high = ev.interval("recall")  # of 40, at least one more may be wrong, and hardly five
    assert 0.85 < low < 0.95 and high > 0.998


def test_they_are_pickled() -> None:
    ev = fb.evaluate(*sides()[:2])
    expected = dict(ev.errors)
    for _ in range(2):
        ev = pickle.loads(pickle.dumps(ev))
        assert dict(ev.errors) == expected
        assert ev.slices("true_size", errors=True).num_rows


# Engines and threads


def test_the_disk_engine_keeps_to_its_limit(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    true, pred, _ = sides()
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"true": true, "pred": pred}), path)
    ev = fb.evaluate("true", "pred", table=path, engine="disk", memory_limit="100MiB")
    assert dict(ev.errors) == pytest.approx(dict(fb.evaluate(true, pred).errors), rel=1e-12)
    monkeypatch.setattr(standard_errors, "CELL_BYTES", 10**9)
    ev = fb.evaluate("true", "pred", table=path, engine="disk", memory_limit="100MiB")
    with pytest.raises(OptionError, match=r"would take about .* memory_limit of at least \d+ MiB"):
        _ = ev.errors
    assert "errors" not in json.loads(ev.to_json())  # which is not asked for them
    ev = fb.evaluate("true", "pred", table=path, engine="disk", keep="scores", memory_limit="100MiB")
    with pytest.raises(NotKeptError, match='keep="cells"'):
        _ = ev.errors


def test_any_number_of_threads_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_cells, "CELLS_OF_PIECE", 64)
    true, pred, weight = sides(5000)
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(pool, "available_threads", lambda threads=threads: threads)
        ev = fb.evaluate(true, pred, weight=weight, metrics=["pointwise", "elm"])
        found.append((dict(ev.errors), ev.units, ev.slices("true_size", errors=True)))
    assert found[0] == found[1] == found[2]


def test_a_slice_that_is_not_there() -> None:
    with pytest.raises(SliceError):
        fb.evaluate(*HALVED).slices({"none": [99]}, errors=True)


def test_scores_of_which_none_has_one() -> None:
    ev = without_errors()
    assert dict(ev.errors) == {} and ev.units.n > 1 and ev.scores()["se"].null_count == len(ev.scores()) > 0
    assert json.loads(ev.to_json())["errors"] == {}
    assert "n_units" in ev.slices("true_size", errors=True).column_names


@pytest.mark.slow
def test_every_score_says_what_it_has() -> None:
    true, pred, _ = sides(20)
    ev = fb.evaluate(true, pred, metrics="all")
    for name in ev.overall:
        if name not in ev.errors:
            with pytest.raises(MetricError, match=f"{name} has no standard error: it "):
                ev.errors[name]
        elif METRICS[name].high <= 1:
            assert METRICS[name].low <= ev.interval(name).low <= ev.overall[name] <= ev.interval(name).high
