"""Estimates from judged pairs: right on average, as far off as they say, from whatever file, and nothing silent."""

from __future__ import annotations

import csv
import itertools
import math
import pickle
from collections import Counter

import naive
import naive_pairs_judged as twins
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import fastbcubed as fb
from fastbcubed import Table
from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    EvaluationWarning,
    FastBCubedError,
    JudgementError,
    MetricError,
    OptionError,
)
from fastbcubed.sample.judged_pairs import PAIR_SCORES
from fastbcubed.sample.pair_sample import sample_pairs, write_csv, write_pairs
from fastbcubed.sample.spreadsheets import as_it_was, no_formulas

ITEMS = "abcdef"
BASE, EXP, IDEAL = (
    dict(zip(ITEMS, labels, strict=True)) for labels in ([1, 1, 1, 2, 2, 3], "xxyyyz", "uuvvww")
)


def judged(pairs, ideal):
    """Return the pairs as a dict of columns, with the verdicts of a truth."""
    columns = pairs.to_pydict()
    plain = [[tuple(e.values()) if isinstance(e, dict) else e for e in columns[c]] for c in ("item", "mate")]
    return columns | {"verdict": [twins.judge(ideal, i, j) for i, j in zip(*plain, strict=True)]}


def by_score(labelled, **options):
    return {row["score"]: row for row in fb.estimate_pairs(labelled, **options).to_pylist()}


def table(verdicts, **others):
    """Return pairs of one stratum that come to 1/2, each with probability 1/1000, with these verdicts."""
    n = len(verdicts)
    usual = {
        "pair": list(range(1, n + 1)), "repeats": [None] * n, "score": ["good_split_rate"] * n, "n_pairs": [n] * n,
        "change": ["split"] * n, "probability": [0.001] * n, "sign": [1] * n, "z": [0.5] * n, "verdict": verdicts,
    }  # fmt: skip
    return usual | others


def wilson(k, n):
    z = stats.norm.ppf(0.975)
    centre, reach = k + z * z / 2, z * math.sqrt(k * (n - k) / n + z * z / 4)
    return (centre - reach) / (n + z * z), (centre + reach) / (n + z * z)


def test_it_begins_with_how_much_is_right():
    """95 of 100 draws of what was split are different, and 80 of 100 of what was merged are the same."""
    verdicts = ["different"] * 95 + ["same"] * 5 + ["same"] * 80 + ["different"] * 20
    both = {
        "score": ["rates"] * 200,
        "change": ["split"] * 100 + ["merged"] * 100,
        "z": [0.2] * 100 + [0.1] * 100,
    }
    found = fb.estimate_pairs(table(verdicts, **both))
    split, merged = (" to ".join(f"{100 * end:.1f} %" for end in wilson(k, 100)) for k in (95, 80))
    assert found.sentences == [
        f"95.0 % of the splitting is right ({split}) and 80.0 % of the merging ({merged}).",
        "(In parentheses, 95 % intervals.)",
    ]
    assert " ".join(repr(found).split()).startswith(" ".join(found.sentences))
    again = pickle.loads(pickle.dumps(found))
    assert again.sentences == found.sentences and again == found
    alone = fb.estimate_pairs(table(["different"] * 100), level=0.9).sentences
    assert (
        alone[0].startswith("100 % of the splitting is right (9") and "; merging was not judged." in alone[0]
    )
    assert alone[1] == "(In parentheses, 90 % intervals.)"


# -- The figures -----------------------------------------------------------------------------------


def test_by_hand():
    """Of 20 draws 12 count, 4 do not, 3 are unsure: 1/2 * 12/16, and 12/19 or 15/19 if the unsure do not or do."""
    found = by_score(table([*["different"] * 12, *["same"] * 4, *["unsure"] * 3, None]))
    good, bad = found["good_split_rate"], found["bad_split_rate"]
    assert good["estimate"] == pytest.approx(0.375)
    assert good["se"] == bad["se"] == pytest.approx(0.5 * math.sqrt(0.75 * 0.25 / 15))
    assert (good["low"], good["high"]) == pytest.approx([0.5 * end for end in wilson(12, 16)])
    assert (bad["low"], bad["high"]) == pytest.approx([0.5 * end for end in wilson(4, 16)])
    assert (good["n_judged"], good["n_unsure"], good["n_unjudged"]) == (16, 3, 1)
    assert (good["low_unsure"], good["high_unsure"]) == pytest.approx((0.5 * 12 / 19, 0.5 * 15 / 19))
    assert (bad["low_unsure"], bad["high_unsure"]) == pytest.approx((0.5 * 4 / 19, 0.5 * 7 / 19))


