"""Overlapping clusterings on the disk engine: the scores of the twin and of the memory engine, whatever is spilled."""

from fractions import Fraction
from unittest import mock

import naive_overlap as twin
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT, SETTINGS
from effort import pairwise
from growth import growth
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES
from strategies_overlap import covers, item_weights

import fastbcubed as fb
from fastbcubed import choose_engine
from fastbcubed.errors import (
    EmptyInputError,
    FastBCubedError,
    IdTypeError,
    NotKeptError,
    OptionError,
    SpillError,
    TooMuchWorkError,
)
from fastbcubed.overlap import cover_shards
from fastbcubed.runtime.spill import LEAVE_FREE, Spill

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
SCORES = ["precision", "recall", "f1", "mean_f1", "over_merge_rate", "under_merge_rate", "elm"]
WEIGHTINGS = ["none", "pointwise", "outer"]


def table(family, weight=None):
    """A row per membership, so that a repeated cluster is one of its own, and an attribute of items."""
    rows = [(item, number) for number, cluster in enumerate(family) for item in sorted(cluster)]
    columns = {"item": [item for item, _ in rows], "cluster": [number for _, number in rows]}
    columns["kind"] = [str(item)[-1] for item, _ in rows]
    if weight is not None:
        columns["weight"] = [weight[item] for item, _ in rows]
    return pd.DataFrame(columns)


def both(*given, **options):
    """Evaluate with either engine; an error has to be the same."""
    found = []
    for engine in ("disk", "memory"):
        try:
            ev = fb.evaluate(
                *given, overlapping=True, engine=engine, memory_limit=LIMIT, progress=False, **options
            )
        except FastBCubedError as error:
            ev = error
        found.append(ev)
    on_disk, in_memory = found
    if isinstance(in_memory, FastBCubedError):
        assert (type(on_disk), str(on_disk)) == (type(in_memory), str(in_memory))
        return None
    if isinstance(on_disk, FastBCubedError):
        raise on_disk
    return on_disk, in_memory


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


