"""Coreference scores against the twins, on items that differ, and what ties them to other scores."""

import naive_families
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from strategies import label_arrays, pairs
from worked import COREFERENCE, COREFERENCE_CASES, DEGENERATE, E17, E17_SCORES, W3, W3_COUNTS

import fastbcubed as fb
import fastbcubed.metrics as fbm
from fastbcubed import Contingency
from fastbcubed.errors import MetricError, OptionError

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

STEMS = ("muc", "ceaf_m", "ceaf_e", "blanc", "lea", "coref_bcubed")
CASES = {
    "seventeen items": (E17, E17_SCORES),
    "three items": (W3, W3_COUNTS),
    **{name: case for name, case in (DEGENERATE | COREFERENCE_CASES).items()},
}


def evaluate(truth, prediction, **options):
    return fb.evaluate(truth, prediction, metrics="coreference", **options).overall


def three(stem, *labels, **options):
    return tuple(getattr(fbm, f"{stem}_precision_recall_fscore")(*labels, **options))


def with_nulls(truth, prediction):
    """Return labels by position, with None where a side lacks the item."""
    items = list(truth | prediction)
    return [[None if e not in side else side[e] for e in items] for side in (truth, prediction)]


def close(expected):
    return pytest.approx(float(expected), rel=0, abs=1e-12)


@examples(150)
@given(pairs(max_size=11))
def test_twin(case):
    expected = {name: naive_families.score(name, *case) for name in COREFERENCE}
    for policy in ("drop", {"truth": "drop", "prediction": "outside"}):
        scores = evaluate(*case, unmatched=policy)
        for name in COREFERENCE:
            assert scores[name] == close(expected[name]), (name, policy)


@examples(60)
@given(pairs(max_size=9))
def test_functions_take_nulls_or_a_contingency(case):
    table, labels = fb.contingency(*case), with_nulls(*case)
    for stem in STEMS:
        expected = tuple(
            close(naive_families.score(f"{stem}_{figure}", *case)) for figure in ("precision", "recall", "f1")
        )
        assert three(stem, contingency=table) == expected
        assert three(stem, *labels) == expected
        assert getattr(fbm, f"{stem}_f1")(*labels) == expected[2]


@examples(60)
@given(pairs(max_size=9))
def test_single_items_of_the_other_side(case):
    """With "singleton" the side that lacks an item has it as an entity of its own."""
    truth = case.truth | {e: ("alone", e) for e in case.prediction.keys() - case.truth.keys()}
    prediction = case.prediction | {e: ("alone", e) for e in case.truth.keys() - case.prediction.keys()}
    scores = evaluate(*case, unmatched="singleton")
    for name in COREFERENCE:
        assert scores[name] == close(naive_families.score(name, truth, prediction)), name


@pytest.mark.parametrize("case", CASES)
def test_worked_values(case):
    sides, expected = CASES[case]
    scores, labels = evaluate(*sides), with_nulls(*sides)
    for name in set(COREFERENCE) & set(expected):
        room = 6e-7 if isinstance(expected[name], float) else 1e-12
        value = pytest.approx(float(expected[name]), rel=0, abs=room)
        assert scores[name] == value, name
        assert getattr(fbm, name)(*labels) == value, name


def test_an_entity_that_the_other_side_does_not_know_at_all():
    """{d, e} has no cell, and counts all the same: 2 of 5 mentions, 1 of 2 entities, 1 of 3 links."""
    truth, prediction = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2}, {"a": 1, "b": 1, "c": 1}
    scores = evaluate(truth, prediction)
    assert scores["muc_recall"] == 2 / 3
    assert scores["ceaf_m_recall"] == scores["coref_bcubed_recall"] == scores["lea_recall"] == 3 / 5
    assert scores["ceaf_e_recall"] == 1 / 2
    # 3 of 4 links within entities; none of the 6 between them, and the response has no such link
    assert scores["blanc_recall"] == (3 / 4 + 0) / 2
    assert scores["blanc_precision"] == (1 + 0) / 2


def test_ceaf_of_mentions_divides_by_mentions():
    scores = evaluate({"a": 1, "b": 2, "c": 2, "d": 3}, {"a": 1, "b": 2, "c": 2})
    assert (scores["ceaf_m_precision"], scores["ceaf_m_recall"]) == (1, 3 / 4)  # not 3 / 3 entities
    assert scores["ceaf_e_recall"] == 2 / 3


# -- 0 / 0 and what is not defined ------------------------------------------------------------------


def test_zero_division():
    singles = list("abc"), [1, 2, 3]
    assert three("muc", *singles) == (0, 0, 0)
    assert three("muc", *singles, zero_division=1) == (1, 1, 1)
    assert fbm.muc_recall(*singles, zero_division=0.5) == 0.5
    assert three("blanc", ["a"], ["x"]) == (0, 0, 0)
    assert three("blanc", ["a"], ["x"], zero_division=1) == (1, 1, 1)
    # links between entities: those of the key are all wrong, and the response has none
    assert three("blanc", list("ab"), [1, 1], zero_division=1) == (1, 0, 0)
    assert three("lea", *singles) == three("coref_bcubed", *singles) == (1, 1, 1)
    for value, shown in ((None, "None"), (float("inf"), "inf"), (10**400, r"1000.*\.\.\..*000")):
        with pytest.raises(OptionError, match=f"zero_division must be a finite number or NaN, not {shown}"):
            fbm.muc_f1(*singles, zero_division=value)


