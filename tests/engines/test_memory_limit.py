"""The memory limit: by how much a process grows, on shapes that are hard to bound."""

import re
from itertools import cycle, islice

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from documents import of_section, table
from growth import growth

import fastbcubed as fb
from fastbcubed.cells.shards import SMALLEST_LIMIT
from fastbcubed.choose_engine import ROW_BYTES
from fastbcubed.diff_runs import identity
from fastbcubed.errors import OptionError
from fastbcubed.inputs import file_formats
from fastbcubed.inputs.files import open_files
from fastbcubed.results import clusters, items, repairs, standard_errors

#: What a process may grow by with a limit of 64 MiB: the limit, and what the library states beside it.
MOST = 64 + 256


def grown(call: str, small: str, limit: str = "64MiB", **options: str) -> float:
    """Return by how many MiB an evaluation grows the process, after a small one that compiled."""
    given = "".join(f", {name}={value}" for name, value in options.items())
    before = f"""
        options = dict(engine="disk", memory_limit={limit!r})
        fb.evaluate({small}{given}, **options)
    """
    return growth(before, f"fb.evaluate({call}{given}, **options)")


def write(path, table: pa.Table, rows: int = 1 << 20) -> str:
    """Write a Parquet file, and return its path for a program."""
    pq.write_table(table, path, row_group_size=rows)
    return repr(str(path))


# -- Large predicted clusters -----------------------------------------------------------------------

FEW = "{'t': [0, 1], 'p': [0, 0]}"


@pytest.mark.process
@pytest.mark.parametrize("n_clusters", [1, pytest.param(2, marks=pytest.mark.weekly)])
def test_all_items_in_few_predicted_clusters(n_clusters, tmp_path):
    """5e6 cells of one predicted cluster take 500 MiB if they are closed together."""
    n = 5_000_000
    path = write(tmp_path / "rows.parquet", pa.table({"t": np.arange(n), "p": np.arange(n) % n_clusters}))
    assert grown(f"'t', 'p', table={path}", f"'t', 'p', table={FEW}", keep="'cells'") < MOST


@pytest.mark.process
@pytest.mark.weekly
def test_all_items_in_one_predicted_cluster_of_two_tables(tmp_path):
    n, rng = 5_000_000, np.random.default_rng(0)
    truth = write(tmp_path / "t.parquet", pa.table({"item": rng.permutation(n), "cluster": np.arange(n)}))
    prediction = write(
        tmp_path / "p.parquet", pa.table({"item": rng.permutation(n), "cluster": np.zeros(n, int)})
    )
    assert grown(f"{truth}, {prediction}", "{0: 0, 1: 1}, {0: 0, 1: 0}", slices="'pred_size'") < MOST


CELLS = {
    "one": lambda i: (np.zeros_like(i), np.zeros_like(i)),
    "one true cluster": lambda i: (np.zeros_like(i), i % 2),
    "half of the rows in one": lambda i: (np.where(i % 2, 0, i), np.where(i % 2, 0, i)),
    "a fifth of the rows in one": lambda i: (np.where(i % 5, i, 0), np.where(i % 5, i, 0)),
}


@pytest.mark.process
@pytest.mark.cases(0, 1)
@pytest.mark.parametrize(
    ("cells", "asked"),
    [
        ("one", {"keep": "'items'"}),
        *zip(
            CELLS,
            cycle(
                [
                    {"slices": "'c'", "weight": "'w'"},
                    {"keep": "'items'", "weight": "'w'", "metrics": "['pair_f1']"},
                ]
            ),
            strict=False,
        ),
    ],
)
def test_a_large_cell_whose_rows_are_needed_again(cells, asked, tmp_path):
    """All rows of a cell are in one shard: stored one by one, they take 50 bytes each, and more with weights."""
    i = np.arange(9_000_000)
    true, pred = CELLS[cells](i)
    path = write(
        tmp_path / "rows.parquet", pa.table({"t": true, "p": pred, "c": i % 7, "w": 1.0 + i % 3}), 1 << 17
    )
    few = "{'t': [0, 1], 'p': [0, 0], 'c': [0, 1], 'w': [1., 2.]}"
    assert grown(f"'t', 'p', table={path}", f"'t', 'p', table={few}", **asked) < MOST


