"""Ids over releases: carried by the heaviest matching, new ones that are never taken, and their registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linear_sum_assignment

import fastbcubed as fb
from fastbcubed.diff_runs import carried_ids, identity
from fastbcubed.diff_runs.heaviest_matching import Matched, Rivals, match_first
from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    EmptyInputError,
    FastBCubedError,
    IdTypeError,
    MetricError,
    NotKeptError,
    NullError,
    OptionError,
)
from fastbcubed.metrics.counterparts import LIMIT, best_pairs

RELEASES = ("pred_20200929", "pred_20211230", "truth")


def table(of: dict[Any, Any]) -> pa.Table:
    return pa.table({"item": list(of), "cluster": list(of.values())})


def release(name: str) -> Path:
    return Path(fb.__file__).parent / "data" / "patentsview" / f"{name}.parquet"


#: 7 keeps most of its items in x, 8 and 9 are merged; 5 is gone, and n new.
OLD = dict(zip("abcdefg", [7, 7, 7, 8, 8, 9, 5], strict=True))
NEW = dict(zip("abcdefh", list("xxyzzzn"), strict=True))
IDS = [
    {"experiment_cluster": "n", "id": 10, "event": "new"},
    {"experiment_cluster": "x", "id": 7, "event": "kept"},
    {"experiment_cluster": "y", "id": 11, "event": "split"},
    {"experiment_cluster": "z", "id": 8, "event": "merged"},
]
RETIRED = [{"id": 5, "replaced_by": None}, {"id": 9, "replaced_by": 8}]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("keep", ["cells", "items"])
def test_ids_by_hand(engine: Any, keep: Any, tmp_path: Path) -> None:
    made = fb.diff(table(OLD), table(NEW), engine=engine, keep=keep)
    made.save(tmp_path / "saved", keep="items" if engine == "memory" else keep)
    saved = fb.load(tmp_path / "saved")
    for d in (made, saved) if saved.evaluation.has_items else (made,):
        assert d.ids().to_pylist() == IDS
        assert d.retired().to_pylist() == RETIRED
        assert d.id_stability == (0, (2 + 2) / 6)  # x of 7 and z of 8, of the six items that both have
    if not saved.evaluation.has_items:
        with pytest.raises(NotKeptError, match="1 cluster without items on one of the sides"):
            saved.ids()
        assert saved.id_stability == made.id_stability
    if keep == "items":
        expected = {item: {"n": 10, "x": 7, "y": 11, "z": 8}[new] for item, new in NEW.items()}
        found = made.ids(by="item")
        assert dict(zip(found["item"].to_pylist(), found["cluster"].to_pylist(), strict=True)) == expected


def test_what_was_not_kept(tmp_path: Path) -> None:
    d = fb.diff(table(OLD), table(NEW))
    d.save(tmp_path / "scores", keep="scores")
    saved = fb.load(tmp_path / "scores")
    assert saved.id_stability == d.id_stability and saved.to_dict()["id_stability"]["best"] == 4 / 6
    with pytest.raises(NotKeptError, match="keep"):
        saved.ids()
    d.save(tmp_path / "cells", keep="cells")
    assert fb.load(tmp_path / "cells").id_stability == d.id_stability


def test_all_ids_are_new_and_all_could_have_been_kept() -> None:
    old = [1, 1, 2, 3, 3, 3]
    d = fb.diff(old, [9, 9, 7, 5, 5, 5])
    assert d.id_stability == (0, 1)
    assert d.ids()["id"].to_pylist() == [3, 2, 1] and set(d.ids()["event"].to_pylist()) == {"kept"}
    assert d.ids(by="item")["cluster"].to_pylist() == old
    assert "100 % can be: ids()" in " ".join(repr(d).split())
    assert "ids()" not in repr(fb.diff(old, old))


@pytest.mark.parametrize(
    ("old", "new", "as_named"),
    [([1, 1, 2], ["1", "1", "3"], 2 / 3), ([1, 1, 2], [1.0, 1.0, 2.0], 1), (list("aabb"), list("bbaa"), 0)],
)
def test_ids_that_are_the_same_as_named(old: list[Any], new: list[Any], as_named: float) -> None:
    assert fb.diff(old, new).id_stability == (pytest.approx(as_named), 1)


# -- Matching --------------------------------------------------------------------------------------


def matchings(cells: list[tuple[int, int]], k: int = 0) -> Iterator[list[int]]:
    """Yield all matchings of cells, as numbers of cells."""
    if k == len(cells):
        yield []
        return
    for rest in matchings(cells, k + 1):
        yield rest
        if all(cells[k][side] != cells[j][side] for j in rest for side in (0, 1)):
            yield [k, *rest]


def tied_cells(rng: np.random.Generator, most: int = 4) -> tuple[list[tuple[int, int]], list[int]]:
    """Return cells in order of preference, and what they weigh: few different weights, so that there are ties."""
    shape = rng.integers(1, most + 1, 2)
    every = [(r, c) for r in range(shape[0]) for c in range(shape[1]) if rng.random() < 0.7] or [(0, 0)]
    gains = rng.integers(1, 4, len(every)).tolist()
    order = sorted(range(len(every)), key=lambda k: (-gains[k], rng.random()))[:10]
    return [every[k] for k in order], [gains[k] for k in order]


def matched(rows: Any, columns: Any, gains: Any, preferred: Any) -> Matched:
    """Return the heaviest matching of cells; of equal gains, the one that is preferred by a smaller number is first."""
    degrees = (np.bincount(codes).astype(np.int32) for codes in (rows, columns))
    order = [lambda cells: preferred.astype(np.uint64)[cells]]
    return match_first(Rivals(rows, columns, gains, *degrees, order, [], []), LIMIT)


@pytest.mark.parametrize("seed", range(60))
def test_of_equally_heavy_matchings_the_one_with_the_first_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells, gains = tied_cells(rng)
    heaviest = max(sum(gains[k] for k in each) for each in matchings(cells))
    of_these = [sorted(each) for each in matchings(cells) if sum(gains[k] for k in each) == heaviest]
    expected = max(of_these, key=lambda each: [k in each for k in range(len(cells))])
    place = rng.permutation(len(cells))  # the cells come in any order
    rows, columns = np.array(cells)[place].T
    found = matched(rows, columns, np.array(gains, float)[place], place)
    assert sorted(place[found.cells].tolist()) == expected and not found.n_greedy


def one_against_scipy(rng: np.random.Generator) -> None:
    n = int(rng.integers(1, 40))
    old, new = rng.integers(0, rng.integers(1, 9), n), rng.integers(0, rng.integers(1, 9), n)
    weighted = rng.random() < 0.5
    weight = rng.choice([0.1, 0.2, 0.3, 1.7], n) if weighted else np.ones(n)
    shared = np.zeros((9, 9))
    np.add.at(shared, (old, new), weight)
    best = shared[linear_sum_assignment(shared, maximize=True)].sum() / weight.sum()
    d = fb.diff(old, new, weight=weight if weighted else None, metrics="split_rate")
    assert d.id_stability.best == pytest.approx(best, abs=1e-12)
    if not weighted:
        assert d.id_stability.best == pytest.approx(fb.metrics.matching_accuracy(old, new), abs=1e-12)
    ids = d.ids()
    carried = {
        row["experiment_cluster"]: row["id"] for row in ids.to_pylist() if row["event"] in ("kept", "merged")
    }
    assert sum(shared[i, j] for j, i in carried.items()) / weight.sum() == pytest.approx(best, abs=1e-12)
    assert len(set(ids["id"].to_pylist())) == ids.num_rows == np.unique(new).size
    retired = d.retired()
    assert set(retired["id"].to_pylist()) == set(old.tolist()) - set(ids["id"].to_pylist())
    assert all(by in carried.values() for by in retired["replaced_by"].to_pylist())
    rows = rng.permutation(n)
    again = fb.diff(
        old[rows], new[rows], weight=weight[rows] if weighted else None, threads=1, metrics="split_rate"
    )
    assert again.ids().to_pylist() == ids.to_pylist() and again.retired().to_pylist() == retired.to_pylist()


@pytest.mark.cases(8, 99)
@pytest.mark.parametrize("seed", range(25))
def test_against_scipy_and_in_any_order_of_rows(seed: int) -> None:
    one_against_scipy(np.random.default_rng(seed))


@pytest.mark.slow
def test_against_scipy_often() -> None:
    """Ten thousand matchings weigh what SciPy's do, and the search behind `matching_accuracy`; 300 of whole diffs."""
    rng = np.random.default_rng(9)
    for case in range(10_000):
        shape = rng.integers(1, 9, 2)
        gains = rng.integers(1, (4, 1000, 2**40)[case % 3], shape).astype(float)  # many ties, some, none
        gains[rng.random(shape) < (0.2, 0.6, 0.85)[case // 3 % 3]] = 0
        rows, columns = np.nonzero(gains)
        own, preferred = gains[rows, columns], rng.permutation(rows.size)
        found = matched(rows, columns, own, preferred)
        assert np.unique(rows[found.cells]).size == np.unique(columns[found.cells]).size == found.cells.size
        best = gains[linear_sum_assignment(gains, maximize=True)].sum()
        assert own[found.cells].sum() == best == best_pairs(rows, columns, own, *gains.shape)[1].sum()
        if rows.size <= 9:
            order = np.lexsort((preferred, -own)).tolist()
            heaviest = [each for each in matchings(list(zip(rows[order], columns[order], strict=True)))
                        if sum(own[order[k]] for k in each) == best]  # fmt: skip
            first = max(heaviest, key=lambda each: [k in each for k in range(len(order))])
            assert sorted(found.cells.tolist()) == sorted(order[k] for k in first)
    for _ in range(300):
        one_against_scipy(rng)


def test_ties_go_to_the_heavier_cell_then_the_larger_share_then_the_smaller_id() -> None:
    # 3 + 1 and 2 + 2 are as heavy: a in x (3), b in y (1), and a in y (2), b in x (2).
    old, new = list("aaaaabbb"), list("xxxyyyxx")
    assert fb.diff(old, new).ids()["id"].to_pylist() == ["a", "b"]
    # Two items of a went to each of x and y, and y has no other item.
    assert fb.diff(list("aaaab"), list("xxyyx")).ids(mint="n").to_pylist()[1]["id"] == "a"
    assert fb.diff([2, 10], ["x", "x"]).ids()["id"].to_pylist() == [2]
    assert fb.diff(["2", "10"], ["x", "x"]).ids()["id"].to_pylist() == ["10"]  # texts in their order


def test_the_same_ids_from_both_engines(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    item, old = np.arange(3000), rng.integers(0, 900, 3000)
    new = np.where(rng.random(3000) < 0.3, rng.integers(0, 900, 3000), old)
    sides = [pa.table({"item": item, "cluster": each}) for each in (old, new)]
    memory, disk = fb.diff(*sides, engine="memory"), fb.diff(*sides, engine="disk", spill_dir=tmp_path)
    assert memory.ids().to_pylist() == disk.ids().to_pylist()
    assert memory.retired().to_pylist() == disk.retired().to_pylist()


def small_components(rng: np.random.Generator, kind: str) -> list[pa.Table]:
    """Return two clusterings in which 12 items each change on their own, with ties, weights, and items of one side."""
    n = 3000
    item = np.arange(n)
    sides = []
    for side in (0, 1):
        labels = item // 12 * 12 + rng.integers(0, 4, n) * (item // 12 % 3 > 0)  # a third does not change
        names = rng.permutation(n) - 7 if side else np.arange(n)
        label: Any = pa.array(names[labels])
        if kind != "numbers":
            label = label.cast(pa.string())
        own = {"item": item, "cluster": label, "weight": rng.choice([0.5, 1.0, 1.5], n)}
        there = (rng.random(n) < 0.97) | (item % 12 < 2)
        sides.append(pa.table(own).filter(pa.array(there)))
    sides[1] = sides[1].drop_columns("weight")
    return sides


@pytest.mark.cases(2, 20)
@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_ids_from_all_cells_and_from_few_at_once(
    seed: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    sides, weight = small_components(rng, kind), "weight" if rng.random() < 0.5 else None
    unmatched: Any = "singleton" if weight is None and seed % 2 else "drop"
    how = {"weight": weight, "unmatched": unmatched, "metrics": "split_rate"}
    whole = fb.diff(*sides, engine="memory", **how)
    mint = None if kind == "numbers" else "n"
    ids, retired = whole.ids(mint=mint), whole.retired()
    assert {"kept", "merged", "split"} <= set(ids["event"].to_pylist())
    d = fb.diff(*sides, engine="disk", memory_limit="64MiB", spill_dir=tmp_path, threads=1 + seed % 2, **how)
    monkeypatch.setattr(carried_ids, "CELL_BYTES", 1 << 18)  # 512 cells fit into twice the limit
    monkeypatch.setattr(identity, "TABLE_BYTES", 1 << 20)
    batches, match = list[int](), carried_ids._match
    monkeypatch.setattr(
        carried_ids, "_match", lambda cells, *rest: (batches.append(cells.size), match(cells, *rest))[1]
    )
    found = list(identity.tables_of_ids(d, None, mint, revive=False))
    assert len(batches) > 4 and (len(found) > 3) == (kind == "numbers")
    assert pa.concat_tables(found).equals(ids.to_arrow())
    assert d.retired().to_arrow().equals(retired.to_arrow())
    assert d.id_stability == pytest.approx(whole.id_stability)


def test_cells_that_do_not_fit_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All 200 cells are connected: each old cluster i has items in the new ones i and i + 1."""
    old, new = np.repeat(np.arange(100), 2), (np.arange(200) + 1) // 2 % 100
    d = fb.diff(*(pa.table({"item": np.arange(200), "cluster": each}) for each in (old, new)), engine="disk",
                memory_limit="64MiB", spill_dir=tmp_path)  # fmt: skip
    monkeypatch.setattr(carried_ids, "CELL_BYTES", 1 << 20)
    with pytest.raises(OptionError, match=r"^stable ids would take about 136 MiB .* at least 137 MiB"):
        d.retired()


def test_a_search_that_takes_too_long_is_greedy_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    old = [1, 1, 1, 1, 1, 2, 2, 2]
    new = list("xxxyyyxx")  # a in x 3, a in y 2, b in x 2, b in y 1
    monkeypatch.setattr(identity, "QUICK", 0)
    d = fb.diff(old, new)
    carried = identity.carry(d.evaluation, 0)
    assert (carried.n_greedy, carried.cells_of_greedy) == (1, 4)
    assert carried_ids.stability(d.evaluation, carried).best == 0.5
    (note,) = carried.notes()
    assert note["code"] == "ids-partly-greedy" and "4 cells" in note["message"]


# -- New ids ---------------------------------------------------------------------------------------


def test_rules_for_new_ids() -> None:
    d = fb.diff(["P1", "P1", "P7"], list("xyz"))
    assert d.ids()["id"].to_pylist() == ["P1", "y", "P7"]  # the labels of the experiment
    assert d.ids(mint="P")["id"].to_pylist() == ["P1", "P8", "P7"]  # after the largest number
    assert d.ids(mint="P", known_ids=["P30", "Q99", "P2x"])["id"].to_pylist() == ["P1", "P31", "P7"]
    assert d.ids(mint=lambda label: f"2024-{label}")["id"].to_pylist() == ["P1", "2024-y", "P7"]
    numbers = fb.diff([1, 1, 7], list("xyz"))
    assert numbers.ids()["id"].to_pylist() == [1, 8, 7]
    assert numbers.ids(known_ids={99, 3})["id"].to_pylist() == [1, 100, 7]


def test_the_smallest_item_that_is_no_id() -> None:
    old = {"b": "b", "c": "b", "d": "b", "e": "b", "f": "f"}  # ids are the smallest items
    new = {"b": 1, "c": 1, "d": 2, "e": 2, "f": 2, "a": 2, "g": 3}
    ids = {row["experiment_cluster"]: row["id"] for row in fb.diff(old, new).ids(mint=min).to_pylist()}
    assert ids == {1: "b", 2: "f", 3: "g"}
    split = fb.diff({"b": "b", "c": "b", "d": "b"}, {"b": 1, "c": 2, "d": 2})
    with pytest.raises(OptionError, match="all items of 1 new cluster are already ids of other clusters"):
        split.ids(mint=min)  # 2 keeps b
    assert split.ids(mint="n")["id"].to_pylist() == ["n1", "b"]


def test_known_ids_return_only_if_they_may() -> None:
    d = fb.diff(list("aab"), ["x", "y", "z"])
    with pytest.raises(OptionError, match=r"1 new id of 1 is taken .*'y'"):
        d.ids(known_ids=["y"])
    assert d.ids(known_ids=["y"], revive=True)["id"].to_pylist() == ["a", "y", "b"]
    with pytest.raises(OptionError, match="taken"):  # b is that of another cluster
        fb.diff(list("aaab"), ["x", "x", "b", "z"]).ids(revive=True)


@pytest.mark.parametrize(
    ("error", "match", "how"),
    [
        (IdTypeError, "gives strings", {"mint": str}),
        (IdTypeError, "creates strings, but the ids of the baseline are", {"mint": "P"}),
        (IdTypeError, "known_ids.*strings", {"known_ids": ["a"]}),
        (NullError, "no id to 2 of 2 new clusters", {"mint": lambda _: None}),
        (NullError, "null", {"known_ids": [1, None]}),
        (OptionError, "2 new clusters have only 1 different", {"mint": lambda _: 50}),
        (OptionError, "must be a function, a prefix for new ids,", {"mint": 3}),
        (
            IdTypeError,
            "^mint=min gives strings .*'k1'.*, but the ids of the baseline are numbers",
            {"mint": min},
        ),
        (OptionError, "True or False", {"revive": "yes"}),
        (OptionError, '"cluster" or "item"', {"by": "row"}),
    ],
)
def test_rules_that_do_not_work(error: type[FastBCubedError], match: str, how: dict[str, Any]) -> None:
    items = [f"k{k}" for k in range(4)]
    with pytest.raises(error, match=match):
        fb.diff(dict(zip(items, [1, 1, 1, 2], strict=True)), dict(zip(items, "xyzw", strict=True))).ids(**how)


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (OptionError, {"mint": 3}),
        (IdTypeError, {"mint": "P"}),
        (ColumnError, {"known_ids": 5}),
        (IdTypeError, {"known_ids": ["a"]}),
    ],
)
def test_rules_are_checked_where_no_cluster_is_new(error: type[FastBCubedError], how: dict[str, Any]) -> None:
    with pytest.raises(error):
        fb.diff([1, 1, 2], list("xxy")).ids(**how)


def test_ids_of_other_widths_than_the_baseline() -> None:
    """Texts and numbers of any width are of one kind; what the baseline's type does not hold is refused."""
    unsigned = fb.diff(np.array([2**63 + 5, 2**63 + 5, 7], np.uint64), [1, 2, 3])
    assert unsigned.ids(known_ids=np.array([2**63 + 9], np.uint64))["id"].to_pylist() == [
        2**63 + 5,
        2**63 + 10,
        7,
    ]
    assert unsigned.ids(mint=lambda label: label + 10)["id"].to_pylist() == [2**63 + 5, 12, 7]
    with pytest.raises(IdTypeError, match=r"mint has numbers from -2 to -2, which do not fit in uint64"):
        unsigned.ids(mint=lambda label: -label)
    old, new = (
        pa.table({"item": [4, 5, 6], "cluster": np.array(each, np.uint64)})
        for each in ([2**63 + 5, 2**63 + 5, 7], [1, 2, 3])
    )
    assert fb.diff(old, new, keep="items").ids(mint=min)["id"].to_pylist() == [2**63 + 5, 5, 7]
    row = {"id": [1], "first_seen": ["a"], "last_seen": ["a"], "replaced_by": pa.nulls(1)}
    assert unsigned.registry(pa.table(row), release="r")["id"].to_pylist()[0] == 1
    with pytest.raises(IdTypeError, match=r"known_ids has numbers from -1 to 3, which do not fit in uint64"):
        unsigned.ids(known_ids=[3, -1])
    with pytest.raises(IdTypeError, match="do not fit in"):
        fb.diff([1, 1, 2], list("xyz")).ids(known_ids=np.array([2**64 - 1], np.uint64))
    nothing = pa.table({name: pa.nulls(0) for name in identity.REGISTRY})  # as read from a file without rows
    assert fb.diff(list("aab"), list("xyz")).registry(nothing, release="r").num_rows == 3


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_ids_of_categories(engine: Any) -> None:
    """On disk, codes of clusters have gaps."""
    sides = [
        pa.table({"item": [1, 2, 3, 4], "cluster": pa.array(labels).dictionary_encode()})
        for labels in (list("ppqq"), list("xyyy"))
    ]
    d = fb.diff(*sides, engine=engine)
    assert d.ids()["id"].to_pylist() == ["p", "q"] and d.retired().num_rows == 0


def test_clusters_without_ids() -> None:
    d = fb.diff({"a": 1, "b": 2, "d": 2}, {"a": 1, "c": 5, "d": 2}, unmatched="singleton")
    assert [(row["id"], row["event"]) for row in d.ids().to_pylist()] == [
        (1, "kept"),
        (2, "kept"),
        (3, "new"),
    ]
    assert d.retired().num_rows == 0 and d.id_stability == (1, 1)
    noisy = fb.diff([1, 1, -1, 2], [-1, 3, 3, -1], noise=-1)
    assert noisy.ids().to_pylist() == [{"experiment_cluster": 3, "id": 1, "event": "kept"}]
    assert noisy.ids(by="item")["cluster"].to_pylist() == [1, 1]
    with pytest.raises(EmptyInputError, match="no item has a cluster id on both sides,"):
        fb.diff([1, -1], [-1, 3], noise=-1).ids()
    with pytest.raises(MetricError, match="overlap"):
        fb.diff({"a": {1, 2}}, {"a": {1}}, overlapping=True).ids()
    both = pa.table({"item": [1, 2], "source": ["s", "s"], "cluster": [1, 2]})
    with pytest.raises(OptionError, match="several columns"):
        fb.diff(both, both, cluster=["source", "cluster"]).ids()


# -- Releases --------------------------------------------------------------------------------------


def test_a_registry_by_hand() -> None:
    first = fb.diff(table(OLD), table(NEW)).registry(release="May")
    assert first.to_pylist() == [
        {"id": 5, "first_seen": "the baseline", "last_seen": "the baseline", "replaced_by": None},
        {"id": 9, "first_seen": "the baseline", "last_seen": "the baseline", "replaced_by": 8},
        {"id": 7, "first_seen": "the baseline", "last_seen": "May", "replaced_by": None},
        {"id": 8, "first_seen": "the baseline", "last_seen": "May", "replaced_by": None},
        {"id": 10, "first_seen": "May", "last_seen": "May", "replaced_by": None},
        {"id": 11, "first_seen": "May", "last_seen": "May", "replaced_by": None},
    ]
    ids = fb.diff(table(OLD), table(NEW), keep="items").ids(by="item")
    d = fb.diff(ids, {"a": "p", "b": "p", "c": "p", "z": "q"})
    second = d.registry(first, release="June").to_pylist()
    assert [row["id"] for row in second] == [5, 9, 7, 8, 10, 11, 12]
    assert second[5] == {"id": 11, "first_seen": "May", "last_seen": "May", "replaced_by": 7}
    assert second[6] == {"id": 12, "first_seen": "June", "last_seen": "June", "replaced_by": None}
    with pytest.raises(OptionError, match="already contains the release 'May'"):
        d.registry(first, release="May")


GOOD = {"id": [1, 4], "first_seen": ["a", "b"], "last_seen": ["b", "b"], "replaced_by": [4, None]}


@pytest.mark.parametrize(
    ("error", "match", "change"),
    [
        (ColumnError, "no column last_seen", {"last_seen": None}),
        (DuplicateItemError, "1 id is in several rows", {"id": [4, 4]}),
        (IdTypeError, "registry has strings", {"id": ["1", "4"]}),
        (IdTypeError, "replaced_by of the registry has strings", {"replaced_by": ["4", None]}),
        (NullError, "1 row of the registry has no id", {"id": [4, None]}),
        (NullError, "1 row of the registry has no first_seen", {"first_seen": [None, "b"]}),
        (OptionError, "without a row.*77", {"replaced_by": [77, None]}),
    ],
)
def test_registries_that_are_wrong(error: type[FastBCubedError], match: str, change: dict[str, Any]) -> None:
    columns = {name: values for name, values in (GOOD | change).items() if values is not None}
    d = fb.diff([1, 1, 2], [1, 1, 2])
    assert d.registry(GOOD, release="c").num_rows == 3
    with pytest.raises(error, match=match):
        d.registry(columns, release="c")


def test_releases_in_turn_never_use_an_id_twice() -> None:
    """Each release changes a part of the clusters, retires ids, and has labels of its own."""
    rng = np.random.default_rng(1)
    old, registry, owners = (
        pa.table({"item": np.arange(200), "cluster": np.arange(200) // 3}),
        None,
        dict[int, int](),
    )
    for number in range(6):
        labels = np.asarray(old["cluster"].to_numpy()).copy()
        labels[rng.random(200) < 0.2] = rng.integers(0, 70, int((rng.random(200) < 0.2).sum() or 1))[0]
        labels = rng.permutation(1000)[np.unique(labels, return_inverse=True)[1]]
        d = fb.diff(old, pa.table({"item": np.arange(200), "cluster": labels}))
        before = set() if registry is None else set(registry["id"].to_pylist())
        registry = d.registry(registry, release=f"r{number}")
        known = registry["id"].to_pylist()
        assert len(set(known)) == len(known) and before <= set(known)
        ids = d.ids(known_ids=sorted(before)) if before else d.ids()
        fresh = {r["id"] for r in ids.to_pylist() if r["event"] in ("split", "new")}
        assert not fresh & before and not fresh & owners.keys()
        owners |= dict.fromkeys(fresh, number)
        old = d.ids(by="item", known_ids=sorted(before) or None)


def test_ids_over_the_releases_of_patentsview() -> None:
    old: Any = release(RELEASES[0])
    registry, stability = None, []
    for name in RELEASES[1:]:
        d = fb.diff(old, release(name), metrics="split_rate")
        stability.append(tuple(round(share, 3) for share in d.id_stability))
        ids = d.ids(mint="P", known_ids=None if registry is None else registry["id"])
        old, n = (
            d.ids(mint="P", by="item", known_ids=None if registry is None else registry["id"]),
            ids.num_rows,
        )
        registry = d.registry(registry, mint="P")
        living = [row for row in registry.to_pylist() if row["last_seen"] == name]
        assert len(living) == n and {row["id"] for row in living} == set(ids["id"].to_pylist())
        assert all(row["replaced_by"] is None for row in living)
    assert [as_named for as_named, _ in stability] == [0, 0]
    assert [best > 0.8 for _, best in stability] == [True, True]


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "int64", "uint64"])
def test_labels_that_are_numbers_are_those_of_the_items(kind: str) -> None:
    draw, n, ends = np.random.default_rng(7), 150_000, np.iinfo(kind)
    sides = []
    for _ in range(2):
        labels = (
            draw.integers(0, 40_000, n) * (ends.max // 40_000) + ends.min
            if ends.bits > 8
            else draw.integers(-99, 99, n)
        )
        labels[draw.random(n) < 0.2] = 77  # a cluster that is spread over all parts
        sides.append(pa.array(labels.astype(kind), mask=draw.random(n) < 0.01))
    ev = fb.diff(*sides, nulls="singleton").evaluation
    for side, n_codes in ev.contingency.n_codes.items():
        codes = np.arange(n_codes)
        of_items = ev.kept_items().labels(side, ev.kept.first_rows[side])
        assert ev.kept.cluster_labels(side, codes).equals(of_items)
