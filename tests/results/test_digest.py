"""A digest beside a large result: pages say with it what they say without, and read far less."""

from __future__ import annotations

import json
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_large_results import same, told_apart
from test_report import Page

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning
from fastbcubed.results import load, page_content, save, saved_clusters
from fastbcubed.results import saved as manifest
from fastbcubed.results import table as listing
from fastbcubed.results.concentration import LossCurve
from fastbcubed.results.load import LargeResult
from fastbcubed.results.members import deal
from fastbcubed.results.page import Asked
from fastbcubed.results.stored_items import StoredTable
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
ASKED: dict[str, Any] = {"worst": 6, "members": 8, "columns": ["truth.kind", "prediction.kind"]}


@pytest.fixture(autouse=True)
def _every_result_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "LARGE", 0)
    # as of so many cells that errors of slices take too long
    monkeypatch.setattr(page_content, "ALWAYS", 0)
    monkeypatch.setattr(fb.Evaluation, "errors_at_hand", lambda ev: ev._saved_errors)


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


def page(result: Any, **asked: Any) -> dict[str, Any]:
    """Return what is on the page of a result, without drawing it."""
    found: dict[str, Any] = result.page_content(Asked.of(**{**ASKED, **asked}))
    return found


def test_the_page_itself_is_the_same(tmp_path: Path) -> None:
    saved(tmp_path / "r")
    pages = [fb.load(tmp_path / "r", check=check).report(**ASKED) for check in (True, False)]
    same_page(*(json.loads(Page(each.html).data) for each in pages))


