"""What is wrong with the input, as the disk engine tells it: of all blocks and shards, in the memory engine's words."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT

import fastbcubed as fb
from fastbcubed.align.row_blocks import ItemShards
from fastbcubed.errors import (
    AlignmentError,
    DuplicateItemError,
    FastBCubedError,
    NullError,
    OverlapError,
    WeightError,
)

N = 120
ITEMS = [f"i{k:03}" for k in range(N)]


def side(rows=range(N), label=lambda k: k // 3, **columns):
    """Return a table of the items of these numbers, with a label, and other columns, by number."""
    rows = list(rows)
    named = {name: [column(k) for k in rows] for name, column in columns.items()}
    return pa.table(
        {"item": [ITEMS[k] for k in rows], "cluster": pa.array(map(label, rows), pa.int64()), **named}
    )


def every(step, value, other):
    return lambda k: value if k % step == 0 else other(k)


def third(k):
    return k // 3


def one(k):
    return 1.0


def again(step, label=third, **columns):
    """Return all items, and every such one once more, with this label and these columns then."""
    return pa.concat_tables([side(**dict.fromkeys(columns, one)), side(range(0, N, step), label, **columns)])


BACKWARDS = range(N - 1, -1, -1)
PREDICTION = side(BACKWARDS, lambda k: k // 4)
HALF = {item: 1.0 for item in ITEMS[::2]}


def weights(items, values):
    return pa.table({"item": items, "weight": values})


def with_nulls(table, name, step):
    """Return a table where every such row has a null in this column."""
    values = [None if k % step == 0 else v for k, v in enumerate(table[name].to_pylist())]
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


#: truth, prediction, options, the error, and what it says
FAULTS = {
    "null labels": (
        side(label=every(5, None, third)), PREDICTION, {}, NullError,
        "24 of 120 rows of the truth have a null in 'cluster' (items 'i000', 'i005', 'i010', …)",
    ),
    "null ids": (
        with_nulls(side(), "item", 50), PREDICTION, {}, NullError,
        "3 of 120 item ids are null in column 'item' of the truth (first rows: 0, 50, 100)",
    ),
    "null ids of the prediction": (
        side(), with_nulls(PREDICTION, "item", 25), {}, NullError,
        "5 of 120 item ids are null in column 'item' of the prediction (first rows: 0, 25, 50, …)",
    ),
    "null weights": (
        with_nulls(side(weight=one), "weight", 30), PREDICTION, {"weight": "weight"}, WeightError,
        "4 of 120 values of column 'weight' of the truth are null or NaN (first rows: 0, 30, 60, …)",
    ),
    "null weights behind null ids": (
        with_nulls(side(weight=lambda k: None if k in (90, 91) else 1.0), "item", 50), PREDICTION,
        {"weight": "weight"}, WeightError,
        "2 of 120 values of column 'weight' of the truth are null or NaN (first rows: 90, 91)",
    ),
    "null labels of the prediction": (
        side(), side(BACKWARDS, every(5, None, third)), {}, NullError,
        "24 of 120 rows of the prediction have a null in 'cluster' (items 'i115', 'i110', 'i105', …)",
    ),
    "null labels of both": (
        side(label=every(60, None, third)), side(BACKWARDS, every(2, None, third)), {}, NullError,
        "2 of 120 rows of the truth have a null in 'cluster' (items 'i000', 'i060')",
    ),
    "repeated rows": (
        again(6), PREDICTION, {}, DuplicateItemError,
        "20 of 140 rows of the truth repeat an earlier row ('i000', 'i006', 'i012', …)",
    ),
    "repeated rows of the prediction": (
        side(), pa.concat_tables([PREDICTION, PREDICTION.slice(7, 50)]), {}, DuplicateItemError,
        "50 of 170 rows of the prediction repeat an earlier row ('i112', 'i111', 'i110', …)",
    ),
    "one row many times": (
        pa.concat_tables([side(), *[side([7])] * 30]), PREDICTION, {}, DuplicateItemError,
        "30 of 150 rows of the truth repeat an earlier row ('i007')",
    ),
    "another weight": (
        again(6, weight=every(12, 2.0, one)), PREDICTION, {"weight": "weight", "duplicates": "drop"},
        DuplicateItemError,
        "10 of 140 rows of the truth repeat an earlier row with a different weight ('i000', 'i012', 'i024', …)",
    ),
    "another weight next to it": (
        side([*range(N), 119], weight=one).set_column(2, "weight", [[1.0] * N + [2.0]]), PREDICTION,
        {"weight": "weight", "duplicates": "drop"}, DuplicateItemError,
        "1 of 121 rows of the truth repeat an earlier row with a different weight ('i119')",
    ),
    "overlap": (
        again(6, lambda k: 999), PREDICTION, {}, OverlapError,
        "20 of 120 items of the truth are in more than one cluster ('i000', 'i006', 'i012', …)",
    ),
    "overlap besides repeated rows": (
        pa.concat_tables([again(40, lambda k: 999), side([5] * 60)]), PREDICTION, {"duplicates": "drop"}, OverlapError,
        "3 of 120 items of the truth are in more than one cluster ('i000', 'i040', 'i080')",
    ),
    "weights of the prediction, which those of the truth stand before": (
        side(weight=one), side(weight=every(50, -1.0, one)), {"weight": "weight"}, WeightError,
        "3 of 120 weights of the prediction are out of range (-1.0, -1.0, -1.0 in rows 0, 50, 100). Weights must be",
    ),
    "weights of infinity": (
        side(weight=every(4, np.inf, one)), PREDICTION, {"weight": "weight"}, WeightError,
        "30 of 120 weights of the truth are out of range (inf, inf, inf, … in rows 0, 4, 8, …). Weights must be pos",
    ),
    "weights of zero": (
        side(weight=every(50, 0.0, one)), PREDICTION, {"weight": "weight"}, WeightError,
        "3 of 120 weights of the truth are out of range (0.0, 0.0, 0.0 in rows 0, 50, 100). Leave these items out",
    ),
    "small weights": (
        side(weight=every(50, 1e-300, one)), PREDICTION, {"weight": "weight"}, WeightError,
        "3 of 120 weights of the truth are out of range (1e-300, 1e-300, 1e-300 in rows 0, 50, 100). Weights must lie",
    ),
    "small weights and zeros": (
        side(weight=lambda k: {3: 0.0, 100: 1e-300}.get(k, 1.0)), PREDICTION, {"weight": "weight"}, WeightError,
        "2 of 120 weights of the truth are out of range (0.0, 1e-300 in rows 3, 100). Weights must be positive",
    ),
    "negative weights of a table": (
        side(), PREDICTION, {"weight": weights(ITEMS, [1.0] * 100 + [-1.0] * 20)}, WeightError,
        "20 of 120 weights of the weight table are out of range (-1.0, -1.0, -1.0, … in rows 100, 101, 102, …)",
    ),
    "items without a weight": (
        side(), PREDICTION, {"weight": HALF}, WeightError,
        "60 of 120 scored or counted items have no weight (first: 'i001', 'i003', 'i005', …)",
    ),
    "items of one side without a weight": (
        side(range(100)), side(range(N - 1, 19, -1)),
        {"weight": dict.fromkeys(ITEMS[:100], 1.0), "unmatched": "singleton"}, WeightError,
        "20 of 120 scored or counted items have no weight (first: 'i119', 'i118', 'i117', …)",
    ),
    "items weighted twice": (
        side(), PREDICTION, {"weight": weights([*ITEMS, *ITEMS[3::2]], [1.0] * 179)}, DuplicateItemError,
        "59 of 179 rows of the weight table repeat an item of an earlier row ('i003', 'i005', 'i007', …)",
    ),
    "unknown items weighted twice": (
        side(range(3)), side(range(3)), {"weight": weights([*ITEMS, *ITEMS[3:]], [1.0] * 237)}, DuplicateItemError,
        "117 of 237 rows of the weight table repeat an item of an earlier row ('i003', 'i004', 'i005', …)",
    ),
    "items of the truth alone": (
        side(), side(range(N - 1, 29, -1)), {"unmatched": "raise"}, AlignmentError,
        "30 of 120 items of the truth are missing from the prediction (first: 'i000', 'i001', 'i002', …)",
    ),
    "items of the prediction alone": (
        side(range(30, N)), PREDICTION, {"unmatched": "raise"}, AlignmentError,
        "30 of 120 items of the prediction are missing from the truth (first: 'i029', 'i028', 'i027', …)",
    ),
    "items that the truth has no label for": (
        side(label=every(50, None, third)), PREDICTION, {"unmatched": "raise", "nulls": "drop"}, AlignmentError,
        "3 of 120 items of the prediction are missing from the truth (first: 'i100', 'i050', 'i000')",
    ),
    "attributes twice": (
        side(), PREDICTION,
        {"attributes": pa.table({"item": [*ITEMS, *ITEMS[9::10]], "k": [1] * 132}), "slices": "k"}, DuplicateItemError,
        "12 of 132 rows of the attributes repeat an item of an earlier row ('i009', 'i019', 'i029', …)",
    ),
}  # fmt: skip


def messages(*args, kind, **options):
    """Return what either engine says of the input, the disk engine first."""
    found = []
    for engine in ({"engine": "disk", "memory_limit": LIMIT}, {"engine": "memory"}):
        with pytest.raises(kind) as caught:
            fb.evaluate(*args, **options, **engine)
        assert caught.type is kind
        found.append(str(caught.value))
    return found


@pytest.mark.cases(10)
@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
@pytest.mark.parametrize("name", FAULTS)
def test_two_tables(name, many_shards, in_files, tmp_path):
    truth, prediction, options, kind, expected = FAULTS[name]
    if in_files:
        truth, prediction = write(truth, tmp_path / "0.parquet"), write(prediction, tmp_path / "1.parquet")
    on_disk, in_memory = messages(truth, prediction, kind=kind, **options)
    if in_files:
        expected = expected.replace("the truth", truth).replace("the prediction", prediction)
    assert expected in on_disk
    assert on_disk == in_memory


def write(table, path):
    pq.write_table(table, path, row_group_size=31)
    return str(path)


def both_sides(**columns):
    """Return one table with the labels of both sides."""
    ids = {"id": ITEMS, "t": [k // 3 for k in range(N)], "p": [k // 4 for k in range(N)]}
    return pa.table(ids | {name: [value(k) for k in range(N)] for name, value in columns.items()})


#: columns in place of others, options, the error, and what it says
FAULTS_OF_ONE_TABLE = {
    "no labels of the truth": (
        {"t": every(50, None, third)}, {"unmatched": "raise", "nulls": "drop"}, AlignmentError,
        "3 of 120 items of the prediction ('p' of the table) are missing from the truth ('t' of the table) "
        "(first: 0, 50, 100)",
    ),
    "weights": (
        {"w": every(40, 0.0, one)}, {"weight": "w"}, WeightError,
        "3 of 120 weights of the truth ('t' of the table) are out of range (0.0, 0.0, 0.0 in rows 0, 40, 80)",
    ),
    "overlap": (
        {"id": every(40, "x", lambda k: ITEMS[k])}, {"item": "id"}, OverlapError,
        "1 of 118 items of the truth ('t' of the table) are in more than one cluster ('x')",
    ),
}  # fmt: skip


@pytest.mark.cases(0)
@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
@pytest.mark.parametrize("name", FAULTS_OF_ONE_TABLE)
def test_one_table(name, many_shards, in_files, tmp_path):
    columns, options, kind, expected = FAULTS_OF_ONE_TABLE[name]
    table = both_sides(**columns)
    if in_files:
        table = write(table, tmp_path / "rows.parquet")
        expected = expected.replace("the table", table)
    on_disk, in_memory = messages("t", "p", table=table, kind=kind, **options)
    assert expected in in_memory
    assert on_disk == in_memory


@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
def test_null_labels_by_position(many_shards):
    labels = pa.array([None if k % 7 == 3 else k // 3 for k in range(N)])
    on_disk, in_memory = messages(labels, list(range(N)), kind=NullError)
    assert "17 of 120 rows of the truth have a null in" in on_disk  # 3, 10, … 115
    assert "(rows 3, 10, 17, …)" in on_disk
    assert on_disk == in_memory


@pytest.mark.parametrize("many_shards", ["all in memory", "all spilled"], indirect=True)
def test_integers_are_named_in_order(many_shards):
    rows = {"item": np.arange(N) * 7, "cluster": np.arange(N) // 3}
    truth = pa.concat_tables([pa.table(rows), pa.table(rows).slice(60, 5), pa.table(rows).slice(3, 2)])
    on_disk, in_memory = messages(truth, pa.table(rows), kind=DuplicateItemError)
    assert "7 of 127 rows of the truth repeat an earlier row (21, 28, 420, …)" in on_disk
    assert on_disk == in_memory
    on_disk, in_memory = messages(truth, pa.table(rows).slice(2), kind=AlignmentError, unmatched="raise",
                                  duplicates="drop")  # fmt: skip
    assert "2 of 127 items of the truth are missing from the prediction (first: 0, 7)" in on_disk
    assert on_disk == in_memory


@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
def test_nulls_of_a_stream(many_shards):
    reader = with_nulls(side(), "item", 50).to_reader(max_chunksize=17)
    with pytest.raises(NullError, match=r"3 of 120 item ids are null in .*first rows: 0, 50, 100"):
        fb.evaluate(reader, PREDICTION, engine="disk", memory_limit=LIMIT)


ONE = {"item": ["a"] * 1000 + ["b"], "cluster": [0] * 1001}
TWICE = [
    ({}, ONE, {}),
    ({}, ONE | {"cluster": list(range(1001))}, {}),
    ({"duplicates": "drop"}, ONE | {"cluster": list(range(1001))}, {}),
    ({"nulls": "singleton"}, ONE | {"cluster": [None] * 1000 + [1]}, {}),
    ({"nulls": "singleton"}, ONE | {"cluster": [None] * 999 + [0, 1]}, {}),
    ({"weight": "w"}, ONE | {"w": [1.0] * 1001}, {}),
    ({"weight": "w"}, ONE | {"w": [1.0] * 999 + [2.0, 1.0]}, {}),
    ({}, {"item": ["a", "b"], "cluster": [0, 0]}, {"attributes": {"item": ONE["item"], "k": [1] * 1001}}),
    ({}, {"item": ["a", "b"], "cluster": [0, 0]}, {"weight": {"item": ONE["item"], "weight": [1.0] * 1001}}),
]


@pytest.mark.parametrize(("options", "truth", "tables"), TWICE)
def test_rows_of_one_item_do_not_all_come_to_one_shard(options, truth, tables, monkeypatch):
    """A message tells them all, but they are told apart where they are read."""
    put, rows = ItemShards.put, []

    def counted(self, index, keys, *rest):
        rows.append(keys.first.size)
        put(self, index, keys, *rest)

    monkeypatch.setattr(ItemShards, "put", counted)
    given = {name: pa.table(own) for name, own in tables.items()}
    prediction = pa.table({"item": ["a", "b"], "cluster": [0, 0]})
    said = []
    for engine in ("memory", "disk"):
        with pytest.raises(FastBCubedError) as raised:
            fb.evaluate(pa.table(truth), prediction, engine=engine, slices="k" if tables.get("attributes") else (),
                        **options, **given)  # fmt: skip
        said.append((type(raised.value), str(raised.value)))
    assert said[0] == said[1]
    assert 0 < max(rows) <= 4
