"""The memory engine by itself, against dicts: parts, clusters set apart, absent keys, wide counts."""

import math
import os
import subprocess
import sys
import textwrap
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import naive
import numpy as np
import pytest
from effort import examples, pairwise
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.cells import build as in_memory
from fastbcubed.cells import dense, partitioned
from fastbcubed.cells.partitioned import HeavyKeys
from fastbcubed.errors import ColumnError, EmptyInputError, WeightError
from fastbcubed.kernels import cells as cell_kernels
from fastbcubed.kernels import partition
from fastbcubed.kernels import preaggregate as condensing_kernels
from fastbcubed.metrics import aggregation as groups
from fastbcubed.metrics.registry import METRICS
from fastbcubed.metrics.sums import overall
from fastbcubed.runtime import key_partitions
from fastbcubed.runtime.threads import Pool

#: Keys that stand for "not on this side"; any number can.
ABSENT_TRUE, ABSENT_PRED = -(2**63), 2**63 - 1
#: The types of the keys of either side.
WIDTHS = {"wide": "qq", "narrow": "ii", "true alone": "iq", "pred alone": "qi"}


def keys(values):
    return np.array(values, np.int64)


def build(
    true, pred, weight=None, *, absent=False, part_rows=4, wide=None, threads=1, outer=False, outside=False
):
    """Build cells of raw keys as the pipeline does; with `absent` the two special keys mean that."""
    true, pred = keys(true), keys(pred)
    mass = None if weight is None else np.array(weight, np.float64)
    plan = partitioned.plan_parts(
        [true], *((ABSENT_TRUE, ABSENT_PRED) if absent else (None, None)), part_rows=part_rows, wide=wide
    )
    with Pool(threads) as pool:
        table = in_memory.cells_of_keys(
            true, pred, mass, pool, weighting="outer" if outer else "pointwise", outside=outside, plan=plan
        )
    return plan, table


def condense(
    true, pred, weight=None, *, absent=False, table="box", threads=1, outer=False, outside=False, width="wide"
):
    """Build cells as the pipeline does where few pairs hold most rows, in a table of this kind."""
    true_type, pred_type = WIDTHS[width]
    kinds = {
        "box": {"ROWS_PER_CELL": 0},
        "grid": {"ROWS_PER_CELL": 0},
        "frequent": {"MOST_SLOTS": 0, "OFTEN": 1, "LEAST_SHARE": 0, "MOST_PAIRS": 4, "ROWS_PER_PAIR": 1},
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "FEWEST_ROWS": 1,
            "FEWEST_TO_SAMPLE": 1,
            "ROWS_AT_ONCE": 23,
            **kinds[table],
        }.items():
            patch.setattr(dense, name, value)
        if table == "grid":
            patch.setattr(dense.PairTable, "_box", lambda *ranges: None)
            patch.setattr(dense, "RARE", 0)
        patch.setattr(dense, "SLOTS_AT_ONCE", 7)
        patch.setitem(partitioned.plan_parts.__kwdefaults__, "part_rows", 4)
        with Pool(threads) as pool:
            found = in_memory.cells_of_keys(
                np.array(true, true_type), np.array(pred, pred_type),
                None if weight is None else np.array(weight, np.float64), pool,
                weighting="outer" if outer else "pointwise", outside=outside,
                absent=(ABSENT_TRUE, ABSENT_PRED) if absent else (None, None),
            )  # fmt: skip
            assert found.rows.cell.size == len(true)  # located while blocks are of this size
    return found


def check(true, pred, weight=None, *, absent=False, outer=False, outside=False, table=None, **options):
    """Build, and compare everything with sums over dicts."""
    how = {"absent": absent, "outer": outer, "outside": outside}
    if table is None:
        plan, table = build(true, pred, weight, **how, **options)
    else:
        plan, table = None, condense(true, pred, weight, **how, table=table, **options)
    mass = [Fraction(1)] * len(true) if weight is None else [Fraction(float(w)) for w in weight]
    inside = [Fraction(1)] * len(true) if outer else mass
    lacks_true = [absent and t == ABSENT_TRUE for t in true]
    lacks_pred = [absent and p == ABSENT_PRED for p in pred]
    rows = list(zip(true, pred, mass, inside, lacks_true, lacks_pred, strict=True))
    scored = [not (a or b) for *_, a, b in rows]

    n, w, own = Counter(), defaultdict(Fraction), defaultdict(Fraction)
    of_true, of_pred = defaultdict(Fraction), defaultdict(Fraction)
    n_true, n_pred = Counter(), Counter()
    only = {"true": defaultdict(Fraction), "pred": defaultdict(Fraction)}
    only_n = {"true": Counter(), "pred": Counter()}
    for t, p, one, inner, no_true, no_pred in rows:
        if not (no_true or no_pred):
            n[t, p] += 1
            w[t, p] += one
            own[t, p] += inner
            of_true[t] += inner
            of_pred[p] += inner
            n_true[t] += 1
            n_pred[p] += 1
        elif not no_true:
            only["true"][t] += inner
            only_n["true"][t] += 1
        elif not no_pred:
            only["pred"][p] += inner
            only_n["pred"][p] += 1

    assert table.n_items == sum(n.values()) and table.n_cells == len(n)
    assert (table.n_true, table.n_pred) == (len(n_true), len(n_pred))
    cell = table.rows.cell
    assert [c >= 0 for c in cell.tolist()] == scored
    assert sorted(set(cell[cell >= 0].tolist())) == list(range(table.n_cells))
    pair_of, codes = {}, {"true": {}, "pred": {}}
    for row, c in enumerate(cell.tolist()):  # row by row
        if c < 0:
            continue
        t, p = true[row], pred[row]
        assert pair_of.setdefault(c, (t, p)) == (t, p)
        assert codes["true"].setdefault(t, int(table.true[c])) == table.true[c]
        assert codes["pred"].setdefault(p, int(table.pred[c])) == table.pred[c]
    assert len(set(pair_of.values())) == len(pair_of)
    for side in codes.values():  # codes tell clusters apart
        assert len(set(side.values())) == len(side)

    def close(found, exact):
        assert abs(Fraction(float(found)) - exact) <= exact * 3 * Fraction(2) ** -52, (found, float(exact))
        assert (found == 0) == (exact == 0)

    for c, (t, p) in pair_of.items():
        assert table.n[c] == n[t, p]
        close(table.weight[c], w[t, p])
        close(table.tp[c], own[t, p])
        close(table.fn[c], of_true[t] - own[t, p])
        close(table.fp[c], of_pred[p] - own[t, p] + (only["pred"][p] if outside else 0))
    for side, counts in (("true", n_true), ("pred", n_pred)):
        by_code = getattr(table, f"{side}_n")
        assert {key: int(by_code[code]) for key, code in codes[side].items()} == counts
        assert int(by_code.sum()) == table.n_items
        found = table.only(side)
        if found is None:
            assert not only_n[side]
            continue
        numbers, sums = found
        assert int(numbers.sum()) == sum(only_n[side].values())
        for key, code in codes[side].items():
            assert numbers[code] == only_n[side][key]
            close(sums[code], only[side][key])
    return plan, table