def assert_same(on_disk, in_memory):
    assert on_disk.engine == "disk"
    assert on_disk.overall == {name: close(value) for name, value in in_memory.overall.items()}
    assert on_disk.summary == in_memory.summary
    assert on_disk.definition == in_memory.definition
    ours, theirs = on_disk.coverage, in_memory.coverage
    for name in ("n_common", "n_truth_only", "n_prediction_only", "n_null", "n_noise", "n_duplicates"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("weight_common", "weight_truth_only", "weight_prediction_only"):
        assert getattr(ours, name) == close(getattr(theirs, name)), name
    assert (on_disk.bounds is None) == (in_memory.bounds is None)
    if in_memory.bounds is not None:
        for name in ("precision_lower", "precision_upper", "unlabelled_mates"):
            assert getattr(on_disk.bounds, name) == close(getattr(in_memory.bounds, name)), name
    assert on_disk.sliced.keys() == in_memory.sliced.keys()
    for name, expected in in_memory.sliced.items():
        found = on_disk.sliced[name].to_pylist()
        assert found == [{key: close(v) if isinstance(v, float) else v for key, v in row.items()}
                         for row in expected.to_pylist()]  # fmt: skip


def narrow(most):
    """Take cells of more clusters as wide: none, some, or all that are scored."""
    return mock.patch.object(cover_shards, "NARROW", most)


NARROW = st.sampled_from([1, 2, 3, 8])


@SETTINGS
@given(covers(), st.data(), st.sampled_from(["drop", "singleton", "outside"]), NARROW)
def test_scores_of_the_twin(many_shards, pair, data, unmatched, most):
    weight = data.draw(st.none() | item_weights(pair.items))
    given = [table(family, weight) for family in pair]
    options = {} if weight is None else {"weight": "weight"}
    with narrow(most):
        ev = fb.extended_bcubed(
            *given, unmatched=unmatched, metrics=SCORES, engine="disk", memory_limit=LIMIT, **options
        )
    exact = None if weight is None else {item: Fraction(w) for item, w in weight.items()}
    families = twin.align(*pair, unmatched)
    for prefix, function in ("", twin.extended_bcubed), ("elm_", twin.extended_elm):
        expected = function(*families, exact)
        for name in ("precision", "recall", "f1", "mean_f1"):
            assert ev.overall[prefix + name] == close(float(getattr(expected, name))), prefix + name


@SETTINGS
@given(covers(), st.data(), st.sampled_from(POLICIES), st.sampled_from(WEIGHTINGS), NARROW)
def test_everything_that_the_memory_engine_says(many_shards, pair, data, unmatched, weighting, most):
    options = {
        "unmatched": unmatched,
        "metrics": SCORES,
        "slices": ["kind", "true_size", ("kind", "pred_size")],
    }
    weight = None
    if weighting != "none":
        weight = data.draw(item_weights(pair.items))
        in_a_column = data.draw(st.booleans())
        options |= {"weighting": weighting, "weight": "weight" if in_a_column else weight}
        weight = weight if in_a_column else None
    truth, prediction = (table(family, weight) for family in pair)
    with narrow(most):
        found = both(truth, prediction.drop(columns="kind"), **options)
    if found is not None:
        assert_same(*found)


@SETTINGS
@given(covers(), st.data(), NARROW)
def test_light_mates_of_heavy_items_count(pair, data, most):
    """An item leaves out its own weight, which may be that of the others many times over."""
    weight = data.draw(item_weights(pair.items, st.sampled_from([1e-100, 1.0, 1e100])))
    tables = [table(f, weight) for f in pair]
    expected = twin.extended_elm(*twin.align(*pair), {item: Fraction(w) for item, w in weight.items()})
    for engine in ("memory", "disk"):
        with narrow(most):
            ev = fb.extended_bcubed(*tables, weight="weight", metrics="elm", engine=engine)
        for name in ("precision", "recall", "f1", "mean_f1"):
            assert ev.overall[f"elm_{name}"] == close(float(getattr(expected, name))), (engine, name)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_mates_of_an_item_that_outweighs_them(engine):
    """All of the mean is b: it shares a predicted cluster with three others, and a true one with one of them."""
    truth = {"a": {0}, "b": {1, 2}, "c": {0, 2}, "d": {0}}
    prediction = {"a": {3}, "b": {1, 2, 3}, "c": {3}, "d": {3}}
    weight = {"a": 1.0, "b": 1e40, "c": 1.0, "d": 1.0}
    ev = fb.extended_bcubed(truth, prediction, weight=weight, metrics="elm", engine=engine)
    assert ev.elm_precision == close(1 / 3)
    assert ev.elm_recall == close(1.0)


def rows_with_faults(n=300, seed=3):
    """Make two tables of memberships: nulls, noise, repeated rows, items of one side, one large cluster."""
    rng = np.random.default_rng(seed)

    def side(first, last):
        item, cluster = rng.integers(first, last, n), rng.integers(0, 40, n)
        cluster[rng.random(n) < 0.2] = 7
        cluster[rng.random(n) < 0.05] = -1
        null = rng.random(n) < 0.05
        whole = pa.table(
            {"item": item, "cluster": pa.array(cluster, mask=null), "w": 1.0 + item % 7, "kind": item % 3}
        )
        return pa.concat_tables([whole, whole.slice(0, 20)])

    return side(0, 150), side(50, 200)


def files_with_faults(directory, text):
    """Write the two tables, with items and clusters that are numbers or texts; return their paths."""
    paths = [directory / "t.parquet", directory / "p.parquet"]
    for path, each in zip(paths, rows_with_faults(), strict=True):
        kind = pa.string() if text else pa.int64()
        cast = each.set_column(0, "item", each["item"].cast(kind))
        cast = cast.set_column(1, "cluster", each["cluster"].cast(kind))
        pq.write_table(cast, path, row_group_size=50)
    return paths


SPILLED = ["all in memory", "all spilled", "some spilled"]


@pairwise(
    many_shards=SPILLED, text=[False, True], policy=POLICIES, nulls=["singleton", "drop"], noise=[None, -1],
    indirect=["many_shards"],
)  # fmt: skip
def test_policies_and_faults(many_shards, text, policy, nulls, noise, tmp_path):
    noise = str(noise) if text and noise is not None else noise
    options = {"unmatched": policy, "nulls": nulls, "duplicates": "drop", "noise": noise}
    paths = files_with_faults(tmp_path, text)
    assert_same(*both(*paths, weight="w", metrics=SCORES, slices="truth.kind", **options))


@pairwise(
    many_shards=SPILLED, text=[False, True], policy=POLICIES, noise=[None, -1],
    faults=[("raise", "raise"), ("raise", "drop"), ("singleton", "raise"), ("drop", "raise")],
    indirect=["many_shards"],
)  # fmt: skip
def test_faults_that_raise(many_shards, text, policy, noise, faults, tmp_path):
    noise = str(noise) if text and noise is not None else noise
    options = {"unmatched": policy, "noise": noise, **dict(zip(("nulls", "duplicates"), faults, strict=True))}
    paths = files_with_faults(tmp_path, text)
    assert both(*paths, weight="w", metrics=SCORES, slices="truth.kind", **options) is None


def test_an_item_of_two_weights():
    truth = pa.table({"item": [1, 1, 2], "cluster": [1, 2, 1], "w": [1.0, 2.0, 1.0]})
    assert both(truth, {1: {"a"}, 2: {"a"}}, weight="w") is None


@pytest.mark.parametrize("unmatched", ["drop", "raise", "singleton"])
def test_items_that_one_side_lacks(many_shards, unmatched):
    found = both({1: {1, 2}, 2: {1}, 3: {2}}, {2: {5}, 3: {5, 6}, 4: {6}}, unmatched=unmatched)
    if found is not None:
        assert_same(*found)


def test_two_columns_of_one_table(many_shards, tmp_path):
    rng = np.random.default_rng(1)
    true = pa.array(rng.integers(0, 15, 150), mask=rng.random(150) < 0.1)
    columns = {"item": rng.integers(0, 80, 150), "t": true, "p": rng.integers(0, 15, 150)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    for options in ({}, {"unmatched": "outside"}, {"unmatched": {"prediction": "singleton"}}):
        found = both("t", "p", table=tmp_path / "rows.parquet", duplicates="drop", **options)
        assert_same(*found)
    pq.write_table(pa.table(columns).drop_columns("item"), tmp_path / "labels.parquet")
    assert_same(*both("t", "p", table=tmp_path / "labels.parquet", metrics=SCORES))


def test_lists_of_clusters(many_shards, tmp_path):
    rng = np.random.default_rng(2)
    lists = [rng.choice(20, rng.integers(1, 4), replace=False).tolist() for _ in range(100)]
    pq.write_table(pa.table({"item": np.arange(100), "cluster": lists}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"item": np.arange(100), "cluster": lists[::-1]}), tmp_path / "p.parquet")
    assert_same(*both(tmp_path / "t.parquet", tmp_path / "p.parquet", metrics=SCORES))
    assert_same(*both([set(each) for each in lists], [set(each) for each in lists[::-1]], metrics=SCORES))


def test_subsets_by_name(many_shards):
    truth, prediction = ({k: {k // 3, side + k // 5} for k in range(40)} for side in (100, 200))
    chosen = {"odd": list(range(1, 40, 2)), "few": [0, 1]}
    found = both(truth, prediction, slices=chosen)
    assert_same(*found)
    assert both(truth, prediction, slices={"strange": [1, 99]}) is None
    with pytest.raises(OptionError, match="a mask of items by position"):
        fb.evaluate(truth, prediction, overlapping=True, engine="disk", slices={"mask": [True] * 40})


def test_equal_labels_of_both_sides_and_of_items_are_different_clusters():
    """Clusters go by words made of keys: of labels on either side, and of items that are alone."""
    truth, prediction = {1: {1, 2}, 2: {1}, 3: {2}, 4: {4}}, {1: {1}, 2: {2}, 3: {1, 2}, 5: {4}}
    assert_same(*both(truth, prediction, unmatched="singleton"))


def test_threads_change_no_bit(many_shards):
    tables = rows_with_faults()
    scores = [
        fb.evaluate(
            *tables, weight="w", overlapping=True, duplicates="drop", nulls="drop", metrics=SCORES, engine="disk",
            threads=threads,
        ).overall
        for threads in (1, 2, 5)
    ]  # fmt: skip
    assert scores[0] == scores[1] == scores[2]


def test_what_is_not_kept(tmp_path):
    truth = {1: {"a"}, 2: {"a", "b"}, 3: {"b"}}
    ev = fb.evaluate(truth, truth, overlapping=True, engine="disk", metrics=["f1", "overlap"])
    assert ev.f1 == 1 and ev.extended_bcubed_f1 == 1
    assert "takes all cells" in ev.not_computed["omega"] and "omega" not in ev.overall
    for ask in (lambda: ev.clusters("true"), lambda: ev.errors, ev.items):
        with pytest.raises(NotKeptError, match='engine="memory"'):
            ask()
    with pytest.raises(OptionError, match='keep="scores"'):
        fb.evaluate(truth, truth, overlapping=True, engine="disk", out=tmp_path / "result")
    fb.evaluate(truth, truth, overlapping=True, engine="disk", keep="scores", out=tmp_path / "result")
    assert fb.load(tmp_path / "result").f1 == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unmatched", ["drop", "singleton", "outside"])
def test_items_in_many_clusters(many_shards, weighted, unmatched):
    """Some are in so many that sets of these cannot be listed; half as many items are on one side alone."""
    rng = np.random.default_rng(5)
    truth, prediction = (
        {
            int(item): set(rng.integers(0, 30, rng.integers(1, 4) ** 3).tolist())
            for item in range(first, first + 60)
        }
        for first in (0, 20)
    )
    weight = {item: float(w) for item, w in enumerate(rng.uniform(0.1, 9, 80))} if weighted else None
    found = both(truth, prediction, unmatched=unmatched, weight=weight, metrics=SCORES)
    assert_same(*found)
    assert max(map(len, truth.values())) > 16


def test_too_much_work():
    wide = {item: set(range(17)) for item in range(9)}
    with pytest.raises(TooMuchWorkError, match=r"1.4e\+03 pairs of cells with common clusters"):
        fb.evaluate(wide, {k: {k} for k in range(9)}, overlapping=True, engine="disk", max_pairs=400)
    narrow = {1: set(range(8)), 2: {0}, 3: {9}}
    with (
        mock.patch.object(cover_shards, "NARROW", 9),
        pytest.raises(TooMuchWorkError, match=r"5.2e\+02 sets of"),
    ):
        fb.evaluate(narrow, {1: {1}, 2: {1}, 3: {1}}, overlapping=True, engine="disk", max_pairs=100)
    with mock.patch.object(cover_shards, "PAIR_BYTES", LIMIT):
        with pytest.raises(TooMuchWorkError, match="there are 35 pairs of a true and a predicted one"):
            fb.evaluate(wide, {k: {1} for k in wide}, overlapping=True, engine="disk", memory_limit=LIMIT)
    with mock.patch.object(cover_shards, "WIDE_SHARE", LIMIT // 100):
        with pytest.raises(TooMuchWorkError, match="1 sets of clusters that items are in have more than 16"):
            fb.evaluate(wide, {k: {1} for k in wide}, overlapping=True, engine="disk", memory_limit=LIMIT)


def test_advised_limit_has_room_for_all_items_of_more_than_eight_clusters():
    """Where it had room for those of more than 16 alone, each of the others was in up to 2 ** 16 sets of clusters."""
    truth = {item: set(range(9 if item else 17)) for item in range(4)}
    memberships = (17 + 1) + (9 + 1)  # of two cells: items 1 to 3 are in the same clusters
    prediction = {item: {1} for item in truth}
    with (
        mock.patch.object(cover_shards, "MEMBERSHIP_BYTES", 1 << 20),
        pytest.raises(TooMuchWorkError, match=f"memory_limit to {6 * memberships + 1} MiB"),
    ):
        fb.evaluate(truth, prediction, overlapping=True, engine="disk", memory_limit=LIMIT, keep="scores")


def test_sets_of_clusters_that_the_disk_has_no_room_for():
    """An item in 8 clusters of each side is in 2 ** 16 - 1 sets of them, of 24 bytes on the way there and 8 back."""
    truth, prediction = (
        {item: {first + item + k for k in range(8)} for item in range(300)} for first in (1000, 2000)
    )
    given = {"overlapping": True, "engine": "disk", "memory_limit": LIMIT, "keep": "scores"}
    with (
        narrow(16),
        mock.patch.object(Spill, "free", lambda self: LEAVE_FREE + (400 << 20)),
        pytest.raises(SpillError, match=r"about 5\d\d MiB would be spilled to .* has 1\.4 GiB"),
    ):
        fb.evaluate(truth, prediction, **given)


def test_files_that_do_not_fit_are_left_to_the_disk_engine(tmp_path):
    n = 800_000
    for name in "tp":
        columns = {"item": np.arange(n), "cluster": np.arange(n) // 3}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet", row_group_size=1 << 18)
    options = {"overlapping": True, "memory_limit": "64MiB"}
    ev = fb.evaluate(tmp_path / "t.parquet", tmp_path / "p.parquet", **options)
    assert (ev.engine, ev.f1) == ("disk", 1.0)
    before = 'fb.evaluate({1: {1}}, {1: {1}}, overlapping=True, engine="disk")'
    call = f"fb.evaluate({str(tmp_path / 't.parquet')!r}, {str(tmp_path / 'p.parquet')!r}, **{options})"
    assert growth(before, call) < 64 + 256


@pytest.mark.parametrize("overlapping", [False, True])
def test_messages_name_items_once(overlapping):
    """Rows of one item may be the first few."""
    truth = pa.table({"item": ["", "", "", "a"], "cluster": [1, 1, 1, 3]})
    prediction = pa.table({"item": ["x", "x", "y"], "cluster": [1, 1, 2]})
    options = {"overlapping": overlapping, "duplicates": "drop"}
    for engine in ("disk", "memory"):
        with pytest.raises(EmptyInputError, match=r"\('', 'a' against 'x', 'y'\)"):
            fb.evaluate(truth, prediction, engine=engine, **options)


@pytest.mark.parametrize("most", [1, 8])
def test_bounds_are_unknown_where_weights_are(most):
    """Items that only the prediction has need no weight if they are dropped; nobody can tell what they would do."""
    truth = pa.table({"item": [1, 1, 2, 2, 3], "cluster": [1, 2, 1, 3, 3], "w": [1.0, 1.0, 2.0, 2.0, 4.0]})
    prediction = {1: {1}, 2: {1, 2}, 3: {3}, 4: {2}}
    with narrow(most):
        on_disk, in_memory = both(truth, prediction, weight="w")
    for ev in (on_disk, in_memory):
        assert np.isnan(ev.bounds.precision_lower) and np.isnan(ev.bounds.precision_upper)
        assert ev.bounds.unlabelled_mates == pytest.approx(2 / 7)


def test_a_noise_label_of_a_type_that_no_side_has():
    found = {}
    for engine in ("disk", "memory"):
        with pytest.raises(IdTypeError) as found[engine]:
            fb.evaluate({1: {1}}, {1: {1}}, overlapping=True, noise="-1", engine=engine)
    assert str(found["disk"].value) == str(found["memory"].value)


def test_too_much_work_on_disk_is_done_in_memory_unless_an_engine_is_named(tmp_path, monkeypatch):
    """An item in 8 clusters is in 255 sets of these, which the disk engine counts; it has no mates."""
    sides = []
    for name, n_clusters in (("truth", 7), ("prediction", 1)):
        rows = [(item, 10 * item + cluster) for item in range(9) for cluster in range(n_clusters)]
        items, labels = zip(*rows, strict=True)
        pq.write_table(pa.table({"item": items, "cluster": labels}), path := tmp_path / f"{name}.parquet")
        sides.append(path)
    asked = {"overlapping": True, "keep": "scores", "max_pairs": 100}
    monkeypatch.setattr(choose_engine, "ROW_BYTES", 1 << 50)
    monkeypatch.setattr(choose_engine, "available_memory", lambda: 1 << 60)
    with pytest.raises(TooMuchWorkError, match="sets of clusters that items share"):
        fb.evaluate(*sides, engine="disk", **asked)
    ev = fb.evaluate(*sides, **asked)
    assert ev.engine == "memory" and ev.overall == fb.evaluate(*sides, engine="memory", **asked).overall
    assert fb.evaluate(*sides, **asked | {"max_pairs": 1e9}).engine == "disk"
    with pytest.raises(TooMuchWorkError, match="sets of clusters that items share"):
        fb.evaluate(*sides, **asked, memory_limit=LIMIT)  # which is kept
    monkeypatch.setattr(choose_engine, "available_memory", lambda: LIMIT)  # where they do not fit
    with pytest.raises(TooMuchWorkError, match="sets of clusters that items share"):
        fb.evaluate(*sides, **asked)
