"""The twin of comparisons against values worked by hand or printed in METRICS.md, and against the twin of one run."""

import math
from fractions import Fraction as Fr

import naive
import naive_errors
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from naive_compare import compare, tau_b
from scipy.stats import kendalltau
from strategies_compare import comparisons
from test_naive import labels

SCORES = ("precision", "recall", "f1", "mean_f1", "jaccard_index", "jaccard_distance", "fbeta", "elm_f1")


def five(**others):
    """Truth ab|cd|e; a baseline without fault, an experiment that splits cd."""
    return labels("ab", "cd", "e"), {
        "old": labels("ab", "cd", "e"),
        "new": labels("ab", "c", "d", "e"),
        **others,
    }


# Deltas and their errors


def test_a_split_cluster():
    """Recall goes from 1 to (1 + 1 + 1/2 + 1/2 + 1) / 5; F from 1 to 2 * 4/5 / (9/5)."""
    cmp = compare(*five())
    assert cmp.baseline == "old" and cmp.experiments == ["new"]
    assert cmp.compare("new", "recall")[:3] == (1, Fr(4, 5), Fr(-1, 5))
    assert cmp.compare("new", "precision") == (1, 1, 0, 0)
    assert cmp.delta("new", "f1") == Fr(-1, 9)
    unit = cmp.components()
    assert unit["a"] == unit["b"] and unit["c"] == unit["d"] and len(set(unit.values())) == 3
    # share * (s - 4/5) of ab, cd, e; the baseline's are 0
    differences = cmp.differences("new", "recall")
    assert [differences[unit[e]] for e in "ace"] == [Fr(2, 25), Fr(-3, 25), Fr(1, 25)]
    # 3/2 * (4 + 9 + 1) / 625
    assert cmp.error("new", "recall") == pytest.approx(math.sqrt(21) / 25, rel=1e-15)
    # dF/dR = 1/2 * (8/9)^2 / (4/5)^2 = 50/81
    assert cmp.error("new", "f1") == pytest.approx(50 / 81 * math.sqrt(21) / 25, rel=1e-15)


def test_a_third_run_joins_components():
    """It merges ab and cd, two units, of which one has over a tenth of the weight: those of two runs are taken."""
    cmp = compare(*five(third=labels("abcd", "e")))
    assert len(set(cmp.components().values())) == 2
    assert cmp.error("new", "recall") == pytest.approx(math.sqrt(21) / 25, rel=1e-15)
    # of all runs: abcd with (2 - 3) / 25 and e with 1 / 25
    joint = cmp.error("new", "recall", cmp.components())
    assert joint == pytest.approx(2 / 25, rel=1e-15)  # 2/1 * 2 / 625
    by_true = cmp.error("new", "recall", cmp.true_clusters())
    assert by_true == pytest.approx(math.sqrt(21) / 25, rel=1e-15)


def test_a_split_cluster_with_weights():
    """Weights 1 to 5: recall is (8 + 9/7 + 16/7) / 15 = 27/35; d_u are 24, -64, 40 over 525."""
    cmp = compare(*five(), dict(zip("abcde", range(1, 6), strict=True)))
    assert cmp.delta("new", "recall") == Fr(-8, 35)
    unit, differences = cmp.components(), cmp.differences("new", "recall")
    assert [differences[unit[e]] for e in "ace"] == [Fr(24, 525), Fr(-64, 525), Fr(40, 525)]
    assert cmp.error("new", "recall") == pytest.approx(math.sqrt(1.5 * 6272) / 525, rel=1e-15)


@pytest.mark.parametrize(
    ("weights", "p", "r"), [(None, Fr(1, 6), Fr(1, 6)), (range(1, 7), Fr(29, 378), Fr(8, 49))]
)
def test_worked_deltas(weights, p, r):
    """METRICS 11.2; all items are connected, so there is no error."""
    runs = {"base": labels("abc", "de", "f"), "exp": labels("ab", "cde", "f")}
    weights = None if weights is None else dict(zip("abcdef", weights, strict=True))
    cmp = compare(labels("ab", "cd", "ef"), runs, weights)
    assert (cmp.delta("exp", "precision"), cmp.delta("exp", "recall")) == (p, r)
    if weights is None:
        assert cmp.delta("exp", "jaccard_distance") == Fr(-2, 9)
    assert math.isnan(cmp.error("exp", "precision"))