@pytest.mark.slow
def test_a_large_batch_of_an_arrow_file(tmp_path):
    """A reader holds a batch of rows that are there in one; blocks that are kept hold no more than their own rows."""
    n = 3_000_000
    columns = {
        "t": np.arange(n) // 2,
        "p": np.arange(n) // 3,
        "text": pa.array(["abc"]).take(np.zeros(n, int)),
    }
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_file(path, pa.table(columns).schema) as file:
        file.write_table(pa.table(columns))
    (group,) = open_files(path).groups()
    assert group.held(["t", "p"]) == 16 * n
    for found in islice(group.read(["t", "text"], 1000), 3):
        assert all(column.get_total_buffer_size() < 20_000 and len(column) == 1000 for column in found)
    least = (
        r"column 'text' of .* has values of about \d+ MiB per record batch.*at least \d+ MiB.*record batches"
    )
    with pytest.raises(OptionError, match=least):
        fb.evaluate("t", "p", item="text", table=path, engine="disk", memory_limit="64MiB")


# -- Text --------------------------------------------------------------------------------------------


def texts(width: int, distinct: int) -> pa.Array:
    """Return different texts of so many characters."""
    return pa.array([f"{k:08d}".ljust(width, "x") for k in range(distinct)])


@pytest.mark.process
@pytest.mark.weekly
@pytest.mark.parametrize(("width", "n"), [(200, 2_000_000), (2000, 1_000_000)])
def test_long_labels_that_come_again(width, n, tmp_path):
    """A file has each text once, so it says nothing of how much memory its rows take."""
    rng, values = np.random.default_rng(0), texts(width, 60)
    coded = [pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 60, 1 << 18)), values) for _ in "tp"]
    part = pa.table({name: own.cast(pa.string()) for name, own in zip("tp", coded, strict=True)})
    path = tmp_path / "rows.parquet"
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(n >> 18):
            writer.write_table(part, row_group_size=1 << 18)
    small = "'t', 'p', table={'t': ['a', 'b'], 'p': ['a', 'a']}"
    assert grown(f"'t', 'p', table={str(path)!r}", small, keep="'cells'") < MOST


def test_small_dictionaries_are_read_as_they_are(tmp_path, monkeypatch):
    """A column with many values is rebuilt per batch; one with few values is read with its dictionary."""
    words = pa.array([None if k % 7 == 0 else "abcde"[k % 5] for k in range(9000)])
    ids = pa.array([f"a long text of its own {k}" for k in range(9000)])
    given = pa.table({"few": words.dictionary_encode(), "many": ids.dictionary_encode()})
    pq.write_table(given, tmp_path / "rows.parquet", row_group_size=5000)
    rebuilt, encoded = list[int](), file_formats._encoded
    monkeypatch.setattr(
        file_formats, "_encoded", lambda values, kind: rebuilt.append(len(values)) or encoded(values, kind)
    )
    file = file_formats.ParquetFile(str(tmp_path / "rows.parquet"))
    read = [part for group in range(2) for part in file.read_group(group, ["few", "many"], 3000)]
    assert [len(few) for few, _ in read] == [3000, 2000, 3000, 1000]
    assert [value for few, _ in read for value in few.to_pylist()] == words.to_pylist()
    assert [value for _, many in read for value in many.to_pylist()] == ids.to_pylist()
    assert rebuilt == [3000, 2000, 3000, 1000]  # of the column with many values only


@pytest.mark.process
@pytest.mark.weekly
def test_dictionaries(tmp_path):
    """A batch of rows does not bring the whole dictionary with it, of a million labels here."""
    rng, n, values = np.random.default_rng(0), 2_000_000, texts(40, 1_000_000)
    columns = {name: pa.DictionaryArray.from_arrays(rng.integers(0, 1_000_000, n), values) for name in "tp"}
    path = write(tmp_path / "rows.parquet", pa.table(columns))
    small = "'t', 'p', table={'t': ['a', 'b'], 'p': ['a', 'a']}"
    assert grown(f"'t', 'p', table={path}", small, "768MiB", keep="'cells'") < 768 + 256
    least = r"column '[tp]' of .* has dictionaries of about \d+ MiB .* memory_limit .* at least \d+ MiB"
    with pytest.raises(OptionError, match=least):  # a reader holds the dictionary of its row group
        fb.evaluate("t", "p", table=path[1:-1], engine="disk", memory_limit="64MiB")


