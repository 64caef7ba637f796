"""Slices that are found: their figures from raw rows, their tests by component, and what is refused."""

from __future__ import annotations

import datetime
import json
import warnings
from typing import Any

import naive_explain as naive
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.errors import (
    ColumnError,
    EvaluationWarning,
    FastBCubedError,
    MetricError,
    NotKeptError,
    OptionError,
    SliceError,
)
from fastbcubed.find_slices import coded_columns, losses_by_unit, unit_order
from fastbcubed.find_slices.losses_by_unit import BinnedCodes, Losses
from fastbcubed.find_slices.unit_order import UnitOrder
from fastbcubed.results.explain_items import words_of
from fastbcubed.runtime.threads import Pool


def made(n_entities: int = 300, seed: int = 0, *, planted: bool = True) -> pd.DataFrame:
    """Return items of entities of one to four items; many of those from JP before 1980 are split, others few."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, n_entities)
    true = np.repeat(np.arange(n_entities), sizes)
    country = rng.choice(["JP", "US", "DE", "FR"], n_entities, p=[0.4, 0.3, 0.2, 0.1])
    year = rng.integers(1960, 2000, n_entities)
    bad = (country == "JP") & (year < 1980) if planted else np.zeros(n_entities, bool)
    split = rng.random(n_entities) < np.where(bad, 0.9, 0.05)
    merged = np.where(rng.random(n_entities) < 0.05, np.arange(n_entities) // 2 * 2, np.arange(n_entities))
    alone = split[true] & (rng.random(true.size) < 0.7)
    return pd.DataFrame(
        {
            "item": [f"i{k}" for k in range(true.size)], "cluster": true,
            "pred": np.where(alone, 10_000 + np.arange(true.size), merged[true]),
            "country": country[true], "year": year[true],
            "weight": rng.integers(1, 4, true.size).astype(float),
            "noise": rng.choice(list("abc"), true.size),
        }
    )  # fmt: skip


ATTRIBUTES = ["country", "year", "noise"]


def evaluated(frame: pd.DataFrame, **how: Any) -> fb.Evaluation:
    """Return the evaluation of a frame, with attributes in the truth."""
    columns = [name for name in frame.columns if name not in ("pred", "weight")]
    prediction = pd.DataFrame({"item": frame["item"], "cluster": frame["pred"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.evaluate(frame[columns], prediction, **how)


def raw(frame: pd.DataFrame, *, weighted: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a frame for the twin."""
    rows = frame.rename(columns={"cluster": "true"}).to_dict("records")
    return [{**row, "weight": row["weight"] if weighted else 1.0} for row in rows]


@pytest.mark.parametrize("loss", ["f1", "precision", "recall"])
def test_figures_are_those_of_raw_rows(loss: str) -> None:
    frame = made(120)
    if loss == "precision":  # where clusters are split the other way round
        frame = frame.rename(columns={"cluster": "pred", "pred": "cluster"})
    found = evaluated(frame).explain(ATTRIBUTES, loss=loss, min_items=10, level=0.999)
    assert found.rows
    for row in found.rows:
        expected = naive.figures(raw(frame), found.conditions[row["slice"]], loss)
        assert {name: row[name] for name in expected} == pytest.approx(expected), row["slice"]


def test_figures_go_by_weight() -> None:
    frame = made(120)
    weight = pd.DataFrame({"item": frame["item"], "weight": frame["weight"]})
    found = evaluated(frame, weight=weight).explain(ATTRIBUTES, loss="recall", min_items=10)
    assert found.rows
    for row in found.rows:
        expected = naive.figures(raw(frame, weighted=True), found.conditions[row["slice"]], "recall")
        assert {name: row[name] for name in expected} == pytest.approx(expected), row["slice"]