# -- Parts, heavy clusters, absent keys ------------------------------------------------------------


@st.composite
def rows(draw):
    n = draw(st.integers(1, 60))
    few, many = st.integers(0, 2), st.integers(-(2**63) + 1, 2**63 - 2)
    columns = [
        draw(st.lists(draw(st.sampled_from([few, few, st.integers(0, 20), many])), min_size=n, max_size=n))
        for _ in range(2)
    ]
    absent = draw(st.booleans())
    if absent:
        for column, key in zip(columns, (ABSENT_TRUE, ABSENT_PRED), strict=True):
            for k in draw(st.sets(st.integers(1, n))) - {n}:  # the first row is on both sides
                column[k] = key
    wide = st.builds(lambda m, e: m * 10.0**e, st.floats(1, 9.9), st.integers(-15, 15))
    weight = draw(st.none() | st.lists(wide, min_size=n, max_size=n))
    return *columns, weight, absent


@examples(120)
@given(
    rows(),
    st.sampled_from([1, 2, 5, 1000]),
    st.sampled_from(["inner", "outer", "outside", "outer outside"]),
    st.sampled_from([1, 2]),
)
def test_against_dicts(case, part_rows, how, threads):
    *columns, absent = case
    check(
        *columns, absent=absent, part_rows=part_rows, threads=threads,
        outer="outer" in how, outside="outside" in how,
    )  # fmt: skip


@examples(120)
@given(
    rows(),
    st.sampled_from(["box", "grid", "frequent"]),
    st.sampled_from(["inner", "outer", "outside", "outer outside"]),
    st.sampled_from([1, 2]),
)
def test_condensed_rows_against_dicts(case, table, how, threads):
    *columns, absent = case
    check(
        *columns, absent=absent, table=table, threads=threads, outer="outer" in how, outside="outside" in how
    )


@pairwise(
    table=["box", "grid", "frequent"], width=["narrow", "true alone", "pred alone"], weighted=[False, True]
)
@examples(30)
@given(
    pairs=st.lists(
        st.tuples(*[st.sampled_from([-(2**31), -1, 0, 1, 2, 2**31 - 1])] * 2), min_size=1, max_size=60
    ),
    threads=st.sampled_from([1, 2]),
)
def test_narrow_keys_against_dicts(pairs, table, width, weighted, threads):
    weight = [1.0 + k / 7 for k in range(len(pairs))] if weighted else None
    check(*zip(*pairs, strict=True), weight, table=table, width=width, threads=threads)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1000, 300_000])
def test_narrow_keys_have_the_cells_of_wide_ones(n, weighted):
    """Few clusters are counted in a box, of more and of fewer rows all are partitioned: the same bits."""
    rng = np.random.default_rng(14)
    for k in (10, 900):
        true, pred = (rng.integers(-k, k, n).astype(np.int32) for _ in range(2))
        weight = rng.uniform(1, 2, n) if weighted else None
        tables = []
        for sides in (
            (true, pred),
            (true.astype(np.int64), pred),
            (true.astype(np.int64), pred.astype(np.int64)),
        ):
            with Pool(2) as pool:
                tables.append(in_memory.cells_of_keys(*sides, weight, pool, weighting="pointwise"))
        assert len({table.cells.tobytes() for table in tables}) == 1
        assert len({table.rows.cell.tobytes() for table in tables}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [10, 5000])
