"""Overlapping clusterings against the twin: generated covers, every policy, weights, and partitions."""

from fractions import Fraction
from unittest import mock

import naive_overlap as twin
import numpy as np
import pytest
from effort import examples
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import pairs
from strategies_overlap import Covers, covers, item_weights

import fastbcubed as fb
from fastbcubed.overlap import extended_bcubed

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
many = examples(100)
PARTS = ("precision", "recall", "f1", "mean_f1")
PURITIES = ("purity", "inverse_purity", "purity_f1", "class_f1")
OF_CLUSTERS = tuple(f"{kind}_{part}" for kind in ("cluster", "closest_cluster") for part in PARTS[:3])
OVERLAP = ("omega", "onmi_lfk", "onmi_max", "onmi_mean")
TOLERANCE = 1e-12
WEIGHTINGS = ["pointwise", "outer"]
#: Up to so many clusters of a side, mates are found by pairs of clusters: never, in part, always.
NARROW = st.sampled_from([1, 2, 8])


def clustering(family, weight=None) -> fb.Clustering:
    """A row per membership, so that a repeated cluster is one of its own."""
    rows = [(item, number) for number, cluster in enumerate(family) for item in sorted(cluster)]
    table = {"item": [item for item, _ in rows], "cluster": [number for _, number in rows]}
    if weight is not None:
        table["weight"] = [weight[item] for item, _ in rows]
    return fb.Clustering.from_table(table, weight=None if weight is None else "weight")


def evaluate(pair, weight=None, **options) -> fb.Evaluation:
    truth, prediction = (clustering(family, weight) for family in pair)
    if weight is not None:
        options["weight"] = "weight"
    return fb.evaluate(truth, prediction, overlapping=True, **options)


def finding(narrow):
    return mock.patch.multiple(extended_bcubed, NARROW=narrow, PER_CLUSTER=0)


def exact(weight):
    return None if weight is None else {item: Fraction(w) for item, w in weight.items()}


def close(value):
    return pytest.approx(float(value), rel=TOLERANCE, abs=TOLERANCE)


def weighted_or_not(pair):
    return st.none() | item_weights(pair.items)


@pytest.mark.slow
@many
@given(covers(), st.data(), st.sampled_from(["drop", "singleton", "outside"]), NARROW)
def test_extended_bcubed_and_elm(pair, data, unmatched, narrow):
    weight = data.draw(weighted_or_not(pair))
    with finding(narrow):
        ev = evaluate(pair, weight, unmatched=unmatched, metrics=[*PARTS, "elm"])
    families = twin.align(*pair, unmatched)
    for prefix, function in ("", twin.extended_bcubed), ("elm_", twin.extended_elm):
        expected = function(*families, exact(weight))
        for part in PARTS:
            assert ev.overall[prefix + part] == close(getattr(expected, part)), prefix + part


@many
@given(covers(), st.data(), st.sampled_from(["global", "pair"]), st.sampled_from(["jaccard", "rand", "f1"]))
def test_cice_bcubed(pair, data, match, similarity):
    weight = data.draw(weighted_or_not(pair))
    truth, prediction = (clustering(family, weight) for family in pair)
    named = None if weight is None else "weight"
    with finding(data.draw(NARROW)):
        ev = fb.cice_bcubed(truth, prediction, weight=named, match=match, similarity=similarity)
    expected = twin.cice_bcubed(*twin.align(*pair), exact(weight), match=match, similarity=similarity)
    for part in PARTS:
        assert ev.overall[f"cice_bcubed_{part}"] == close(getattr(expected, part)), part


@many
@given(covers(), st.data())
def test_items(pair, data):
    weight = data.draw(weighted_or_not(pair))
    ev = evaluate(pair, weight, metrics=["precision", "recall", "mean_f1"])
    expected = twin.extended_bcubed(*twin.align(*pair), exact(weight)).by_item
    found = ev.items().select(["item", "precision", "recall", "item_f1"]).to_pylist()
    assert {row["item"]: tuple(row.values())[1:] for row in found} == {
        item: tuple(map(close, scores)) for item, scores in expected.items()
    }


@pytest.mark.slow
@many
@given(covers(unmatched=False), st.data())
def test_slices_are_means_over_their_items(pair, data):
    weight = data.draw(weighted_or_not(pair))
    chosen = data.draw(st.lists(st.sampled_from(pair.items), min_size=1, unique=True))
    ev = evaluate(pair, weight)
    scores = twin.extended_bcubed(*pair, exact(weight)).by_item
    for k, name in enumerate(["precision", "recall"]):
        expected = close(twin.mean({item: scores[item][k] for item in chosen}, exact(weight)))
        assert ev.subset(chosen)[name] == expected
        assert ev.slices({"chosen": chosen})[name].to_pylist() == [expected]


