"""A large result is saved with the content of its page, which is the same as the one made from its tables."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import notices, of_section, parts
from test_large_results import content_of as page
from test_large_results import same, told_apart
from test_report import Page

import fastbcubed as fb
from fastbcubed.cells import excerpts
from fastbcubed.errors import EvaluationWarning
from fastbcubed.render.document import as_data
from fastbcubed.results import lazy_tables, load, repairs, save, standard_errors
from fastbcubed.results import saved_files as manifest
from fastbcubed.results import table as listing
from fastbcubed.results.clusters import list_clusters
from fastbcubed.results.gates import as_bounds, try_bound
from fastbcubed.results.page import Asked, gate_notices
from fastbcubed.results.stored_tables import StoredTable
from fastbcubed.runtime.output_files import Stamp

HOW: dict[str, dict[str, Any]] = {
    "plain": {},
    "outside": {"unmatched": "outside"},
    "dropped": {"unmatched": "drop"},
    "singletons": {"unmatched": "singleton"},
    "noise": {"noise": "c3"},
    "weighted": {"weight": "w"},
    "weighted singletons": {"weight": "w", "unmatched": {"prediction": "singleton"}},
    "outer": {"weight": "w", "weighting": "outer"},
    "beta, few scores": {"metrics": ["recall"], "beta": 2.0},
}


@pytest.fixture(autouse=True)
def _every_result_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "LARGE", 0)
    # as of so many cells that errors of slices take too long
    monkeypatch.setattr(standard_errors, "ALWAYS", 0)


def sides(name: str, seed: int, n: int = 300) -> list[pa.Table]:
    rng = np.random.default_rng(seed)
    found = []
    for first in (0, 0 if "unmatched" not in HOW[name] else 30):
        columns = {
            "item": np.arange(first, first + n),
            "cluster": rng.choice([f"c{k}" for k in range(70)], n),
        }
        columns |= {"kind": rng.choice(["x", "y", "z"], n), "w": rng.random(n) + 0.1}
        found.append(pa.table(columns))
    return found


def saved(path: Path, name: str = "plain", seed: int = 3, **more: Any) -> fb.Evaluation:
    """Save an evaluation, as the engine that is asked for does."""
    truth, prediction = sides(name, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        if more.get("engine") != "disk":
            ev = fb.evaluate(truth, prediction, **HOW[name], **more)
            ev.save(path)
            return ev
        files = [path.with_name(f"{path.name}-{side}.parquet") for side in ("truth", "prediction")]
        for table, file in zip((truth, prediction), files, strict=True):
            pq.write_table(table, file)
        return fb.evaluate(*files, **HOW[name], out=path, keep="items", spill_dir=path.parent, **more)


def same_page(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare pages, whose repairs may be in another order if they gain the same but for rounding."""
    own = [[row for each in parts(page, "Chart") if each["draws"] == "repairs" for row in each["data"][0]]
           for page in (found, wanted)]  # fmt: skip
    same(*(told_apart(rows) if rows else [] for rows in own))
    same(*([row["gain"] for row in rows] for rows in own))
    same(*([each for each in page["sections"] if each["id"] != "repairs"] for page in (found, wanted)))
    same(*({name: page[name] for name in ("title", "head")} for page in (found, wanted)))