def test_of_a_slice():
    """Of c, d and e recall falls from 1 to 2/3; of the two units, d_u are 2/3 * (1/2 - 2/3) and 1/3 * (1 - 2/3)."""
    cmp = compare(*five())
    assert cmp.delta("new", "recall", "cde") == Fr(-1, 3)
    differences = cmp.differences("new", "recall", subset="cde")
    assert set(differences.values()) == {Fr(-1, 9), Fr(1, 9)}
    assert cmp.error("new", "recall", subset="cde") == pytest.approx(2 / 9, rel=1e-15)  # 2/1 * 2/81
    assert math.isnan(cmp.error("new", "recall", subset="cd"))


def test_what_items_add():
    cmp = compare(*five())
    assert [cmp.gain("new", "recall", e) for e in "abcde"] == [0, 0, Fr(-1, 10), Fr(-1, 10), 0]
    assert cmp.gain("new", "recall", "abcde") == cmp.delta("new", "recall")


def test_ranks():
    cmp = compare(*five(third=labels("abcd", "e"), same=labels("ab", "cd", "e")))
    assert [cmp.rank(name, "recall") for name in cmp.runs] == [1, 4, 1, 1]
    assert [cmp.rank(name, "precision") for name in cmp.runs] == [1, 1, 4, 1]
    assert [cmp.rank(name, "over_merge_rate", "lower") for name in cmp.runs] == [1, 1, 4, 1]


# Which items


TRUTH, X, Y = labels("ab", "c"), labels("abd"), labels("ac")


@pytest.mark.parametrize(
    ("unmatched", "align", "items", "of_x", "of_y"),
    [
        ("drop", "common", "a", (1, 1), (1, 1)),
        ("drop", "each", "abc", (1, 1), (Fr(1, 2), 1)),
        # x: ab|c, and d in x alone is left out; y: ac|b
        ("singleton", "common", "abc", (1, 1), (Fr(2, 3), Fr(2, 3))),
        # x: abd|c, of which d is alone in the truth
        ("singleton", "each", "abcd", (Fr(2, 3), 1), (Fr(2, 3), Fr(2, 3))),
        ("outside", "common", "abc", (Fr(7, 9), 1), (Fr(2, 3), Fr(2, 3))),
        # b, which y lacks, is in no set; d, which nobody scores, stays a mate
        ({"truth": "drop", "prediction": "outside"}, "common", "a", (Fr(1, 2), 1), (1, 1)),
        ({"truth": "drop", "prediction": "outside"}, "each", "abc", (Fr(2, 3), 1), (Fr(1, 2), 1)),
        ({"prediction": "singleton"}, "common", "a", (1, 1), (1, 1)),
        ({"prediction": "singleton"}, "each", "abdc", (Fr(5, 9), 1), (Fr(1, 2), 1)),
    ],
)
def test_policies_act_on_each_run_first(unmatched, align, items, of_x, of_y):
    cmp = compare(TRUTH, {"x": X, "y": Y}, unmatched=unmatched, align=align)
    assert set(cmp.items) == set(items)
    for name, expected in (("x", of_x), ("y", of_y)):
        assert (cmp.value(name, "precision"), cmp.value(name, "recall")) == expected


def test_no_common_item():
    """Each has one of its own."""
    runs = {"x": {"a": 0}, "y": {"c": 0}}
    with pytest.raises(ValueError, match="scored by every run"):
        compare(TRUTH, runs)
    assert compare(TRUTH, runs, align="each").delta("y", "recall") == 0
    with pytest.raises(ValueError, match="no common item"):
        compare(TRUTH, {"x": X, "z": {"z": 0}}, align="each")


# Resampling


def test_drawing_components():
    cmp = compare(*five())
    unit = cmp.components()
    ab, cd, e = (unit[x] for x in "ace")
    assert cmp.resampled({ab: 2, cd: 0, e: 1}).delta("new", "recall") == 0
    twice = cmp.resampled({ab: 0, cd: 2, e: 1})
    assert twice.value("new", "recall") == Fr(3, 5)  # four halves and 1
    assert twice.value("new", "precision") == twice.value("old", "precision") == 1  # the copies are apart
    assert twice.runs["old"].true_mates(("c", 1)) == {("c", 1), ("d", 1)}