def test_p_value_is_that_of_components_of_the_other_half() -> None:
    """A slice of one condition that nothing else was proposed with has one claim: it loses more than all else."""
    frame = made(200)
    ev, rows = evaluated(frame), raw(frame)
    found = ev.explain(["country"], loss="recall", min_items=10, limit=1)
    (row,) = found.rows
    assert row["slice"] == "country=JP"
    units = np.array(naive.components(rows))
    order = UnitOrder.of(units, words_of(ev.kept_items(), None, fb.runtime.threads.Pool(1)), 0)
    half = set(order.rows[order.n_search :].tolist())
    assert not {units[k] for k in half} & {units[k] for k in order.rows[: order.n_search]}
    lost = naive.losses(rows, naive.scores_of_items(rows), "recall")
    inside = {k for k, each in enumerate(rows) if each["country"] == "JP"}
    moved = naive.claim(rows, lost, units.tolist(), inside, set(range(len(rows))), half)
    assert row["p"] == pytest.approx(naive.p_value(moved), rel=1e-6)
    held_out = [k for k in inside if k in half]
    assert row["held_out_inside"] == pytest.approx(
        naive.score(rows, naive.scores_of_items(rows), "recall", held_out)
    )


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["recall", "precision"])
def test_what_is_said_of_patents_is_true_of_raw_rows(loss: str) -> None:
    """The slices of bundled data, their shares, scores and losses, by pandas alone; and they are more than noise."""
    data = fb.example("patentsview")
    truth, pred = (
        table if isinstance(table, pd.DataFrame) else table.to_pandas()
        for table in (data.truth, data.predictions["20211230"])
    )
    found = fb.evaluate(truth, pred).explain(loss=loss)
    rows = truth.merge(pred[["item", "cluster"]], on="item", suffixes=("", "_pred"))
    side = "cluster" if loss == "recall" else "cluster_pred"
    size = rows.groupby(side)["item"].transform("size")
    score = rows.groupby(["cluster", "cluster_pred"])["item"].transform("size") / size
    assert found.overall == pytest.approx(score.mean())
    shown = found.slices.to_pylist()
    assert shown or loss == "precision"
    for row in shown:
        conditions = found.conditions[row["slice"]]
        mine = np.array(
            [naive.is_in(each, conditions) for each in rows.replace({np.nan: None}).to_dict("records")]
        )
        lost, share = 1 - score, mine.mean()
        expected = {
            "n_items": mine.sum(), "share": share, "inside": score[mine].mean(), "outside": score[~mine].mean(),
            "share_of_loss": lost[mine].sum() / lost.sum(),
            "excess": share * (lost[mine].mean() - lost[~mine].mean()),
        }  # fmt: skip
        assert {name: row[name] for name in expected} == pytest.approx(expected), row["slice"]
        assert row["inside"] < row["outside"] and row["held_out_inside"] < row["held_out_outside"]


def test_the_planted_slice_is_found_and_said_in_words() -> None:
    found = evaluated(made(1000)).explain(loss="recall", min_items=30)
    (conditions,) = [found.conditions[name] for name in found.slices["slice"].to_pylist()[:1]]
    assert conditions[0] == {"attribute": "country", "value": "JP"}
    assert conditions[1]["attribute"] == "year" and 1975 <= conditions[1]["high"] <= 1980
    text = " ".join(repr(found).split())
    row = found.slices.to_pylist()[0]
    assert f"Items where {row['slice']} are" in text and "of the recall loss (recall 0." in text
    assert "holds on the held-out half" in text and "Benjamini–Hochberg" in text


def test_nothing_planted_is_nothing_found() -> None:
    found = [evaluated(made(300, seed, planted=False)).explain(ATTRIBUTES, min_items=20) for seed in range(8)]
    assert sum(len(each.slices) for each in found) <= 1
    quiet = next(each for each in found if not len(each.slices))
    assert repr(quiet).count("significantly more than the rest") == 1 and "To be found 8 times in 10" in repr(
        quiet
    )
    assert quiet.power[1]["difference"] is None or quiet.power[0]["difference"] < quiet.power[1]["difference"]


def test_order_of_rows_saving_and_engine_make_no_difference(tmp_path) -> None:
    frame = made(500)
    first = evaluated(frame).explain(min_items=20)
    assert first.rows
    shuffled = evaluated(frame.sample(frac=1, random_state=3)).explain(min_items=20)
    evaluated(frame).save(tmp_path / "saved")
    loaded = fb.load(tmp_path / "saved").explain(min_items=20)
    on_disk = evaluated(frame, engine="disk", keep="items").explain(min_items=20)
    one = pd.DataFrame(frame).drop(columns="weight")
    together = fb.evaluate("cluster", "pred", table=one, item="item").explain(min_items=20)
    for other in (shuffled, loaded, on_disk, together):
        assert other.looked_at == first.looked_at
        for row, expected in zip(other.rows, first.rows, strict=True):
            for name, value in expected.items():
                assert row[name] == (pytest.approx(value) if isinstance(value, float) else value), name


