"""Pairs drawn for judging: each as likely as its weight says, whatever the engine, the order and the container."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import naive
import naive_pairs_judged as twins
import numpy as np
import pyarrow as pa
import pytest
from both_engines import both
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs, weights

import fastbcubed as fb
from fastbcubed.errors import (
    ColumnError,
    EmptyInputError,
    MetricError,
    NotKeptError,
    OptionError,
    SliceError,
    WeightError,
)
from fastbcubed.sample.judged_pairs import PAIR_SCORES
from fastbcubed.sample.pair_sample import allot, sample_pairs

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
ITEMS = "abcdef"
BASE, EXP, IDEAL = (
    dict(zip(ITEMS, labels, strict=True)) for labels in ([1, 1, 1, 2, 2, 3], "xxyyyz", "uuvvww")
)


def close(value):
    return pytest.approx(float(value), rel=1e-9, abs=1e-15)


@st.composite
def cases(draw, max_size=7):
    """Draw a baseline, an experiment, weights, options, and strata of the items."""
    pair = draw(pairs(max_size))
    weighting = draw(st.sampled_from(["pointwise", "pointwise", "outer"]))
    weight = draw(weights(len(pair.items), zeros=weighting == "outer"))
    options = {"unmatched": draw(st.sampled_from(POLICIES)), "weighting": weighting}
    by_item = None if weight is None else dict(zip(pair.items, weight, strict=True))
    strata = draw(
        st.none() | st.lists(st.sampled_from("ab"), min_size=len(pair.items), max_size=len(pair.items))
    )
    return pair, by_item, options, None if strata is None else dict(zip(pair.items, strata, strict=True))


def both_ways(case):
    """Return the evaluation and its naive twin; None where no item has weight."""
    pair, weight, options, strata = case
    if strata is not None:
        options = options | {"attributes": {"item": list(strata), "group": list(strata.values())}}
    try:
        expected = naive.evaluate(*pair, weight, **case[2])
    except ValueError:
        with pytest.raises(WeightError):
            fb.evaluate(*pair, weight=weight, **options)
        return None
    return fb.evaluate(*pair, weight=weight, **options), expected


def strata_of(expected, score, groups):
    """Return the pairs of each stratum by (group, change, sign), without those of an item with itself."""
    found = {}
    for (i, j), c in twins.weights_of_pairs(expected, score).items():
        if i != j:
            group = None if groups is None else groups[i]
            found.setdefault((group, twins.change_of(expected, i, j), 1 if c > 0 else -1), {})[i, j] = abs(c)
    return found


@given(case=cases(), score=st.sampled_from(twins.SCORES), data=st.data())
@examples(60)
def test_pairs_add_up_to_the_score(case, score, data):
    """Of the twin alone: the sum over all pairs of 11.3 is the mean over items of 11.2."""
    found = both_ways(case)
    if found is None:
        return
    everyone = case[0].items
    labels = data.draw(st.lists(st.integers(0, 2), min_size=len(everyone), max_size=len(everyone)))
    ideal = dict(zip(everyone, labels, strict=True))
    total = sum(
        c * twins.counts(found[1], score, i, j, twins.judge(ideal, i, j))
        for (i, j), c in twins.weights_of_pairs(found[1], score).items()
    )
    assert total == twins.exact(found[1], ideal, score)


@given(case=cases(), score=st.sampled_from(twins.SCORES), seed=st.integers(0, 10))
@examples(150)
def test_probabilities_and_strata_equal_the_naive_ones(case, score, seed):
    found = both_ways(case)
    if found is None:
        return
    ev, expected = found
    groups = case[3]
    strata = {key: own for key, own in strata_of(expected, score, groups).items() if float(sum(own.values()))}
    by = None if groups is None else "group"
    if not strata:
        with pytest.raises(EmptyInputError, match=f"so {score} is 0"):
            sample_pairs(ev, 50, score=score, by=by)
        return
    whole = sum(expected.weight[i] for i in expected.items)
    table = sample_pairs(ev, 60, score=score, by=by, seed=seed).to_pylist()
    assert [row["pair"] for row in table] == list(range(1, 61))
    seen = {}
    for row in table:
        i, j, key = row["item"], row["mate"], (row.get("stratum"), row["change"], row["sign"])
        own = strata[key]
        z = sum(own.values())
        assert row["z"] == close(z)
        assert row["probability"] == close((own[i, j] + own.get((j, i), 0)) / z)
        first = seen.setdefault(frozenset((i, j)), row["pair"])
        assert row["repeats"] == (None if first == row["pair"] else first)
        if groups is not None:
            share = sum(expected.weight[e] for e in expected.items if groups[e] == groups[i]) / whole
            assert row["share"] == close(share)
        if score == "delta_precision":
            on_its_own = twins.weights_of_pairs(expected, score)
            assert row["self_pairs"] == close(
                sum(
                    c
                    for (a, b), c in on_its_own.items()
                    if a == b and (groups is None or groups[a] == groups[i])
                )
            )
    told = Counter((row.get("stratum"), row["change"], row["sign"]) for row in table)
    assert told.keys() == strata.keys() and min(told.values()) >= 2


@pytest.mark.cases(8, 99)
@pytest.mark.parametrize("score", PAIR_SCORES)
@pytest.mark.parametrize("weight", [None, dict(zip(ITEMS, range(1, 7), strict=True))])
def test_expectation_is_the_score(score, weight):
    """All pairs with their probabilities: these add up to 1, and the estimate from one draw is right on average."""
    ev = fb.evaluate(BASE, EXP, weight=weight)
    expected = naive.evaluate(BASE, EXP, weight)
    table = sample_pairs(ev, 1000, score=score).to_pylist()
    once = {(frozenset((row["item"], row["mate"])), row["change"], row["sign"]): row for row in table}
    n_pairs = {
        (frozenset(pair), *key[1:]) for key, own in strata_of(expected, score, None).items() for pair in own
    }
    assert once.keys() == n_pairs
    expectation, probabilities = table[0].get("self_pairs", 0.0), Counter()
    for row in once.values():
        verdict = twins.judge(IDEAL, row["item"], row["mate"])
        counted = twins.counts(expected, score, row["item"], row["mate"], verdict)
        expectation += row["probability"] * row["z"] * row["sign"] * counted
        probabilities[row["change"], row["sign"]] += row["probability"]
    assert list(probabilities.values()) == pytest.approx([1.0] * len(probabilities))
    assert expectation == close(twins.exact(expected, IDEAL, score))


def test_worked_case():
    """METRICS 11.2 and 11.3: split and merge rate 2/9, distances 8/45, and 2/3 for the change of precision.

    Of the 2/3, pairs of an item with itself have 1/36 each for a, b, d and e, which are not drawn.
    """
    ev = fb.evaluate(BASE, EXP)
    z = {
        score: {
            (row["change"], row["sign"]): row["z"] for row in sample_pairs(ev, 8, score=score).to_pylist()
        }
        for score in PAIR_SCORES
    }
    assert z["good_split_rate"] == z["bad_split_rate"] == {("split", 1): close(Fraction(2, 9))}
    assert z["good_merge_rate"] == {("merged", 1): close(Fraction(2, 9))}
    assert z["bad_split_distance"] == {("split", 1): close(Fraction(8, 45))}
    assert z["good_distance"] == {("split", 1): close(Fraction(8, 45)), ("merged", 1): close(Fraction(8, 45))}
    assert sum(z["delta_precision"].values()) == close(Fraction(2, 3) - 4 * Fraction(1, 36))
    of_pairs = twins.weights_of_pairs(naive.evaluate(BASE, EXP, None), "delta_precision")
    assert sum(map(abs, of_pairs.values())) == Fraction(2, 3)


def chi_square(table, expected, score):
    """Return by stratum the statistic of draws against naive probabilities, in standard deviations from its mean."""
    found = {}
    for key, own in strata_of(expected, score, None).items():
        rows = [row for row in table if (row["change"], row["sign"]) == key[1:]]
        seen = Counter((row["item"], row["mate"]) for row in rows)
        assert seen.keys() <= own.keys()
        z = sum(own.values())
        wanted = {pair: len(rows) * float(c / z) for pair, c in own.items()}
        often = {pair: n for pair, n in wanted.items() if n >= 5}
        rare = sum(n for n in wanted.values() if n < 5)
        terms = [(seen[pair] - n) ** 2 / n for pair, n in often.items()]
        if rare >= 5:
            terms.append((sum(seen[p] for p in own if p not in often) - rare) ** 2 / rare)
        if len(terms) > 1:
            found[key[1:]] = (sum(terms) - (len(terms) - 1)) / (2 * (len(terms) - 1)) ** 0.5
    return found


@pytest.mark.cases(1)
@pytest.mark.parametrize("score", ["good_split_rate", "bad_merge_distance", "delta_precision"])
@pytest.mark.parametrize("options", [{}, {"weighting": "outer"}, {"unmatched": "outside"}])
def test_draws_are_as_frequent_as_they_should_be(score, options):
    rng = np.random.default_rng(5)
    items = range(40)
    base = {i: int(c) for i, c in zip(items, rng.integers(0, 8, 40), strict=True) if i < 35 or not options}
    exp = dict(zip(items, rng.integers(0, 9, 40).tolist(), strict=True))
    weight = dict(zip(items, (10.0 ** rng.uniform(-1, 1, 40)).tolist(), strict=True))
    ev = fb.evaluate(base, exp, weight=weight, **options)
    table = sample_pairs(ev, 40_000, score=score, seed=1).to_pylist()
    far = chi_square(table, naive.evaluate(base, exp, weight, **options), score)
    assert far and max(map(abs, far.values())) < 3.5, far


def test_heavy_items_do_not_hide_light_ones():
    """An item of weight 1e15 and its mates of weight 1: from it each of these is drawn alike."""
    items = list(range(12))
    weight = {0: 1e15} | dict.fromkeys(items[1:], 1.0)
    ev = fb.evaluate(dict.fromkeys(items, 0), {i: int(i > 0) * i for i in items}, weight=weight)
    table = sample_pairs(ev, 4000, score="good_split_rate").to_pylist()
    seen = Counter(row["mate"] for row in table if row["item"] == 0)
    assert seen.keys() == set(items[1:]) and max(seen.values()) < 1.5 * min(seen.values())


def test_two_of_each_then_in_proportion():
    counts = np.bincount(allot(np.array([6.0, 3.0, 1.0, 1e-9]), 1002))
    assert counts[3] == 2 and counts[:3] == pytest.approx([600, 300, 100], abs=1)
    longer = allot(np.array([2.0, 5.0, 1.0]), 50)
    assert longer[:20].tolist() == allot(np.array([2.0, 5.0, 1.0]), 20).tolist()


# -- What the sample does not depend on -------------------------------------------------------------

PATENTS = fb.example("patentsview")
COUNTRIES = PATENTS.truth.select(["item", "country", "year"])


def patents(**options):
    old, new = (PATENTS.predictions[date] for date in ("20200929", "20211230"))
    return fb.evaluate(old, new, attributes=COUNTRIES, **options)


@pytest.mark.slow
def test_the_order_of_rows_engine_and_threads_change_nothing(tmp_path):
    import pyarrow.parquet as pq

    old, new = (PATENTS.predictions[date] for date in ("20200929", "20211230"))
    options = {"score": "delta_precision", "by": fb.bins("year", 20), "columns": ["country"], "seed": 3}
    expected = sample_pairs(patents(threads=1), 300, **options)
    rng = np.random.default_rng(0)
    files = []
    for name, table in (("old", old), ("new", new)):
        files.append(tmp_path / f"{name}.parquet")
        pq.write_table(table.take(rng.permutation(table.num_rows)), files[-1])
    on_disk = fb.evaluate(
        *files, attributes=COUNTRIES, engine="disk", keep="items", slices=[fb.bins("year", 20), "country"],
        memory_limit="64MiB",
    )  # fmt: skip
    shuffled = fb.evaluate(
        *(table.to_pandas().sample(frac=1, random_state=1) for table in (old, new)), attributes=COUNTRIES
    )
    patents().save(tmp_path / "saved")
    for ev in (on_disk, shuffled, patents(threads=2), fb.load(tmp_path / "saved")):
        assert_same_sample(sample_pairs(ev, 300, **options), expected)


def assert_same_sample(found, expected):
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        mine, other = found[name].to_pylist(), expected[name].to_pylist()
        assert mine == (pytest.approx(other, rel=1e-12) if isinstance(other[0], float) else other), name


@pytest.mark.parametrize("shape", ["int32", "uint64", "text", "dictionary", "composite"])
def test_containers_of_ids_change_nothing(shape):
    n = 60
    make = {
        "int32": lambda ids: pa.array(ids, pa.int32()),
        "uint64": lambda ids: pa.array(ids, pa.uint64()),
        "text": lambda ids: pa.array([f"{i:04d}" for i in ids], pa.large_string()),
        "dictionary": lambda ids: pa.array([f"{i:04d}" for i in ids]).dictionary_encode(),
        "composite": lambda ids: pa.StructArray.from_arrays(
            [pa.array([f"s{i % 3}" for i in ids]), pa.array(ids)], ["source", "id"]
        ),
    }
    rng = np.random.default_rng(8)
    ids, sides = rng.permutation(n), rng.integers(0, 12, (2, n))
    plain = ids.tolist() if shape in ("int32", "uint64") else [f"{i:04d}" for i in ids]
    plain = [(f"s{i % 3}", int(i)) for i in ids] if shape == "composite" else plain
    expected = fb.evaluate(*(dict(zip(plain, own.tolist(), strict=True)) for own in sides))
    order = rng.permutation(n)
    column = make[shape](ids[order].tolist())
    ids_of = {"source": column.field(0), "id": column.field(1)} if shape == "composite" else {"item": column}
    tables = [pa.table({**ids_of, "cluster": own[order]}) for own in sides]
    found = fb.evaluate(*tables, item=["source", "id"] if shape == "composite" else "item")
    a, b = (sample_pairs(ev, 50, score="good_distance", seed=2).to_pylist() for ev in (found, expected))
    told = [[[*map(plain_id, (row["item"], row["mate"]))] for row in table] for table in (a, b)]
    assert told[0] == told[1]


def plain_id(value):
    return tuple(value.values()) if isinstance(value, dict) else value


@pytest.mark.slow
def test_a_longer_sample_begins_with_a_shorter_one():
    ev = patents()
    options = {"score": "delta_precision", "by": "country", "columns": "country"}
    n_strata = len(
        {(r["stratum"], r["change"], r["sign"]) for r in sample_pairs(ev, 2000, **options).to_pylist()}
    )
    short, long = (sample_pairs(ev, n, **options) for n in (2 * n_strata, 2 * n_strata + 150))
    for name in set(short.column_names) - {"n_pairs"}:
        assert short[name].to_pylist() == long[name].to_pylist()[: len(short)], name
    other = sample_pairs(ev, 2 * n_strata, seed=1, **options)
    assert other["item"].to_pylist() != short["item"].to_pylist()


@given(case=cases(), score=st.sampled_from(twins.SCORES))
@examples(25)
def test_the_disk_engine_draws_the_same(case, score):
    pair, weight, options, _ = case
    tables = [
        pa.table({"item": list(map(str, side)), "cluster": list(map(str, side.values()))}) for side in pair
    ]
    weight = None if weight is None else {str(item): w for item, w in weight.items()}
    on_disk, in_memory = both(*tables, weight=weight, keep="items", **options)
    try:
        expected = sample_pairs(in_memory, 30, score=score)
    except EmptyInputError:
        with pytest.raises(EmptyInputError):
            sample_pairs(on_disk, 30, score=score)
        return
    found = sample_pairs(on_disk, 30, score=score)
    for name in ("repeats", "item", "mate", "change", "sign"):
        assert found[name].to_pylist() == expected[name].to_pylist()
    for name in ("probability", "z"):
        assert found[name].to_pylist() == pytest.approx(expected[name].to_pylist(), rel=1e-9)


# -- Columns and faults ----------------------------------------------------------------------------


def test_columns_have_attributes_of_both_items():
    country = dict(zip(COUNTRIES["item"].to_pylist(), COUNTRIES["country"].to_pylist(), strict=True))
    table = sample_pairs(patents(), 200, by="country", columns=["country", "year"])
    assert table.column_names == [
        "pair", "repeats", "item", "mate", "score", "n_pairs", "stratum", "share", "change", "probability", "sign", "z",
        "item.country", "mate.country", "item.year", "mate.year", "verdict",
    ]  # fmt: skip
    for row in table.to_pylist():
        assert row["stratum"] == row["item.country"] == country[row["item"]]
        assert row["mate.country"] == country[row["mate"]]
    assert table["verdict"].null_count == len(table)


def test_null_is_a_stratum():
    ev = fb.evaluate(BASE, EXP, attributes={"item": list(ITEMS), "group": ["x", None, None, "x", None, "x"]})
    assert set(sample_pairs(ev, 8, by="group")["stratum"].to_pylist()) == {"x", "(null)"}


@pytest.mark.parametrize(
    "ask, error, message",
    [
        ({"score": "good_split"}, MetricError, "not 'good_split'. Did you mean 'good_split_rate'"),
        ({"score": None}, MetricError, "good_split_rate, .* not None"),
        ({"n": 1}, OptionError, "n must be a number of pairs, 2 or more, not 1"),
        ({"n": 2.0}, OptionError, "n must be a number of pairs"),
        ({"n": True}, OptionError, "n must be a number of pairs"),
        ({"seed": -1}, OptionError, "seed must be a whole number"),
        (
            {"n": 7, "score": "delta_precision"},
            OptionError,
            "n is 7, but there are 4 strata .*: draw 8 or more",
        ),
        ({"by": "group"}, ColumnError, "no attribute 'group'"),
        ({"by": {"a": ["a"]}}, SliceError, "subsets may"),
        ({"by": ["a"]}, SliceError, "slices must be"),
        ({"columns": "group"}, ColumnError, "no attribute 'group'"),
    ],
)
def test_what_cannot_be_asked_for(ask, error, message):
    with pytest.raises(error, match=message):
        sample_pairs(fb.evaluate(BASE, EXP), **{"n": 10, **ask})


def test_strata_that_are_written_alike():
    ev = fb.evaluate(BASE, EXP, attributes={"item": list(ITEMS), "a": list("xxyyxx"), "b": list("xyxyxy")})
    assert sample_pairs(ev, 20, by=("a", "b"))["stratum"][0].as_py() in ("x, x", "x, y", "y, x", "y, y")
    ev = fb.evaluate(BASE, EXP, attributes={"item": list(ITEMS), "a": ["(null)", None, "x", "x", "x", "x"]})
    with pytest.raises(SliceError, match=r"the same name, '\(null\)'"):
        sample_pairs(ev, 20, by="a")


def test_nothing_changed_or_nothing_of_the_kind():
    same = fb.evaluate(BASE, BASE)
    with pytest.raises(EmptyInputError, match="no item was separated from another, so good_split_rate is 0"):
        sample_pairs(same, 10, score="good_split_rate")
    with pytest.raises(EmptyInputError, match="another or joined with one, so each rate is 0"):
        sample_pairs(same, 10)
    with pytest.raises(
        EmptyInputError, match="separated from another or joined with one, so delta_precision is 0"
    ):
        sample_pairs(same, 10, score="delta_precision")
    only_split = fb.evaluate(BASE, {item: item for item in BASE})
    assert len(sample_pairs(only_split, 10)) == 10
    with pytest.raises(EmptyInputError, match="joined with another"):
        sample_pairs(only_split, 10, score="bad_merge_rate")


def test_items_are_needed_and_clusters_may_not_overlap(tmp_path):
    fb.evaluate(BASE, EXP).save(tmp_path, keep="cells")
    with pytest.raises(NotKeptError, match="items were not kept"):
        sample_pairs(fb.load(tmp_path), 10)
    overlapping = fb.evaluate({"a": {1, 2}, "b": {1}}, {"a": {1}, "b": {1}}, overlapping=True)
    with pytest.raises(MetricError, match="may overlap"):
        sample_pairs(overlapping, 10)


def test_noise_and_nulls_are_no_mates():
    """Under "outside", items that the experiment alone has are mates, but not those that it leaves alone."""
    base = pa.table({"item": [1, 2], "cluster": [0, 1]})
    exp = pa.table({"item": [1, 2, 3, 4, 5, 6], "cluster": [7, 7, 7, -1, -1, None]})
    ev = fb.evaluate(base, exp, unmatched="outside", nulls="singleton", noise=-1)
    pairs_seen = {(r["item"], r["mate"]) for r in sample_pairs(ev, 100, score="good_merge_rate").to_pylist()}
    assert pairs_seen == {(1, 2), (2, 1), (1, 3), (2, 3)}


def test_by_default_half_of_the_pairs_were_split_and_half_were_merged():
    """100 items leave one cluster, each on its own, and two others join: 99 to 1 by their weight, and to be judged."""
    before = {i: 0 for i in range(100)} | {100: 1, 101: 2}
    ev = fb.evaluate(before, {i: i for i in range(100)} | {100: 100, 101: 100})
    found = sample_pairs(ev, 50)
    assert Counter(found["change"].to_pylist()) == {"split": 25, "merged": 25}
    assert set(found["score"].to_pylist()) == {"rates"}


def test_items_by_position():
    table = sample_pairs(fb.evaluate([0, 0, 1, 1], [0, 1, 1, 1]), 6, score="good_split_rate")
    assert {(r["item"], r["mate"]) for r in table.to_pylist()} == {(0, 1), (1, 0)}
