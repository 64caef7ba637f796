"""What must hold for all clusterings: the properties of the scores, and of how they are computed."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
import twins
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import LABELS, aligned_pairs, label_arrays, weights

import fastbcubed as fb
from fastbcubed.cells import dense, partitioned
from fastbcubed.cells.contingency import BLOCKS_AT_ONCE, CELL_BLOCK
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.registry import METRICS
from fastbcubed.runtime import key_partitions
from fastbcubed.runtime import threads as pools

TIGHT = 1e-12
POINTWISE = [m.name for m in METRICS.values() if m.family == "pointwise"]


def evaluate(labels, weight=None, **options):
    options.setdefault("metrics", "all")
    options.setdefault("threads", 1)
    return fb.evaluate(*labels, weight=weight, **options)


def close(found, expected):
    return found == pytest.approx(expected, rel=0, abs=TIGHT * max(1, abs(expected)))


def assert_same(a, b, leave_out=()):
    assert set(a.overall) == set(b.overall)
    for name in set(a.overall) - set(leave_out):
        assert close(b.overall[name], a.overall[name]), name


@st.composite
def weighted_pairs(draw, max_size=30):
    labels = draw(label_arrays(max_size))
    return labels, draw(weights(len(labels[0])))


# -- METRICS 1.1 -------------------------------------------------------------------------------


@examples(40)
@given(weighted_pairs(), st.sampled_from([3.0, 0.1, 1e-9, 7e11]))
def test_scaling_all_weights_changes_nothing(case, scale):  # 1
    labels, weight = case
    weight = np.ones(len(labels[0])) if weight is None else np.array(weight)
    one, other = (evaluate(labels, w) for w in (weight, weight * scale))
    grow = {name for name in one.overall if twins.power(name)}
    assert_same(one, other, grow)
    for name in grow:
        scaled = one.overall[name] * scale ** twins.power(name)
        assert other.overall[name] == pytest.approx(scaled, rel=TIGHT, abs=0), name


@examples(40)
@given(weighted_pairs(), st.data())
def test_a_slice_is_the_weighted_mean_of_its_parts(case, data):  # 2
    labels, weight = case
    ev = evaluate(labels, weight)
    n = len(labels[0])
    rows = ev.items().to_pylist()
    k = data.draw(st.integers(0, n - 1))
    lifted = [m for m in ev.metrics if m.item_name]
    alone = ev.subset([k])
    for metric in lifted:
        assert close(alone[metric.name], rows[k][metric.item_name]), metric.name
    cut = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    codes = ev.slices("cut", attributes={"cut": cut})
    share = codes["weight"].to_numpy() / codes["weight"].to_numpy().sum()
    for table in (codes, ev.clusters("true"), ev.clusters("pred"), ev.slices("pred_size")):
        share = table["weight"].to_numpy() / table["weight"].to_numpy().sum()
        assert sum(table["n_items"].to_pylist()) == n
        for metric in lifted:
            assert close(float(share @ table[metric.name].to_numpy()), ev.overall[metric.name])


@examples(40)
@given(weighted_pairs())
def test_items_of_a_cell_share_all_scores(case):  # 3; not with weighted ELM
    labels, weight = case
    ev = evaluate(labels, weight)
    names = [m.item_name for m in ev.metrics if m.item_name]
    if weight is not None:
        names = [name for name in names if not name.startswith("elm_")]
    of_cell = {}
    for row in ev.items().to_pylist():
        scores = [row[name] for name in ("tp", "fp", "fn", "tn", *names)]
        assert of_cell.setdefault((row["true_cluster"], row["pred_cluster"]), scores) == scores


@examples(40)
@given(weighted_pairs(), st.data())
def test_splitting_items_inside_a_cell(case, data):  # 4
    labels, weight = case
    weight = [1.0] * len(labels[0]) if weight is None else weight
    k = data.draw(st.integers(0, len(weight) - 1))
    halves = [*weight[:k], weight[k] / 4, *weight[k + 1 :], weight[k] * 3 / 4]
    split = [[*side, side[k]] for side in labels]
    options = {"metrics": "pointwise", "beta": 2}
    assert_same(evaluate(labels, weight, **options), evaluate(split, halves, **options))


def test_splitting_items_changes_elm():  # 4 is false there
    labels, split = ([0, 0, 1], [0, 1, 0]), ([0, 0, 1, 1], [0, 1, 0, 0])
    whole = evaluate(labels, [1, 2, 3]).elm_precision
    assert whole == pytest.approx(1 / 3, abs=1e-15)
    # W3 with item 3 as halves of 3/2: P = 0, 1, (3/2)/(5/2), (3/2)/(5/2); (2 + 3 * 3/5) / 6
    assert evaluate(split, [1, 2, 1.5, 1.5]).elm_precision == pytest.approx(3.8 / 6, abs=1e-15)


@examples(50)
@given(weighted_pairs())
def test_swapping_sides(case):  # 5
    labels, weight = case
    one, other = evaluate(labels, weight), evaluate(labels[::-1], weight)
    for name in one.overall:
        for partner in set(twins.partners()[name]) & set(other.overall):
            assert close(other.overall[partner], one.overall[name]), (name, partner)
    for a, b in zip(one.items().to_pylist(), other.items().to_pylist(), strict=True):
        assert close(b["recall"], a["precision"])
        assert close(b["precision"], a["recall"])
        assert close(b["elm_recall"], a["elm_precision"])
        assert (a["tp"], a["fp"], a["fn"]) == pytest.approx((b["tp"], b["fn"], b["fp"]), rel=1e-14)


@examples(50)
@given(st.integers(1, 12), st.data())
def test_jaccard_distance_is_a_metric(n, data):  # 6
    sides = [data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(3)]
    weight = data.draw(weights(n))

    def distance(a, b):
        ev = evaluate((sides[a], sides[b]), weight, metrics=["jaccard_distance", "symmetric_difference"])
        return np.array([ev.jaccard_distance, ev.symmetric_difference])

    for a, b in itertools.combinations(range(3), 2):
        assert (distance(a, a) == 0).all()
        assert distance(a, b) == pytest.approx(distance(b, a), rel=TIGHT)
        same = partition(sides[a]) == partition(sides[b])
        assert (distance(a, b) == 0).all() == (distance(a, b) == 0).any() == same
    for a, b, c in itertools.permutations(range(3)):
        detour = distance(a, b) + distance(b, c)
        assert (distance(a, c) <= detour * (1 + TIGHT)).all()


def partition(labels):
    return {frozenset(np.flatnonzero(np.array(labels) == c).tolist()) for c in set(labels)}


# -- F, ELM, BCubed (METRICS 2.2 and 3.2) ------------------------------------------------------


@examples(50)
@given(weighted_pairs(), st.sampled_from([1, 2, 0.5, 0, math.inf]))
def test_mean_f_is_at_most_f_of_means(case, beta):
    labels, weight = case
    ev = evaluate(labels, weight, beta=beta)
    assert ev.mean_f1 <= ev.f1 + 1e-15
    assert ev.elm_mean_f1 <= ev.elm_f1 + 1e-15
    if beta != 1:
        assert ev.mean_fbeta <= ev.fbeta + 1e-15
        ends = {0: ev.precision, math.inf: ev.recall}
        if beta in ends:
            assert ev.fbeta == ends[beta] and close(ev.mean_fbeta, ends[beta])


@examples(50)
@given(weighted_pairs())
def test_facts_about_elm(case):
    labels, weight = case
    ev = evaluate(labels, weight)
    n = len(labels[0])
    for name in ("precision", "recall", "f1", "mean_f1"):
        assert ev.overall[f"elm_{name}"] <= ev.overall[name] + 1e-15
    for row in ev.items().to_pylist():
        assert row["elm_precision"] <= row["precision"] + 1e-15
        assert row["elm_item_f1"] <= row["item_f1"] + 1e-15
    # all predicted singletons: P = 1, R = F = the share of items in true singletons
    alone = evaluate((labels[0], range(n)), weight)
    mass = np.ones(n) if weight is None else np.array(weight)
    singletons = [labels[0].count(label) == 1 for label in labels[0]]
    assert alone.elm_precision == alone.precision == 1.0
    assert close(alone.elm_recall, float(mass[singletons].sum() / mass.sum()))
    assert close(alone.elm_mean_f1, alone.elm_recall)


@examples(50)
@given(weighted_pairs(), st.data())
def test_splitting_a_predicted_cluster_never_lowers_precision(case, data):
    labels, weight = case
    chosen = data.draw(st.sampled_from(labels[1]))
    away = [label == chosen and data.draw(st.booleans()) for label in labels[1]]
    finer = [1000 if moved else label for label, moved in zip(labels[1], away, strict=True)]
    before, after = evaluate(labels, weight), evaluate((labels[0], finer), weight)
    assert after.precision >= before.precision - 1e-15
    assert after.over_merge_rate <= before.over_merge_rate + 1e-15
    assert after.recall <= before.recall + 1e-15
    assert after.under_merge_rate >= before.under_merge_rate - 1e-15


@examples(40)
@given(weighted_pairs(), st.sampled_from(["small", "scrambled", "long"]))
def test_a_perfect_clustering_is_exactly_perfect(case, kind):
    labels, weight = case
    pred = [LABELS[kind](label) for label in labels[0]]
    ev = evaluate((labels[0], pred), weight, beta=2)
    for name, score in ev.overall.items():
        if twins.perfect(name):
            assert score == (0.0 if METRICS[name].best == "lower" else 1.0), name
    tables = [ev.items(), ev.clusters("true"), ev.clusters("pred"), ev.slices("true_size")]
    # a change is neither good nor bad
    directed = [metric for metric in ev.metrics if metric.family != "diff"]
    for table, metric in itertools.product(tables, directed):
        best = 0.0 if metric.best == "lower" else 1.0
        for name in {metric.name, metric.item_name} & set(table.column_names):
            # means of ones over a part are exact where one sum is divided by the same sum
            assert set(table[name].to_pylist()) == {best}, name
    assert ev.summary["true"]["exact"] == ev.summary["true"]["clusters"]


@examples(40)
@given(weighted_pairs())
def test_only_a_perfect_clustering_is_perfect(case):
    labels, weight = case
    ev = evaluate(labels, weight)
    same = partition(labels[0]) == partition(labels[1])
    assert (ev.jaccard_distance == 0) == same
    assert (ev.symmetric_difference == 0) == same
    assert (ev.over_merge_rate == 0 and ev.under_merge_rate == 0) == same
    if weight is None or max(weight) < 1e6 * min(weight):
        assert (ev.f1 == 1) == (ev.mean_f1 == 1) == (ev.mcc == 1) == same


@examples(50)
@given(weighted_pairs())
def test_scores_stay_in_their_range(case):
    labels, weight = case
    ev = evaluate(labels, weight, beta=0.5)
    for name, score in ev.overall.items():
        assert METRICS[name].low - 1e-15 <= score <= METRICS[name].high + 1e-15, name
    # closed forms are identities to test against
    assert close(ev.over_merge_rate, 1 - ev.precision)
    assert close(ev.under_merge_rate, 1 - ev.recall)
    assert close(ev.jaccard_distance, 1 - ev.jaccard_index)
    assert close(ev.balanced_accuracy, (ev.recall + ev.specificity) / 2)
    assert close(ev.informedness, ev.recall + ev.specificity - 1)
    assert close(ev.markedness, ev.precision + ev.npv - 1)
    total = len(labels[0]) if weight is None else sum(weight)
    assert close(ev.accuracy, 1 - ev.symmetric_difference / total)


@examples(30)
@given(aligned_pairs(min_size=2, max_size=5))
def test_chance_is_the_mean_over_all_shuffles(labels):
    ev = evaluate(labels)
    shuffled = list(itertools.permutations(labels[1]))
    scores = [evaluate((labels[0], p), metrics=["precision", "recall"]) for p in set(shuffled)]
    assert ev.chance_bcubed_precision == pytest.approx(np.mean([s.precision for s in scores]), abs=1e-13)
    assert ev.chance_bcubed_recall == pytest.approx(np.mean([s.recall for s in scores]), abs=1e-13)


# -- Nothing that does not matter, matters -----------------------------------------------------


@examples(40)
@given(weighted_pairs(), st.sampled_from(list(LABELS)), st.sampled_from(list(LABELS)))
def test_renaming_labels(case, true_kind, pred_kind):
    labels, weight = case
    named = [LABELS[kind] for kind in (true_kind, pred_kind)]
    other = [[name(label) for label in side] for name, side in zip(named, labels, strict=True)]
    assert_same(evaluate(labels, weight), evaluate(other, weight))


@examples(40)
@given(weighted_pairs(), st.randoms(use_true_random=False))
def test_shuffling_rows(case, random):
    labels, weight = case
    order = list(range(len(labels[0])))
    random.shuffle(order)
    shuffled = [[side[k] for k in order] for side in labels]
    weights_too = None if weight is None else [weight[k] for k in order]
    assert_same(evaluate(labels, weight), evaluate(shuffled, weights_too))


@examples(40)
@given(label_arrays(), st.sampled_from([1.0, 2.5, 1e-12, 1e14]))
def test_equal_weights_equal_none(labels, w):
    """Also where the sum of equal weights rounds, as 0.1 + 0.1 + 0.1 does."""
    plain = evaluate(labels)
    for weight in (w, 0.1):
        for weighting in ("pointwise", "outer"):
            ev = evaluate(labels, [weight] * len(labels[0]), weighting=weighting)
            for name, score in ev.overall.items():
                scale = weight ** twins.power(name) if weighting == "pointwise" else 1.0
                assert close(score / scale, plain.overall[name]), name


# -- Threads, parts, record widths -------------------------------------------------------------


def shape(name, n, seed=7):
    """Make labels of n items with a known shape; keys are scattered over 64 bits."""
    rng = np.random.default_rng(seed)
    if name == "many small":
        true = rng.integers(0, n // 3, n)
        pred = np.where(rng.random(n) < 0.2, rng.integers(0, n, n), true)
    elif name == "heavy true":  # half of all items in one true cluster
        true = np.where(rng.random(n) < 0.5, 0, rng.integers(0, n, n))
        pred = rng.integers(0, n // 4, n)
    elif name == "heavy pred":
        true = rng.integers(0, n // 4, n)
        pred = np.where(rng.random(n) < 0.5, 0, rng.integers(0, n, n))
    elif name == "both heavy":
        true, pred = rng.zipf(1.5, n) % 1000, rng.zipf(1.5, n) % 999
    elif name == "one big":
        true, pred = np.zeros(n, np.int64), np.zeros(n, np.int64)
    elif name == "few":
        true, pred = rng.integers(0, 5, n), rng.integers(0, 4, n)
    else:
        assert name == "singletons"
        true, pred = np.arange(n), rng.permutation(n)
    odd = np.uint64(0x9E3779B97F4A7C15)
    return tuple((side.astype(np.uint64) * odd).view(np.int64) for side in (true, pred))


SHAPES = ["many small", "heavy true", "heavy pred", "both heavy", "one big", "singletons"]


def seeded_weights(n, kind):
    if kind == "none":
        return None
    rng = np.random.default_rng(11)
    return rng.uniform(1, 10, n) * (10.0 ** rng.integers(-15, 16, n) if kind == "wide" else 1.0)


@pytest.fixture
def small_parts(monkeypatch):
    """Cut even small inputs into many parts, blocks and tasks."""
    monkeypatch.setitem(partitioned.plan_parts.__kwdefaults__, "part_rows", 50)
    monkeypatch.setattr(key_partitions, "PART_ROWS", 50)
    monkeypatch.setattr(aggregation, "CELL_BLOCK", 64)
    monkeypatch.setattr(sys.modules[fb.Contingency.__module__], "CELL_BLOCK", 64)
    monkeypatch.setattr(pools.blocks, "__defaults__", (97,))


def everything(ev):
    """Return all that an evaluation says, to be compared with ==."""
    tables = [ev.items(), ev.clusters("true"), ev.clusters("pred"), ev.slices("true_size")]
    cells = [getattr(ev.contingency, name).tobytes() for name in ("true", "pred", "n", "weight", "fp", "fn")]
    values = [{k: repr(v) for k, v in table.to_pydict().items()} for table in tables]
    return dict(ev.overall), ev.summary, ev.coverage, ev.bounds, cells, values


@pytest.mark.cases(1)
@pytest.mark.parametrize("weight", ["none", "wide"])
@pytest.mark.parametrize("name", SHAPES)
def test_threads_never_change_a_bit(name, weight, small_parts):
    labels, mass = shape(name, 1200), seeded_weights(1200, weight)
    one, two, four = (evaluate(labels, mass, threads=k) for k in (1, 2, 4))
    assert one.contingency.n_items == 1200
    assert everything(one) == everything(two) == everything(four)


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["pointwise", "outer"])
def test_threads_never_change_a_bit_of_joined_tables(weighting, small_parts):
    """By item, with unmatched items on both sides and ids that are strings."""
    (true, pred), mass = shape("both heavy", 2000), seeded_weights(2600, "wide")
    ids = [f"item {k}" for k in range(2600)]
    truth = fb.Clustering.from_labels(true, items=ids[:2000], weight=mass[:2000])
    prediction = fb.Clustering.from_labels(
        pred[::-1].copy(), items=ids[600:][::-1], weight=mass[600:][::-1].copy()
    )
    for unmatched in ("singleton", "outside"):
        one, two, four = (
            evaluate((truth, prediction), unmatched=unmatched, weighting=weighting, threads=k)
            for k in (1, 2, 4)
        )
        assert one.coverage.n_truth_only == one.coverage.n_prediction_only == 600
        assert everything(one) == everything(two) == everything(four)


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["none", "wide"])
def test_threads_never_change_a_bit_at_full_size(weight):
    """Parts, row blocks and cell blocks of the usual size, several of each."""
    n = 400_000
    labels, mass = shape("heavy true", n), seeded_weights(n, weight)
    one, two, four = (evaluate(labels, mass, threads=k, metrics="pointwise") for k in (1, 2, 4))
    assert one.overall == two.overall == four.overall
    assert one.contingency.n_cells > CELL_BLOCK * BLOCKS_AT_ONCE
    for name in ("true", "pred", "n", "weight", "fp", "fn"):
        arrays = [getattr(ev.contingency, name) for ev in (one, two, four)]
        assert np.array_equal(arrays[0], arrays[1]) and np.array_equal(arrays[0], arrays[2]), name


@pytest.mark.cases(0)
@pytest.mark.parametrize("weight", ["none", "wide"])
@pytest.mark.parametrize("name", SHAPES)
def test_parts_do_not_matter(name, weight, monkeypatch):
    """Scores with one part and with many agree; without weights the sums are the same to 1e-12, too."""
    labels, mass = shape(name, 1200), seeded_weights(1200, weight)
    whole = evaluate(labels, mass)
    for part_rows in (1, 7, 300):
        monkeypatch.setitem(partitioned.plan_parts.__kwdefaults__, "part_rows", part_rows)
        codes = evaluate(labels, mass)
        assert_same(whole, codes)
        assert cells_of(whole) == cells_of(codes)


@pytest.mark.cases(1)
@pytest.mark.parametrize("weight", ["none", "plain", "wide"])
@pytest.mark.parametrize(("name", "kind"), [("few", "grid"), ("both heavy", "frequent"), ("one big", "box")])
def test_condensed_rows_do_not_matter(name, kind, weight, small_parts, monkeypatch):
    """Where few pairs hold most rows, all is as without a table of them, for any number of threads."""
    labels, mass = shape(name, 1200), seeded_weights(1200, weight)
    whole = evaluate(labels, mass)
    monkeypatch.setattr(dense, "FEWEST_ROWS", 1)
    monkeypatch.setattr(dense, "FEWEST_TO_SAMPLE", 1)
    monkeypatch.setattr(dense, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(dense, "LEAST_SHARE", 0.1)
    table = dense.PairTable.of(*labels)
    assert table is not None
    assert (table.grid is not None, table.pairs is not None) == (kind == "grid", kind == "frequent")
    one, two, four = (evaluate(labels, mass, threads=k) for k in (1, 2, 4))
    assert everything(one) == everything(two) == everything(four)
    assert_same(whole, one)
    assert cells_of(whole) == cells_of(one)


def cells_of(ev):
    """Return the cells in an order of their own, by an item of each."""
    first = {}
    table = ev.contingency
    for row, cell in enumerate(table.rows.cell.tolist()):
        first.setdefault(cell, row)
    return {row: int(table.n[cell]) for cell, row in first.items()}


@pytest.mark.cases(2, 99)
@pytest.mark.parametrize("name", SHAPES)
def test_row_order_does_not_matter(name, small_parts):
    labels, mass = shape(name, 1200), seeded_weights(1200, "wide")
    order = np.random.default_rng(3).permutation(1200)
    assert_same(evaluate(labels, mass), evaluate([side[order] for side in labels], mass[order]))


@pytest.mark.cases(0)
@pytest.mark.parametrize("weight", ["none", "wide"])
@pytest.mark.parametrize("name", SHAPES)
def test_wide_records_equal_narrow_ones(name, weight, small_parts, monkeypatch):
    """Inputs of 2**31 rows and more use records of 64-bit counts; nothing else may differ."""
    labels, mass = shape(name, 1500), seeded_weights(1500, weight)
    narrow = evaluate(labels, mass)
    monkeypatch.setitem(partitioned.plan_parts.__kwdefaults__, "wide", True)
    wide = evaluate(labels, mass)
    assert narrow.contingency.n.dtype == np.int32 and wide.contingency.n.dtype == np.int64
    assert narrow.overall == wide.overall
    assert narrow.items().equals(wide.items())
    assert narrow.clusters("pred").equals(wide.clusters("pred"))
    assert narrow.clusters("true").equals(wide.clusters("true"))


def test_input_is_left_as_it_was():
    true, pred = shape("both heavy", 1000)
    mass = seeded_weights(1000, "plain")
    before = [array.copy() for array in (true, pred, mass)]
    for array in (true, pred, mass):
        array.flags.writeable = False
    ev = evaluate((true, pred), mass)
    ev.items(), ev.clusters("true"), ev.slices("pred_size")
    for array, copy in zip((true, pred, mass), before, strict=True):
        assert np.array_equal(array, copy)


@pytest.mark.cases(0)
@pytest.mark.parametrize("boxed", [False, True])
def test_sums_of_many_equal_terms(boxed, monkeypatch):
    """Items of weight 0.1 in one cluster: precision is 1 and the total is a sum of floats.

    It is exact but for its rounding; in a box 64 weights are added plainly, with 63 roundings of half a unit each.
    """
    n = 200_000
    if not boxed:
        monkeypatch.setattr(dense, "FEWEST_ROWS", n + 1)
    ev = evaluate((np.zeros(n, int), np.arange(n) % 2), np.full(n, 0.1))
    assert ev.recall == pytest.approx(0.5, abs=1e-15) and ev.precision == 1.0
    exact = Fraction(0.1) * n
    assert abs(Fraction(ev.contingency.total_weight) - exact) <= (63 * 2.0**-53 if boxed else 1e-15) * exact