def test_another_seed_searches_another_half() -> None:
    ev = evaluated(made(500))
    rows = [ev.explain(min_items=20, seed=seed).rows for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def test_attributes_are_taken_as_they_are() -> None:
    frame = made(400)
    frame["same"] = frame["country"].map({"JP": "Japan", "US": "America", "DE": "Germany", "FR": "France"})
    frame["id"] = frame["cluster"] + 7_000_000
    frame["text_id"] = "e" + frame["cluster"].astype(str)
    frame["day"] = [datetime.date(int(year), 1, 1 + k % 28) for k, year in enumerate(frame["year"])]
    frame["text_day"] = [f"{1900 + k * 7 % 90}-0{1 + k % 9}-11" for k in range(len(frame))]
    frame["nothing"] = None
    frame["one"] = "x"
    frame["code"] = ["common"] * 600 + [f"r{k // 3}" for k in range(len(frame) - 600)]
    frame.loc[frame.index[::7], "country"] = None
    frame.loc[frame.index[::7], "same"] = None
    found = evaluated(frame).explain(min_items=30)
    ids = "nearly every value occurs in one group of items only, as with ids"
    assert found.left_out == {
        "same": "it divides the items as country does", "id": ids, "text_id": ids, "nothing": "it has no value",
        "one": "it has one value",
    }  # fmt: skip
    kinds = {name: own["kind"] for name, own in found.attributes.items()}
    assert kinds == {
        "country": "categories", "year": "number", "noise": "categories", "day": "date", "text_day": "date in text",
        "code": "categories",
    }  # fmt: skip
    assert found.attributes["country"]["n_values"] == 5  # null is a value
    assert len(found.attributes["code"]["rare"]) == (len(frame) - 600 + 2) // 3
    named = evaluated(frame).explain(["id", "country"], min_items=30)  # who names an id wants it
    assert set(named.attributes) == {"id", "country"}


@pytest.mark.parametrize("most", [256, 1])
def test_ranges_hold_what_they_say(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row meets the condition of its code in each column, by values alone, and no other of that column."""
    monkeypatch.setattr(coded_columns, "MOST_CODES", most)
    rng = np.random.default_rng(0)
    n = 2000
    words = rng.integers(0, 2**63, n).astype(np.uint64)
    order = UnitOrder.of(np.arange(n) // 2, words.__getitem__, 0)
    few, unused = rng.integers(0, 40, n), [-9.0, *map(float, range(39)), None]  # -9 is not among the rows
    columns = {
        "ints": pa.array(rng.integers(-50, 50, n)),
        "floats": pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))),
        "few": pa.array(rng.integers(0, 4, n), mask=rng.random(n) < 0.1), "bools": pa.array(rng.random(n) < 0.5),
        "texts": pa.array(rng.choice(["10", "9", "-2.5", *map(str, range(20, 40))], n)),
        "beyond floats": pa.array(2**62 + rng.integers(-50, 50, n)),
        "unsigned": pa.array(np.uint64(2**64 - 1) - rng.integers(0, 90, n).astype(np.uint64)),
        "apart": pa.array(np.where(rng.random(n) < 0.3, -(2**63), rng.choice([2**63 - 1, 2**63 - 2], n))),
        "rare": pa.array(["a"] * 1500 + [f"b{k}" for k in range(500)]),
        "dictionary": pa.array(rng.choice(list("xyz"), n)).dictionary_encode(),
        "with others": pa.DictionaryArray.from_arrays(few % 3 + 1, ["not there", "x", "y", "x"]),
        "numbers of a dictionary": pa.DictionaryArray.from_arrays(pa.array(few + 1, mask=few == 7), unused),
        "dictionaries": pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(few[:800] % 3, ["x", "y", None]),
                pa.DictionaryArray.from_arrays(pa.array(few[800:] % 4, mask=few[800:] == 7), ["y", "z", "x", "x"]),
            ]
        ),
    }  # fmt: skip
    losses = Losses.of(order, rng.normal(size=n), np.empty(0))
    for name, values in columns.items():
        given = [None if isinstance(v, float) and v != v else v for v in values.to_pylist()]
        if name == "texts":
            given = [float(v) for v in given]
        is_whole = isinstance(values, pa.Array)
        data = pa.chunked_array([values[:700], values[700:]]) if is_whole else values
        found = coded_columns.code_column(name, data, losses, 50, named=True)
        in_ranges = "ints", "floats", "texts", "beyond floats", "unsigned", "numbers of a dictionary"
        assert len(found) == 1 + (name in in_ranges), name
        for column in found:
            codes = column.codes.of_rows(slice(0, n))
            for code, value in enumerate(column.values):
                meets = np.array([naive.is_in({name: v}, [{"attribute": name, **value.is_}]) for v in given])
                assert (codes == code).tolist() == meets[order.rows].tolist(), (name, value)
            assert codes.max() < len(column.values) == column.codes.n


def test_times_are_written_as_people_write_them() -> None:
    frame = made(500)
    seconds = (frame["year"] - 1960) * 60
    frame["lasted"] = pd.to_timedelta(seconds, unit="s")
    frame["seen"] = pd.to_datetime(seconds, unit="s", utc=True)
    frame["at"] = [datetime.time(8 + second // 3600, second // 60 % 60) for second in seconds]
    found = evaluated(frame).explain(["lasted", "seen", "at"], min_items=20, level=0.999)
    assert {name: own["kind"] for name, own in found.attributes.items()} == {"lasted": "duration"}
    assert set(found.left_out.values()) == {"it divides the items as lasted does"}
    for name, kind, text in (("seen", "date", "seen ≤ 1970-01-01 00:"), ("at", "time", "at ≤ 08:")):
        own = evaluated(frame).explain([name], min_items=20, level=0.999)
        assert own.attributes[name]["kind"] == kind and own.rows[0]["slice"].startswith(text)
        assert not own.rows[0]["slice"].endswith(".000000")


@pytest.mark.parametrize("at_once", [1, 7, 64])
def test_sums_of_slices_are_those_of_loops(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of any number of rows, of columns whose bins are codes, and finer than these."""
    monkeypatch.setattr(losses_by_unit, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(losses_by_unit, "SLICES_AT_ONCE", at_once)
    rng = np.random.default_rng(1)
    bins = rng.integers(0, 3, (3, 40)).astype(np.uint8)
    unit = np.unique(np.sort(rng.integers(0, 9, 40)), return_inverse=True)[1].astype(np.int32)
    values, weight = rng.normal(size=40), rng.random(40)
    starts = np.append(np.searchsorted(unit, np.arange(unit[-1] + 1)), 40)
    losses = Losses(UnitOrder(np.arange(40), unit, starts, 40), values, weight)
    two = np.zeros(256, np.uint8)
    two[2] = 1  # bins 0 and 1 are one code
    first = BinnedCodes(bins[0], two, 2)
    lasts = [BinnedCodes(bins[1], np.empty(0, np.uint8), 3), BinnedCodes(bins[2], two, 2)]
    of_unit = np.bincount(unit, values, unit[-1] + 1)
    known = losses.products(slice(0, 40)) if at_once == 7 else None
    for last, sums in zip(lasts, losses.slice_sums([first], lasts, known), strict=True):
        whole = slice(0, 40)
        for a in range(first.n):
            for b in range(last.n):
                mine = (first.of_rows(whole) == a) & (last.of_rows(whole) == b)
                by_unit = [float(values[mine & (unit == u)].sum()) for u in np.unique(unit[mine])]
                squares = sum(x * x for x in by_unit)
                products = sum(x * of_unit[u] for x, u in zip(by_unit, np.unique(unit[mine]), strict=True))
                expected = [mine.sum(), weight[mine].sum(), len(by_unit), sum(by_unit), squares, products]
                assert sums[a + 2 * b, :6].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("at_once", [1, 5, 1 << 20])
def test_claims_are_sums_of_whole_units(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums by part and powers of what units add, in blocks of any size, by loops over units."""
    monkeypatch.setattr(unit_order, "BLOCK", at_once)
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(6, dtype=np.int32), [1, 4, 2, 1, 3, 5])
    n, starts = unit.size, np.array([0, 1, 5, 7, 8, 11, 16])
    values, weight, parts = rng.normal(size=(2, n)), rng.random(n), rng.integers(0, 3, n).astype(np.uint8)
    order = UnitOrder(np.arange(n), unit, starts, 7)
    rows = losses_by_unit.ValuedRows(order, lambda block: np.ascontiguousarray(values[:, block]), weight)
    factors, some = rng.normal(size=(3, 3)), slice(1, 11)  # whole units 1 to 4
    (sums,) = rows.by_part(some, [lambda block: parts[block]], 3, Pool(2))
    for part in range(3):
        mine = [k for k in range(1, 11) if parts[k] == part]
        expected = [len({unit[k] for k in mine}), weight[mine].sum(), *values[:, mine].sum(axis=1)]
        assert sums[part].tolist() == pytest.approx(expected)
    moved = [
        sum(
            factors[parts[k], 0] * weight[k] + factors[parts[k], 1:] @ values[:, k]
            for k in range(1, 11)
            if unit[k] == u
        )
        for u in range(1, 5)
    ]
    ((claim,),) = rows.claims(some, [(lambda block: parts[block], [factors])], Pool(2))
    assert tuple(claim) == pytest.approx([sum(x**power for x in moved) for power in (1, 2, 4)])


# -- What is refused -------------------------------------------------------------------------------


def test_bad_input_is_refused_before_the_work() -> None:
    frame = made(300)
    ev = evaluated(frame)
    cases: list[tuple[dict[str, Any], type[FastBCubedError], str]] = [
        ({"attributes": "contry"}, ColumnError, "Did you mean 'country'"),
        ({"attributes": []}, ColumnError, "attributes is empty"),
        ({"attributes": [3]}, SliceError, "attributes must be names, or bins of them, not 3"),
        (
            {"attributes": [f"a{k}" for k in range(10_000)]},
            OptionError,
            "10,000 attributes, more than the limit of 1,000",
        ),
        (
            {"attributes": ["noise"], "min_items": len(frame)},
            SliceError,
            "none of its 3 values has",
        ),
        ({"min_items": 10**6}, OptionError, "min_items=1000000 is more than the"),
        ({"loss": "pair_f1"}, MetricError, "is not a mean over items"),
        ({"loss": "nonsense"}, MetricError, "nonsense"),
        ({"depth": 0}, OptionError, "depth"),
        ({"depth": 9}, OptionError, "depth"),
        ({"min_items": 0}, OptionError, "min_items"),
        ({"level": 1.5}, OptionError, "level must be a false discovery rate"),
        ({"limit": 0}, OptionError, "limit"),
        ({"seed": -1}, OptionError, "seed"),
    ]
    for arguments, error, message in cases:
        with pytest.raises(error, match=message):
            ev.explain(**arguments)


def test_no_attribute_all_nulls_and_a_value_for_each_item() -> None:
    plain = evaluated(made(300)[["item", "cluster", "pred"]])
    with pytest.raises(ColumnError, match="there is no attribute to search"):
        plain.explain()
    frame = made(300)[["item", "cluster", "pred"]].assign(nothing=None, each=lambda f: f["item"].str.upper())
    with pytest.raises(
        SliceError, match=r"none of 2 attributes can be searched \('nothing': it has no value; 'each'"
    ):
        evaluated(frame).explain()


def test_too_many_slices_are_refused_with_what_to_change() -> None:
    rng = np.random.default_rng(0)
    frame = made(300)
    frame = frame.assign(**{f"a{k}": rng.integers(0, 60, len(frame)).astype(str) for k in range(60)})
    with pytest.raises(
        OptionError, match=r"depth=4 would search [\d,]+ slices .* pass depth=3, fewer attributes="
    ):
        evaluated(frame).explain(min_items=1, depth=4)


def test_a_memory_limit_without_room_is_refused_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastbcubed.results import explain_items

    ev = evaluated(made(100))
    monkeypatch.setattr(ev.kept, "memory_limit", 2**30)
    assert ev.explain(min_items=20).looked_at
    monkeypatch.setattr(explain_items, "UNIT_BYTES", 10**9)  # as of very many units
    with pytest.raises(OptionError, match="explaining the loss by 3 attributes"):
        ev.explain(min_items=20)


def test_cells_and_clusters_that_are_held_count_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastbcubed.results import items

    ev = evaluated(made(1000))
    monkeypatch.setattr(items, "BESIDE", 0)  # which is more than all of this
    n, cells = ev.kept.rows.n_rows, ev.contingency
    held = 36 * cells.n_cells + 8 * (cells.n_true + cells.n_pred) + 76 * n  # rows are in memory
    search = int(n * (16 + 4 + 3 * 1.1)) + 16 * ev.units.n + max(12 * n, 2 * 8 * cells.n_cells)
    monkeypatch.setattr(ev.kept, "memory_limit", search + held)
    assert ev.explain(min_items=20).looked_at
    monkeypatch.setattr(ev.kept, "memory_limit", search + held - 1)
    with pytest.raises(OptionError, match="explaining the loss by 3 attributes would take about"):
        ev.explain(min_items=20)


def test_ids_and_cells_on_disk_are_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take 16 bytes per item, or more for long ids, and stay in memory."""
    from fastbcubed.results.stored_tables import StoredTable

    frame, whole = made(100), list[str]()
    ev = evaluated(frame, engine="disk", keep="items")
    read = StoredTable.__getitem__
    monkeypatch.setattr(StoredTable, "__getitem__", lambda self, name: whole.append(name) or read(self, name))
    assert (
        ev.explain(min_items=20).slices.to_arrow() == evaluated(frame).explain(min_items=20).slices.to_arrow()
    )
    assert not {"item", "cell"} & {*whole}


def test_few_components_are_refused() -> None:
    frame = pd.DataFrame(
        {"item": range(100), "cluster": 1, "pred": np.arange(100) // 50, "kind": ["a", "b"] * 50}
    )
    with pytest.raises(
        OptionError, match="in 1 component of truth and prediction, but at least 20 are needed"
    ):
        evaluated(frame).explain()


def test_results_without_items_say_how_to_have_them(tmp_path) -> None:
    evaluated(made(100)).save(tmp_path, keep="cells")
    with pytest.raises(NotKeptError, match="the items were not kept"):
        fb.load(tmp_path).explain()


# -- Other ways in, and out ------------------------------------------------------------------------


def test_bins_sizes_and_tables_of_attributes() -> None:
    frame = made(500)
    ev = evaluated(frame)
    found = ev.explain([fb.bins("year", 10), "true_size", "country"], min_items=20)
    assert set(found.attributes) == {"year:10", "true_size", "country"}
    table = frame[["item", "country", "noise"]]
    assert set(ev.explain(table, min_items=20).attributes) == {"country", "noise"}


def test_scores_of_items_and_own_formulas() -> None:
    ev = evaluated(made(500))
    found = ev.explain(ATTRIBUTES, loss="jaccard_distance", min_items=20)
    row = found.slices.to_pylist()[0]
    assert row["inside"] > row["outside"] and row["excess"] > 0  # a distance: low is good
    recall = ev.explain(ATTRIBUTES, loss="recall", min_items=20)
    other = ev.explain(ATTRIBUTES, loss="under_merge_rate", min_items=20)
    assert [row["slice"] for row in other.rows] == [row["slice"] for row in recall.rows]
    assert [1 - row["inside"] for row in other.rows] == pytest.approx([row["inside"] for row in recall.rows])


def test_own_formulas_are_explained_as_scores_with_names() -> None:
    """A formula is best where fp and fn are 0; one that is not so, or takes true negatives, is refused truly."""
    ev = evaluated(made(500))
    for name, formula in (
        ("recall", lambda tp, fp, fn, tn: tp / (tp + fn)),
        ("jaccard_distance", lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn)),
    ):
        rows, expected = (ev.explain(ATTRIBUTES, loss=loss, min_items=20).rows for loss in (formula, name))
        assert expected
        for row, other in zip(rows, expected, strict=True):
            for figure in ("n_items", "inside", "outside", "share_of_loss", "excess", "p"):
                assert row[figure] == pytest.approx(other[figure]), figure
        assert rows[0]["slice"] == expected[0]["slice"]
    refused = [
        (lambda tp, fp, fn, tn: tn / (tn + fn), "takes true negatives, which depend on all items"),
        (lambda tp, fp, fn, tn: tp, r"has no best value .* must be the same for all tp"),
        (
            lambda tp, fp, fn, tn: tp / (tp + fp) - fn / (fn + 1) + fp,
            r"has no best value .* or the smallest",
        ),
    ]
    for formula, message in refused:
        with pytest.raises(MetricError, match=message):
            ev.explain(ATTRIBUTES, loss=formula)


def test_a_page_refuses_attributes_by_the_name_of_its_own_argument(tmp_path) -> None:
    ev, path = evaluated(made(100)), tmp_path / "page.html"
    with pytest.raises(ColumnError, match=r"^explain is empty; pass explain=True to search all columns"):
        ev.report(path, explain=[])
    with pytest.raises(SliceError, match=r"^explain must be names, or bins of them, not 3"):
        ev.report(path, explain=[3])
    assert not path.exists()


def test_overlapping_clusters_are_explained() -> None:
    frame = made(300)
    ev = evaluated(frame, overlapping=True)
    assert not ev.explain(min_items=20).left_out and set(ev.explain(min_items=20).attributes) == {*ATTRIBUTES}
    found, plain = ev.explain(ATTRIBUTES, loss="recall", min_items=20), evaluated(frame)
    assert [row["slice"] for row in found.rows] == [
        row["slice"] for row in plain.explain(ATTRIBUTES, loss="recall", min_items=20).rows
    ]


def test_json_tables_and_documents() -> None:
    found = evaluated(made(500)).explain(min_items=20)
    data = json.loads(found.to_json())
    assert list(data) == [
        "fastbcubed", "truth", "prediction", "loss", "options", "overall", "sentences", "slices", "not_confirmed",
        "looked_at", "units", "power", "attributes", "left_out",
    ]  # fmt: skip
    assert [row["slice"] for row in data["slices"]] == found.slices["slice"].to_pylist()
    assert data["slices"][0]["conditions"] == found.conditions[data["slices"][0]["slice"]]
    assert found.to_pandas()["holds"].all() and len(found.proposed) == len(found.rows)
    assert "<table>" in found._repr_html_()


def test_two_runs_are_explained_by_paired_loss() -> None:
    frame = made(600, planted=False)
    worse = made(600)
    truth = frame[["item", "cluster", "country", "year", "noise"]]
    runs = {
        name: pd.DataFrame({"item": own["item"], "cluster": own["pred"]})
        for name, own in (("old", frame), ("new", worse))
    }
    cmp = fb.compare(truth, runs)
    found = cmp.explain("new", loss="recall", min_items=20)
    row = found.slices.to_pylist()[0]
    conditions = found.conditions[row["slice"]]
    inside = [naive.is_in(each, conditions) for each in truth.to_dict("records")]
    own = {name: cmp[name].items()["recall"].to_numpy() for name in runs}
    change = own["new"] - own["old"]
    assert row["inside"] == pytest.approx(change[inside].mean())
    assert row["outside"] == pytest.approx(change[~np.array(inside)].mean())
    assert row["inside_low"] < row["inside"] < row["inside_high"] < 0
    assert row["excess"] == pytest.approx(np.mean(inside) * (row["inside"] - row["outside"]))
    assert "there new is worse" in repr(found).replace("\n", " ")
    with pytest.raises(OptionError, match="'old' is the baseline"):
        cmp.explain("old")
    with pytest.raises(OptionError, match="there is no run 'newer'"):
        cmp.explain("newer")


# -- On pages --------------------------------------------------------------------------------------


def blocks_of(found: Any, section: str) -> list[dict[str, Any]]:
    """Return the blocks of a section of a page, of a result or an explanation; none if there is no such section."""
    return [
        block
        for each in found.report().content["sections"]
        if each["id"] == section
        for block in each["blocks"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("given", [True, ["country", fb.bins("year", 10)]])
def test_a_page_has_a_section_that_is_the_page_of_the_explanation(given, tmp_path) -> None:
    ev = evaluated(made(600))
    assert not blocks_of(ev, "explanation")
    found = ev.explain(None if given is True else given)
    own = [*blocks_of(found, "explanation"), *blocks_of(found, "looked-at")]
    content = ev.report(explain=given).content
    (section,) = (each for each in content["sections"] if each["id"] == "explanation")
    assert section["blocks"] == own and "country=JP" in json.dumps(own)
    ev.save(tmp_path / "items")
    loaded = fb.load(tmp_path / "items").report(tmp_path / "page.html", explain=given)
    assert [each["id"] for each in loaded.content["sections"]].count("explanation") == 1
    assert "Items where" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not blocks_of(ev, "explanation") and ev.report(explain=False).content == ev.report().content


def test_a_page_of_runs_explains_each_run() -> None:
    frame, worse = made(600, planted=False), made(600)
    truth = frame[["item", "cluster", "country", "year", "noise"]]
    runs = {
        name: pd.DataFrame({"item": own["item"], "cluster": own["pred"]})
        for name, own in (("old", frame), ("new", worse), ("newer", worse))
    }
    cmp = fb.compare(truth, runs)
    (section,) = (s for s in cmp.report(explain=True).content["sections"] if s["id"] == "explanation")
    assert [block["title"] for block in section["blocks"] if block["block"] == "Heading"] == ["new", "newer"]
    found = cmp.explain("newer")
    assert section["blocks"][-len(blocks_of(found, "explanation")) - 1 : -1] == blocks_of(
        found, "explanation"
    )


def test_a_page_that_cannot_explain_says_so_and_is_not_written(tmp_path) -> None:
    page, frame = tmp_path / "page.html", made(100)
    ev = evaluated(frame)
    ev.save(tmp_path / "cells", keep="cells")
    bare = evaluated(frame[["item", "cluster", "pred"]])
    cases: list[tuple[Any, Any, type[FastBCubedError], str]] = [
        (ev, "contry", ColumnError, "Did you mean 'country'"),
        (ev, 3, SliceError, "explain must be names, or bins of them, not"),
        (bare, True, ColumnError, "there is no attribute to search"),
        (fb.load(tmp_path / "cells"), True, NotKeptError, 'keep="items"'),
        (fb.diff([0, 0, 1], [0, 1, 1]), True, OptionError, "a diff has no loss to explain"),
    ]
    for result, given, error, message in cases:
        with pytest.raises(error, match=message):
            result.report(page, explain=given)
    assert not page.exists()


def test_the_page_of_an_explanation_names_what_was_explained(tmp_path) -> None:
    frame = made(300)
    frame[["item", "cluster", *ATTRIBUTES]].to_parquet(tmp_path / "truth.parquet")
    frame[["item", "pred"]].rename(columns={"pred": "cluster"}).to_parquet(tmp_path / "links.parquet")
    sides = [tmp_path / f"{name}.parquet" for name in ("truth", "links")]
    found = fb.evaluate(*sides).explain()
    page = found.report().html
    assert "links.parquet" in page and "truth.parquet" in page
    assert repr(found).splitlines()[:3] == [
        "What kind of items lose F1?", "  truth       truth.parquet", "  prediction  links.parquet",
    ]  # fmt: skip
    cmp = fb.compare(sides[0], {"old": sides[1], "new": sides[1]})
    facts = dict(cmp.explain("new").report().content["head"][0]["blocks"][0]["facts"])
    assert facts == {"Run": "new", "Baseline": "old", "Truth": "truth.parquet"}


def test_a_slice_is_said_once() -> None:
    """Numbers are cut into coarse and into fine ranges; the rows without a value are the same slice in both."""
    frame = made(600).drop(columns=["year"])
    lost = frame["country"] == "JP"
    numbers = np.random.default_rng(1).normal(size=len(frame))
    frame["a"], frame["b"] = np.where(lost, np.nan, numbers), np.where(lost, np.nan, -numbers)
    frame["pred"] = np.where(lost, 10_000 + np.arange(len(frame)), frame["pred"])
    rows = evaluated(frame).explain(["a", "b"]).to_dict()["slices"]
    said = [name for row in rows for name in (row["slice"], *row["alike"])]
    assert {"a is null", "b is null"} <= set(said) and len(said) == len(set(said))
