"""Every score, at every level, against the naive twin on generated clusterings.

Scores match within 1e-12 * max(1, |score|), also where weights span 30 orders of magnitude: a score is
a mean of terms that lose no digits, and only in `mcc`, `pointwise_ari`, `informedness` and `markedness`
do terms of both signs meet, none above 1. The parts of a matrix are sums of positive weights, so they
match within a relative bound, and are 0 exactly where the set is empty.
"""

import math
import warnings
from collections import Counter
from fractions import Fraction

import naive
import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, Pair, pairs, weights
from twins import mean_of

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning, SliceError, WeightError
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.cluster_outcomes import OUTCOMES

WITH_TWINS = ("pointwise", "bcubed", "elm", "overlap")
MATRIX = ("tp", "fp", "fn", "tn")
LOSSES = {"precision_loss": "over_merge_rate", "recall_loss": "under_merge_rate"}
#: A true negative is a difference that may lose 12 bits before it is added up anew.
RELATIVE = {"tp": 1e-15, "fp": 1e-15, "fn": 1e-15, "tn": 2**-52 * 2**14}
OF_FAMILIES = {m.name: m for m in METRICS.values() if m.family in WITH_TWINS}
EQUAL_WEIGHTS_ONLY = {name for name, m in OF_FAMILIES.items() if m.unweighted_only}
COMPLETE_LABELS_ONLY = {name for name, m in OF_FAMILIES.items() if m.labelled_only or m.uses_tn}
PARTS = ("precision", "recall", "f1", "mean_f1")
ALIASES = {f"bcubed_{name}": name for name in PARTS}
ALIASES |= {f"extended_bcubed_{name}": name for name in PARTS}
ALIASES |= {f"extended_elm_{name}": f"elm_{name}" for name in PARTS}
COVERS_ONLY = {name for name, m in OF_FAMILIES.items() if m.covers_only}
BETAS = [1, 1, 0.5, 2, 0, math.inf]


