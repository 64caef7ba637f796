"""Clusters and files of the disk engine against the memory engine: same tables, whatever is spilled."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import HALF, LIMIT, SETTINGS, assert_same, both
from effort import pairwise
from growth import growth
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs
from test_engine_disk import rows_with_faults
from versions import ARROW

import fastbcubed as fb
from fastbcubed.align.stash import Stash
from fastbcubed.errors import FileFormatError, MetricError, NotKeptError, OptionError
from fastbcubed.kernels import partition
from fastbcubed.results import cluster_ranges as cluster_tables
from fastbcubed.runtime.output_files import TableWriter

COUNTS = ["n_items", "weight", "n_parts", "exact"]
SCORES = ["precision", "recall", "f1", "mean_f1", "jaccard_distance", "balanced_accuracy"]


@pytest.fixture(params=["small ranges", "one range"])
def ranges(request, monkeypatch):
    """Cut the clusters into many ranges, and let ties be decided early; or neither."""
    if request.param == "small ranges":
        monkeypatch.setattr(cluster_tables, "CELL_BYTES", LIMIT // 4 // 5)
        monkeypatch.setattr(cluster_tables, "NAMED_BYTES", LIMIT // 2 // 6)
        monkeypatch.setattr(cluster_tables, "BATCH", 7)
        monkeypatch.setattr(cluster_tables, "AT_ONCE", 2)
        monkeypatch.setattr(cluster_tables, "ROW_GROUP", 2)


def assert_same_clusters(on_disk, in_memory, side, order_by=None, limits=(0, 1, 3, None)):
    """Compare listings; clusters made by a policy have no name, so among them any may come first."""
    for limit in limits:
        found = on_disk.clusters(side, order_by=order_by, limit=limit)
        expected = in_memory.clusters(side, order_by=order_by, limit=limit)
        assert found.schema == expected.schema
        assert found["cluster"].to_pylist() == expected["cluster"].to_pylist()
        nameless = bool(expected["cluster"].null_count)
        for name in expected.column_names[1:]:
            values, others = found[name].to_pylist(), expected[name].to_pylist()
            if nameless and limit is None:
                values, others = sorted(values), sorted(others)
            elif nameless and name != order_by:
                continue
            if name == "outcome":
                assert values == others
                continue
            assert values == pytest.approx(others, rel=1e-12, abs=1e-12, nan_ok=True), name


def draw_options(data, pair, policy, weighting):
    """Draw weights whose sums are exact, so that both engines see the same ties, and choose scores."""
    options = {"unmatched": policy, "weighting": weighting}
    n = len(pair.items)
    weight = data.draw(st.one_of(st.none(), st.lists(st.integers(1, 4).map(float), min_size=n, max_size=n)))
    if weight is not None:
        options["weight"] = dict(zip(pair.items, weight, strict=True))
    outside = policy == "outside" or (isinstance(policy, dict) and "outside" in policy.values())
    return options | {"metrics": SCORES[:5] if outside else SCORES}


@pytest.mark.cases(2)
@HALF
@given(pairs(max_size=30), st.sampled_from(POLICIES), st.sampled_from(["pointwise", "outer"]), st.data())
def test_listings(many_shards, ranges, pair, policy, weighting, data):
    options = draw_options(data, pair, policy, weighting)
    on_disk, in_memory = both(*pair, **options)
    order_by = data.draw(st.sampled_from([None, *COUNTS, *options["metrics"]]))
    for side in ("true", "pred"):
        assert_same_clusters(on_disk, in_memory, side, order_by)


@pytest.mark.cases(1)
@HALF
@given(pairs(max_size=30), st.sampled_from(POLICIES), st.sampled_from(["pointwise", "outer"]), st.data())
def test_saved_and_loaded(many_shards, ranges, tmp_path, pair, policy, weighting, data):
    options = draw_options(data, pair, policy, weighting)
    on_disk, in_memory = both(*pair, **options)
    on_disk.save(tmp_path, keep="cells")
    loaded = fb.load(tmp_path)
    assert_same(loaded, in_memory)
    assert loaded.engine == "memory" and loaded.overall == on_disk.overall
    for side in ("true", "pred"):
        assert_same_clusters(loaded, in_memory, side)
        only, expected = loaded.contingency.only(side), in_memory.contingency.only(side)
        assert (only is None) == (expected is None)
        if expected is not None:
            for found, counts in zip(only, expected, strict=True):
                assert sorted(found[found > 0]) == pytest.approx(sorted(counts[counts > 0]))
    in_memory.save(tmp_path, keep="cells")
    again = fb.load(tmp_path)
    for side in ("true", "pred"):  # the files of either engine have the same columns
        assert pq.read_schema(tmp_path / f"{side}_clusters.parquet").names[:5] == ["cluster", *COUNTS]
        assert_same_clusters(again, in_memory, side)


@pytest.mark.cases(0)
@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
@pytest.mark.parametrize("ranges", ["small ranges"], indirect=True)
@pairwise(weight=[None, "w"], policy=POLICIES[:3], nulls=["singleton", "drop"])
def test_clusters_of_policies(many_shards, ranges, weight, policy, nulls):
    """Nulls and noise make clusters without a name, or none; large clusters are among the others."""
    tables = [t.set_column(2, "w", pa.array(np.ones(t.num_rows) * 0.5)) for t in rows_with_faults()]
    options = {"nulls": nulls, "noise": -1, "duplicates": "drop", "unmatched": policy, "weight": weight}
    on_disk, in_memory = both(*tables, **options)
    for side in ("true", "pred"):
        assert_same_clusters(on_disk, in_memory, side, limits=(5, None))


# -- Names ------------------------------------------------------------------------------------------

NUMBERS = np.random.default_rng(5).integers(0, 40, 120)
TYPES = {
    "int8": pa.int8(), "uint16": pa.uint16(), "uint64": pa.uint64(), "string": pa.string(),
    "large_string": pa.large_string(), "string_view": pa.string_view(), "binary": pa.binary(),
    "fixed": pa.binary(3), "names": pa.dictionary(pa.int16(), pa.string()),
    "numbers": pa.dictionary(pa.int8(), pa.int64()),
}  # fmt: skip


def labels_of(kind, numbers):
    """Return labels of a type, one for each number."""
    if kind in ("int8", "uint16"):
        return pa.array(numbers).cast(TYPES[kind])
    if kind == "uint64":
        return pa.array(numbers.astype(np.uint64) + np.uint64(2**63 - 60))
    if kind == "numbers":
        return pa.array(numbers).dictionary_encode().cast(TYPES[kind])
    texts = [f"{k:03}" for k in numbers.tolist()]
    if kind == "names":
        return pa.array(texts).dictionary_encode().cast(TYPES[kind])
    return pa.array(texts).cast(TYPES[kind])


@pytest.mark.cases(0)
@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
@pytest.mark.parametrize("ranges", ["small ranges"], indirect=True)
@pytest.mark.parametrize("kind", list(TYPES))
@pytest.mark.parametrize("form", ["table", "file"])
def test_types_of_labels(many_shards, ranges, kind, form, tmp_path):
    true, pred = labels_of(kind, NUMBERS), labels_of(kind, NUMBERS[::-1].copy())
    table = pa.table({"item": np.arange(NUMBERS.size), "t": true, "p": pred})
    if form == "file":
        if ARROW < 21 and kind == "string_view":
            pytest.skip("Arrow writes none")
        pq.write_table(table, tmp_path / "rows.parquet", row_group_size=97)
        table = str(tmp_path / "rows.parquet")
    on_disk, in_memory = both("t", "p", table=table)
    for side in ("true", "pred"):
        assert_same_clusters(on_disk, in_memory, side, limits=(4, None))
    for ev, name in ((on_disk, "disk"), (in_memory, "memory")):
        ev.save(tmp_path / name, keep="cells")
    loaded, expected = fb.load(tmp_path / "disk"), fb.load(tmp_path / "memory")
    assert_same_clusters(loaded, expected, "true", limits=(4, None))


@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
@pytest.mark.parametrize("ranges", ["small ranges"], indirect=True)
def test_composite_labels(many_shards, ranges):
    table = pa.table({"a": NUMBERS // 10, "b": [f"{k % 10}" for k in NUMBERS], "p": NUMBERS[::-1].copy()})
    on_disk, in_memory = both(["a", "b"], "p", table=table)
    assert_same_clusters(on_disk, in_memory, "true", limits=(4, None))
    assert_same_clusters(on_disk, in_memory, "pred", limits=(4, None))


def test_composite_labels_with_a_dictionary(tmp_path):
    """Where they wait on disk, and are written, dictionaries within them do no harm."""
    table = pa.table(
        {
            "item": np.arange(NUMBERS.size),
            "a": pa.array([f"{k % 10}" for k in NUMBERS]).dictionary_encode(),
            "b": NUMBERS // 10,
            "p": NUMBERS[::-1].copy(),
        }
    )
    on_disk, in_memory = both(["a", "b"], "p", table=table, keep="items")
    assert_same_clusters(on_disk, in_memory, "true", limits=(4, None))
    found, expected = on_disk.items(), in_memory.items()
    order = np.argsort(found["item"].to_numpy())
    assert found["true_cluster"].take(order).to_pylist() == expected["true_cluster"].to_pylist()
    written = {}
    for ev in (on_disk, in_memory):
        ev.save(tmp_path / ev.engine, keep="cells")
        clusters = pq.read_table(tmp_path / ev.engine / "true_clusters.parquet").to_pylist()
        written[ev.engine] = {str(row["cluster"]): row["n_items"] for row in clusters if row["n_items"]}
    assert written["disk"] == written["memory"]


@SETTINGS
@given(st.lists(st.integers(0, 30), max_size=60), st.integers(0, 31), st.integers(1, 12))
def test_cells_are_sent_to_ranges(codes, first, width):
    cells = np.zeros(len(codes), [("true", "i4"), ("n", "i4")])
    cells["true"] = codes
    n_ranges = max(1, -(-(31 - first) // width))
    bounds, order = np.empty(n_ranges + 2, np.int64), np.empty(len(codes), np.int64)
    partition.order_by_range(cells, first, width, bounds, order)
    ranges = [range(first), *(range(first + k * width, first + (k + 1) * width) for k in range(n_ranges))]
    expected = [[k for k, code in enumerate(codes) if code in own] for own in ranges]
    assert [own.tolist() for own in np.split(order, bounds[1:-1])] == expected
    assert (bounds[0], bounds[-1]) == (0, len(codes))


def test_keys_are_unmixed():
    keys = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 1000, endpoint=True)
    keys = np.concatenate([keys, [0, 1, -1, 2**63 - 1, -(2**63)]])
    mixed = np.array([partition.mix(key) for key in keys], np.int64)
    assert (partition.unmix_all(mixed) == keys).all()


def test_an_input_that_is_gone_or_has_changed(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pa.table({"t": [f"c{k}" for k in NUMBERS], "p": NUMBERS})
    pq.write_table(table, path)
    ev = fb.evaluate("t", "p", table=str(path), engine="disk")
    pq.write_table(table, path)
    for message in (r"rows.parquet changed", r"rows.parquet"):
        with pytest.raises(FileFormatError, match=message):
            ev.clusters("true", limit=3)
        path.unlink(missing_ok=True)
    assert ev.clusters("pred", limit=3).num_rows == 3  # integers are their own names


def test_labels_that_have_changed_in_memory():
    memory = np.char.mod("%04d", NUMBERS).astype("S4")
    labels = pa.Array.from_buffers(pa.binary(4), NUMBERS.size, [None, pa.py_buffer(memory)])
    ev = fb.evaluate(labels, NUMBERS, engine="disk")
    memory[:] = b"none"
    with pytest.raises(FileFormatError, match=r"(\d) of \1 clusters of the truth .* Has it changed since"):
        ev.clusters("true", limit=3)


# -- What is kept, what is refused, what is shown ---------------------------------------------------


def test_what_is_not_kept(tmp_path):
    labels = [0, 0, 1, 1, 2]
    ev = fb.evaluate(labels, [0, 0, 1, 2, 2], engine="disk", keep="scores", out=tmp_path / "scores")
    assert sorted(file.name for file in (tmp_path / "scores").iterdir()) == ["overall.json"]
    assert not ev.has_clusters and "clusters(" not in repr(ev)
    for keep in ("cells", "items"):
        with pytest.raises(NotKeptError):
            ev.save(tmp_path / "scores", keep=keep)
    ev = fb.evaluate(labels, [0, 0, 1, 2, 2], engine="disk", out=tmp_path / "cells")
    assert ev.has_clusters and ".clusters(" in repr(ev)
    before = (tmp_path / "cells" / "cells.parquet").read_bytes()
    with pytest.raises(NotKeptError, match="keep"):
        ev.save(tmp_path / "cells", keep="items")
    assert (tmp_path / "cells" / "cells.parquet").read_bytes() == before
    for wrong in (-1, True, "3"):
        with pytest.raises(OptionError, match="limit must be a number of rows"):
            ev.clusters("true", limit=wrong)
    with pytest.raises(
        MetricError, match="there are n_items, weight, n_parts, exact, outcome, precision_loss"
    ):
        ev.clusters("true", order_by="code", limit=3)


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    ev = fb.evaluate(NUMBERS, NUMBERS[::-1].copy(), engine="disk")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(FileFormatError, match="cannot write"):
        ev.save(tmp_path, keep="cells")
    assert not list(tmp_path.iterdir())


def test_command_line(tmp_path, capsys):
    from fastbcubed.cli.main import main

    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": [f"c{k}" for k in NUMBERS], "p": NUMBERS[::-1].copy()}), path)
    shown = []
    for engine in ("disk", "memory"):
        assert main(["evaluate", "t", "p", "--table", str(path), "--engine", engine]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and "Predicted clusters that cost most precision" in shown[0]


@pytest.mark.process
@pytest.mark.cases(0, 1)
@pytest.mark.parametrize("work", ["listing", "files"])
@pytest.mark.parametrize("text", [False, True])
def test_memory_stays_below_the_limit(work, text, tmp_path):
    """The cells of 3e6 rows take more than 100 MB, and their clusters as much again."""
    n = 3_000_000
    rng = np.random.default_rng(0)
    columns = {side: pa.array(rng.integers(0, n // 2, n)) for side in "tp"}
    if text:
        columns = {side: values.cast(pa.string()) for side, values in columns.items()}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=n // 4)
    call = {
        "listing": 'found = fb.evaluate("t", "p", **options); [found.clusters(s, limit=5) for s in ("true", "pred")]',
        "files": f'fb.evaluate("t", "p", out={str(tmp_path / "out")!r}, **options)',
    }[work]
    before = f"""
        options = dict(engine="disk", memory_limit="64MiB")
        def work(**options):
            {call}
        few = ["0", "1"] if {text} else [0, 1]
        work(table=dict(t=few, p=few), **options)
    """
    assert growth(before, f"work(table={str(path)!r}, **options)") < 64 + 256


@pytest.mark.slow
def test_long_labels_are_named_and_written_a_few_at_a_time(tmp_path, monkeypatch):
    """20 MB of labels of each side, of which shards and tables hold a sixteenth of 64 MiB, about."""
    written, read, add, read_shard = [], [], TableWriter.add, Stash.read

    def added(self, table):
        written.extend([table["cluster"].nbytes] if "cluster" in table.column_names else [])
        add(self, table)

    def shard(self, number):
        table = read_shard(self, number)
        read.append(table.nbytes)
        return table

    monkeypatch.setattr(TableWriter, "add", added)
    monkeypatch.setattr(Stash, "read", shard)
    n = 4000
    labels = pa.array(np.char.zfill(np.arange(n).astype(str), 5000))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": labels, "p": labels[::-1]}), path, row_group_size=500)
    ev = fb.evaluate("t", "p", table=path, engine="disk", memory_limit="64MiB", out=tmp_path / "out")
    assert sum(written) >= 2 * n * 5000 and max(written) <= 4 << 20
    assert sum(read) >= 2 * n * 5000 and max(read) <= 5 << 20
    for side in ("true", "pred"):
        found = pq.read_table(tmp_path / "out" / f"{side}_clusters.parquet")
        assert sorted(found["cluster"].drop_null().to_pylist()) == labels.to_pylist()
    assert ev.precision == 1