@pytest.mark.process
@pytest.mark.weekly
def test_long_item_ids(tmp_path):
    rng, n = np.random.default_rng(0), 500_000
    paths = []
    for side in "tp":
        ids = pa.array(np.char.add("i" * 300, rng.permutation(n).astype(str)))
        paths.append(
            write(tmp_path / side, pa.table({"item": ids, "cluster": rng.integers(0, n // 2, n)}), n)
        )
    assert grown(", ".join(paths), "{'a': 0, 'b': 1}, {'a': 0, 'b': 0}", keep="'items'") < MOST


# -- Repeated rows -----------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("text", [False, pytest.param(True, marks=pytest.mark.weekly)])
def test_one_row_again_and_again(text, tmp_path):
    """The rows of an item come to one shard, all 4e6 of them if they were not told apart before."""
    n = 4_000_000
    item, label = np.array(["0"]) if text else np.zeros(1, int), np.zeros(1, int)
    truth = pa.table({"item": np.repeat(item, n), "cluster": np.repeat(label, n)})
    paths = [write(tmp_path / side, truth if side == "t" else truth[:1]) for side in "tp"]
    small = "{'0': 0, '1': 0}" if text else "{0: 0, 1: 0}"
    assert grown(", ".join(paths), f"{small}, {small}", duplicates="'drop'") < MOST


# -- Slices ------------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.cases(0, 1)
@pytest.mark.parametrize("text", [False, True])
def test_two_million_slices(text, tmp_path):
    """Sums of slices are spilled; what is held is the values, and one kind of sums after the other."""
    rng, n = np.random.default_rng(0), 2_000_000
    values = rng.permutation(n)
    own = pa.array(np.char.add("value ", values.astype(str)) if text else values)
    labels = {name: rng.integers(0, n // 2, n) for name in "tp"}
    path = write(tmp_path / "rows.parquet", pa.table({**labels, "a": own}))
    small = "{'t': [0, 1], 'p': [0, 0], 'a': %s}" % (["x", "y"] if text else [0, 1])
    assert grown(f"'t', 'p', table={path}", f"'t', 'p', table={small}", slices="'a'") < MOST


@pytest.mark.process
@pytest.mark.weekly
def test_many_slices_that_are_written(tmp_path):
    rng, n = np.random.default_rng(0), 400_000
    own = pa.array(np.char.add("value ", rng.permutation(np.arange(n) % 200_000).astype(str)))
    path = write(
        tmp_path / "rows.parquet", pa.table({"t": np.arange(n) // 3, "p": np.arange(n) // 4, "a": own})
    )
    small = "{'t': [0, 1], 'p': [0, 0], 'a': ['x', 'y']}"
    out = repr(str(tmp_path / "out"))
    assert grown(f"'t', 'p', table={path}", f"'t', 'p', table={small}", slices="'a'", out=out) < MOST


@pytest.mark.cases(0, 1)
@pytest.mark.parametrize("key", ["'a'", "('a', 'b')"])
def test_many_slices_that_are_written_shown_and_loaded(key, tmp_path):
    """600,000 names of 100 letters: whole, they take 114 MiB; nothing that shows or saves the result reads them so."""
    n, rng = 600_000, np.random.default_rng(0)
    own = pa.array(np.char.add("value ", np.char.zfill(rng.permutation(n).astype(str), 94)))
    i, out = np.arange(n), repr(str(tmp_path / "out"))
    path = write(
        tmp_path / "rows.parquet", pa.table({"t": i // 3, "p": i // 4, "a": own, "b": i % 7}), 1 << 17
    )
    few = "{'t': [0, 1], 'p': [0, 0], 'a': ['x', 'y'], 'b': [1, 2]}"
    before = f"""
        options = dict(engine="disk", memory_limit="64MiB", slices={key})
        fb.evaluate("t", "p", table={few}, out={str(tmp_path / "few")!r}, **options)
    """
    evaluated = f"""
        ev = fb.evaluate("t", "p", table={path}, out={out}, **options)
        assert ev.slices({key}, limit=10).num_rows == 10
        str(ev), ev.to_json(), ev.report().html
    """
    assert growth(before, evaluated) < MOST
    loaded = f"ev = fb.load({out}); ev.slices({key}, limit=10), ev.to_json()"
    assert growth("", loaded) < MOST


ROWS = {
    "item": list(range(600)),
    "t": [k // 3 for k in range(600)],
    "p": [k // 4 for k in range(600)],
    "c": [k % 7 for k in range(600)],
    "d": [k % 5 for k in range(600)],
}


def kept_rows(**how):
    return fb.evaluate("t", "p", table=ROWS, item="item", keep="items", slices="c", **how)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_rows_without_room_are_refused_by_name(monkeypatch):
    """Requested slices, text, JSON and page take no rows; other slices and their errors take all of them."""
    ev, in_memory = kept_rows(engine="disk", memory_limit="64MiB"), kept_rows()
    monkeypatch.setattr(items, "BESIDE", -(64 << 20))
    assert ev.slices("c").to_pylist() == in_memory.slices("c").to_pylist()
    assert "precision" in repr(ev)
    assert len(ev.to_dict()["slices"]["c"]) == 7
    assert "n_units" not in ev.to_dict()["slices"]["c"][0]
    pages = [table(of_section(each.report().content, "loss")) for each in (ev, in_memory)]
    assert [row["pred_size"] for row in pages[0]] == [row["pred_size"] for row in pages[1]]
    for which in (lambda: ev.slices("d"), lambda: ev.slices(("c", "d"), limit=3)):
        with pytest.raises(
            OptionError, match=r"slices by '(d|c,d)' would take .* at least 65 MiB.*requested with slices="
        ):
            which()
    errors = (
        lambda: ev.slices("c", errors=True),
        lambda: ev.slices({"few": [1, 2, 3]}, errors=True),
        lambda: ev.scores(unit="c"),
    )
    for which in errors:
        with pytest.raises(OptionError, match=r"standard errors of slices.*would take .* at least 65 MiB"):
            which()
    d = fb.diff(
        "t", "p", table=ROWS, item="item", keep="items", slices="c", engine="disk", memory_limit="64MiB"
    )
    assert d.slices("c").num_rows == 7
    with pytest.raises(OptionError, match=r"slices by 'd' would take"):
        d.slices("d")


def test_bytes_of_rows_are_counted(monkeypatch):
    """A row takes 60 bytes and three copies of its value; each of five slices takes 200 and two copies."""
    ev = kept_rows(engine="disk", memory_limit="64MiB")
    value = 8 + 1 / 8  # a bit says whether it is null
    needed = int(600 * (60 + 3 * value) + 5 * (200 + 2 * value))
    monkeypatch.setattr(items, "BESIDE", needed - (64 << 20))
    assert ev.slices("d").num_rows == 5
    monkeypatch.setattr(items, "BESIDE", needed - (64 << 20) - 1)
    with pytest.raises(OptionError, match="the 5 slices by 'd' would take"):
        ev.slices("d")
    monkeypatch.setattr(items, "BESIDE", 600 * 300 - (64 << 20))
    assert "precision_se" in ev.slices("c", errors=True).column_names
    monkeypatch.setattr(items, "BESIDE", 600 * 300 - (64 << 20) - 1)
    with pytest.raises(OptionError, match="standard errors of slices"):
        ev.slices("c", errors=True)


@pytest.mark.parametrize("limit", [None, 3])
def test_items_without_room_are_refused_by_name(limit, monkeypatch):
    """A listed item takes 8 bytes a column, its row's number in place of id and labels, and each row 24 bytes."""
    ev, in_memory = kept_rows(engine="disk", memory_limit="64MiB"), kept_rows()
    columns = len(in_memory.items(limit=1).column_names) - 2
    all_items, of_one = (600 * 24 + n * 8 * columns - (64 << 20) for n in (600, 4))
    monkeypatch.setattr(items, "BESIDE", all_items)
    assert ev.items(limit=limit).to_pylist() == in_memory.items(limit=limit).to_pylist()
    monkeypatch.setattr(items, "BESIDE", all_items - 1)
    least = r"a listing of 600 items .* at least 65 MiB suffices\. The items of one cluster, as with pred_cluster="
    with pytest.raises(OptionError, match=least):
        ev.items(limit=limit)
    monkeypatch.setattr(items, "BESIDE", of_one)
    assert ev.items(pred_cluster=7).to_pylist() == in_memory.items(pred_cluster=7).to_pylist()
    assert in_memory.items().num_rows == 600


# -- What is held as a whole -------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.slow
def test_csv_that_is_too_large_raises_before_it_is_read(tmp_path):
    rng, n, path = np.random.default_rng(0), 1_500_000, tmp_path / "rows.csv"
    pyarrow.csv.write_csv(pa.table({name: rng.integers(0, n // 2, n) for name in "tp"}), path)
    least = (
        r"rows\.csv, given as table= would take .* memory_limit to at least (\d+) MiB, or write it as Parquet"
    )
    with pytest.raises(OptionError, match=least) as raised:
        fb.evaluate("t", "p", table=path, engine="disk", memory_limit="64MiB")
    enough = int(re.search(least, str(raised.value))[1])
    small = "{'t': [0, 1], 'p': [0, 0]}"
    assert grown(f"'t', 'p', table={str(path)!r}", f"'t', 'p', table={small}", f"{enough}MiB") < enough + 256


@pytest.mark.process
@pytest.mark.parametrize("threads", ["2", "16"])
def test_csv_that_fits(threads, tmp_path):
    rng, n, path = np.random.default_rng(0), 1_000_000, tmp_path / "rows.csv"
    pyarrow.csv.write_csv(pa.table({name: rng.integers(0, n // 2, n) for name in "tp"}), path)
    small = "'t', 'p', table={'t': [0, 1], 'p': [0, 0]}"
    assert grown(f"'t', 'p', table={str(path)!r}", small, threads=threads) < MOST


@pytest.mark.process
@pytest.mark.weekly
def test_many_threads_hold_smaller_blocks(tmp_path):
    """Sixteen blocks of one row per KiB of the limit held 630 MiB."""
    path = tmp_path / "rows.parquet"
    rows_of_er(path, 30_000_000)
    small = "'t', 'p', table={'t': [0, 1], 'p': [0, 0]}"
    assert grown(f"'t', 'p', table={str(path)!r}", small, "256MiB", threads="16") < 256 + 256


@pytest.mark.cases(0)
@pytest.mark.parametrize(("argument", "column"), [("weight", "weight"), ("attributes", "a")])
def test_a_large_table_that_is_joined_by_item(argument, column, tmp_path):
    n, path = 6_000_000, tmp_path / "joined.parquet"
    pq.write_table(pa.table({"item": np.arange(n), column: np.ones(n)}), path)
    own = {0: 0, 1: 1}
    options = {argument: path, "slices": [column] if argument == "attributes" else []}
    least = rf"joined.parquet, given as {argument}= would take .* at least \d+ MiB$"
    with pytest.raises(OptionError, match=least):
        fb.evaluate(own, own, engine="disk", memory_limit="64MiB", **options)


def test_changes_by_slice_need_room_for_all_rows(monkeypatch):
    """Of 600 rows, each takes 100 to 200 bytes, its value included."""
    old = {"item": np.arange(600), "cluster": np.arange(600) // 3, "part": np.arange(600) % 2}
    new = {**old, "cluster": np.arange(600) // 4}
    d = fb.diff(pa.table(old), pa.table(new), engine="disk", memory_limit="64MiB", keep="items")
    monkeypatch.setattr(items, "BESIDE", 60_000 - (64 << 20) - 1)
    with pytest.raises(
        OptionError, match=r"^changes by 'part' would take about 64 MiB .* at least 65 MiB suffices$"
    ):
        d.changes("part")
    monkeypatch.setattr(items, "BESIDE", 120_000 - (64 << 20))
    assert d.changes("part").num_rows


# -- Scores that take all cells at once ---------------------------------------------------------------


def rows_of_er(path, n: int) -> str:
    """Write one table whose prediction moves a fifth of the items, and return its path for a program."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, n // 3, n)
    moved = np.where(rng.random(n) < 0.2, rng.integers(0, n // 3, n), true)
    return write(path, pa.table({"t": true, "p": moved}))


def test_scores_without_room_raise_if_named_and_say_the_least_limit(tmp_path):
    """2e6 items: (40 + 145) bytes each, 80 MiB beside, of which 256 MiB may pass the limit: 177 MiB."""
    path = tmp_path / "rows.parquet"
    rows_of_er(path, 2_000_000)
    with pytest.raises(OptionError, match=r"cannot compute omega: .* at least 177 MiB"):
        fb.evaluate("t", "p", table=path, metrics=["omega"], engine="disk", memory_limit="64MiB")


@pytest.mark.process
@pytest.mark.slow
def test_all_scores(tmp_path):
    path = rows_of_er(tmp_path / "rows.parquet", 2_000_000)
    assert grown(f"'t', 'p', table={path}", f"'t', 'p', table={FEW}", metrics="'all'") < MOST
    ev = fb.evaluate(
        "t", "p", table=tmp_path / "rows.parquet", metrics="all", engine="disk", memory_limit="64MiB"
    )
    assert "at least 177 MiB" in ev.not_computed["omega"]
    assert {"purity", "v_measure", "adjusted_rand"} <= set(ev.overall)


# -- Further shapes ---------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.weekly
def test_many_small_files(tmp_path):
    n, folder = 2_000_000, tmp_path / "rows"
    folder.mkdir()
    for k in range(1000):
        at = np.arange(k, n, 1000)
        write(folder / f"{k}.parquet", pa.table({"t": at // 3, "p": at // 4}))
    assert grown(f"'t', 'p', table={str(folder)!r}", f"'t', 'p', table={FEW}") < MOST


@pytest.mark.process
@pytest.mark.weekly
def test_one_huge_row_group_of_text(tmp_path):
    n = 2_000_000
    text = pa.array(np.arange(n) // 3).cast(pa.string())
    path = write(tmp_path / "rows.parquet", pa.table({"t": text, "p": text}), rows=n)
    small = "'t', 'p', table={'t': ['a', 'b'], 'p': ['a', 'a']}"
    assert grown(f"'t', 'p', table={path}", small) < MOST


@pytest.mark.process
@pytest.mark.cases(0, 1)
@pytest.mark.parametrize("policy", ["drop", "outside"])
def test_most_items_on_one_side(policy, tmp_path):
    n = 1_000_000
    ids = pa.array(np.arange(n)).cast(pa.string())
    cluster = pa.array(np.arange(n) // 3).cast(pa.string())
    prediction = write(tmp_path / "p.parquet", pa.table({"item": ids, "cluster": cluster}))
    truth = write(tmp_path / "t.parquet", pa.table({"item": ids[::10], "cluster": cluster[::10]}))
    small = "{'a': 'x', 'b': 'x'}, {'a': 'x', 'b': 'y', 'c': 'y'}"
    unmatched = f"{{'prediction': {policy!r}}}"
    assert grown(f"{truth}, {prediction}", small, unmatched=unmatched) < MOST


# -- What is asked of a result ----------------------------------------------------------------------


@pytest.fixture
def few_on_disk(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": [0, 0, 1, 1, 2], "p": [0, 1, 2, 2, 2]}), path)
    asked = {"metrics": ["f1", "pair_f1"], "engine": "disk", "memory_limit": SMALLEST_LIMIT}
    return fb.evaluate("t", "p", table=path, **asked)


def test_a_listing_of_all_clusters_without_room_is_refused(few_on_disk, monkeypatch):
    whole = few_on_disk.clusters("pred", limit=None)
    monkeypatch.setattr(clusters, "BESIDE", -SMALLEST_LIMIT)  # so that there is no room for a byte
    with pytest.raises(
        OptionError, match=r"all predicted clusters would take .* memory_limit .* pass limit=100"
    ):
        few_on_disk.clusters("pred", limit=None)
    assert few_on_disk.clusters("pred", limit=3).equals(whole)


def test_a_listing_of_all_repairs_without_room_is_refused(few_on_disk, monkeypatch):
    """3 true and 3 predicted clusters: a listing takes 6 * 16 MiB, of half the limit and 32 MiB."""
    whole = few_on_disk.repairs(limit=None)
    for name, each in {"LISTED_BYTES": 16 << 20, "BESIDE": 32 << 20}.items():
        monkeypatch.setattr(repairs, name, each)
    few_on_disk.kept.memory_limit = 64 << 20
    with pytest.raises(OptionError, match=r"repairs would take .* at least 129 MiB"):
        few_on_disk.repairs(limit=None)
    assert few_on_disk.repairs(limit=9).equals(whole)


def test_errors_of_sums_without_room_are_refused(few_on_disk, monkeypatch):
    monkeypatch.setattr(standard_errors, "BESIDE", -SMALLEST_LIMIT)
    with pytest.raises(OptionError, match=r"not means over items would take .* or request fewer scores"):
        few_on_disk.interval("pair_f1")
    assert few_on_disk.interval("f1").low < few_on_disk.f1
    assert "errors" not in few_on_disk.to_dict()
    assert "No interval is shown" in " ".join(repr(few_on_disk).split())


def test_bytes_of_ids_and_pairs_are_counted(monkeypatch):
    """300 cells of 300 bytes, none of an unchanged cluster; 350 clusters of 95; 600 rows, all of which changed.

    A table of integer ids takes 6 bytes for each of 350 clusters, and 120 for each of 150 new ones.
    """
    how = {"item": "item", "keep": "items", "engine": "disk", "memory_limit": "64MiB"}
    d, ids = fb.diff("t", "p", table=ROWS, **how), 300 * 300 + 350 * 95
    asked = [
        ("stable ids", identity, 350 * 6 + 150 * 120, d.ids),
        ("stable ids", identity, ids, d.registry),
        ("ids of items", items, ids + 600 * 60, lambda: d.ids(by="item")),
        ("a sample of pairs", items, 600 * (48 + 170), lambda: d.sample_pairs(4)),
    ]
    for what, module, needed, call in asked:
        monkeypatch.setattr(module, "BESIDE", needed - (64 << 20) - 1)
        with pytest.raises(OptionError, match=rf"^{what} would take .* memory_limit of at least 65 MiB"):
            call()
        monkeypatch.setattr(module, "BESIDE", needed - (64 << 20))
        assert call().num_rows


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "asked"),
    [
        ("stable ids", "d.ids()"),
        ("stable ids", "d.registry(), d.retired(), d.ids()"),
        ("a sample of pairs", "d.sample_pairs(20)"),
    ],
)
def test_ids_and_pairs_of_a_diff_take_what_they_name(what, asked, tmp_path):
    """Of 4e6 items, most of whose clusters changed; without a check, each takes some 500 MiB."""
    n, rng = 4_000_000, np.random.default_rng(0)
    same = np.arange(n) // 3
    for name, share in {"old": 0.1, "new": 0.15}.items():
        moved = np.where(rng.random(n) < share, rng.integers(0, n // 3, n), same)
        write(tmp_path / f"{name}.parquet", pa.table({"item": np.arange(n), "cluster": moved}), 1 << 17)
    old, new = (str(tmp_path / f"{name}.parquet") for name in ("old", "new"))
    options = {"engine": "disk", "keep": "items"}
    d = fb.diff(old, new, memory_limit="64MiB", **options)
    with pytest.raises(OptionError, match=f"^{what} would take") as refused:
        eval(asked, {"d": d})
    least = int(re.search(r"at least (\d+) MiB", str(refused.value))[1])
    few = f"d = fb.diff([0, 0, 1], [0, 1, 1], engine='disk', keep='items')\n{asked}"
    given = f"{old!r}, {new!r}, memory_limit='{least}MiB', **{options}"
    assert growth(few, f"d = fb.diff({given})\n{asked}") < least + 256


@pytest.mark.process
@pytest.mark.slow
def test_ids_in_a_file_keep_a_limit_that_a_table_of_them_does_not(tmp_path):
    """Of 6e6 items in clusters of three, a fifth of which is split, and a tenth merged; a table may take 600 MiB."""
    n = 6_000_000
    old, part = np.arange(n) // 3, np.arange(n) % 3
    merged = np.where(old % 10 == 0, old // 20, old)
    new = np.where((old % 5 == 1) & (part == 2), n + old, merged)
    for name, labels in {"old": old, "new": new * 7}.items():
        write(tmp_path / f"{name}.parquet", pa.table({"item": np.arange(n), "cluster": labels}), 1 << 20)
    paths = [str(tmp_path / f"{name}.parquet") for name in ("old", "new")]
    with pytest.raises(OptionError, match=r"^stable ids would take about (\d\d\d MiB|\d.\d GiB)"):
        fb.diff(*paths, engine="disk", memory_limit="64MiB").ids()
    small = (pa.table({"item": [1, 2, 3], "cluster": [1, 1, k]}) for k in (1, 2))
    few = [write(tmp_path / f"few_{k}.parquet", each) for k, each in enumerate(small)]
    run = """
    from fastbcubed.cli.main import main
    main(["diff", {}, "--engine", "disk", "--memory-limit", "64MiB", "--fail-ids-lost", "1", "--ids", {!r}, "--json"])
    """
    out = str(tmp_path / "ids.parquet")
    program = "import contextlib, os\nwith contextlib.redirect_stdout(open(os.devnull, 'w')):\n" + run
    before, measured = (
        program.format(", ".join(files), out) for files in (few, [repr(path) for path in paths])
    )
    assert growth(before, measured) < MOST
    found = pq.read_table(out)
    assert found.num_rows == np.unique(new).size
    labels, ids = found["experiment_cluster"].to_numpy() // 7, found["id"].to_numpy()
    assert (np.diff(labels) > 0).all() and np.unique(ids).size == ids.size
    # A new cluster that merges k, 20 k and 20 k + 10 keeps the id 20 k, so that the third item of k keeps the id k.
    own = np.arange(n // 3 + 1)
    fresh = ids > old.max()
    assert (np.diff(ids[fresh]) == 1).all()
    assert labels[fresh].tolist() == (n + own[(own % 5 == 1) & (20 * own > n // 3)]).tolist()


@pytest.mark.process
@pytest.mark.slow
def test_overlapping_clusters_that_are_saved_take_what_they_name(tmp_path):
    """1.44e6 memberships: at 100 bytes each, 159 MiB were named and 440 taken."""
    n, few, paths = 600_000, [], []
    own = np.concatenate([np.arange(n), np.arange(0, n, 5)])
    for name, size in {"truth": 3, "prediction": 4}.items():
        cluster = np.concatenate([np.arange(n) // size, np.arange(0, n, 5) // size + 1])
        both = pa.table({"item": own, "cluster": cluster})
        few.append(write(tmp_path / f"few {name}.parquet", both.filter(pa.array(own < 60))))
        paths.append(write(tmp_path / f"{name}.parquet", both))
    with pytest.raises(OptionError, match=r"at least (\d+) MiB") as refused:
        fb.evaluate(*map(eval, paths), overlapping=True, memory_limit="64MiB")
    least = int(re.search(r"at least (\d+) MiB", str(refused.value))[1])

    def saved(files: list[str]) -> str:
        evaluated = f"fb.evaluate({', '.join(files)}, overlapping=True, memory_limit='{least}MiB')"
        return (
            f"ev = {evaluated}\nstr(ev), ev.report().html\nev.save({str(tmp_path / 'out')!r}, keep='cells')"
        )

    assert growth(saved(few), saved(paths)) < least + 256


def test_each_run_of_a_shared_table_counts():
    """Runs that are columns of one table have rows of their own, as runs in tables of their own have."""
    n = 10_000
    sides = {name: np.arange(n) // k for k, name in enumerate("tabc", 2)}
    table = pa.table({"item": np.arange(n)} | sides)
    single = {name: pa.table({"item": np.arange(n), "cluster": codes}) for name, codes in sides.items()}
    how = {"engine": "memory", "memory_limit": 2 * n * ROW_BYTES}
    fb.compare("t", {"a": "a", "b": "b"}, table=table, item="item", **how)
    with pytest.raises(OptionError, match="in memory would take"):
        fb.compare("t", {name: name for name in "abc"}, table=table, item="item", **how)
    with pytest.raises(OptionError, match="in memory would take"):
        fb.compare(single["t"], {name: single[name] for name in "ab"}, **how)


def test_rows_kept_in_memory_count_in_explanations(monkeypatch):
    """With a limit, an explanation after scoring in memory counts the rows that are still there."""
    monkeypatch.setattr("fastbcubed.results.items.BESIDE", 0)
    n = 20_000
    table = {"item": np.arange(n), "t": np.arange(n) // 2, "p": np.arange(n) // 3, "kind": np.arange(n) % 7}
    how = {"table": pa.table(table), "item": "item", "engine": "memory"}
    fb.evaluate("t", "p", **how).explain("kind")
    with pytest.raises(OptionError, match="memory_limit of at least") as raised:
        fb.evaluate("t", "p", **how, memory_limit=n * ROW_BYTES).explain("kind")
    least = re.search(r"at least (\d+ MiB)", str(raised.value))[1]
    fb.evaluate("t", "p", **how, memory_limit=least).explain("kind")