def same_page(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare pages, whose repairs may be in another order if they gain the same but for rounding."""
    rows = [
        told_apart(each["repairs"]["rows"]) if each["repairs"]["rows"] else [] for each in (found, wanted)
    ]
    same(*rows)
    gains = [[row["gain"] for row in each["repairs"]["rows"]] for each in (found, wanted)]
    same(*gains)
    same({**found, "repairs": None}, {**wanted, "repairs": None})


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("name", HOW)
def test_a_page_says_with_a_digest_what_it_says_without(
    name: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "r", name, engine=engine)
    wanted = page(fb.load(tmp_path / "r"))
    assert wanted["clusters"]["pred"]["rows"][0]["opened"]["parts"]
    if engine == "disk" and "weight" in HOW[name] and name != "outer":  # which takes the weights of all items
        wanted["verdict"]["extremes"].pop("alone", None)
    large = fb.load(tmp_path / "r", check=False)
    assert isinstance(large, LargeResult) and large.saved_clusters.digest is not None
    with monkeypatch.context() as patch:
        patch.setattr(StoredTable, "stretches", None)  # no table is gone through
        if (name, engine) != ("outer", "disk"):  # whose repairs take all cells, which were too many to rank
            patch.setattr(saved_clusters.UnreadCells, "__getattr__", None)
        same_page(page(large), wanted)
    (tmp_path / "r" / "digest.json").unlink()
    same_page(page(fb.load(tmp_path / "r", check=False)), wanted)


@pytest.mark.parametrize(
    "asked", [{"worst": 30}, {"members": 25}, {"worst": 1000, "members": 2}, {"by": "kind"}]
)
def test_what_a_digest_does_not_tell_is_read(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_clusters, "LISTED", 12)
    monkeypatch.setattr(save, "LISTED", 12)
    monkeypatch.setattr(save, "OPENED", 3)
    asked = {**asked, "columns": []} if asked != {"by": "kind"} else {"by": "truth.kind"}
    saved(tmp_path / "r", "weighted")
    large = fb.load(tmp_path / "r", check=False)
    assert isinstance(large, LargeResult) and large.saved_clusters.digest is not None
    same_page(page(large, **asked), page(fb.load(tmp_path / "r"), **asked))
    assert large.lorenz("true", limit=7).num_rows == 7
    assert large.repairs("split", limit=4).num_rows == 4


@pytest.mark.parametrize("most", ["MOST_CELLS", "MOST_GATHERS", "MOST_MEMBERS"])
def test_a_digest_leaves_out_what_would_take_too_much(
    most: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(save, most, 15)
    saved(tmp_path / "r", "dropped")
    same_page(page(fb.load(tmp_path / "r", check=False)), page(fb.load(tmp_path / "r")))


def test_clusters_that_tie_are_told_apart_by_their_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_clusters, "TIES", 0)
    monkeypatch.setattr(listing, "MANY", 0)
    monkeypatch.setattr(save, "LISTED", 5)
    monkeypatch.setattr(save, "AT_ONCE", 7)
    items = np.arange(400)
    truth = {"item": items, "cluster": [f"t{k}" for k in np.random.default_rng(1).permutation(400)]}
    ev = fb.evaluate(pa.table(truth), pa.table({"item": items, "cluster": items // 2}))
    ev.save(tmp_path / "r")
    large = fb.load(tmp_path / "r", check=False)
    codes = large.saved_clusters.digest.codes["pred"]
    monkeypatch.undo()
    assert codes.tolist() == ev.coded_clusters("pred", limit=5)["code"].to_pylist()
    assert large.saved_clusters.digest.codes["true"].tolist() == []  # none loses recall


def test_nothing_is_lost_and_nothing_is_to_be_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fb.evaluate([1, 1, 2, 3], ["a", "a", "b", "c"]).save(tmp_path / "r")
    wanted = page(fb.load(tmp_path / "r"), columns=[])
    monkeypatch.setattr(saved_clusters.UnreadCells, "__getattr__", None)
    found = page(fb.load(tmp_path / "r", check=False), columns=[])
    assert found == wanted
    assert found["repairs"]["rows"] == []


def test_a_digest_that_is_damaged_or_of_other_files_is_not_used(tmp_path: Path) -> None:
    saved(tmp_path / "r", seed=3)
    saved(tmp_path / "other", seed=4)
    file = tmp_path / "r" / "digest.json"
    good, other = file.read_bytes(), (tmp_path / "other" / "digest.json").read_bytes()
    wanted = page(fb.load(tmp_path / "r"))
    flipped = [good[:k] + bytes([good[k] ^ 1]) + good[k + 1 :] for k in range(0, len(good), len(good) // 7)]
    told = json.loads(good)["digest"]
    made_up = [
        {**told, "layout": 2},
        {**told, "codes": {**told["codes"], "true": [10**9]}},
        {},
        {**told, "curves": 1},
    ]
    for data in (b"", b"{}", good[:-30], other, *flipped, *map(resealed, made_up)):
        file.write_bytes(data)
        large = fb.load(tmp_path / "r", check=False)
        assert isinstance(large, LargeResult) and large.saved_clusters.digest is None
    same_page(page(large), wanted)
    file.write_bytes(resealed(told))
    assert fb.load(tmp_path / "r", check=False).saved_clusters.digest is not None


def resealed(told: dict[str, Any]) -> bytes:
    """Return a digest that says something else, with its checksum."""
    text = json.dumps(told, separators=(",", ":"))
    return f'{{"crc32":{zlib.crc32(text.encode())},"digest":{text}}}\n'.encode()


def test_a_digest_is_of_the_last_result_and_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "r" / "digest.json"
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


def test_a_page_leaves_repairs_out_that_take_all_of_many_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path / "r", "outer", engine="disk")
    monkeypatch.setattr(load, "FEW_CELLS", 0)
    monkeypatch.setattr(saved_clusters.UnreadCells, "__getattr__", None)
    found = page(fb.load(tmp_path / "r", check=False))
    assert found["repairs"] is None
    assert found["clusters"]["true"]["rows"][0]["opened"]["parts"]


@given(
    losses=st.lists(
        st.sampled_from([0.0, 1e-9, 0.1, 0.25]) | st.floats(0, 1, width=32), min_size=1, max_size=60
    ),
    limits=st.lists(st.integers(1, 40), min_size=1, max_size=3),
)
def test_a_curve_in_few_steps_has_the_same_tables(losses: list[float], limits: list[int]) -> None:
    curve = LossCurve.of(len(losses), np.array(losses))
    few = curve.in_few_steps(limits)
    assert (few.n_clusters, few.n_lossy) == (curve.n_clusters, curve.n_lossy)
    assert few.first_with(0.5) == curve.first_with(0.5)
    assert few.loss == pytest.approx(curve.loss, rel=1e-12)
    for limit in limits:
        found, wanted = (each.table(limit).to_pydict() for each in (few, curve))
        assert found["n_clusters"] == wanted["n_clusters"]
        np.testing.assert_allclose(found["share_loss"], wanted["share_loss"], rtol=1e-12)


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    alone=st.integers(0, 5),
    most=st.integers(0, 30),
    n=st.integers(0, 30),
)
def test_fewer_members_are_dealt_from_what_was_dealt(sizes: list[int], alone: int, most: int, n: int) -> None:
    n = min(n, most)
    parts = np.array(sorted(sizes, reverse=True))
    dealt = deal(np.append(parts, alone), most)
    kept = int(np.count_nonzero(dealt[:-1]))
    fewer = deal(np.append(parts[:kept], alone), n)
    wanted = deal(np.append(parts, alone), n)
    assert fewer[:-1].tolist() == wanted[:kept].tolist()
    assert fewer[-1] == wanted[-1] and not wanted[kept:-1].any()
    assert (fewer <= np.append(dealt[:kept], dealt[-1])).all()