@pytest.mark.parametrize(
    ("true", "pred", "expected"),
    [
        ("aabb", "xxyz", (1, (1 / 2 + 1) / 2)),  # within: 1 of 1, of 2; between: 4 of 5, of 4
        ("aaa", "xxy", (1, 1 / 3)),  # the key has links within alone
        ("abc", "xxy", (1, 2 / 3)),  # and here links between alone
        ("aaa", "xyz", (0, 0)),
    ],
)
def test_links_of_one_kind(true, pred, expected):
    p, r, _ = three("blanc", list(true), list(pred))
    p_expected = (1 + 4 / 5) / 2 if true == "aabb" else expected[0]
    assert (p, r) == (close(p_expected), close(expected[1]))


@pytest.mark.parametrize("weighting", ["pointwise", "outer"])
def test_weights_are_refused(weighting):
    for name in COREFERENCE:
        with pytest.raises(MetricError, match=f"{name} .*pass no weights"):
            fb.evaluate([1, 1], [1, 2], weight=[1, 2], weighting=weighting, metrics=name)
    for stem in STEMS:
        with pytest.raises(MetricError, match="pass no weights"):
            three(stem, [1, 1], [1, 2], sample_weight=[1, 2])
    ev = fb.evaluate([1, 1], [1, 2], weight=[1, 2], weighting=weighting, metrics=["coreference", "f1"])
    assert list(ev.not_computed) == COREFERENCE


def test_no_column_of_slices_or_clusters():
    ev = fb.evaluate(*E17, metrics=["coreference", "precision"])
    for table in (ev.clusters("true"), ev.slices("true_size")):
        assert not set(table.column_names) & set(COREFERENCE)


@pytest.mark.slow
def test_a_saved_evaluation_knows_the_items_of_one_side(tmp_path):
    for sides, _ in COREFERENCE_CASES.values():
        ev = fb.evaluate(*sides, metrics="coreference")
        ev.save(tmp_path)
        again = fb.load(tmp_path)
        assert {name: again.metric(name) for name in COREFERENCE} == dict(ev.overall)


# -- relations to other scores ----------------------------------------------------------------------


@examples(100)
@given(label_arrays())
def test_on_the_same_items(labels):
    true, pred = labels
    ev = fb.evaluate(true, pred, metrics=["coreference", "precision", "recall", "elm", "matching_accuracy"])
    table, n = ev.contingency, len(true)
    merged, links = n - table.n_cells, (n - table.n_pred, n - table.n_true)
    for role, whole in zip(("precision", "recall"), links, strict=True):
        assert ev.overall[f"muc_{role}"] == (merged / whole if whole else 0)
        assert ev.overall[f"coref_bcubed_{role}"] == close(ev.overall[role])
        assert ev.overall[f"ceaf_m_{role}"] == close(ev.overall["matching_accuracy"])
    # ELM gives a singleton 1, LEA only if the other side has it as one, too
    a, b = np.bincount(true)[true], np.bincount(pred)[pred]
    elm, lea = ([ev.overall[f"{f}_{role}"] for role in ("precision", "recall")] for f in ("elm", "lea"))
    assert elm[1] - lea[1] == close(np.mean((a == 1) & (b > 1)))
    assert elm[0] - lea[0] == close(np.mean((b == 1) & (a > 1)))


def test_counts_beyond_64_bits():
    """Pairs of 2**40 items: those of the large entity swamp the others, and yet all are counted."""
    n = 1 << 40
    equal = Contingency.from_cells([0, 1], [0, 1], [n, 1])
    assert three("blanc", contingency=equal) == (1, 1, 1)
    # one more item in the large entity: (n - 1) / (n + 1) of its links; none between, where the key has n
    joined = Contingency.from_cells([0, 1], [0, 0], [n, 1])
    p, r, _ = three("blanc", contingency=joined)
    assert (p, r) == ((n - 1) / (n + 1) / 2, 1 / 2)
    # an item moved: links between are n - 1 and 2 (n - 1), and n - 1 of them are in both
    moved = Contingency.from_cells([0, 0, 1], [0, 1, 1], [n - 1, 1, 1])
    _, r, _ = three("blanc", contingency=moved)
    assert r == close(((n - 2) / n + (n - 1) / n) / 2)


@pytest.mark.slow
def test_many_cells_and_threads():
    rng = np.random.default_rng(3)
    n = 60_000
    truth = dict(enumerate(rng.integers(0, n // 3, n).tolist()))
    prediction = {e: k if rng.random() < 0.8 else e % 1000 for e, k in truth.items()}
    for side, seed in ((truth, 4), (prediction, 5)):
        for e in np.random.default_rng(seed).choice(n, n // 10, replace=False).tolist():
            side.pop(e, None)
    one, two = (evaluate(truth, prediction, threads=k) for k in (1, 2))
    assert dict(one) == dict(two)
    swapped = evaluate(prediction, truth)
    for stem in STEMS[:3] + STEMS[4:]:
        assert one[f"{stem}_precision"] == close(swapped[f"{stem}_recall"])
    sizes = np.bincount(np.fromiter(truth.values(), int))
    common = [(truth[e], prediction[e]) for e in truth if e in prediction]
    parts = len(set(common))
    assert one["muc_recall"] == close((len(common) - parts) / (len(truth) - np.count_nonzero(sizes)))