def without_alone(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page without the scores if all items were alone."""
    for chart in parts(page, "Chart"):
        if chart["draws"] == "scores":
            chart["data"][0]["extremes"].pop("alone", None)
    text = json.dumps(page).replace("▲ every item a singleton, ", "")
    return dict(json.loads(text.replace(json.dumps("▲ every item a singleton, ")[1:-1], "")))


@pytest.mark.slow
def test_the_page_itself_is_the_same(tmp_path: Path) -> None:
    saved(tmp_path / "r")
    drawn = fb.load(tmp_path / "r", check=False).report().html
    same_page(json.loads(Page(drawn).data), page(fb.load(tmp_path / "r")))


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", pytest.param("disk", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HOW)
def test_the_saved_page_is_that_of_the_tables(
    name: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "r", name, engine=engine)
    wanted = page(fb.load(tmp_path / "r"))
    assert parts(wanted, "Members")
    if engine == "disk" and "weight" in HOW[name] and name != "outer":  # which takes the weights of all items
        wanted = without_alone(wanted)
    with monkeypatch.context() as patch:
        for read in ("scan", "take", "_read"):  # nothing is read
            patch.setattr(StoredTable, read, None)
        patch.setattr(excerpts.UnreadCells, "__getattr__", None)
        same_page(page(fb.load(tmp_path / "r", check=False)), wanted)
    (tmp_path / "r" / "page.json").unlink()
    same_page(page(fb.load(tmp_path / "r", check=False)), wanted)


@pytest.mark.slow
def test_title_and_gates_are_those_that_are_asked_for(tmp_path: Path) -> None:
    ev = saved(tmp_path / "r")
    large = fb.load(tmp_path / "r", check=False)
    gates = [try_bound(bound, ev) for bound in as_bounds(["f1>=0.1"], {})]
    found = large._document(Asked.of(title="Mine")).with_gates(gate_notices(gates))
    assert found.title == "Mine"
    assert [row["level"] for row in notices(as_data(found), "Gates")] == ["passed"]
    assert page(large)["title"] == page(ev)["title"] and not notices(page(large), "Gates")


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"worst": 30},
        {"members": 25},
        {"worst": 1000, "members": 2},
        {"worst": 6, "members": 8, "columns": ["truth.kind", "prediction.kind"]},
        {"by": "truth.kind"},
    ],
)
def test_another_page_is_made_from_the_tables(asked: dict[str, Any], tmp_path: Path) -> None:
    saved(tmp_path / "r", "weighted")
    large = fb.load(tmp_path / "r", check=False)
    same_page(page(large, **asked), page(fb.load(tmp_path / "r"), **asked))
    assert large.lorenz("true", limit=7).num_rows == 7
    assert large.repairs("split", limit=4).num_rows == 4


@pytest.mark.cases(0)
@pytest.mark.parametrize("most", ["MOST_CELLS", "MOST_MEMBERS"])
def test_a_page_that_takes_too_much_is_not_saved(
    most: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(save, most, 15)
    saved(tmp_path / "r", "dropped")
    assert not (tmp_path / "r" / "page.json").exists()
    same_page(page(fb.load(tmp_path / "r", check=False)), page(fb.load(tmp_path / "r")))


@pytest.mark.slow
def test_clusters_that_tie_are_told_apart_by_their_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing.Top.__init__, "__defaults__", (0,))
    monkeypatch.setattr(listing, "MANY", 0)
    monkeypatch.setattr(lazy_tables, "AT_ONCE", 7)
    items = np.arange(400)
    truth = {"item": items, "cluster": [f"t{k}" for k in np.random.default_rng(1).permutation(400)]}
    ev = fb.evaluate(pa.table(truth), pa.table({"item": items, "cluster": items // 2}))
    ev.save(tmp_path / "r")
    large = fb.load(tmp_path / "r", check=False)
    found = page(large), list_clusters(large.kept, large.figures, "pred", None, 20)
    monkeypatch.undo()
    wanted = list_clusters(ev.kept, ev.figures, "pred", None, 20)
    (shown,) = parts(found[0], "Clusters")  # none loses recall
    assert [row["name"] for row in shown["rows"]] == wanted["cluster"].to_pylist()
    assert found[1]["code"].to_pylist() == wanted["code"].to_pylist()


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_is_to_be_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fb.evaluate([1, 1, 2, 3], ["a", "a", "b", "c"]).save(tmp_path / "r")
    wanted = page(fb.load(tmp_path / "r"))
    monkeypatch.setattr(excerpts.UnreadCells, "__getattr__", None)
    for _ in range(2):
        found = page(fb.load(tmp_path / "r", check=False))
        assert found == wanted
        assert not of_section(found, "repairs")["blocks"]
        (tmp_path / "r" / "page.json").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_page_that_was_changed_or_is_of_another_result_is_not_used(tmp_path: Path) -> None:
    saved(tmp_path / "r", seed=3)
    saved(tmp_path / "other", seed=4)
    file = tmp_path / "r" / "page.json"
    good, other = file.read_bytes(), (tmp_path / "other" / "page.json").read_bytes()
    wanted = page(fb.load(tmp_path / "r"))
    flipped = [good[:k] + bytes([good[k] ^ 1]) + good[k + 1 :] for k in range(0, len(good), len(good) // 7)]
    for data in (b"", b"{}", good[:-30], other, *flipped):
        file.write_bytes(data)
        assert fb.load(tmp_path / "r", check=False).kept.lazy.page() is None
    same_page(page(fb.load(tmp_path / "r", check=False)), wanted)
    file.write_bytes(good)
    assert fb.load(tmp_path / "r", check=False).kept.lazy.page() is not None


def test_a_page_of_another_version_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "r", seed=3)
    monkeypatch.setattr(load, "__version__", "0.0.1")
    assert fb.load(tmp_path / "r", check=False).kept.lazy.page() is None


@pytest.mark.slow
def test_the_page_is_of_the_last_result_and_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "r" / "page.json"
    saved(tmp_path / "r", seed=3)
    first = file.read_bytes()
    saved(tmp_path / "r", seed=4)
    assert file.read_bytes() != first
    ev = saved(tmp_path / "r", seed=3)
    assert file.read_bytes() == first
    for kept in ("scores", "small"):
        if kept == "small":
            ev.save(tmp_path / "r")
            monkeypatch.setattr(manifest, "LARGE", 12_000_000)
        assert file.exists() == (kept == "small" or file.read_bytes() == first)
        ev.save(tmp_path / "r", keep="scores" if kept == "scores" else "items")
        assert not file.exists()


def test_few_cells_of_many_items_are_a_large_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    cells, few, many = Stamp(10**6, 0), Stamp(10**8, 0), Stamp(10**9, 0)
    assert not manifest.is_large({"cells.parquet": cells})
    assert not manifest.is_large({"cells.parquet": cells, "items.parquet": few})
    assert manifest.is_large({"cells.parquet": cells, "items.parquet": many})
    assert manifest.is_large({"cells.parquet": few})


@pytest.mark.slow
def test_a_page_leaves_repairs_out_that_take_all_of_many_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairs, "FEW_CELLS", 0)
    saved(tmp_path / "r", "outer", engine="disk")
    monkeypatch.setattr(excerpts.UnreadCells, "__getattr__", None)
    for _ in range(2):
        found = page(fb.load(tmp_path / "r", check=False))
        assert not of_section(found, "repairs")["blocks"] and parts(found, "Members")
        (tmp_path / "r" / "page.json").unlink(missing_ok=True)