def test_a_box_has_room_for_the_ends_of_a_range_that_a_sample_misses(n_clusters):
    n = dense.FEWEST_TO_SAMPLE
    true = 3 + np.arange(n) % n_clusters
    sampled = key_partitions.sampled_rows(n)
    ends = (true < 3 + n_clusters // 2000) | (true >= 3 + n_clusters - n_clusters // 2000)
    true[sampled[ends[sampled]]] = 3 + n_clusters // 2
    with Pool(1) as pool:
        pairs = dense.PairTable.of(true, true % 7)
        counted = pairs.count(true, true % 7, None, pool)
    assert (true.min() < true[sampled].min()) == (true.max() > true[sampled].max()) == (n_clusters == 5000)
    assert counted.is_box and pairs.n_slots < 1.01 * 7 * n_clusters


@pytest.mark.slow
@pytest.mark.parametrize("n_pred", [1, 3, 1_200_000])
def test_one_part_with_far_more_cells_than_any_other(n_pred):
    """Few predicted clusters are told apart in a small table; where it fills up, in one as large as it takes."""
    n = 1_200_000
    true, pred = np.arange(n), np.arange(n) % n_pred
    plan, table = build(true, pred, part_rows=10**9 if n_pred == n else 30_000)
    small = key_partitions.slots_for(n).size
    assert n > cell_kernels.LARGE * small and (n_pred > small // 2) == (n_pred == n)
    sizes = np.bincount(pred)
    assert plan.bits == 0 or n_pred < n
    assert table.n_cells == n and table.n_pred == n_pred
    assert table.fp.sum() == (sizes**2).sum() - n
    assert (table.pred_n == sizes[:1]).all()
    assert np.unique(table.rows.cell).size == n and not table.fn.any()


@pytest.mark.cases(0, 2)
@pairwise(
    table=["box", "grid", "frequent"], spread=[3, 400], weighted=[False, True], width=["wide", "narrow"]
)
def test_condensed_rows_that_the_sample_missed(table, spread, weighted, width):
    """Pairs have tens of rows each, but for a few rows whose keys no look at the sample could tell."""
    rng = np.random.default_rng(8)
    n = key_partitions.SAMPLE + 2000
    true, pred = rng.integers(0, 3, n), rng.integers(0, spread, n)
    missed = np.setdiff1d(np.arange(n), key_partitions.sampled_rows(n))[:12]
    far = (10**12, -(10**15)) if width == "wide" else (10**9, -(10**9))
    true[missed], pred[missed[:6]] = far[0] + np.arange(12) // 2, far[1]
    weight = rng.uniform(1, 2, n) if weighted else None
    check(true.tolist(), pred.tolist(), weight, table=table, width=width)


@pytest.mark.cases(0, 3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(3, 40), (1500, 2), (1, 2000), (33, 1)])
def test_boxes_of_all_shapes(shape, weighted, monkeypatch):
    """Slots of several tables, with records and without, side by side and at the ends of what is added up at once."""
    monkeypatch.setattr(dense, "MOST_TABLES", 4)
    rng, n = np.random.default_rng(11), 1500
    large, last = rng.random(n) < 0.7, rng.random(n) < 0.5
    true, pred = (np.where(large, np.where(last, k - 1, k // 2), rng.integers(0, k, n)) for k in shape)
    weight = rng.uniform(1, 2, n) if weighted else None
    check(true.tolist(), pred.tolist(), weight, table="box")


@pytest.mark.cases(0)
@pytest.mark.parametrize("case", ["box", "grid", "missed", "absent", "frequent"])
def test_when_a_box_is_closed(case, monkeypatch):
    """A box is closed as it stands if all rows are in it, and all have clusters of both sides."""
    closed, close = [], dense.close_box
    monkeypatch.setattr(in_memory, "close_box", lambda *a, **k: closed.append(a) or close(*a, **k))
    rng = np.random.default_rng(9)
    n = key_partitions.SAMPLE + 2000
    true, pred = rng.integers(0, 7, n), rng.integers(0, 5, n)
    if case == "missed":
        true[np.setdiff1d(np.arange(n), key_partitions.sampled_rows(n))[0]] = 7
    if case == "absent":
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(globals(), "ABSENT_TRUE", 6)
            check(true.tolist(), pred.tolist(), absent=True, table="box")
    else:
        check(true.tolist(), pred.tolist(), table=case if case in ("grid", "frequent") else "box")
    assert len(closed) == (case in ("box", "grid"))


@pytest.mark.slow
def test_a_box_that_leaves_the_cache():
    """Sums of 90,000 slots are asked for ahead; what is found is what NumPy adds up."""
    rng, n, k = np.random.default_rng(10), 400_000, 300
    true = rng.integers(0, k, n)
    pred = np.where(rng.random(n) < 0.8, true, rng.integers(0, k, n))
    weight = rng.uniform(1, 2, n)
    tables = []
    for threads in (1, 2):
        with Pool(threads) as pool:
            tables.append(in_memory.cells_of_keys(true, pred, weight, pool, weighting="pointwise"))
    one, two = tables
    assert k**2 > condensing_kernels.CACHED_SLOTS
    assert one.cells.tobytes() == two.cells.tobytes()
    pair = one.true * k + one.pred  # all clusters have rows, so codes are labels
    counts, mass = np.bincount(true * k + pred), np.bincount(true * k + pred, weight)
    assert pair.size == np.count_nonzero(counts) and (one.n == counts[pair]).all()
    for found, exact in (
        (one.weight, mass[pair]),
        (one.fn, np.bincount(true, weight)[one.true] - mass[pair]),
        (one.fp, np.bincount(pred, weight)[one.pred] - mass[pair]),
    ):
        np.testing.assert_allclose(found, exact, rtol=1e-12)
    assert (one.rows.cell == np.argsort(pair)[np.searchsorted(np.sort(pair), true * k + pred)]).all()


@pytest.mark.slow
def test_when_rows_are_condensed():
    def of(true, pred):
        return dense.PairTable.of(keys(true), keys(pred))

    n = dense.FEWEST_TO_SAMPLE
    few, many = np.arange(n) % 10, np.arange(n) // 3
    assert of(few, few).n_slots == 100 and of(few, few).pairs is None
    least = dense.FEWEST_ROWS
    assert of(few[:least], few[:least]).n_slots == 100 and of(few[1:least], few[1:least]) is None
    assert of(many, few) is None and of(few, many) is None and of(many, many) is None
    side = np.arange(n) % 512
    assert of(side, side).n_slots == n and of(side[1:], side[1:]) is None, "a row for each slot"
    condensed = dense.PairTable.of_sample(n, keys(side), keys(side))
    assert condensed.pairs is not None, "of so few rows for each slot most could be left"
    assert of(side, side).n_tables == 1 and replace(of(side, side), n_rows=2 * n).n_tables == 2
    assert replace(of(side, side), n_rows=24 * n).n_tables == 3
    scattered = partition.mix_all(few)
    assert of(scattered, scattered).grid is not None, "keys of any values"
    assert of(scattered, few).n_slots == of(few, scattered).n_slots == 100
    pairs = partition.mix_all(np.arange(n) % 2000)
    assert of(pairs, pairs).grid is None and of(pairs, pairs).pairs is not None, (
        "more than a slot for each row"
    )
    assert of(scattered[1:], scattered[1:]) is None, "to look for pairs costs as much as so few rows"
    mostly, half = (np.where(np.arange(n) % k == 0, many, 5) for k in (5, 2))
    assert of(mostly, mostly) is not None and of(mostly, many) is None and of(half, half) is None
    by_chance = np.random.default_rng(4).integers(0, 20_000, n) << 20
    assert of(by_chance, by_chance) is None, "half of the sample is seen twice, but a fifth of the rows"


@pytest.mark.parametrize("n", [1, 2, 31, 1000, 2048])
def test_each_known_key_has_a_slot_of_its_own(n):
    """Ranges, multiples of powers of two and keys of any size."""
    rng = np.random.default_rng(15)
    for made in (
        np.arange(n) - n // 2,
        np.arange(n) << 50,
        partition.mix_all(np.arange(n)),
        rng.permutation(n),
    ):
        known = dense.KnownKeys.placed(made)
        there = known.slots[known.slots["key"] == made[known.slots["number"]]]
        assert set(there["number"].tolist()) == set(range(n)) and known.keys.tolist() == made.tolist()


def test_which_keys_are_few():
    n = key_partitions.SAMPLE
    few = partition.mix_all(np.arange(n) % 1000)
    assert dense.KnownKeys.of(few).keys.tolist() == partition.mix_all(np.arange(1000)).tolist()
    assert dense.KnownKeys.of(np.arange(n)) is None and dense.KnownKeys.of(np.arange(n) // 2) is None
    rare, once = few.copy(), n // dense.RARE
    rare[-once:] = 1 + np.arange(once)
    assert dense.KnownKeys.of(rare).keys.size == 1000 + once
    rare[-once - 1] = -1
    assert dense.KnownKeys.of(rare) is None, "more rows have keys that are seen once"


@examples(50)
@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1])), min_size=1))
def test_count_pairs(pairs):
    true, pred = (keys(side) for side in zip(*pairs, strict=True))
    slots = np.full(1 << (2 * len(pairs) - 1).bit_length(), -1, np.int32)
    first, seen = np.empty(len(pairs), np.int64), np.empty(len(pairs), np.int64)
    n = condensing_kernels.count_pairs(true, pred, slots, first, seen)
    found = dict(zip([pairs[i] for i in first[:n]], seen[:n].tolist(), strict=True))
    assert found == Counter(pairs) and first[:n].tolist() == [pairs.index(pair) for pair in found]