def test_mates_outside_are_drawn_with_their_cluster():
    """Two of a, b and d, whose items have precision 2/3, and three of c alone."""
    cmp = compare(TRUTH, {"x": X}, unmatched="outside")
    unit = cmp.components()
    drawn = cmp.resampled({unit["a"]: 2, unit["c"]: 3})
    assert drawn.value("x", "precision") == (4 * Fr(2, 3) + 3) / 7
    assert len(drawn.runs["x"].outside) == 2


@st.composite
def comparisons_and_copies(draw, least=0):
    case = draw(comparisons(7))
    try:
        cmp = compare(case.truth, case.runs, case.weight, **case.options)
    except ValueError:  # no item has weight in every run
        cmp = compare(case.truth, case.runs, None, **case.options)
        case = case._replace(weight=None)
    unit = cmp.components()
    copies = {u: draw(st.integers(least, 3)) for u in sorted(set(unit.values()))}
    return case, cmp, unit, copies


@examples(100)
@given(comparisons_and_copies())
def test_drawing_components_is_weighting_them(drawn):
    """METRICS 12.1."""
    _, cmp, unit, copies = drawn
    resampled = cmp.resampled(copies, unit)
    for name, run in cmp.runs.items():
        if any(run.weight[e] * copies[unit[e]] for e in run.true):
            for score in SCORES:
                assert resampled.value(name, score) == cmp.reweighted(name, score, copies, unit)


@examples(50)
@given(comparisons_and_copies(least=1))
def test_drawing_components_is_comparing_more_rows(drawn):
    """Rows of all tables, copied with fresh ids and labels, and compared from the start."""
    case, cmp, unit, copies = drawn
    whole = [set(cmp.runs[name].outside) for name in case.runs]
    cluster = {name: {run.pred[e]: unit[e] for e in run.pred} for name, run in cmp.runs.items()}

    def copied(rows, outside, unit_of):
        return {
            (e, k): (label, k)
            for e, label in rows.items()
            if e in unit or (e in outside and label in unit_of)
            for k in range(copies[unit[e] if e in unit else unit_of[label]])
        }

    truth = copied(case.truth, (), {})
    runs = {
        name: copied(run, outside, cluster[name])
        for (name, run), outside in zip(case.runs.items(), whole, strict=True)
    }
    weight = None
    if case.weight is not None:
        weight = {row: case.weight[row[0]] for rows in (truth, *runs.values()) for row in rows}
    again = compare(truth, runs, weight, **case.options)
    resampled = cmp.resampled(copies, unit)
    for name in case.runs:
        assert set(again.runs[name].true) == set(resampled.runs[name].true)
        for score in ("precision", "recall", "jaccard_distance"):
            assert again.value(name, score) == resampled.value(name, score)


@examples(50)
@given(comparisons_and_copies())
def test_beside_a_perfect_run_the_error_is_that_of_the_other(drawn):
    case, *_ = drawn
    run = next(iter(case.runs.values()))
    options = {name: value for name, value in case.options.items() if name not in ("align", "baseline")}
    alone = naive.evaluate(case.truth, run, case.weight, **options)
    if alone.outside:
        return
    perfect = {e: ("true", cluster) for e, cluster in alone.true.items()}
    cmp = compare(alone.true, {"perfect": perfect, "run": alone.pred}, case.weight, **options)
    expected = naive_errors.errors(alone, SCORES)
    for score in SCORES:
        assert cmp.error("run", score) == pytest.approx(expected[score], rel=1e-12, nan_ok=True)


# Kendall


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3], [1, 2, 3], 1),
        ([1, 2, 3], [3, 2, 1], -1),
        ([1, 2, 3], [1, 3, 2], 1 / 3),  # two pairs in order, one not
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(6)),  # two pairs in order, one tied on one side
        ([1, 1], [1, 2], math.nan),
        ([1], [1], math.nan),
    ],
)
def test_tau_b(first, second, expected):
    assert tau_b(first, second) == pytest.approx(expected, rel=1e-15, nan_ok=True)


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8))
def test_tau_b_is_scipy_s(pairs):
    first, second = zip(*pairs, strict=True)
    assert tau_b(first, second) == pytest.approx(kendalltau(first, second).statistic, rel=1e-12, nan_ok=True)
