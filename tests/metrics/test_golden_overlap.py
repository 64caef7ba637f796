"""Values of the papers on overlapping clusterings, through the public functions."""

from fractions import Fraction as Fr
from pathlib import Path

import naive_overlap as twin
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from worked_covers import EXAMPLES, WORKED, homogeneity, sets

import fastbcubed as fb

VERBS = Path(fb.__file__).parent / "data" / "wordnet_verbs"
EXTENDED = {"extended_bcubed": "", "extended_elm": "elm_"}


def clusterings(*families):
    return [fb.Clustering.from_clusters([sorted(cluster) for cluster in family]) for family in families]


def score(name, truth, prediction):
    """A score by its name in the table of worked values."""
    family, _, part = name.rpartition("_")
    if family == "exact_match":
        ev = fb.extended_bcubed(truth, prediction)
        return getattr(fb.metrics.exact_match(contingency=ev.contingency), part)
    if family.endswith("cice_bcubed"):
        match = "pair" if family.startswith("pair_") else "global"
        return fb.cice_bcubed(truth, prediction, match=match).overall[f"cice_bcubed_{part}"]
    if family in EXTENDED:
        name = EXTENDED[family] + part
    return fb.evaluate(truth, prediction, overlapping=True, metrics=[name]).overall[name]


@pytest.mark.parametrize(("example", "name"), [(e, name) for e in WORKED for name in WORKED[e]])
def test_worked_values(example, name):
    """METRICS 3.4, 4.1, 4.2, 5, 13.3, 13.4, 16.2, 16.3."""
    expected = WORKED[example][name]
    tolerance = 5.1e-7 if isinstance(expected, float) else 1e-15
    assert score(name, *clusterings(*EXAMPLES[example])) == pytest.approx(float(expected), abs=tolerance)


def test_exact_matches_of_repeated_clusters():
    """{1,2} once of two, {3} once of two: 2 of 4 predicted and 2 of 3 true clusters."""
    truth, prediction = clusterings(sets("12", "12", "3"), sets("12", "3", "3", "1"))
    ev = fb.evaluate(truth, prediction, overlapping=True, metrics="matching")
    found = fb.metrics.exact_match(contingency=ev.contingency)
    assert found == (2 / 4, 2 / 3, pytest.approx(4 / 7, abs=1e-15))
    assert found == tuple(ev.overall[f"cluster_{part}"] for part in ("precision", "recall", "f1"))


def test_cutting_a_mixed_cluster_can_lower_global_cice():
    """METRICS 4.2: the F falls in the sixth digit; with match="pair" it rises."""
    truth, mixed, cut = clusterings(*homogeneity())
    before, after = (fb.cice_bcubed(truth, p).cice_bcubed_f1 for p in (mixed, cut))
    assert before == pytest.approx(float(Fr(4843412893, 5599570725)), abs=1e-15)
    assert after == pytest.approx(float(Fr(60541558, 69993981)), abs=1e-15)
    assert after < before
    before, after = (fb.cice_bcubed(truth, p, match="pair").cice_bcubed_f1 for p in (mixed, cut))
    assert (before, after) == (pytest.approx(0.8631407, abs=5.1e-8), pytest.approx(0.8643260, abs=5.1e-8))


@pytest.mark.parametrize("sizes", [(1,), (3,), (4, 2, 1), (50, 30, 20)])
def test_cheat_output(sizes):
    """One cluster of all and a singleton each: R = inverse purity = 1; P and purity as METRICS 13.3 says."""
    n, truth = sum(sizes), []
    for size in sizes:
        start = sum(map(len, truth))
        truth.append(set(range(start, start + size)))
    cheat = clusterings(truth, [set(range(n)), *({e} for e in range(n))])
    scores = fb.evaluate(
        *cheat, overlapping=True, metrics=["precision", "recall", "purity", "inverse_purity"]
    )
    assert scores.recall == scores.inverse_purity == 1
    assert scores.precision == pytest.approx(float(sum(s * (s - Fr(1, 2)) for s in sizes) / n**2), abs=1e-15)
    assert scores.purity == pytest.approx((max(sizes) + n) / (2 * n), abs=1e-15)


@pytest.fixture(scope="module")
def verbs():
    """Return the verbs that begin with b, by name: few enough for the twin."""
    tables = {name: pq.read_table(VERBS / f"{name}.parquet") for name in ("truth", "pred_hypernym")}
    return {name: table.filter(pa.compute.starts_with(table["item"], "bl")) for name, table in tables.items()}


def families(*tables):
    found = []
    for table in tables:
        clusters = {}
        for row in table.to_pylist():
            clusters.setdefault(row["cluster"], set()).add(row["item"])
        found.append(list(clusters.values()))
    return found


@pytest.mark.slow
def test_verbs_with_the_twin(verbs):
    """Verbs that begin with bl, cut out of their synsets, which makes other synsets of them."""
    truth, prediction = verbs["truth"], verbs["pred_hypernym"]
    pair = twin.align(*families(truth, prediction))
    names = ["precision", "recall", "f1", "mean_f1", "elm", "overlap"]
    ev = fb.evaluate(truth, prediction, overlapping=True, metrics=names)
    expected = twin.extended_bcubed(*pair)
    for name in ("precision", "recall", "f1", "mean_f1"):
        assert ev.overall[name] == pytest.approx(float(getattr(expected, name)), abs=1e-12)
    assert ev.overall["elm_f1"] == pytest.approx(float(twin.extended_elm(*pair).f1), abs=1e-12)
    for name in ("omega", "onmi_lfk", "onmi_max", "onmi_mean"):
        assert ev.overall[name] == pytest.approx(float(getattr(twin, name)(*pair)), abs=1e-12)


def test_verbs_with_another_package(verbs):
    """The package `bcubed` takes a dict from item to clusters of each side, the prediction first."""
    bcubed = pytest.importorskip("bcubed")
    sides = [{}, {}]
    for side, name in zip(sides, ("truth", "pred_hypernym"), strict=True):
        for row in verbs[name].to_pylist():
            side.setdefault(row["item"], set()).add(row["cluster"])
    truth, prediction = ({item: side[item] for item in sides[0] if item in sides[1]} for side in sides)
    ev = fb.extended_bcubed(verbs["truth"], verbs["pred_hypernym"])
    assert ev.precision == pytest.approx(bcubed.precision(prediction, truth), abs=1e-12)
    assert ev.recall == pytest.approx(bcubed.recall(prediction, truth), abs=1e-12)


@pytest.mark.slow
def test_all_verbs():
    """A verb in its first sense alone is never wrong: precision 1; a coarser one finds nearly all."""
    truth = VERBS / "truth.parquet"
    first = fb.extended_bcubed(truth, VERBS / "pred_first_sense.parquet")
    assert first.precision == 1
    assert first.recall < 0.8
    coarse = fb.extended_bcubed(truth, VERBS / "pred_hypernym.parquet")
    assert coarse.recall > 0.95 > coarse.precision