@many
@given(covers(), st.sampled_from(["drop", "singleton"]))
def test_overlap_family(pair, unmatched):
    ev = evaluate(pair, unmatched=unmatched, metrics="overlap")
    families = twin.align(*pair, unmatched)
    for name in OVERLAP:
        of_twin = getattr(twin, name)
        assert ev.overall[name] == close(of_twin(*families)), name
    found = fb.metrics.exact_match(contingency=ev.contingency)
    assert found == tuple(map(close, twin.exact_match(*families)))


@many
@given(covers(), st.sampled_from(["drop", "singleton"]))
def test_exact_clusters_are_those_of_the_scores(pair, unmatched):
    ev = evaluate(pair, unmatched=unmatched)
    precision, recall, _ = twin.exact_match(*twin.align(*pair, unmatched))
    for side, share in (("true", recall), ("pred", precision)):
        assert ev.summary[side]["exact"] == share * ev.summary[side]["clusters"]
        assert sum(ev.clusters(side)["exact"].to_pylist()) == ev.summary[side]["exact"]


@many
@given(covers(), st.data(), st.sampled_from(["drop", "singleton"]))
def test_best_counterparts(pair, data, unmatched):
    weight = data.draw(weighted_or_not(pair)) if unmatched == "drop" else None
    ev = evaluate(pair, weight, unmatched=unmatched, metrics=[*PURITIES, *OF_CLUSTERS])
    families, exact_weight = twin.align(*pair, unmatched), exact(weight)
    for name in PURITIES:
        assert ev.overall[name] == close(getattr(twin, name)(*families, exact_weight)), name
    same, closest = twin.exact_match(*families), twin.closest_cluster(*families, exact_weight)
    for name, expected in zip(OF_CLUSTERS, (*same, *closest), strict=True):
        assert ev.overall[name] == close(expected), name
    assert (ev.overall["cluster_f1"] == 1) == twin.identical(*families)


@pytest.mark.slow
@many
@given(pairs(unmatched=False), st.data(), st.sampled_from(WEIGHTINGS))
def test_partitions_score_as_without_overlapping(pair, data, weighting):
    weight = data.draw(weighted_or_not(pair))
    sides = [fb.Clustering.from_dict(side) for side in pair]
    options = {"weight": weight, "weighting": weighting}
    names = [*PARTS, "over_merge_rate", "under_merge_rate", "elm", *PURITIES, *OF_CLUSTERS]
    if weight:
        names = [name for name in names if weighting == "pointwise" or not name.startswith("closest")]
    else:
        names += OVERLAP
    plain, overlapping = (
        fb.evaluate(*sides, **options, metrics=names, overlapping=over) for over in (False, True)
    )
    assert len(overlapping.overall) == len(names) + 3
    for name, value in overlapping.overall.items():
        assert value == close(plain.overall[name]), name
    assert fb.metrics.exact_match(contingency=plain.contingency) == fb.metrics.exact_match(
        contingency=overlapping.contingency
    )


@many
@given(covers(unmatched=False), st.data())
def test_an_identical_cover_scores_exactly_one(pair, data):
    weight = data.draw(weighted_or_not(pair))
    again = data.draw(st.permutations(pair.truth))
    ev = evaluate((pair.truth, again), weight, metrics=[*PARTS, "elm", *PURITIES, *OF_CLUSTERS])
    assert set(ev.overall.values()) == {1.0}


@examples(20)
@given(st.integers(0, 2**32), st.data())
def test_items_in_many_clusters(seed, data):
    """Of forty items in nine clusters of either side, some are in all, most in two or three."""
    random = np.random.default_rng(seed)
    families = [
        [{0} | set(np.flatnonzero(random.random(40) < share).tolist()) for share in random.random(9)]
        for _ in range(2)
    ]
    pair = Covers(*families)
    weight = data.draw(weighted_or_not(pair))
    with finding(data.draw(NARROW)):
        ev = evaluate(pair, weight, metrics=PARTS)
    expected = twin.extended_bcubed(*twin.align(*pair, "drop"), exact(weight))
    for part in PARTS:
        assert ev.overall[part] == close(getattr(expected, part)), part


@pytest.mark.slow
@example(Covers([{1, 2, 3}, {1, 2, 3}, {3}], [{1, 2}, {1, 2}, {2, 3}, {3}]))
@many
@given(covers(unmatched=False))
def test_one_thread_and_more_give_the_same_bits(pair):
    one, more = (
        evaluate(pair, threads=threads, metrics=[*PARTS, "elm", "overlap", *PURITIES]) for threads in (1, 3)
    )
    assert dict(one.overall) == dict(more.overall)


READINGS = [(match, similarity) for match in ("global", "pair") for similarity in ("jaccard", "rand", "f1")]


def cice_bcubed(truth, prediction, weight, match, similarity):
    sides = (clustering(family, weight) for family in (truth, prediction))
    found = fb.cice_bcubed(*sides, weight="weight", match=match, similarity=similarity).overall
    return [found[f"cice_bcubed_{part}"] for part in PARTS]