@pytest.mark.parametrize(
    "weight, expected",
    [
        (
            None,
            {
                "good_split_rate": 2 / 9, "bad_split_rate": 0, "good_merge_rate": 1 / 9, "bad_merge_rate": 1 / 9,
                "good_split_distance": 8 / 45, "good_distance": 4 / 15, "bad_distance": 4 / 45,
                "delta_precision": 1 / 6,
            },
        ),
        (
            dict(zip(ITEMS, range(1, 7), strict=True)),
            {
                "good_split_rate": 1 / 7, "good_merge_rate": 2 / 21, "bad_merge_rate": 5 / 42,
                "delta_precision": 29 / 378,
            },
        ),
    ],
)  # fmt: skip
def test_worked_case(weight, expected):
    """METRICS 11.2: where every pair was drawn and judged, both ends of the intervals are the scores."""
    ev = fb.evaluate(BASE, EXP, weight=weight)
    for drawn_for in PAIR_SCORES:
        found = by_score(judged(sample_pairs(ev, 800, score=drawn_for), IDEAL))
        for name, row in found.items():
            twin = twins.exact(naive.evaluate(BASE, EXP, weight), IDEAL, name)
            value = pytest.approx(float(twin), abs=1e-12)
            assert row["low"] == row["high"] == value
            assert row["estimate"] == row["low_unsure"] == row["high_unsure"]
            assert abs(row["estimate"] - row["low"]) <= 4 * row["se"] + 1e-12
            if name in expected:
                assert row["low"] == pytest.approx(expected[name], abs=1e-12)


@pytest.mark.slow
def test_which_scores_a_sample_serves():
    ev = fb.evaluate(BASE, EXP)
    of = {name: set(by_score(judged(sample_pairs(ev, 20, score=name), IDEAL))) for name in PAIR_SCORES}
    rates = {f"{kind}_{what}_rate" for kind in ("good", "bad") for what in ("split", "merge")}
    distances = {name for name in PAIR_SCORES if name.endswith("distance")}
    assert of["good_split_rate"] == of["bad_split_rate"] == {"good_split_rate", "bad_split_rate"}
    assert of["bad_merge_distance"] == {"good_merge_distance", "bad_merge_distance"}
    assert of["delta_precision"] == {"delta_precision"} | rates
    assert of["good_distance"] == of["bad_distance"] == distances
    assert set(by_score(judged(sample_pairs(ev, 20), IDEAL))) == rates
    for name in PAIR_SCORES:
        assert fb.estimate_pairs(judged(sample_pairs(ev, 20, score=name), IDEAL))["score"][0].as_py() == name