@pytest.mark.slow
def test_a_larger_sample_knows_more_pairs(monkeypatch):
    """Pairs of falling frequency: of many rows, more of them are found; the rows of any of these come out right."""
    rng, n = np.random.default_rng(12), dense.FEWEST_TO_SAMPLE
    side = (1.2 ** rng.uniform(0, 42, n)).astype(np.int64) << 20
    known = []
    for rows_per_sampled in (dense.ROWS_PER_SAMPLED, 4):
        monkeypatch.setattr(dense, "ROWS_PER_SAMPLED", rows_per_sampled)
        table = dense.PairTable.of(side, side)
        assert table is not None and table.pairs is not None
        known.append(np.unique(table.pairs))
    assert known[0].size < known[1].size <= np.unique(side).size
    assert np.isin(known[1]["true"], side).all() and (known[1]["true"] == known[1]["pred"]).all()
    with Pool(2) as pool:
        found = in_memory.cells_of_keys(side, side, None, pool, weighting="pointwise")
    assert np.sort(found.n).tolist() == sorted(Counter(side.tolist()).values())


@pytest.mark.cases(0)
@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("heavy", ["true", "pred", "both"])
def test_heavy_clusters(heavy, weighted, absent):
    """Half of all rows in one cluster of a side, or of both; the rest are spread."""
    rng = np.random.default_rng(5)
    n = 2000
    true, pred = rng.integers(0, 400, n), rng.integers(0, 300, n)
    if heavy in ("true", "both"):
        true[rng.random(n) < 0.5] = 7
    if heavy in ("pred", "both"):
        pred[rng.random(n) < 0.5] = 9
    if absent:
        true[rng.random(n) < 0.2] = ABSENT_TRUE
        pred[rng.random(n) < 0.3] = ABSENT_PRED
    weight = rng.uniform(1, 2, n) * 10.0 ** rng.integers(-15, 16, n) if weighted else None
    plan, _ = check(true.tolist(), pred.tolist(), weight, absent=absent, outside=absent, part_rows=60)
    assert plan.bits > 3
    assert (partition.mix(np.int64(7)) in plan.heavy) == (heavy != "pred")
    assert (partition.mix(np.int64(ABSENT_TRUE)) in plan.heavy) == absent


@pytest.mark.cases(1)
@pytest.mark.parametrize("part_rows", [1, 7, 10_000])
def test_parts_without_rows(part_rows):
    """Few keys reach few parts: the others stay empty at every stage."""
    for true, pred in (
        (range(40), [0] * 40),
        ([0] * 40, range(40)),
        ([0] * 40, [0] * 40),
        ([1, 2] * 20, [1, 1, 2, 2] * 10),
    ):
        check(list(true), list(pred), part_rows=part_rows)
        check([*true, ABSENT_TRUE], [*pred, 0], absent=True, part_rows=part_rows)
        check([*true, 0], [*pred, ABSENT_PRED], absent=True, part_rows=part_rows)


@pytest.mark.slow
def test_one_predicted_cluster_at_full_size():
    """More parts than predicted clusters, with parts of the usual size."""
    n = 3 * key_partitions.PART_ROWS + 5
    ev = fb.evaluate(np.arange(n), np.zeros(n, np.int64), metrics=["precision", "recall"])
    assert ev.recall == 1 and ev.precision == pytest.approx(1 / n, rel=1e-15)
    dual = fb.evaluate(np.zeros(n, np.int64), np.arange(n), metrics=["precision", "recall"])
    assert dual.precision == 1 and dual.recall == pytest.approx(1 / n, rel=1e-15)


def test_rows_absent_on_both_sides_count_nowhere():
    true = [1, 1, 2, ABSENT_TRUE, ABSENT_TRUE, 2]
    pred = [5, 6, 5, ABSENT_PRED, 5, ABSENT_PRED]
    for part_rows in (1, 100):
        for outside in (False, True):
            _, table = check(true, pred, absent=True, part_rows=part_rows, outside=outside)
            assert table.rows.cell.tolist().count(-1) == 3


def test_nothing_to_score():
    with pytest.raises(EmptyInputError, match="no item to score"):
        build([ABSENT_TRUE, 1], [2, ABSENT_PRED], absent=True)


def test_the_absent_keys_are_ordinary_keys_elsewhere():
    """Only the plan makes them special, and each on its own side."""
    check([ABSENT_TRUE, ABSENT_TRUE, 1], [2, ABSENT_PRED, 2])
    check([ABSENT_PRED, ABSENT_PRED, 1, ABSENT_TRUE], [ABSENT_TRUE, ABSENT_TRUE, 2, 2], absent=True)


