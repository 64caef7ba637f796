"""Columns stored by shard: attributes of few distinct strings take a code each."""

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.align import stash
from fastbcubed.align.stash import Stash
from fastbcubed.runtime.spill import Spill

CODED = pa.dictionary(pa.int8(), pa.string())


def coded(codes, values, kind=CODED):
    """A dictionary column, as it is given: codes, null for None, of these values."""
    array = pa.DictionaryArray.from_arrays(
        pa.array(codes, kind.index_type), pa.array(values, kind.value_type), ordered=kind.ordered
    )
    assert array.type == kind
    return array


def read_back(tmp_path, batches, name="truth.kind"):
    """What is read of batches by index, added last first."""
    with Spill(tmp_path, named=True) as spill:
        own = Stash(spill)
        for index, batch in reversed(list(enumerate(batches))):
            own.put(index, pa.table({name: batch}))
        return own.read(0)[name]


def test_batches_with_dictionaries_of_their_own(tmp_path):
    batches = [
        coded([0, 1, None], ["b", "a"]), coded([1, 0], ["a", "late"]),
        coded([0, 1, 2], ["a", "a", None]), coded([], []), coded([None], []),
    ]  # fmt: skip
    found = read_back(tmp_path, batches)
    assert found.type == CODED
    assert found.to_pylist() == ["b", "a", None, "late", "a", "a", "a", None, None]
    assert found.chunk(0).dictionary.to_pylist() == [
        "a",
        "b",
        "late",
    ]  # ascending, whichever thread came first


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
def test_more_values_than_codes_of_the_input_tell_apart(tmp_path, text):
    kind = pa.dictionary(pa.int8(), text)
    batches = [coded(range(100), [f"{k:03}" for k in range(start, start + 100)], kind) for start in (0, 100)]
    found = read_back(tmp_path, batches)
    assert found.type == pa.dictionary(pa.int16(), text)
    assert found.to_pylist() == [f"{k:03}" for k in range(200)]


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        (coded([0, 1, 0], ["c", "d"]), pa.string()),  # too many values
        (pa.array(["a", "c", None]), pa.string()),
        (coded([0, None], ["c"], pa.dictionary(pa.int16(), pa.string())), pa.string()),
        (coded([0], ["c"], pa.dictionary(pa.int8(), pa.large_string())), pa.large_string()),
    ],
)
def test_a_batch_that_has_no_codes_makes_all_of_them_strings(tmp_path, monkeypatch, last, kind):
    monkeypatch.setattr(stash, "MOST_VALUES", 3)
    first = coded([0, 1, None], ["b", "a"])
    for batches in ([first, last], [last, first]):
        found = read_back(tmp_path, batches)
        assert found.type == kind
        assert found.to_pylist() == [value for batch in batches for value in batch.to_pylist()]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (
            coded([1, 0, None], ["low", "high"], pa.dictionary(pa.int8(), pa.string(), ordered=True)),
            pa.string(),
        ),
        (coded([1, 0, None], [7, 5], pa.dictionary(pa.int8(), pa.int64())), pa.int64()),
    ],
)
def test_other_dictionaries_are_decoded(tmp_path, given, kind):
    found = read_back(tmp_path, [given])
    assert found.type == kind and found.to_pylist() == given.to_pylist()


def test_ids_and_labels_are_decoded(tmp_path):
    assert read_back(tmp_path, [coded([1, 0], ["b", "a"])], "item").type == pa.string()


def test_codes_are_what_is_written(tmp_path):
    with Spill(tmp_path, named=True) as spill:
        own = Stash(spill)
        own.put(0, pa.table({"truth.kind": coded([0, 1] * 50_000, ["x" * 1000, "y" * 1000])}))
        assert 100_000 <= spill.written < 120_000


@pytest.mark.parametrize("values", [["a", "b", None, "c"], [f"{k}" for k in range(5000)]])
def test_items_from_disk_have_the_types_of_those_from_memory(values):
    n = 20_000
    codes = np.arange(n) % len(values)
    truth = pa.table(
        {
            "item": np.arange(n),
            "cluster": np.arange(n) // 2,
            "kind": pa.array(values).take(codes).dictionary_encode(),
        }
    )
    prediction = pa.table(
        {"item": np.arange(n)[::-1], "cluster": np.arange(n)[::-1] // 2 * (np.arange(n)[::-1] % 7 > 0)}
    )
    found = []
    for engine in ("memory", "disk"):
        ev = fb.evaluate(truth, prediction, keep="items", engine=engine)
        found.append(ev.items(columns=["kind"]).to_arrow().sort_by("item"))
        assert ev.slices("kind")["n_items"].to_pylist() == np.bincount(codes).tolist()
    memory, disk = (table["kind"] for table in found)
    assert disk.to_pylist() == memory.to_pylist() == pa.array(values).take(codes).to_pylist()
    assert memory.type == truth["kind"].type
    assert disk.type == (memory.type if len(values) <= stash.MOST_VALUES else pa.string())