@pytest.mark.cases(8, 99)
@pytest.mark.parametrize("score", PAIR_SCORES)
@pytest.mark.parametrize("weight", [None, dict(zip(ITEMS, [3.0, 1.0, 1.0, 2.0, 1.0, 1.0], strict=True))])
def test_unbiased_by_all_samples(score, weight):
    """All samples of two draws from each stratum, each with its probability: estimates are right on average."""
    exp = dict(zip(ITEMS, "xyxyyy", strict=True))
    ideal = dict(zip(ITEMS, "uvuvuv", strict=True))
    ev, expected = fb.evaluate(BASE, exp, weight=weight), naive.evaluate(BASE, exp, weight)
    strata = {}
    for row in sample_pairs(ev, 2000, score=score).to_pylist():
        strata.setdefault((row["change"], row["sign"]), {})[frozenset((row["item"], row["mate"]))] = row
    mean = 0.0
    for name in PAIR_SCORES[score].answers:
        contributions = []
        for (change, sign), pairs in strata.items():
            if change not in name.counts:
                continue
            total = 0.0
            for two in itertools.product(pairs.values(), repeat=2):
                chance = math.prod(row["probability"] for row in two)
                counted = [twins.judge(ideal, row["item"], row["mate"]) == name.counts[change] for row in two]
                total += chance * two[0]["z"] * (sign if name.signed else 1) * sum(counted) / 2
            contributions.append(total)
        known = (
            next(iter(next(iter(strata.values())).values())).get("self_pairs", 0.0) if name.signed else 0.0
        )
        mean = known + sum(contributions)
        assert mean == pytest.approx(float(twins.exact(expected, ideal, name.name)), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_estimates_are_right_on_average(n):
    """All samples of n draws from three pairs, which come to 1/2; of these, 0.7 and 0.1 count: 1/2 * 0.8."""
    chances, verdicts = (0.7, 0.2, 0.1), ("different", "same", "different")
    mean = 0.0
    for drawn in itertools.product(range(3), repeat=n):
        first = [drawn.index(pair) for pair in drawn]
        repeats = [None if at == k else at + 1 for k, at in enumerate(first)]
        own = {"probability": [chances[pair] for pair in drawn], "repeats": repeats}
        row = by_score(table([verdicts[pair] for pair in drawn], **own))["good_split_rate"]
        assert row["low"] <= 0.4 + 1e-12 and row["high"] >= 0.5 * 0.1 - 1e-12
        mean += math.prod(own["probability"]) * row["estimate"]
        if len(set(drawn)) == 3:  # all is known
            assert row["low"] == row["high"] == pytest.approx(0.4)
            sentence = fb.estimate_pairs(table([verdicts[pair] for pair in drawn], **own)).sentences[0]
            assert sentence == "80.0 % of the splitting is right; merging was not judged."
    assert mean == pytest.approx(0.4, abs=1e-12)


def release(seed=0, n=400):
    """Return a baseline, an experiment and a truth: clusters split and merged, most of that rightly; and groups."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n), rng.geometric(0.35, n))
    merged = np.where(rng.random(n) < 0.3, rng.integers(0, n, n), np.arange(n))
    base = merged[truth] * 4 + (rng.random(truth.size) < 0.15)
    exp = np.where(rng.random(truth.size) < 0.6, truth * 4, base)
    exp = np.where(rng.random(truth.size) < 0.05, truth * 4 + 2, exp)
    group = np.array(["x", "y", "z"])[rng.choice(3, truth.size, p=[0.6, 0.3, 0.1])]
    weight = rng.choice([0.5, 1.0, 4.0], truth.size)
    return base, exp, truth, group, weight


def coverage(score, n, runs, by=None, weighted=False):
    """Return the share of samples whose intervals hold the scores, and how far the mean is off, in its errors."""
    base, exp, truth, group, weight = release()
    weight = weight if weighted else None
    ev = fb.evaluate(base, exp, weight=weight, attributes={"group": group}, threads=1)
    ideal = dict(enumerate(truth.tolist()))
    twin = {}
    for name in PAIR_SCORES[score].answers:
        twin[name.name] = exact(base, exp, truth, name.name, weight)
    inside, found = Counter(), {}
    for seed in range(runs):
        for name, row in by_score(judged(sample_pairs(ev, n, score=score, by=by, seed=seed), ideal)).items():
            inside[name] += row["low"] - 1e-12 <= twin[name] <= row["high"] + 1e-12
            found.setdefault(name, []).append(row["estimate"])
    off = {name: (np.mean(own) - twin[name]) / (np.std(own) / math.sqrt(runs)) for name, own in found.items()}
    return {name: inside[name] / runs for name in twin}, off


def exact(base, exp, truth, score, weight):
    """Return a score from sizes of sets; by data frame, as the naive twin takes too long."""
    frame = pd.DataFrame({"b": base, "e": exp, "t": truth, "w": 1.0 if weight is None else weight})

    def size(*columns):
        return frame.groupby(list(columns))["w"].transform("sum")

    def mean(values):
        return float((values * frame["w"]).sum() / frame["w"].sum())

    b, e, q = size("b"), size("e"), size("b", "e")
    b_same, e_same, q_same = size("b", "t"), size("e", "t"), size("b", "e", "t")
    split = {"bad": b_same - q_same, "good": (b - q) - (b_same - q_same)}
    merge = {"good": e_same - q_same, "bad": (e - q) - (e_same - q_same)}
    if score == "delta_precision":
        return mean(e_same / e) - mean(b_same / b)
    kind, what = score.split("_", 1)
    return {
        "split_rate": mean(split[kind] / b), "merge_rate": mean(merge[kind] / e),
        "split_distance": mean(split[kind] / (b + e - q)), "merge_distance": mean(merge[kind] / (b + e - q)),
        "distance": mean((split[kind] + merge[kind]) / (b + e - q)),
    }[what]  # fmt: skip


@pytest.mark.cases(0, 1)
@pytest.mark.parametrize(
    "score, n, by, weighted",
    [
        ("good_split_rate", 100, None, True),
        ("delta_precision", 120, None, False),
        ("good_distance", 150, "group", True),
    ],
)
def test_intervals_cover(score, n, by, weighted):
    shares, off = coverage(score, n, 60, by, weighted)
    assert all(0.88 <= share <= 1 for share in shares.values()), shares
    assert all(abs(each) < 4 for each in off.values()), off


def settings_of_coverage():
    """Yield scores, sizes of samples, strata and weights: two of them slow, the others for those with time."""
    several = [
        ("good_split_rate", 40, None),
        ("delta_precision", 100, "group"),
        ("good_split_rate", 300, None),
        ("bad_merge_rate", 100, None),
        ("good_distance", 100, None),
        ("delta_precision", 40, None),
        ("delta_precision", 300, None),
        ("good_merge_rate", 60, "group"),
    ]
    for k, (score, n, by) in enumerate(several):
        for weighted in (False, True):
            chosen = k < 2 and weighted == (k == 1)
            yield pytest.param(
                score, n, by, weighted, marks=pytest.mark.weekly if chosen else pytest.mark.big
            )


@pytest.mark.parametrize(("score", "n", "by", "weighted"), list(settings_of_coverage()))
def test_intervals_cover_in_many_samples(score, n, by, weighted):
    """Intervals of 95 % hold the score in 92 to 98.5 % of 600 samples, and estimates are right on average."""
    shares, off = coverage(score, n, 600, by, weighted)
    assert all(0.92 <= share <= 0.985 for share in shares.values()), shares
    assert all(abs(each) < 4 for each in off.values()), off


def test_strata_have_scores_of_their_own():
    """The weighted mean of the scores of the strata is that of all, and each is that of its items."""
    base, exp, truth, group, weight = release(n=2000)
    ev = fb.evaluate(base, exp, weight=weight, attributes={"group": group})
    labelled = judged(
        sample_pairs(ev, 600, score="delta_precision", by="group"), dict(enumerate(truth.tolist()))
    )
    whole = by_score(labelled)
    rows = fb.estimate_pairs(labelled, by_stratum=True).to_pylist()
    assert [row["stratum"] for row in rows] == [
        each for each in dict.fromkeys(labelled["stratum"]) for _ in whole
    ]
    shares = dict(zip(labelled["stratum"], labelled["share"], strict=True))
    for name, row in whole.items():
        own = {each["stratum"]: each for each in rows if each["score"] == name}
        assert sum(shares[g] * own[g]["estimate"] for g in own) == pytest.approx(row["estimate"], abs=1e-9)
        assert sum(own[g]["n_judged"] for g in own) == row["n_judged"]
        error = math.sqrt(sum((shares[g] * own[g]["se"]) ** 2 for g in own))
        assert error == pytest.approx(row["se"], abs=1e-9)
    assert sum(shares.values()) == pytest.approx(1)


def test_a_stratum_of_one_judged_pair_has_no_error():
    row = by_score(table(["same", None]))["bad_split_rate"]
    assert row["estimate"] == 0.5 and math.isnan(row["se"]) and row["low"] < 0.2 and row["high"] == 0.5


def of_strata(unsure_change):
    """Return pairs of A, a quarter of the weight, split and merged; all of one change unsure; and of B, all judged."""
    verdicts = {
        "split": ["different", "different", "same", "same"],
        "merged": ["same", "same", "same", "different"],
    }
    rows = [
        (name, change, "unsure" if name == "A" and change == unsure_change else verdict)
        for name in "AB"
        for change, own in verdicts.items()
        for verdict in own
    ]
    names, changes, said = (list(column) for column in zip(*rows, strict=True))
    shares = [{"A": 0.25, "B": 0.75}[name] for name in names]
    return table(said, score=["rates"] * 16, change=changes, stratum=names, share=shares, z=[0.1] * 16)


def test_a_stratum_of_unsure_pairs_leaves_the_others():
    """The scores of all are then those of B: half of its splitting, 0.1 / 0.75, is right."""
    for by_stratum in (False, True):
        with pytest.warns(
            EvaluationWarning, match="pairs of stratum 'A' with change \"split\": their scores"
        ):
            found = fb.estimate_pairs(of_strata("split"), by_stratum=by_stratum)
        rows = {(row.get("stratum"), row["score"]): row for row in found.to_pylist()}
        b = "B" if by_stratum else None
        assert rows[b, "good_split_rate"]["estimate"] == pytest.approx(0.05 / 0.75)
        assert rows[b, "good_split_rate"]["n_judged"] == 4
    a = rows["A", "good_split_rate"]
    assert math.isnan(a["estimate"]) and math.isnan(a["se"]) and (a["n_judged"], a["n_unsure"]) == (0, 4)
    assert (a["low"], a["high"]) == (a["low_unsure"], a["high_unsure"]) == pytest.approx((0, 0.1 / 0.25))
    assert rows["A", "good_merge_rate"]["estimate"] == pytest.approx(0.075 / 0.25)
    assert "nothing is known about the splitting because all verdicts are unsure." in found.sentences[0]
    with pytest.warns(EvaluationWarning):
        rows = by_score(of_strata("split"))
    assert rows["good_split_rate"]["n_unsure"] == 4  # of all strata
    assert rows["good_merge_rate"]["estimate"] == pytest.approx(0.15)


@pytest.mark.parametrize("score", ["good_split_rate", "delta_precision"])
def test_a_sample_of_unsure_pairs_alone_shows_nothing(score):
    labelled = table(
        ["unsure"] * 4, score=[score] * 4, self_pairs=[0.3] * 4, sign=[-1 if score[0] == "d" else 1] * 4
    )
    with pytest.warns(EvaluationWarning, match='all verdicts are "unsure" on pairs with change "split"'):
        found = fb.estimate_pairs(labelled)
    row = found.to_pylist()[0]
    assert row["score"] == score and math.isnan(row["estimate"])
    assert (row["low"], row["high"]) == pytest.approx((0, 0.5) if score[0] == "g" else (-0.2, 0.3))
    assert found.sentences[0].startswith(("Nothing is known", "The ", "Whether"))


def test_what_the_change_did_not_do_is_zero():
    only_split = fb.evaluate(BASE, {item: item for item in BASE})
    found = by_score(judged(sample_pairs(only_split, 40, score="delta_precision"), IDEAL))
    assert [found["good_merge_rate"][key] for key in ("estimate", "se", "low", "high", "n_judged")] == [0] * 5


def test_level():
    narrow, wide = (by_score(table(["same", "different"] * 20), level=level) for level in (0.5, 0.99))
    assert wide["good_split_rate"]["low"] < narrow["good_split_rate"]["low"]
    with pytest.raises(OptionError, match="level must be a confidence"):
        fb.estimate_pairs(table(["same"]), level=95)


# -- Verdicts --------------------------------------------------------------------------------------


def test_repeated_pairs_share_the_verdict():
    repeated = table(["same", "different", None, None, "same"], repeats=[None, None, 1, 1, 1])
    row = by_score(repeated)["bad_split_rate"]
    assert (row["estimate"], row["n_judged"], row["n_unjudged"]) == (0.4, 5, 0)
    late = table([None, "different", "SAME ", None, None], repeats=[None, None, 1, 1, 1])
    assert by_score(late)["bad_split_rate"] == row
    with pytest.raises(
        JudgementError, match=r"pair 4 .* repeats pair 1, but one is 'same', the other 'different'"
    ):
        fb.estimate_pairs(table(["same", "same", None, "different"], repeats=[None, None, 1, 1]))


def test_judges_may_stop_anywhere():
    """What is beyond the first pair that waits counts for nothing, even if it repeats a pair that was judged."""
    repeats = [None, None, None, None, 1, 1, None, 1]
    row = by_score(table(["same", "different", "same", None, None, None, None, None], repeats=repeats))
    assert row["bad_split_rate"]["estimate"] == pytest.approx(0.5 * 2 / 3)
    assert (row["bad_split_rate"]["n_judged"], row["bad_split_rate"]["n_unjudged"]) == (3, 5)
    shorter = by_score(table(["same", "different", "same"]))
    for key in ("estimate", "se", "low", "high"):
        assert row["good_split_rate"][key] == pytest.approx(shorter["good_split_rate"][key])


def test_skipped_pairs_are_warned_of():
    with pytest.warns(
        EvaluationWarning, match=r"2 pairs before the last one judged have no verdict \(first: 1, 3\)"
    ):
        row = by_score(table([None, "same", "", "same", "different", None]))["bad_split_rate"]
    assert (row["n_judged"], row["n_unjudged"]) == (3, 3)


def test_intervals_stay_where_the_verdicts_leave_room():
    """Two pairs have 0.9 of all, and both count: the score is at least 0.45, whatever 1/2 * 2/5 of the draws says."""
    verdicts = ["different", "different", "same", "same", "same"]
    row = by_score(table(verdicts, probability=[0.5, 0.4, 0.05, 0.02, 0.01]))["good_split_rate"]
    assert row["estimate"] == pytest.approx(0.2) and row["se"] == pytest.approx(
        0.5 * math.sqrt(0.4 * 0.6 / 4)
    )
    assert (row["low"], row["high"]) == pytest.approx((0.45, 0.5 * (0.9 + 0.02)))


# -- Files and frames ------------------------------------------------------------------------------


def shapes(labelled, folder):
    """Yield the judged pairs in every form."""
    arrow = pa.table(labelled)
    frame = arrow.to_pandas()
    yield from (labelled, arrow, fb.Table(arrow), frame, frame.sample(frac=1, random_state=0))
    yield frame.assign(verdict=frame["verdict"].astype("category")).set_index("pair")
    pq.write_table(arrow, folder / "pairs.parquet")
    frame.to_csv(folder / "pandas.csv", index=False)
    frame.to_csv(folder / "semicolons.csv", index=False, sep=";")
    frame.to_json(folder / "pairs.jsonl", orient="records", lines=True)
    write_csv(fb.Table(arrow), folder / "ours.csv")
    for name in ("pairs.parquet", "pandas.csv", "semicolons.csv", "pairs.jsonl", "ours.csv"):
        yield folder / name
        yield pd.read_csv(folder / name) if name == "pandas.csv" else str(folder / name)


@pytest.mark.slow
def test_every_container_gives_the_same(tmp_path):
    base, exp, truth, group, weight = release(n=60)
    year = np.where(group == "x", 1990, 2001)
    ev = fb.evaluate(base, exp, weight=weight, attributes={"year": year, "group": group})
    labelled = judged(
        sample_pairs(ev, 200, score="delta_precision", by="year", columns="group"),
        dict(enumerate(truth.tolist())),
    )
    labelled["verdict"] = [None if k > 180 else v for k, v in enumerate(labelled["verdict"])]
    expected = fb.estimate_pairs(labelled, by_stratum=True)
    for each in shapes(labelled, tmp_path):
        found = fb.estimate_pairs(each, by_stratum=True)
        assert found["stratum"].to_pylist() == expected["stratum"].to_pylist()
        for name in ("estimate", "se", "low", "high", "n_judged", "low_unsure"):
            assert found[name].to_pylist() == pytest.approx(expected[name].to_pylist(), rel=1e-9, nan_ok=True)


IDS = {
    "leading zeros": lambda k: f"{k:04d}",
    "integers": lambda k: k,
    "text with commas": lambda k: f'a "{k}", b\nc',
    "composite": lambda k: (f"0{k % 2}", k),
    "bytes": lambda k: bytes([k, 255]),
}


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_survive_the_file(kind, ending, tmp_path):
    names = {item: IDS[kind](k) for k, item in enumerate(ITEMS)}
    sides = [{names[item]: label for item, label in side.items()} for side in (BASE, EXP)]
    ideal = {names[item]: label for item, label in IDEAL.items()}
    pairs = sample_pairs(fb.evaluate(*sides), 60, score="delta_precision")
    file = tmp_path / f"pairs.{ending}"
    write_pairs(pairs, file)
    read = pq.read_table(file).to_pandas() if ending == "parquet" else pd.read_csv(file, dtype=str)
    if ending == "parquet":
        assert read["item"].tolist() == pairs["item"].to_pylist()
    elif kind == "composite":
        parts = [tuple(each.values()) for each in pairs["mate"].to_pylist()]
        assert [f"{a},{b}" for a, b in parts] == (
            read[read.columns[4]] + "," + read[read.columns[5]]
        ).tolist()
    else:
        told = [each.hex() if isinstance(each, bytes) else str(each) for each in pairs["item"].to_pylist()]
        assert read["item"].tolist() == told
    read["verdict"] = judged(pairs, ideal)["verdict"]
    expected = {name: twins.exact(naive.evaluate(BASE, EXP, None), IDEAL, name) for name in PAIR_SCORES}
    for name, row in by_score(read).items():
        assert (row["low"], row["high"]) == pytest.approx((float(expected[name]),) * 2, abs=1e-9)


@pytest.mark.parametrize(
    ("same", "different"),
    [("yes", "no"), ("Y", "N"), ("1", "0"), ("TRUE", "false"), (1, 0), (1.0, 0.0), (True, False)],
)
def test_verdicts_in_other_words(same, different, tmp_path):
    """Spreadsheets and labelling tools have them; a number is a float where another verdict is missing."""
    words = {"same": same, "different": different, None: None}
    verdicts = ["same", "different", "different", "same", None]
    expected = fb.estimate_pairs(pa.table(table(verdicts)))
    told = table([words[each] for each in verdicts])
    assert fb.estimate_pairs(pa.table(told)).to_pylist() == expected.to_pylist()
    pd.DataFrame(told).to_csv(tmp_path / "pairs.csv", index=False)
    assert fb.estimate_pairs(tmp_path / "pairs.csv").to_pylist() == expected.to_pylist()


def test_no_text_is_a_formula_to_a_spreadsheet(tmp_path):
    """Labels come from anywhere: =HYPERLINK(...) would run where pairs.csv is opened."""
    names = ["=1+1", "+49", "-5", "@x", "'=x", "'quoted", "\t=1", "a=b", "＝1", "''-"]
    written = ["'=1+1", "'+49", "'-5", "'@x", "''=x", "'quoted", "'\t=1", "a=b", "'＝1", "'''-"]
    diff = fb.diff(dict.fromkeys(names, 0), dict(zip(names, range(10), strict=True)), keep="items")
    write_pairs(diff.sample_pairs(200, score="good_split_rate"), tmp_path / "pairs.csv")
    with open(tmp_path / "pairs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["item"] for row in rows} == set(written)
    assert {row["sign"] for row in rows} == {"1"}
    assert [as_it_was(each) for each in written] == names
    numbers = pa.chunked_array([[-1, 2]])
    assert no_formulas(numbers) is numbers


def test_strata_that_look_like_formulas_are_read_as_they_were(tmp_path):
    attributes = {"item": list(ITEMS), "city": ["=a", "'=a", "=a", "'=a", "=a", "'=a"]}
    ev = fb.evaluate(BASE, EXP, attributes=attributes)
    labelled = pa.table(judged(sample_pairs(ev, 60, by="city"), IDEAL))
    write_pairs(Table(labelled), tmp_path / "pairs.csv")
    expected = fb.estimate_pairs(labelled, by_stratum=True)
    assert set(expected["stratum"].to_pylist()) == {"=a", "'=a"}
    for found, row in zip(
        fb.estimate_pairs(tmp_path / "pairs.csv", by_stratum=True).to_pylist(),
        expected.to_pylist(),
        strict=True,
    ):
        assert found == pytest.approx(row, nan_ok=True)


def test_attributes_of_any_type_are_written(tmp_path):
    import datetime

    attributes = pa.table(
        {
            "item": list(ITEMS), "names": [["Ann", "Ä"], [], None, ["x"], ["y"], ["z"]],
            "born": [datetime.date(1990, 1, k + 1) for k in range(6)], "digest": [bytes([k]) for k in range(6)],
            "city": pa.array(["a", "b", None, "a", "b", "a"]).dictionary_encode(),
        }
    )  # fmt: skip
    ev = fb.evaluate(BASE, EXP, attributes=attributes)
    pairs = sample_pairs(ev, 10, columns=["names", "born", "digest", "city"])
    write_pairs(pairs, tmp_path / "pairs.csv")
    read = pd.read_csv(tmp_path / "pairs.csv", dtype=str)
    first = read[read["item"] == "a"].iloc[0]
    assert (first["item.names"], first["item.born"], first["item.digest"], first["item.city"]) == (
        '["Ann", "Ä"]', "1990-01-01", "00", "a",
    )  # fmt: skip
    with pytest.raises(OptionError, match=r"ends in .csv or .parquet, not to pairs.xlsx"):
        write_pairs(pairs, "pairs.xlsx")


# -- What is wrong ---------------------------------------------------------------------------------

GOOD = ["same", "different", "same", "unsure"]


@pytest.mark.parametrize(
    "change, error, message",
    [
        (
            {"verdict": ["same", "diff", "maybe", None]},
            JudgementError,
            "1 of 4 in .*, of pair 2 are not .first: 'diff'.*mean 'different'",
        ),
        ({"verdict": [None] * 4}, JudgementError, "no pair has a verdict"),
        (
            {"stratum": list("aabb"), "share": [0.5] * 4, "verdict": ["same", "same", None, None]},
            JudgementError,
            "no pair of stratum 'b' with change \"split\" .* these pairs: 3, 4",
        ),
        ({"pair": [1, 2, 2, 3]}, DuplicateItemError, "1 of 3 pairs are in .* more than once .first: 2"),
        ({"n_pairs": [6] * 4}, JudgementError, "2 of the 6 pairs that were drawn are not in .*5, 6"),
        (
            {"n_pairs": [4, 4, 5, 4]},
            JudgementError,
            "n_pairs should be 4, as in the first row, but is 5 in pair 3",
        ),
        ({"n_pairs": [3] * 4}, JudgementError, "pair should be a number from 1 to 3"),
        ({"score": ["good_split_rate", "bad_split_rate"] * 2}, JudgementError, "several samples"),
        ({"score": ["good_splits"] * 4}, MetricError, "not 'good_splits'. Did you mean"),
        (
            {"change": ["split", "merged", "split", "split"]},
            JudgementError,
            "'split', but is 'merged' in pair 2",
        ),
        ({"sign": [1, -1, 1, 1]}, JudgementError, "sign should be 1, but is -1"),
        ({"probability": [0.1, 1.2, -1, 0.1]}, JudgementError, "but is 1.2 in pair 2, and wrong in 2 of 4"),
        ({"probability": [0.5, 0.4, 0.3, 0.2]}, JudgementError, "add up to more than 1"),
        (
            {"probability": ["0,1"] * 4},
            ColumnError,
            "should be numbers, but 4 of 4 values are not .first: '0,1'.*wrote them with a decimal comma: save it with",
        ),
        (
            {"probability": ["0,1", "x", "0,1", "0,1"]},
            ColumnError,
            "4 of 4 values are not .*; change only the column verdict",
        ),
        ({"pair": [1, 2.5, 3, 4]}, ColumnError, "'pair' of .* should be whole numbers"),
        ({"pair": [1, None, 3, 4]}, ColumnError, "'pair' of .* should be whole numbers"),
        ({"z": [0.5, 0.5, 0.6, 0.5]}, JudgementError, "z differs between pairs of one stratum"),
        ({"z": [math.inf] * 4}, ColumnError, "'z' of .* should be numbers"),
        ({"z": [0.0] * 4}, JudgementError, "z should be a positive number"),
        ({"repeats": [None, 7, None, None]}, JudgementError, "the number of a pair, but is 7"),
        ({"stratum": ["a"] * 4}, ColumnError, "no column 'share'"),
    ],
)
def test_bad_tables(change, error, message):
    with pytest.raises(error, match=message):
        fb.estimate_pairs(table(GOOD) | change)


def test_missing_columns_and_no_table():
    for name in table(GOOD):
        with pytest.raises(ColumnError, match=f"There is no column '{name}'"):
            fb.estimate_pairs({key: values for key, values in table(GOOD).items() if key != name})
    with pytest.raises(ColumnError, match=r"no column 'verdict' .* Did you mean 'Verdict'"):
        fb.estimate_pairs(pa.table(table(GOOD)).rename_columns({"verdict": "Verdict"}))
    signed = table(GOOD, score=["delta_precision"] * 4)
    with pytest.raises(ColumnError, match="no column 'self_pairs'"):
        fb.estimate_pairs(signed)
    with pytest.raises(ColumnError, match="the judged pairs must be a table"):
        fb.estimate_pairs(7)
    with pytest.raises(JudgementError, match="there is no pair in"):
        fb.estimate_pairs(pa.table(table(GOOD)).slice(0, 0))
    with pytest.raises(FastBCubedError, match="absent"):
        fb.estimate_pairs("absent.csv")