def evaluate(pair, weight=None, **options):
    """Evaluate without the warning that dropping flatters."""
    if weight is not None:
        options["weight"] = dict(zip(pair.items, weight, strict=True))
    options.setdefault("metrics", WITH_TWINS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.evaluate(*pair, threads=1, **options)


def evaluate_naively(pair, weight=None, **options):
    by_item = None if weight is None else dict(zip(pair.items, weight, strict=True))
    return naive.evaluate(*pair, by_item, **options)


def wrong(found, expected, what=""):
    """Return what to say of a score that is not within 1e-12 * max(1, |score|), or None."""
    error = abs(Fraction(found) - Fraction(expected)) if math.isfinite(found) else math.inf
    if error <= 1e-12 * max(1, abs(expected)):
        return None
    return f"{what} {found!r} is not {float(expected)!r}"


def check(found, expected, what=""):
    problem = wrong(found, expected, what)
    assert problem is None, problem


def check_matrix(found, twin, item):
    """Compare the four sums of one item; sums are exact where they count."""
    counts = twin.weighting == "outer" or set(twin.weight.values()) == {1}
    for name, exact in zip(MATRIX, twin.matrix(item), strict=True):
        if exact is None:
            assert found[name] is None
        elif counts or exact == 0:
            assert found[name] == exact, (item, name)
        else:
            error = abs(Fraction(found[name]) - exact) / exact
            assert error <= RELATIVE[name], (item, name, found[name], float(exact))


@st.composite
def cases(draw, max_size=9, **options):
    """Draw a pair, weights, and options that both sides take; some item scored has weight."""
    pair = draw(pairs(max_size, **options))
    weighting = draw(st.sampled_from(["pointwise", "pointwise", "outer"]))
    weight = draw(weights(len(pair.items), zeros=weighting == "outer"))
    chosen = {"unmatched": draw(st.sampled_from(POLICIES)), "weighting": weighting}
    return pair, weight, chosen


def both(case, **options):
    """Evaluate both ways; None if no scored item has weight, which both sides refuse."""
    pair, weight, chosen = case
    try:
        twin = evaluate_naively(pair, weight, **chosen, **{k: options[k] for k in options if k == "beta"})
    except ValueError as reason:
        assert "weight zero" in str(reason)
        with pytest.raises(WeightError):
            evaluate(pair, weight, **chosen)
        return None
    return evaluate(pair, weight, **chosen, **options), twin


@examples(160)
@given(cases(), st.sampled_from(BETAS))
def test_overall(case, beta):
    if (evaluated := both(case, beta=beta)) is None:
        return
    ev, twin = evaluated
    problems = [wrong(found, mean_of(twin, name), name) for name, found in ev.overall.items()]
    assert not any(problems), [p for p in problems if p]
    for alias, name in ALIASES.items():
        check(ev.metric(alias), twin.mean(alias.removeprefix("extended_")), alias)
        check(ev.metric(name), twin.mean(name), name)


@examples(50)
@given(cases(), st.sampled_from(BETAS))
def test_which_scores_are_computed(case, beta):
    if (evaluated := both(case, beta=beta)) is None:
        return
    ev, twin = evaluated
    left = EQUAL_WEIGHTS_ONLY | COVERS_ONLY if case[1] is not None else set(COVERS_ONLY)
    left |= COMPLETE_LABELS_ONLY if twin.policy["prediction"] == "outside" else set()
    assert set(ev.not_computed) == left
    without_f = {"fbeta", "mean_fbeta"} if beta == 1 else set()
    assert set(ev.overall) == set(OF_FAMILIES) - set(ALIASES) - left - without_f


@examples(70)
@given(cases(), st.sampled_from(BETAS))
def test_items(case, beta):
    if (evaluated := both(case, beta=beta)) is None:
        return
    ev, twin = evaluated
    rows = ev.items().to_pylist()
    assert sorted(map(repr, (row["item"] for row in rows))) == sorted(map(repr, twin.items))
    for row in rows:
        e = row["item"]
        assert row["true_cluster"] == twin.truth.get(e)
        assert row["pred_cluster"] == twin.prediction.get(e)
        assert row["weight"] == twin.weight[e]
        check_matrix(row, twin, e)
        for name in LOSSES:
            check(row[name], twin.loss(name, [e]), f"{name} of {e!r}")
        own = {"item", "weight", *MATRIX, *LOSSES}
        scores = {k: v for k, v in row.items() if k not in own}
        for name in scores.keys() - {"true_cluster", "pred_cluster"}:
            check(row[name], twin.score(name, e), f"{name} of {e!r}")
        expected = {m.item_name for m in ev.metrics if m.item_name}
        assert scores.keys() - {"true_cluster", "pred_cluster"} == expected


@examples(40)
@given(cases())
def test_item_and_its_four_sets(case):
    if (evaluated := both(case)) is None:
        return
    ev, twin = evaluated
    rows = {row["item"]: row for row in ev.items().to_pylist()}
    for e in twin.items:
        found = ev.item(e, members=100)
        members = found.pop("members")
        assert found == rows[e]
        for name, expected in twin.sets(e).items():
            if expected is None:  # "outside": not all items of the set are known
                continue
            assert members[name]["n_items"] == len(expected), (e, name)
            assert set(members[name]["first"]) == expected, (e, name)
            assert len(members[name]["first"]) == len(expected)


def test_members_are_the_first_few():
    ev = evaluate(Pair({k: 0 for k in range(9)}, {k: k % 2 for k in range(9)}))
    members = ev.item(3, members=2)["members"]
    assert members["tp"] == {"n_items": 4, "first": [1, 3]}
    assert members["fn"] == {"n_items": 5, "first": [0, 2]}
    assert members["fp"] == members["tn"] == {"n_items": 0, "first": []}


def check_group(row, twin, group, metrics):
    """Compare one row of a table: the scores lifted to a group of items."""
    group = list(group)
    whole = sum(twin.weight[e] for e in group)
    assert row["n_items"] == len(group)
    check(row["weight"] / float(whole) if whole else 1 - row["weight"], 1, "weight")
    for name in LOSSES:
        check(row[name], twin.loss(name, group), name)
    for metric in metrics:
        if metric.overall_only:
            assert metric.name not in row
        elif whole:
            check(row[metric.name], twin.mean(metric.name, group), metric.name)
        else:  # nothing to take a mean of
            assert math.isnan(row[metric.name])


@examples(40)
@given(cases(), st.sampled_from(BETAS))
def test_clusters(case, beta):
    if (evaluated := both(case, beta=beta)) is None:
        return
    ev, twin = evaluated
    for side, own, other in (("true", twin.truth, twin.pred), ("pred", twin.prediction, twin.true)):
        expected = twin.clusters(side)
        rows = ev.clusters(side).to_pylist()
        assert len(rows) == len(expected)
        by_label = {label: group for label, group in expected.items() if not isinstance(label, naive.Alone)}
        lonely = [group for label, group in expected.items() if isinstance(label, naive.Alone)]
        assert set(by_label) <= set(own.values())
        for row in rows:
            if row["cluster"] is None:  # made by a policy: there is one for each such item
                matching = [g for g in lonely if agrees(row, twin, g, ev.metrics)]
                assert matching, row
                lonely.remove(matching[0])
                continue
            group = by_label.pop(row["cluster"])
            check_group(row, twin, group, ev.metrics)
            assert row["outcome"] == twin.outcome(side, group)
            assert row["n_parts"] == len({other[e] for e in group})
            assert row["exact"] == all(
                twin.true_mates(e) == twin.pred_mates(e) == frozenset(group) for e in group
            )
        assert not by_label and not lonely


def agrees(row, twin, group, metrics):
    try:
        check_group(row, twin, group, metrics)
    except AssertionError:
        return False
    return True


@examples(40)
@given(cases(), st.data())
def test_slices_by_attribute(case, data):
    if (evaluated := both(case)) is None:
        return
    ev, twin = evaluated
    everyone = case[0].items
    values = st.sampled_from(["x", "y", None])
    known = data.draw(st.lists(st.sampled_from(everyone), unique=True, min_size=1))
    colour = {e: data.draw(values) for e in known}
    year = {e: data.draw(st.sampled_from([1999, 2024, None])) for e in known}
    table = {
        "item": known,
        "colour": pa.array(list(colour.values()), pa.string()),
        "year": pa.array(list(year.values()), pa.int32()),
    }
    groups, crossed = {}, {}
    for e in twin.items:  # an item that the table lacks has null attributes
        groups.setdefault(colour.get(e), []).append(e)
        crossed.setdefault((colour.get(e), year.get(e)), []).append(e)
    rows = ev.slices("colour", attributes=table).to_pylist()
    assert [row["colour"] for row in rows] == sorted(groups, key=lambda v: (v is None, v or ""))
    for row in rows:
        check_group(row, twin, groups[row["colour"]], ev.metrics)
    rows = ev.slices(("colour", "year"), attributes=table).to_pylist()
    assert len(rows) == len(crossed)
    for row in rows:
        check_group(row, twin, crossed.pop((row["colour"], row["year"])), ev.metrics)


@examples(40)
@given(cases())
def test_slices_by_size(case):
    if (evaluated := both(case)) is None:
        return
    ev, twin = evaluated
    for name, mates in (("true_size", twin.true_mates), ("pred_size", twin.pred_mates)):
        groups = {}
        for e in twin.items:
            low = 1 << (len(mates(e)).bit_length() - 1)
            groups.setdefault("1" if low == 1 else f"{low}-{2 * low - 1}", []).append(e)
        rows = ev.slices(name).to_pylist()
        assert [row[name] for row in rows] == sorted(groups, key=lambda v: int(v.split("-")[0]))
        for row in rows:
            check_group(row, twin, groups[row[name]], ev.metrics)


@examples(40)
@given(cases(), st.data())
def test_subsets(case, data):
    if (evaluated := both(case)) is None:
        return
    ev, twin = evaluated
    chosen = data.draw(st.lists(st.sampled_from(twin.items), unique=True, min_size=1))
    scored = [row["item"] for row in ev.items().to_pylist()]
    here = np.isin(np.arange(len(scored)), [scored.index(e) for e in chosen])
    named = ev.slices({"chosen": chosen, "all": twin.items})
    first, everything = named.to_pylist()
    assert (first["slice"], everything["slice"]) == ("chosen", "all")
    check_group(first, twin, chosen, ev.metrics)
    check_group(everything, twin, twin.items, ev.metrics)
    if not any(twin.weight[e] for e in chosen):
        with pytest.raises(SliceError, match="weight 0"):
            ev.subset(chosen)
        return
    subset = ev.subset(chosen)
    assert set(subset) == {m.name for m in ev.metrics if not m.overall_only}
    for name, found in subset.items():
        check(found, twin.mean(name, chosen), name)
        assert found == first[name]
    if len(scored) == len(ev.contingency.rows.cell):  # a mask has a value for every row
        assert ev.subset(here) == subset
        assert ev.slices({"mask": here})["precision"].to_pylist() == [subset["precision"]]


@examples(30)
@given(pairs(unmatched=False), st.data())
def test_masks_follow_the_rows_of_the_truth(pair, data):
    ev, twin = evaluate(pair), evaluate_naively(pair)
    mask = data.draw(st.lists(st.booleans(), min_size=len(pair.truth), max_size=len(pair.truth)))
    chosen = [e for e, chosen in zip(pair.truth, mask, strict=True) if chosen]
    if not chosen:
        with pytest.raises(SliceError, match="no scored item"):
            ev.subset(np.array(mask, bool))
        return
    for name, found in ev.subset(np.array(mask)).items():
        check(found, twin.mean(name, chosen), name)


@examples(80)
@given(cases())
def test_coverage(case):
    if (evaluated := both(case, metrics="precision")) is None:
        return
    ev, twin = evaluated
    expected, found = twin.coverage, ev.coverage
    for name in ("common", "truth_only", "prediction_only"):
        assert getattr(found, f"n_{name}") == expected[f"n_{name}"]
        weight = getattr(found, f"weight_{name}")
        check(weight / float(expected[f"w_{name}"] or 1), bool(expected[f"w_{name}"]), name)
    assert found.complete == (not found.n_truth_only and not found.n_prediction_only)
    if expected["truth_coverage"] is not None:
        check(found.truth_coverage, expected["truth_coverage"])


@examples(80)
@given(cases())
def test_bounds(case):
    if (evaluated := both(case, metrics="precision")) is None:
        return
    ev, twin = evaluated
    codes = {warning["code"] for warning in ev.warnings}
    if twin.policy["prediction"] != "drop" or not ev.coverage.n_prediction_only:
        assert ev.bounds is None and "dropping-flatters" not in codes
        return
    expected = twin.coverage
    check(ev.bounds.precision_lower, expected["precision_lower"], "lower")
    check(ev.bounds.precision_upper, expected["precision_upper"], "upper")
    check(ev.bounds.unlabelled_mates, expected["mates_unlabelled"], "unlabelled")
    assert ev.bounds.precision_lower <= ev.precision + 1e-15 <= ev.bounds.precision_upper + 2e-15
    apart = expected["precision_upper"] - expected["precision_lower"]
    if abs(apart - Fraction(1, 100)) > 1e-9:
        assert ("dropping-flatters" in codes) == (apart > Fraction(1, 100))


def test_the_warning_is_also_a_python_warning():
    truth, prediction = {1: 0, 2: 0}, {1: 0, 2: 0, 3: 0}
    with pytest.warns(EvaluationWarning, match=r"100 % of the scored weight.* 0\.66667 to 1\."):
        ev = fb.evaluate(truth, prediction)
    assert [warning["code"] for warning in ev.warnings] == ["dropping-flatters", "few-units"]


def test_lower_bound_is_the_score_under_outside():
    pair = Pair({1: 0, 2: 0, 3: 1}, {1: 0, 2: 0, 3: 0, 4: 0, 5: 1})
    ev = evaluate(pair)
    check(ev.bounds.precision_lower, evaluate(pair, unmatched={"prediction": "outside"}).precision)
    # items 1, 2: 2/4 or 3/4; item 3: 1/4 or 2/4
    assert ev.bounds.precision_lower == pytest.approx(5 / 12, abs=1e-15)
    assert ev.bounds.precision_upper == pytest.approx(8 / 12, abs=1e-15)


@examples(50)
@given(cases())
def test_summary(case):
    if (evaluated := both(case, metrics="precision")) is None:
        return
    ev, twin = evaluated
    for side, expected in twin.summary.items():
        found = ev.summary[side]
        sizes = sorted(len(group) for group in twin.clusters(side).values())
        became = Counter(twin.outcome(side, group) for group in twin.clusters(side).values())
        assert found == {
            "items": expected["n_items"],
            "clusters": expected["n_clusters"],
            "singletons": expected["n_singletons"],
            "largest": expected["largest"],
            "exact": expected["n_exact"],
            "outcomes": {name: became[name] for name in OUTCOMES[side]},
            # the smallest size that this share of the clusters does not exceed
            "size_quantiles": {
                f"{q:g}": next(s for k, s in enumerate(sizes, 1) if Fraction(str(q)) * len(sizes) <= k)
                for q in (0.5, 0.9, 0.99)
            },
        }


@examples(40)
@given(cases())
def test_own_formula(case):
    if (evaluated := both(case, metrics="precision")) is None:
        return
    ev, twin = evaluated

    def sokal_sneath(tp, fp, fn, tn):
        return tp / (tp + 2 * fp + 2 * fn)

    check(ev.metric(sokal_sneath), twin.lift(sokal_sneath))
    if twin.policy["prediction"] != "outside":
        # a difference of two rates, so that the true negatives count
        check(
            ev.metric(lambda tp, fp, fn, tn: tp / (tp + fn) - fp / (tp + fp + fn + tn)),
            twin.lift(lambda tp, fp, fn, tn: tp / (tp + fn) - fp / (tp + fp + fn + tn)),
        )


def test_raise_policy():
    for unmatched, truth, prediction in (
        ("raise", {1: 0, 2: 0}, {1: 0}),
        ({"prediction": "raise"}, {1: 0}, {1: 0, 2: 0}),
    ):
        with pytest.raises(ValueError):
            naive.evaluate(truth, prediction, unmatched=unmatched)
        with pytest.raises(fb.errors.AlignmentError, match=r"1 of 2 items .* missing"):
            fb.evaluate(truth, prediction, unmatched=unmatched)
    same = {1: 0, 2: 0}
    assert fb.evaluate(same, same, unmatched="raise").precision == 1


@examples(30)
@given(pairs(), st.data())
def test_items_without_a_weight(pair, data):
    """A weight table that lacks items: fine where they are dropped, an error where they count."""
    some = data.draw(st.lists(st.sampled_from(pair.items), unique=True, min_size=1))
    weight = {e: 1.0 + k for k, e in enumerate(some)}
    unmatched = data.draw(st.sampled_from(POLICIES))
    options = {"unmatched": unmatched, "metrics": "pointwise"}
    try:
        twin = naive.evaluate(*pair, weight, unmatched=unmatched)
    except ValueError:
        with warnings.catch_warnings(), pytest.raises(WeightError, match="weight"):
            warnings.simplefilter("ignore", EvaluationWarning)
            fb.evaluate(*pair, weight=weight, **options)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        ev = fb.evaluate(*pair, weight=weight, **options)
    for name, found in ev.overall.items():
        check(found, mean_of(twin, name), name)
    for name in ("common", "truth_only", "prediction_only"):
        expected = twin.coverage[f"w_{name}"]
        found = getattr(ev.coverage, f"weight_{name}")
        assert math.isnan(found) if expected is None else found == expected
    if twin.policy["prediction"] == "drop" and ev.bounds is not None:
        expected = twin.coverage
        assert ev.bounds.unlabelled_mates == pytest.approx(float(expected["mates_unlabelled"]), abs=1e-15)
        if expected["precision_lower"] is None:
            assert math.isnan(ev.bounds.precision_lower) and math.isnan(ev.bounds.precision_upper)
            assert "dropping-flatters" in {warning["code"] for warning in ev.warnings}
        else:
            check(ev.bounds.precision_lower, expected["precision_lower"])
            check(ev.bounds.precision_upper, expected["precision_upper"])


@examples(40)
@given(pairs(), st.sampled_from(POLICIES), st.data())
def test_one_table(pair, unmatched, data):
    """With nulls="drop", a null of one table says that the side lacks the item; both may."""
    weight = data.draw(weights(len(pair.items) + 1))
    lacking = "neither" if isinstance(pair.items[0], str) else 77  # an item of neither side
    items = [*pair.items, lacking]
    table = {
        "item": items,
        "t": [pair.truth.get(e) for e in items],
        "p": [pair.prediction.get(e) for e in items],
        "w": weight or [1.0] * len(items),
    }
    twin = evaluate_naively(pair, weight and weight[:-1], unmatched=unmatched)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        ev = fb.evaluate(
            "t", "p", table=table, weight=weight and "w", unmatched=unmatched, nulls="drop",
            metrics=WITH_TWINS, threads=1,
        )  # fmt: skip
    for name, found in ev.overall.items():
        check(found, mean_of(twin, name), name)
    assert ev.coverage.n_common == twin.coverage["n_common"]
    assert ev.coverage.n_truth_only == twin.coverage["n_truth_only"]
    assert ev.coverage.n_prediction_only == twin.coverage["n_prediction_only"]
    rows = {row["item"]: row for row in ev.items().to_pylist()}
    assert set(rows) == set(twin.items)
    for e, row in rows.items():
        check_matrix(row, twin, e)


@examples(30)
@given(pairs(unmatched=False), st.data())
def test_nulls_and_noise(pair, data):
    """Null or noise labels: items alone, or not on that side."""
    marked = [data.draw(st.sets(st.sampled_from(pair.items), max_size=len(pair.items) - 1)) for _ in pair]
    given_nulls = [
        {e: None if e in some else c for e, c in side.items()}
        for side, some in zip(pair, marked, strict=True)
    ]
    alone = [
        {e: naive.Alone(e) if e in some else c for e, c in side.items()}
        for side, some in zip(pair, marked, strict=True)
    ]
    twin = naive.evaluate(*alone)
    ev = fb.evaluate(*given_nulls, nulls="singleton", metrics=WITH_TWINS, threads=1)
    assert ev.coverage.n_null == sum(map(len, marked))
    for name, found in ev.overall.items():
        check(found, mean_of(twin, name), name)

    codes = [
        {e: -1 if e in some else list(side.values()).index(c) for e, c in side.items()}
        for side, some in zip(pair, marked, strict=True)
    ]
    noisy = fb.evaluate(*codes, noise=-1, metrics=WITH_TWINS, threads=1)
    assert noisy.overall == ev.overall
    assert noisy.coverage.n_noise == sum(map(len, marked))

    left = [{e: c for e, c in side.items() if e not in some} for side, some in zip(pair, marked, strict=True)]
    if not set(left[0]) & set(left[1]):
        with pytest.raises(fb.errors.EmptyInputError):
            fb.evaluate(*given_nulls, nulls="drop")
        return
    unmatched = data.draw(st.sampled_from(POLICIES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        dropped = fb.evaluate(*given_nulls, nulls="drop", unmatched=unmatched, metrics=WITH_TWINS, threads=1)
    twin = naive.evaluate(*left, unmatched=unmatched)
    for name, found in dropped.overall.items():
        check(found, mean_of(twin, name), name)


@examples(40)
@given(cases(unmatched=False))
def test_arrays_and_dicts_agree(case):
    """By position and by item the same scores come out, and the functions of `metrics` agree."""
    pair, weight, chosen = case
    items = list(pair.truth)
    labels = [list(pair.truth.values()), [pair.prediction[e] for e in items]]
    by_item = None if weight is None else [dict(zip(pair.items, weight, strict=True))[e] for e in items]
    if by_item is not None and not any(by_item):
        return
    ev = evaluate(pair, weight, **chosen)
    other = fb.evaluate(*labels, weight=by_item, metrics=WITH_TWINS, **chosen)
    for name, found in other.overall.items():
        if not math.isnan(ev.overall[name]):
            assert found == ev.overall[name], name
    if chosen["weighting"] == "pointwise":
        assert fb.metrics.bcubed_precision(*labels, sample_weight=by_item) == ev.precision
        assert fb.metrics.elm_mean_f1(*labels, sample_weight=by_item) == ev.elm_mean_f1
