"""Results that are kept, saved and loaded or pickled, give the answers of fresh ones, at every level of `keep`."""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
import tracemalloc
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import pairwise

import fastbcubed as fb
from fastbcubed.cli import main as cli
from fastbcubed.errors import EvaluationWarning, FileFormatError, NotKeptError
from fastbcubed.results import save, saved_files

Keep = Callable[[fb.Evaluation, Path], fb.Evaluation]


def reload(ev: fb.Evaluation, path: Path) -> fb.Evaluation:
    ev.save(path, keep="items" if ev.has_items else "cells" if ev.has_clusters else "scores")
    return fb.load(path)


def again(ev: fb.Evaluation, path: Path) -> fb.Evaluation:
    return pickle.loads(pickle.dumps(reload(pickle.loads(pickle.dumps(ev)), path)))


KEPT: dict[str, Keep] = {
    "loaded": reload,
    "pickled": lambda ev, path: pickle.loads(pickle.dumps(ev)),
    "copied": lambda ev, path: copy.deepcopy(ev),
    "all": again,
}


def answers(ev: fb.Evaluation) -> dict[str, Any]:
    """Return all that an evaluation answers; what it did not keep by the argument that keeps it."""

    def ask(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except NotKeptError as error:
            assert "keep=" in str(error)
            return "not kept"

    found: dict[str, Any] = {"json": ev.to_json(), "text": repr(ev), "html": ev._repr_html_()}
    for side in ("true", "pred"):
        found[f"{side} clusters"] = ask(lambda side=side: ev.clusters(side).to_pydict())
        found[f"{side} worst"] = ask(
            lambda side=side: ev.clusters(side, limit=2, order_by="weight").to_pydict()
        )
    items = ask(lambda: ev.items().to_pydict())
    found["items"] = items
    for name in ("true_size", *(f"{name}" for name in ev.sliced)):
        found[name] = ask(lambda name=name: ev.slices(name).to_pydict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # of a single component
        found["estimates"] = ask(lambda: ev.scores().to_pydict())
    found["metric"] = ask(lambda: ev.metric("f1"))
    if items != "not kept":
        for item in items["item"]:
            found[f"item {item}"] = ev.item(item, members=10)
        found["subset"] = dict(ev.subset(items["item"][:3]))
    return found


def text_of(value: Any) -> Any:
    """Return a value that compares, NaN with NaN."""
    return {k: repr(v) for k, v in value.items()}


LABELS = {
    "integers": [0, 0, 1, 1, 2, -1, -1],
    "strings": pa.array(["x", "x", "y", "y", "z", "-1", "-1"]),
    "dictionary": pa.array(["x", "x", "y", "y", "z", "-1", "-1"]).dictionary_encode(),
    "nulls": [0, 0, 1, None, None, 2, 2],
}
OTHER = [0, 1, 1, 1, 2, -1, -1]
POLICIES = ("drop", "singleton", "outside")


def sides(labels: Any, *, weight: bool = False) -> dict[str, Any]:
    """Return two tables whose items differ: the first lacks h, the second a."""
    table = {"item": list("abcdefg"), "cluster": labels, "country": list("xxxyyyy")}
    if weight:
        table["weight"] = [1.0, 2.0, 3.0, 0.5, 1.0, 2.5, 4.0]
    other = pa.table({"item": list("bcdefgh"), "cluster": pa.array(OTHER, pa.int64())})
    if weight:
        other = other.append_column("weight", pa.array([2.0, 3.0, 0.5, 1.0, 2.5, 4.0, 1.5]))
    return {"truth": pa.table(table), "prediction": other, "weight": "weight" if weight else None}


def evaluate(engine: str, labels: str, policy: str, **how: Any) -> fb.Evaluation:
    noise = "-1" if labels in ("strings", "dictionary") else -1
    given = sides(LABELS[labels], weight=how.pop("weight", False))
    if labels in ("strings", "dictionary"):
        at = given["prediction"].column_names.index("cluster")
        text = given["prediction"]["cluster"].cast(pa.string())
        given["prediction"] = given["prediction"].set_column(at, "cluster", text)
    return fb.evaluate(
        **given, unmatched={"truth": "singleton", "prediction": policy}, nulls="singleton", noise=noise,
        engine=engine, keep="items" if engine == "disk" else "cells", slices="country", **how,
    )  # fmt: skip


@functools.cache
def fresh_answers(engine: str, labels: str, policy: str) -> dict[str, str]:
    return text_of(answers(evaluate(engine, labels, policy)))


@pytest.mark.cases(2)
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pairwise(way=list(KEPT), engine=["memory", "disk"], labels=list(LABELS), policy=POLICIES)
def test_what_is_kept_answers_as_what_was_evaluated(
    way: str, engine: str, labels: str, policy: str, tmp_path: Path
) -> None:
    kept = KEPT[way](evaluate(engine, labels, policy), tmp_path)
    assert text_of(answers(kept)) == fresh_answers(engine, labels, policy)


@pytest.mark.cases(0)
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
def test_a_saved_result_of_any_keep_loads(engine: str, keep: str, tmp_path: Path) -> None:
    for k, weight in enumerate((False, True)):
        given = sides(LABELS["integers"], weight=weight)
        path = tmp_path / str(k)
        ev = fb.evaluate(**given, engine=engine, keep=keep, slices=["country"], out=path)
        loaded = fb.load(path)
        assert loaded.to_json() == ev.to_json()
        found, expected = answers(loaded), answers(ev)
        kept = {"scores": "metric", "cells": "true clusters", "items": "items"}[keep]
        assert found[kept] != "not kept"
        for name, answer in text_of(found).items():
            if name not in ("text", "html"):  # they tell what else can be asked
                assert answer in (text_of(expected)[name], "'not kept'")
        loaded.save(tmp_path / "once more", keep=keep)
        assert text_of(answers(fb.load(tmp_path / "once more"))) == text_of(found)
        assert text_of(answers(pickle.loads(pickle.dumps(loaded)))) == text_of(found)
        assert loaded.slices("country").equals(fb.load(path).slices("country"))


def slices_of_all_kinds(engine: str, keep: str, **out: Any) -> fb.Evaluation:
    """Return an evaluation with slices by dates, by crossed ones with nulls, and by name."""
    days = pa.array([18262, 18263, None, 18262], pa.date32())
    return fb.evaluate(
        [0, 0, 1, 1], [0, 1, 1, 1], attributes={"day": days, "kind": ["x", None, "x", "x"]}, engine=engine, keep=keep,
        slices=["day", ("kind", "day"), {"some": [True, False, False, True]}], **out,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_rows_of_files_without_scored_items_are_no_exact_clusters(engine: str, tmp_path: Path) -> None:
    """Of the true clusters 1, 2 and 3, the third loses its only item, as does the predicted one 9."""
    truth, prediction = {"a": 1, "b": 1, "c": 2, "d": 3}, {"a": 1, "b": 1, "c": 2, "e": 9, "f": 1}
    fb.evaluate(truth, prediction, engine=engine, out=tmp_path)
    for side in ("true", "pred"):
        table = pq.read_table(tmp_path / f"{side}_clusters.parquet").select(
            ["cluster", "exact", "outcome", "n_items"]
        )
        rows = [[*row.values()] for row in table.to_pylist()]
        assert [row for row in rows if row[3]] == [[1, True, "exact", 2], [2, True, "exact", 1]]
        assert all(row == [None, None, None, 0] for row in rows if not row[3])
        assert len(fb.load(tmp_path).clusters(side)) == 2


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("keep", ["scores", "items"])
def test_many_slices_are_in_their_file_alone(engine, keep, tmp_path, monkeypatch) -> None:
    few = slices_of_all_kinds(engine, keep, out=tmp_path / "few")
    texts = pq.read_table(tmp_path / "few" / "slices.parquet")
    monkeypatch.setattr(save, "SLICES_IN_MANIFEST", 2)
    monkeypatch.setattr(save, "SLICES_AT_ONCE", 2)
    ev = slices_of_all_kinds(engine, keep, out=tmp_path / "many")
    told = json.loads((tmp_path / "many" / "overall.json").read_text())["slices"]
    assert told["day"] == {"n_slices": 3, "columns": ["day"]} and len(told["some"]) == 1
    many = pq.read_table(tmp_path / "many" / "slices.parquet").select(texts.column_names)
    assert many.to_pandas().equals(texts.to_pandas())  # NaN where a slice is in one component
    monkeypatch.setattr(saved_files, "LARGE", 0)  # so that it is not read as a whole
    for loaded in (fb.load(tmp_path / "many"), fb.load(tmp_path / "many", check=False)):
        assert loaded.to_json() == ev.to_json() == few.to_json()
        for by, table in ev.sliced.items():
            assert loaded.sliced[by].equals(table.to_arrow())
        assert loaded.slices("day")["day"].to_pylist()[:1] == [date(2020, 1, 1)]


@pytest.mark.slow
def test_saving_many_slices_takes_little_memory(tmp_path: Path) -> None:
    """Slices took 5 KB each, as all went through JSON; here they take 120 bytes."""
    n = 20_000
    codes = np.arange(n) // 2
    ev = fb.evaluate(codes, codes, attributes={"name": np.arange(n)}, slices="name")
    assert "manifest" in ev.to_dict()  # hashes the rows
    tracemalloc.start()
    try:
        ev.save(tmp_path, keep="scores")
        assert tracemalloc.get_traced_memory()[1] < n * 1000
    finally:
        tracemalloc.stop()
    assert fb.load(tmp_path).sliced["name"].equals(ev.sliced["name"].to_arrow())


def test_what_was_not_kept_is_told_with_the_argument_that_keeps_it(tmp_path: Path) -> None:
    fb.evaluate([0, 0, 1], [0, 1, 1], slices={"some": [True, True, False]}).save(tmp_path, keep="scores")
    loaded = fb.load(tmp_path)
    assert loaded.precision == loaded.metric("precision") == 2 / 3
    assert loaded.summary["true"]["clusters"] == 2 and loaded.coverage.n_common == 3
    for ask in (
        lambda: loaded.clusters("true"),
        lambda: loaded.metric("purity"),
        lambda: loaded.save(tmp_path, keep="cells"),
    ):
        with pytest.raises(NotKeptError, match='keep="cells"'):
            ask()
    for ask in (
        loaded.items,
        lambda: loaded.item(0),
        lambda: loaded.slices("true_size"),
        lambda: loaded.subset([0]),
    ):
        with pytest.raises(NotKeptError, match='keep="items"'):
            ask()
    with pytest.raises(
        NotKeptError, match='items were not kept; pass keep="scores" to save what was, or eval'
    ):
        loaded.save(tmp_path)
    assert loaded.precision == fb.load(tmp_path).precision


@pytest.mark.filterwarnings("ignore:the listing of clusters lacks some scores")
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("way", ["loaded", "pickled"])
def test_scores_that_take_the_items_leave_the_others_alone(
    overlapping: bool, way: str, tmp_path: Path
) -> None:
    """The weights of items of one cell are not kept with its cells, and ELM leaves out each item's own."""
    own = ["extended_elm_precision"] if overlapping else ["elm_precision", "elm_f1", "elm_mean_f1"]
    given = {"a": 0, "b": 0, "c": 0, "d": 1}, {"a": 0, "b": 0, "c": 1, "d": 1}
    if overlapping:
        given = tuple({item: {label} for item, label in side.items()} for side in given)
    weight = {"a": 1.0, "b": 2.0, "c": 4.0, "d": 8.0}
    ev = fb.evaluate(*given, weight=weight, metrics=["precision", *own, "recall"], overlapping=overlapping)
    ev.save(tmp_path, keep="cells")
    loaded = fb.load(tmp_path)
    if way == "pickled":
        loaded = pickle.loads(pickle.dumps(loaded))
    assert loaded.overall == ev.overall and loaded.metric(own[0]) == ev.metric(own[0])
    for side in ("true", "pred"):
        rest = ev.clusters(side).drop_columns(
            [name for name in own if name in ev.clusters(side).column_names]
        )
        assert loaded.clusters(side).equals(rest)
        assert loaded.clusters(side, order_by="precision").num_rows == 2
        for name in own:
            with pytest.raises(NotKeptError, match=f'{name} needs .*keep="items"'):
                loaded.clusters(side, order_by=name)
    other = "extended_elm_recall" if overlapping else "elm_recall"
    with pytest.raises(NotKeptError, match=f'{other} needs .*keep="items"'):
        loaded.metric(other)
    loaded.save(tmp_path / "again", keep="cells")
    assert fb.load(tmp_path / "again").clusters("true").equals(loaded.clusters("true"))
    with pytest.raises(
        NotKeptError, match='items were not kept; pass keep="cells" to save what was, or eval'
    ):
        loaded.save(tmp_path / "again")
    assert "elm" in repr(loaded)


@pytest.mark.cases(6)
@pytest.mark.parametrize("way", KEPT)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    ("labels", "policies"),
    [
        ([7, -1, -1, 8], {"noise": -1}),
        ([7, None, None, 8], {"nulls": "singleton"}),
        (pa.array(["7", None, None, "8"]).dictionary_encode(), {"nulls": "singleton"}),
        ([7, 9, 9, 8], {"noise": 9, "unmatched": "outside"}),
    ],
)
def test_items_alone_by_policy_are_alone(
    way: str, engine: str, labels: Any, policies: dict, tmp_path: Path
) -> None:
    """By hand: b and c share a label or a null that makes no predicted cluster; the truth has a, b, c in one."""
    truth = pa.table({"item": list("abcd"), "cluster": [0, 0, 0, 1]})
    prediction = pa.table({"item": list("abcd"), "cluster": labels})
    kept = {"keep": "items"} if engine == "disk" else {}
    ev = KEPT[way](fb.evaluate(truth, prediction, engine=engine, **kept, **policies), tmp_path)
    found = ev.item("b")
    assert (found["tp"], found["fp"], found["fn"]) == (1.0, 0.0, 2.0)
    assert found["members"]["tp"] == {"n_items": 1, "first": ["b"]}
    assert found["members"]["fp"] == {"n_items": 0, "first": []}
    assert found["members"]["fn"] == {"n_items": 2, "first": ["a", "c"]}


@pytest.mark.cases(3, 99)
@pytest.mark.parametrize("way", KEPT)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_members_that_only_the_prediction_has(way: str, engine: str, tmp_path: Path) -> None:
    """By hand: x is with a and b, y is noise, so with nobody; none of them is scored."""
    truth = pa.table({"item": list("abc"), "cluster": [0, 0, 1]})
    prediction = pa.table({"item": list("abcxy"), "cluster": [5, 5, -1, 5, -1]})
    kept = {"keep": "items"} if engine == "disk" else {}
    ev = fb.evaluate(truth, prediction, unmatched="outside", noise=-1, engine=engine, **kept)
    ev = KEPT[way](ev, tmp_path)
    assert ev.item("a")["members"]["fp"] == {"n_items": 1, "first": ["x"]}
    assert ev.item("a")["members"]["tp"] == {"n_items": 2, "first": ["a", "b"]}
    assert ev.item("c")["members"]["fp"] == {"n_items": 0, "first": []}


LABEL_OF: dict[str, Callable[[list[int]], pa.Array]] = {
    "dictionary": lambda values: pa.array([f"c{v}" for v in values]).dictionary_encode(),
    "string": lambda values: pa.array([f"c{v}" for v in values], pa.large_string()),
    "integer": lambda values: pa.array(values, pa.int32()),
    "binary": lambda values: pa.array([f"c{v}" for v in values], pa.string()).cast(pa.binary()),
}


@pytest.mark.cases(2)
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
@pairwise(way=list(KEPT), policy=POLICIES, kind=list(LABEL_OF))
def test_items_of_overlapping_clusterings(way: str, policy: str, kind: str, tmp_path: Path) -> None:
    label = LABEL_OF[kind]
    truth = pa.table({"item": list("aabbcd"), "cluster": label([0, 1, 0, 2, 1, 2])})
    prediction = pa.table({"item": list("abbcce"), "cluster": label([0, 0, 1, 1, 3, 1])})
    ev = fb.evaluate(truth, prediction, overlapping=True, unmatched=policy)
    kept = KEPT[way](ev, tmp_path)
    assert text_of(answers(kept)) == text_of(answers(ev))
    members = kept.item("b")["members"]
    assert members["fp"]["first"] == (["c", "e"] if policy != "drop" else ["c"])


def a_formula(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return tp / (tp + fp + fn)


@pytest.mark.slow
def test_formulas_and_options_go_with_pickles() -> None:
    given = {"a": {1, 2}, "b": {1}, "c": {2}}, {"a": {1}, "b": {1, 2}, "c": {2}}
    for ev in (
        fb.evaluate([0, 0, 1], [0, 1, 1], metrics=[a_formula, "f1"], beta=2.0),
        fb.cice_bcubed(*given, match="pair", similarity="rand"),
        fb.extended_bcubed(*given, metrics="all"),
        fb.evaluate([0, 0, 1, 1], [0, 1, 1, 1], metrics="all", weight=[1.0, 2.0, 3.0, 4.0]),
    ):
        for kept in (pickle.loads(pickle.dumps(ev)), copy.deepcopy(ev)):
            assert text_of(answers(kept)) == text_of(answers(ev))
            assert [m.name for m in kept.metrics] == [m.name for m in ev.metrics]
            assert all(np.isclose(kept.metric(m), ev.overall[m.name], equal_nan=True) for m in kept.metrics)


def test_contingencies_go_with_pickles() -> None:
    for table in (
        fb.contingency([0, 0, 1], [0, 1, 1], weight=[1.0, 2.0, 3.0]),
        fb.Contingency.from_cells([0, 0, 1], [0, 1, 1], [2, 1, 3]),
    ):
        for kept in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
            assert repr(kept) == repr(table)
            assert kept.pred.tolist() == table.pred.tolist() and (kept.cells == table.cells).all()


def test_cells_that_were_not_kept_name_the_argument_that_keeps_them() -> None:
    cells = fb.evaluate([0, 0, 1], [0, 1, 1], engine="disk", keep="scores").contingency
    for table in (cells, pickle.loads(pickle.dumps(cells)), copy.deepcopy(cells)):
        assert repr(table) == "Contingency(3 items, cells not kept)" and not table.weighted
        with pytest.raises(NotKeptError, match='the cells were not kept; evaluate with keep="cells"'):
            fb.metrics.precision(contingency=table)


def test_a_file_is_no_directory_to_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ev = fb.evaluate([0, 0, 1], [0, 1, 1])
    written, table = tmp_path / "b.json", tmp_path / "t.parquet"
    written.write_text(ev.to_json())
    table.write_bytes(b"PAR1")
    for path in (written, table):
        with pytest.raises(FileFormatError) as told:
            fb.load(path)
        assert str(told.value).startswith(
            f"{path} is not a directory. A saved evaluation is a directory that `save` or out="
        )
        assert cli.main(["show", str(path), "--item", "1"]) == 2
        err = capsys.readouterr().err
        assert "or --out wrote; what --json and `to_json` write cannot be loaded. To evaluate first" in err
    ev.save(tmp_path / "r")
    with pytest.raises(FileFormatError, match=r"load its directory, .*r$"):
        fb.load(tmp_path / "r" / "overall.json")
    for path in (tmp_path / "absent", tmp_path / ("x" * 300)):
        with pytest.raises(FileFormatError, match="holds no saved evaluation"):
            fb.load(path)


def test_integers_of_64_bits_without_a_sign_are_read_back(tmp_path: Path) -> None:
    large = pa.array([2**64 - 1, 2**64 - 1, 0], pa.uint64())
    truth = pa.table({"item": [1, 2, 3], "cluster": large, "band": large})
    ev = fb.evaluate(truth, truth, noise=2**64 - 1, slices="band")
    for keep in ("scores", "cells", "items"):
        ev.save(tmp_path / keep, keep=keep)
        loaded = fb.load(tmp_path / keep)
        assert loaded.sliced["band"].to_pylist() == ev.sliced["band"].to_pylist()
        assert loaded.policies.noise == 2**64 - 1 and loaded.f1 == ev.f1 == 1


@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_scores_of_slices_without_weight_stay_missing(tmp_path: Path) -> None:
    truth = pa.table({"item": [1, 2], "cluster": [1, 1], "band": ["x", "x"], "weight": [0.0, 0.0]})
    more = pa.table({"item": [3], "cluster": [2], "band": ["y"], "weight": [1.0]})
    ev = fb.evaluate(
        pa.concat_tables([truth, more]),
        {1: 1, 2: 1, 3: 2},
        weight="weight",
        weighting="outer",
        slices="band",
    )
    ev.save(tmp_path, keep="scores")
    for each in (ev, fb.load(tmp_path)):
        assert each.slices("band", order_by="f1").schema.field("f1").type == pa.float64()
        assert np.isnan(each.sliced["band"]["f1"].to_pylist()[0])


def test_slices_that_are_no_finite_numbers_stay_apart(tmp_path: Path) -> None:
    """JSON has neither NaN nor infinities: they are texts in it, and numbers again once loaded."""
    group = pa.array([math.nan, None, math.inf, -math.inf, 1.5])
    truth = pa.table({"item": range(5), "cluster": [1, 1, 2, 2, 3], "band": group})
    ev = fb.evaluate(truth, dict(enumerate([1, 2, 2, 3, 3])), slices="band")
    ev.save(tmp_path, keep="scores")
    rows = json.loads(ev.to_json())["slices"]["band"]
    assert [row["band"] for row in rows] == ["-inf", 1.5, "inf", "nan", None]
    loaded = fb.load(tmp_path).sliced["band"]
    assert repr(loaded.to_pylist()) == repr(ev.sliced["band"].to_pylist())


def test_a_result_of_an_earlier_version_names_it(tmp_path: Path) -> None:
    fb.evaluate([0, 0, 1], [0, 1, 1]).save(tmp_path)
    file = tmp_path / "overall.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"layout": 2, "fastbcubed": "0.3.1"}))
    with pytest.raises(
        FileFormatError, match=r"saved by fastbcubed 0\.3\.1 in layout 2.* Load it with the version"
    ):
        fb.load(tmp_path)
    file.write_text('{"overall": {}}')
    with pytest.raises(FileFormatError, match="is not the manifest of a saved evaluation"):
        fb.load(tmp_path)


@pytest.mark.parametrize("place", ["../elsewhere", "/tmp", ".", None])
def test_files_outside_the_directory_are_not_opened(tmp_path: Path, place: str | None) -> None:
    """A result that came from others may name any place, with a checksum that fits."""
    fb.evaluate([0, 0, 1], [0, 1, 1]).save(tmp_path)
    manifest = tmp_path / "overall.json"
    head = {name: value for name, value in json.loads(manifest.read_text()).items() if name != "crc32"}
    head["staged_in"] = place
    manifest.write_text(json.dumps({**head, "crc32": saved_files._checksum(head)}))
    with pytest.raises(FileFormatError, match="names a place outside"):
        fb.load(tmp_path)


def test_clusters_without_a_score_of_weighted_items_say_so(tmp_path: Path) -> None:
    """Weights of cells do not say what an item is without itself: the listing has F1, and warns that it lacks ELM."""
    weight = {"a": 1.0, "b": 2.0, "c": 3.0}
    ev = fb.evaluate(
        {"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}, weight=weight, metrics=["f1", "elm_f1"]
    )
    ev.save(tmp_path / "cells", keep="cells")
    with pytest.warns(
        EvaluationWarning, match=r'lacks some scores: elm_f1 needs .* save with keep="items"'
    ) as said:
        assert fb.load(tmp_path / "cells").clusters("true").column_names[-1] == "f1"
    assert said[0].filename == __file__
    ev.save(tmp_path / "items", keep="items")
    assert fb.load(tmp_path / "items").clusters("true").column_names[-1] == "elm_f1"