@pytest.mark.cases(1)
@pytest.mark.parametrize(("match", "similarity"), READINGS)
def test_cice_bcubed_of_the_same_clusters_is_exactly_one(match, similarity):
    """Whatever rounding does to the weights of clusters, and in another order on the other side."""
    family = [{0, 1, 5, 6}, {0, 2, 3, 6}, {3, 4, 5, 6}, {7}, {1, 2}]
    for seed in range(8):
        weight = dict(enumerate((10.0 ** np.random.default_rng(seed).uniform(-4, 4, 8)).tolist()))
        assert cice_bcubed(family, family[::-1], weight, match, similarity) == [1.0] * 4, seed


@pytest.mark.parametrize(("match", "similarity"), READINGS)
def test_cice_bcubed_of_a_light_item_among_heavy_ones(match, similarity):
    """The likeness of clusters is then next to nothing, and never less."""
    truth, prediction = [{"a", "b"}, {"c"}], [{"a", "c"}, {"b"}]
    for light in (1e-15, 1e-16, 1e-17, 1e-20):
        weight = {"a": light, "b": 1.0, "c": 1.0}
        expected = twin.cice_bcubed(truth, prediction, exact(weight), match=match, similarity=similarity)
        found = cice_bcubed(truth, prediction, weight, match, similarity)
        assert found == [close(getattr(expected, part)) for part in PARTS], light


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_items_in_many_clusters_some_of_which_are_large(weighted):
    """Mates are counted in short and in long lists of cells as they are found by pairs of clusters."""
    rng = np.random.default_rng(3)
    items = np.arange(400)
    family = [items[:300], items[50:350], *(rng.choice(items, 8, replace=False) for _ in range(500))]
    other = [rng.choice(each, each.size - 1, replace=False) for each in family]
    weight = dict(enumerate(rng.uniform(0.5, 1.5, items.size))) if weighted else None
    found = []
    for narrow in (1, 4, 8, 100):
        with finding(narrow):
            ev = evaluate((family, other), weight, metrics=[*PARTS, "cice_bcubed_f1"])
        found.append([*ev.overall.values(), *ev.items()["precision_loss"].to_pylist()])
    for each in found[:3]:
        assert each == [close(value) for value in found[3]]


@pytest.mark.cases(2, 99)
@pytest.mark.parametrize("alike", [0, 1 << 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_mates_that_share_as_many_clusters(monkeypatch, weighted, alike):
    """They are counted together, or one by one if their clusters are too many."""
    monkeypatch.setattr(extended_bcubed, "ALIKE", alike)
    rng = np.random.default_rng(5)
    pair = [[set(np.flatnonzero(rng.random(60) < 0.5).tolist()) | {k} for k in range(6)] for _ in range(2)]
    weight = dict(enumerate(rng.lognormal(0, 8, 60).tolist())) if weighted else None
    families = twin.align(*pair)
    expected = twin.extended_bcubed(*families, exact(weight))
    ev = evaluate(pair, weight, metrics=PARTS)
    assert [ev.overall[part] for part in PARTS] == [close(getattr(expected, part)) for part in PARTS]
    for row in ev.items().to_pylist():
        assert (row["precision"], row["recall"]) == tuple(map(close, expected.by_item[row["item"]][:2]))
    assert ev.contingency.sides.close.wide


def test_a_light_mate_among_many_heavy_ones():
    """What it costs keeps its digits: 40 items share two clusters of both sides, and one with a light item."""
    rng = np.random.default_rng(6)
    weight = {**dict(enumerate(rng.uniform(1, 2, 40).tolist())), 40: 1e-14}
    every, alone = set(range(40)), [{item} for item in range(41)]  # each is in a cell of its own
    ev = evaluate(([every, every, *alone], [every, every | {40}, *alone]), weight)
    rates = ev.items().sort_by("item")["over_merge_rate"].to_pylist()
    assert rates[:40] == [pytest.approx(1e-14 / sum(weight.values()), rel=1e-12, abs=0)] * 40


@pytest.mark.cases(0)
@pytest.mark.parametrize("swapped", [False, True])
def test_items_in_many_clusters_of_one_side(swapped):
    """Mates that share two clusters of both sides are met in a pair of one and counted on the other: once in all."""
    rng = np.random.default_rng(7)
    pair = [
        [np.flatnonzero(own) for own in rng.random((n, 200)) < share] for n, share in ((4, 0.4), (40, 0.08))
    ]
    found = []
    for narrow in (1, 2, 3, 100):
        with finding(narrow):
            ev = evaluate(pair[::-1] if swapped else pair, metrics=[*PARTS, "cice_bcubed_f1"])
        found.append([*ev.overall.values(), *ev.items()["precision_loss"].to_pylist()])
    for each in found[:3]:
        assert each == [close(value) for value in found[3]]