def test_equal_keys_on_both_sides():
    """A slot hash of true ^ pred would send all of these to one place."""
    labels = list(range(-500, 500))
    check(labels, labels, part_rows=100)
    check(labels, labels[::-1], part_rows=10_000)


def colliding(count, bits=20):
    """Return keys whose mixed forms share their lowest `bits` bits, by undoing the mixing."""

    def unshift(h, shift):
        x = h
        for _ in range(64 // shift + 1):
            x = h ^ (x >> shift)
        return x

    found = []
    for k in range(count):
        h = (k << 40) | 12345 % (1 << bits)
        h = unshift(h, 31) * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
        h = unshift(h, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
        found.append(int(np.uint64(unshift(h, 30)).astype(np.int64)))
    assert len({int(partition.mix(np.int64(key))) & ((1 << bits) - 1) for key in found}) == 1
    return found


@pytest.mark.cases(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_keys_that_collide_in_the_hash_table(weighted):
    """All true keys, and all pred keys, begin their search in one slot."""
    some = colliding(60)
    rng = np.random.default_rng(1)
    true, pred = ([some[k] for k in rng.integers(0, 60, 400)] for _ in range(2))
    weight = rng.uniform(1, 2, 400) if weighted else None
    check(true, pred, weight, part_rows=10_000)
    check(true, pred, weight, part_rows=40)


@pytest.mark.cases(0)
@pytest.mark.parametrize("name", ["true", "pred", "cells"])
def test_more_entries_than_the_table_was_made_for(name, monkeypatch):
    """The workspace is for parts of usual size; where a part is larger, tables grow."""
    monkeypatch.setattr(partitioned, "slots_for", lambda rows: np.empty(1024, np.int32))
    n = 3000
    rng = np.random.default_rng(2)
    true = np.arange(n) if name == "true" else rng.integers(0, 100, n)
    pred = rng.permutation(n) if name == "pred" else rng.integers(0, 100, n)
    check(true.tolist(), pred.tolist(), part_rows=100_000)
    check(true.tolist(), pred.tolist(), rng.uniform(1, 2, n), part_rows=100_000)


@pytest.mark.slow
@examples(30)
@given(rows(), st.sampled_from([1, 7, 1000]))
def test_wide_records(case, part_rows):
    *columns, absent = case
    narrow = build(*columns, absent=absent, part_rows=part_rows, wide=False)[1]
    wide = build(*columns, absent=absent, part_rows=part_rows, wide=True)[1]
    assert wide.n.dtype == np.int64 and narrow.n.dtype == np.int32
    for name in ("true", "pred", "n", "weight", "fp", "fn"):
        assert np.array_equal(getattr(narrow, name), getattr(wide, name)), name
    assert np.array_equal(narrow.rows.cell, wide.rows.cell)


# -- The plan --------------------------------------------------------------------------------------


def test_the_plan_depends_on_the_keys_alone():
    true = np.random.default_rng(0).zipf(1.6, 5000) % 400
    one, other = (partitioned.plan_parts([keys(true)], part_rows=100) for _ in range(2))
    assert one.bits == other.bits == 6 and np.array_equal(one.heavy, other.heavy)
    tasks = one.tasks
    assert sorted(part for a, b in tasks for part in range(a, b)) == list(range(one.n_parts))
    assert [one.is_heavy(a) for a, _ in tasks] == [one.is_heavy(b - 1) for _, b in tasks]


def test_number_of_parts():
    for n, part_rows, bits in [(1, 1, 0), (2, 1, 1), (3, 1, 2), (100, 100, 0), (101, 100, 1), (400, 100, 2)]:
        assert partitioned.plan_parts([np.arange(n)], part_rows=part_rows).bits == bits
    assert partitioned.plan_parts([np.zeros(5000, np.int64)], part_rows=1).bits == key_partitions.MAX_BITS


def test_tables_are_as_large_as_kernels_take_them_for():
    for n in (0, 1, 511, 512, 513, 30_000, 32_768, 32_769, 10**9):
        assert key_partitions.table_slots(n) == cell_kernels.table_size(n)


def test_find_heavy_finds():
    """Every key with twice the share is found, wherever its rows stand; small ones are not."""
    n = 100_000
    share = partitioned.HEAVY_SHARE
    for position in ("first", "last", "scattered", "every 16th"):
        true = np.arange(n) + 10
        count = math.ceil(2 * share * n)
        place = {
            "first": np.arange(count),
            "last": n - 1 - np.arange(count),
            "scattered": np.random.default_rng(3).permutation(n)[:count],
            "every 16th": np.arange(0, n, 16)[: max(count, n // 16)],
        }[position]
        true[place] = -3
        assert -3 in partitioned.find_heavy([true]), position
        assert partitioned.find_heavy([true]).size <= 1 / share
        cuts = np.sort(np.random.default_rng(4).integers(0, n, 7))
        assert np.array_equal(partitioned.find_heavy(np.split(true, cuts)), partitioned.find_heavy([true]))
    true = np.arange(n) // 50  # all alike: none has more than a two-thousandth
    assert partitioned.find_heavy([true]).size == 0


@pytest.mark.slow
def test_mixing_is_one_to_one():
    some = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 10_000).tolist()
    some += [0, -1, 1, 2**63 - 1, -(2**63), *range(2, 1000)]
    mixed = {int(partition.mix(np.int64(key))) for key in some}
    assert len(mixed) == len(set(some))
    parts = Counter(int(partition.part_of(np.int64(h), 4)) for h in mixed)
    assert set(parts) == set(range(16)) and max(parts.values()) < 2 * min(parts.values())
    assert {int(partition.part_of(np.int64(h), 0)) for h in mixed} == {0}


def test_keys_set_apart_are_counted_by_the_other_key():
    bits, rng = 3, np.random.default_rng(5)
    true, pred = rng.integers(0, 40, 500), rng.integers(0, 9, 500)
    apart = {int(partition.mix(np.int64(key))) for key in (0, 3, 4, 17)}
    heavy = HeavyKeys.of(np.array(sorted(apart), np.int64))
    expected = Counter()
    for t, p in zip(true, pred, strict=True):
        h = partition.mix(t)
        is_heavy = int(h) in apart
        expected[int(partition.part_of(partition.mix(p) if is_heavy else h, bits)) + (is_heavy << bits)] += 1
    counts = np.zeros(2 << bits, np.int64)
    partition.count_parts(true, pred, 0, true.size, False, 0, bits, *heavy, counts)
    assert {part: n for part, n in enumerate(counts.tolist()) if n} == dict(expected)


@pytest.mark.parametrize("n", [0, 1, 2, 256])
@pytest.mark.parametrize("alike", [0, 20, 44])
def test_a_heavy_key_is_found_at_its_place_and_no_other_is(n: int, alike: int) -> None:
    """Keys whose last bits are alike have a table by other bits."""
    rng = np.random.default_rng(n)
    keys = np.unique(rng.integers(-(2**62), 2**62, n) << alike)
    slots, shift = HeavyKeys.of(keys)
    others = np.setdiff1d(np.concatenate([rng.integers(-(2**63), 2**63 - 1, 1000), slots]), keys)
    assert slots.size <= 1 << 17
    for asked, wanted in ((keys, True), (others if n else others[:0], False)):
        assert ((slots[(asked >> shift) & (slots.size - 1)] == asked) == wanted).all()


# -- Counts beyond 31 and 32 bits ------------------------------------------------------------------

CELLS = {
    "2**31": [(0, 0, 2**31 + 3), (0, 1, 5), (1, 1, 2**31 + 7), (1, 2, 1), (2, 2, 9)],
    "2**32": [(0, 0, 2**32 + 1), (1, 0, 2**32 + 3), (1, 1, 2), (2, 2, 2**33)],
    "2**40": [(0, 0, 2**40 - 7), (0, 1, 3), (1, 1, 1), (2, 3, 2**39), (3, 3, 2**38 + 1)],
    "many of 2**31": [(k % 7, k % 5, 2**31 - k) for k in range(35)],
}


def by_fractions(cells, formula):
    """Return the mean over items of a score of (tp, fp, fn, tn), from integers."""
    a, b, total = Counter(), Counter(), 0
    for i, j, n in cells:
        a[i] += n
        b[j] += n
        total += n
    scores = [
        n * Fraction(formula(*map(Fraction, (n, b[j] - n, a[i] - n, total - a[i] - b[j] + n))))
        for i, j, n in cells
    ]
    return sum(scores) / total


@pytest.mark.parametrize("name", CELLS)
def test_wide_counts(name):
    cells = CELLS[name]
    true, pred, n = zip(*cells, strict=True)
    table = fb.Contingency.from_cells(true, pred, n)
    assert table.n_items == sum(n)
    assert table.n_true == len(set(true)) and table.n_pred == len(set(pred))
    for side, codes in (("true", true), ("pred", pred)):
        counts = getattr(table, f"{side}_n").tolist()
        assert counts == [sum(m for c, m in zip(codes, n, strict=True) if c == k) for k in range(len(counts))]
    expected = {
        key: by_fractions(cells, formula) for key, formula in (naive.WITHOUT_TN | naive.WITH_TN).items()
    }

    def elm(top, bottom):
        return Fraction(top) / bottom if bottom else Fraction(1)

    expected["elm_precision"] = by_fractions(cells, lambda tp, fp, fn, tn: elm(tp - 1, tp - 1 + fp))
    expected["elm_recall"] = by_fractions(cells, lambda tp, fp, fn, tn: elm(tp - 1, tp - 1 + fn))
    expected["elm_mean_f1"] = by_fractions(cells, lambda tp, fp, fn, tn: elm(tp - 1, tp - 1 + (fp + fn) / 2))
    expected["mean_f1"] = by_fractions(cells, lambda tp, fp, fn, tn: tp / (tp + (fp + fn) / 2))
    expected["adapted_bcubed_precision"] = by_fractions(cells, lambda tp, fp, fn, tn: (tp / (tp + fp)) ** 2)
    expected["adapted_bcubed_recall"] = by_fractions(cells, lambda tp, fp, fn, tn: (tp / (tp + fn)) ** 2)
    total = sum(n)
    for which, own, other in (("precision", pred, true), ("recall", true, pred)):
        sizes = Counter()
        for k, m in zip(other, n, strict=True):
            sizes[k] += m
        together = Fraction(sum(m * (m - 1) for m in sizes.values()), total * (total - 1))
        alone = Fraction(len(set(own)), total)
        chance = alone + (1 - alone) * together
        expected[f"chance_bcubed_{which}"] = chance
        expected[f"adjusted_bcubed_{which}"] = (expected[which] - chance) / (1 - chance)
    found = overall(table, [METRICS[name] for name in expected])
    for key, value in expected.items():
        assert found[key] == pytest.approx(float(value), rel=0, abs=1e-12 * max(1, abs(value))), key
        assert getattr(fb.metrics, key)(contingency=table) == found[key]


def test_wide_counts_by_cluster():
    table = fb.Contingency.from_cells(*zip(*CELLS["2**32"], strict=True))
    # precision of true cluster 1: (2**32 + 3) items with (2**32 + 3)/(2**33 + 4), 2 with 1
    n = 2**32 + 3
    expected = (Fraction(n * n, 2**33 + 4) + 2) / (n + 2)
    means = groups.means_by_cluster(table, "true", [METRICS["precision"]], beta=1.0)
    assert means["precision"][1] == pytest.approx(float(expected), rel=1e-15)
    exact = {0: 2**32 + 1, 1: n + 2, 2: 2**33}
    assert dict(enumerate(table.true_n.tolist())) == exact


def test_wide_counts_of_an_engine_that_met_them(monkeypatch):
    """Margins of narrow counts may be wide: 2 cells of 2**30 + 2**30 items in 32 bits would be negative."""
    table = fb.Contingency.from_cells([0, 0, 0, 0], [0, 1, 2, 3], [2**30] * 4)
    assert table.true_n.tolist() == [2**32]
    assert table.fn.tolist() == [3.0 * 2**30] * 4
    assert partitioned.WIDE <= 2**31
    plan = partitioned.plan_parts([np.lib.stride_tricks.as_strided(np.zeros(1, np.int64), (2**31,), (0,))])
    assert plan.records is partitioned.WIDE_RECORDS
    plan = partitioned.plan_parts(
        [np.lib.stride_tricks.as_strided(np.zeros(1, np.int64), (2**31 - 1,), (0,))]
    )
    assert plan.records is partitioned.NARROW_RECORDS


# -- Contingency.from_cells ------------------------------------------------------------------------


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20),
    st.booleans(),
    st.sampled_from(["pointwise", "outer"]),
)
def test_cells_and_rows_are_the_same(cells, weighted, weighting):
    """Equal pairs are added up, empty cells left out; scores are those of the items."""
    if not any(n for *_, n in cells):
        with pytest.raises(EmptyInputError):
            fb.Contingency.from_cells(*zip(*cells, strict=True))
        return
    weight = [1.5 * n + 0.25 * k for k, (*_, n) in enumerate(cells)] if weighted else None
    table = fb.Contingency.from_cells(*zip(*cells, strict=True), weight, weighting=weighting)
    true, pred, mass = [], [], []
    for k, (i, j, n) in enumerate(cells):
        true += [i] * n
        pred += [j] * n
        mass += [1.5 + 0.25 * k / n] * n if n else []
    whole = fb.contingency(true, pred, weight=mass if weighted else None, weighting=weighting)
    assert (table.n_items, table.n_cells) == (whole.n_items, whole.n_cells)
    assert (table.n_true, table.n_pred, table.n_exact) == (whole.n_true, whole.n_pred, whole.n_exact)
    names = [*naive.WITHOUT_TN, *naive.WITH_TN, "mean_f1", "bcubed_precision_by_true_cluster"]
    names += ["elm_mean_f1", "elm_precision"] if not weighted or weighting == "outer" else []
    found, expected = (overall(each, [METRICS[name] for name in names]) for each in (table, whole))
    for name in names:
        assert found[name] == pytest.approx(expected[name], rel=0, abs=1e-12 * max(1, expected[name])), name


def test_from_cells_refuses():
    make = fb.Contingency.from_cells
    with pytest.raises(ColumnError, match="length"):
        make([0], [0, 1], [1, 1])
    with pytest.raises(ColumnError, match="negative"):
        make([0, 1], [0, 1], [1, -1])
    with pytest.raises(ColumnError, match="negative"):
        make([0, -1], [0, 1], [1, 1])
    with pytest.raises(ColumnError, match="integers"):
        make([0, 1], [0, 1], [1.0, 2.0])
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(WeightError):
            make([0, 1], [0, 1], [1, 1], [1.0, bad])
    assert make([0, 1], [0, 1], [1, 1], [1.0, 0.0], weighting="outer").total_weight == 1.0
    with pytest.raises(WeightError):
        overall(make([0], [0], [1], [0.0], weighting="outer"), [METRICS["precision"]])
    with pytest.raises(fb.errors.MetricError, match="items themselves"):
        overall(make([0], [0], [2], [1.0]), [METRICS["elm_precision"]])


# -- Sums that lose no digits ----------------------------------------------------------------------


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("part_rows", [4, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_a_light_item_beside_heavy_ones(seed, part_rows):
    """fp and fn are sums of others: no digit of the light ones is lost to a heavy one."""
    rng = np.random.default_rng(seed)
    n = 200
    true, pred = rng.integers(0, 4, n), rng.integers(0, 4, n)
    weight = 10.0 ** rng.uniform(-15, -10, n)
    weight[rng.integers(0, n, 3)] = 10.0 ** rng.uniform(10, 15, 3)
    check(true.tolist(), pred.tolist(), weight, part_rows=part_rows)


@pytest.mark.parametrize("spread", [0, 3, 15])
@pytest.mark.parametrize("seed", range(8))
def test_true_negatives(seed, spread):
    """What is in neither cluster: exactly 0 where there is nothing, and else with nearly all digits.

    N - tp - fp - fn would lose them where the two clusters hold most of the weight, and leave a small
    number where they hold all. The bound is that of a sum which is done anew once 12 bits are gone.
    """
    rng = np.random.default_rng(seed)
    n, k = 60, 2 + seed % 3
    true, pred = rng.integers(0, k, n), rng.integers(0, k, n)
    weight = rng.uniform(1, 2, n) * 10.0 ** rng.uniform(-spread, 0, n)
    # One heavy item in each of two cells that share no cluster: together they have nearly all weight.
    true[:2], pred[:2] = (0, 1), (1, 0)
    weight[:2] = rng.uniform(1, 9, 2) * 10.0**spread
    ev = fb.evaluate(true, pred, weight=weight, metrics="npv")
    exact = [Fraction(w) for w in weight.tolist()]
    empty = 0
    for row, found in enumerate(ev.items()["tn"].to_pylist()):
        others = [e for e in range(n) if true[e] != true[row] and pred[e] != pred[row]]
        if not others:
            empty += 1
            assert found == 0.0
            continue
        whole = sum(exact[e] for e in others)
        assert abs(Fraction(found) - whole) <= whole * Fraction(2) ** -38, (row, found, float(whole))
    assert k > 2 or not empty


@pytest.mark.parametrize("seed", range(8))
def test_no_true_negatives(seed):
    """Every item shares a cluster with every other one: two clusters hold all, in many summands."""
    rng = np.random.default_rng(seed)
    n = 50
    true, pred = np.arange(n), np.arange(n)
    true[: n // 2], pred[n // 2 - 1 :] = 0, 1000  # item n // 2 - 1 is with the first and the last ones
    weight = rng.uniform(1, 2, n) * 10.0 ** rng.uniform(-1, 1, n)
    ev = fb.evaluate(true, pred, weight=weight, metrics="pointwise")
    row = ev.item(n // 2 - 1)
    assert row["tn"] == 0.0 and row["specificity"] == 0.0 and row["npv"] == 0.0
    assert row["fp"] > 0 and row["fn"] > 0 and row["members"]["tn"]["n_items"] == 0


@pytest.mark.parametrize("n", [100, 5000])
def test_leaving_out_the_heaviest_item(n):
    """Weighted ELM takes an item out of its own cell; what is left has all its digits."""
    rng = np.random.default_rng(n)
    weight = 10.0 ** rng.uniform(-15, -5, n)
    heaviest = int(rng.integers(n))
    weight[heaviest] = 7e14
    true, pred = np.zeros(n, int), (np.arange(n) == (heaviest + 1) % n).astype(int)
    others = sum(map(Fraction, np.delete(weight, heaviest).tolist()))
    stray = Fraction(float(weight[(heaviest + 1) % n]))
    ev = fb.evaluate(true, pred, weight=weight, metrics="elm")
    row = ev.item(heaviest)
    assert row["elm_recall"] == pytest.approx(float((others - stray) / others), rel=1e-15)
    assert 1 - row["elm_recall"] == pytest.approx(float(stray / others), abs=1e-15)
    assert row["elm_precision"] == 1.0


# -- Joining by item -------------------------------------------------------------------------------


@examples(70)
@given(
    st.lists(st.integers(-6, 12), max_size=25),
    st.lists(st.integers(-6, 12), max_size=25),
    st.sampled_from([1, 3, 100]),
    st.sampled_from([1, 2]),
)
def test_match(true, pred, part_rows, threads):
    """The first row of an item on each side is matched; later ones are counted, and have no match."""
    with pytest.MonkeyPatch.context() as patch, Pool(threads) as pool:
        patch.setattr(key_partitions, "PART_ROWS", part_rows)
        found = key_partitions.match(keys(true), keys(pred), pool)
    first_true, first_pred = {}, {}
    for row, key in enumerate(true):
        first_true.setdefault(key, row)
    for row, key in enumerate(pred):
        first_pred.setdefault(key, row)
    for row, key in enumerate(true):
        expected = first_pred.get(key, -1) if first_true[key] == row else -1
        assert found.pred_of_true[row] == expected, row
    for row, key in enumerate(pred):
        expected = first_true.get(key, -1) if first_pred[key] == row else -1
        assert found.true_of_pred[row] == expected, row
    assert found.true_repeats == len(true) - len(first_true)
    assert found.pred_repeats == len(pred) - len(first_pred)


def test_match_of_keys_that_collide():
    some = colliding(80)
    with Pool(1) as pool:
        found = key_partitions.match(keys(some), keys(some[::-2]), pool)
    expected = [(79 - k) // 2 if k % 2 else -1 for k in range(80)]
    assert found.pred_of_true.tolist() == expected
    assert found.true_of_pred.tolist() == list(range(79, 0, -2))
    assert (found.true_repeats, found.pred_repeats) == (0, 0)


@pytest.mark.slow
def test_match_at_full_size():
    """More rows than one part, one row block and one table are made for."""
    rng = np.random.default_rng(4)
    n = 3 * key_partitions.PART_ROWS
    universe = rng.permutation(2 * n) * 7919
    true, pred = rng.permutation(universe[:n]), rng.permutation(universe[n // 2 :])
    with Pool(2) as pool:
        found = key_partitions.match(true, pred, pool)
    place = {key: row for row, key in enumerate(pred.tolist())}
    assert found.pred_of_true.tolist() == [place.get(key, -1) for key in true.tolist()]
    here = found.true_of_pred >= 0
    assert np.array_equal(true[found.true_of_pred[here]], pred[here])
    assert here.sum() == n - n // 2 and not found.true_repeats and not found.pred_repeats


# -- Compiled signatures ---------------------------------------------------------------------------

#: Of one kernel: three kinds of payload (none, weights, row numbers), in two types.
MOST_SIGNATURES = 6


@pytest.mark.slow
def test_few_signatures():
    """Types at the border are few, or compilation would take longer than the work.

    In a process of its own, where only users' calls count.
    """
    code = """
        import importlib, pkgutil, warnings
        import numpy as np
        import fastbcubed as fb
        from fastbcubed import kernels

        warnings.simplefilter("ignore", fb.EvaluationWarning)
        n = 500
        rng = np.random.default_rng(0)
        plain = [rng.integers(0, 50, n) for _ in range(2)]
        weights = rng.uniform(1, 2, n), rng.uniform(1, 2, n).astype(np.float32), rng.integers(1, 4, n)

        def look_at(ev):
            ev.items(), ev.slices("true_size"), ev.clusters("true"), ev.clusters("pred")

        for kind in (np.int64, np.int16, np.uint64, ">i8"):
            labels = [side.astype(kind) for side in plain]
            look_at(fb.evaluate(*labels, metrics="all"))
            for weight in weights:
                look_at(fb.evaluate(*labels, weight=weight, metrics="all"))
        look_at(fb.evaluate(*plain, weight=weights[0], weighting="outer", metrics="all"))
        for read_only in (True, False):
            labels = [side.copy() for side in plain]
            for side in labels:
                side.flags.writeable = not read_only
            look_at(fb.evaluate(*labels, metrics="all"))
        truth = {f"item {k}": f"label {label}" for k, label in enumerate(plain[0])}
        prediction = {f"item {k + 5}": f"label {label}" for k, label in enumerate(plain[1])}
        weight = {f"item {k}": 1.0 + k for k in range(n + 5)}
        look_at(fb.evaluate(truth, prediction, unmatched="outside"))
        look_at(fb.evaluate(truth, prediction, weight=weight))
        for module in pkgutil.iter_modules(kernels.__path__):
            names = vars(importlib.import_module(f"{kernels.__name__}.{module.name}"))
            for name, value in names.items():
                if isinstance(value, kernels.jit.Kernel):
                    print(f"{module.name}.{name}", len(value.signatures))
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(fb.__file__).parent.parent), "FASTBCUBED_INTERPRET": "0"},
    )
    assert child.returncode == 0, child.stderr
    found = {name: int(k) for name, k in (line.split() for line in child.stdout.splitlines())}
    assert 1 <= found["cells.build_cells"] <= 2
    assert {name: k for name, k in found.items() if k > MOST_SIGNATURES} == {}


def test_table_size():
    for n, size in [(0, 1024), (512, 1024), (513, 2048), (1024, 2048), (100_000, 2**18)]:
        assert cell_kernels.table_size(n) == size
        assert 4 * n <= 3 * size
