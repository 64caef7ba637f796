"""The order of many ids by words: that of Python's comparison, ties by row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastbcubed.inputs.id_order import order_of_ids, order_of_words, same_ids, words_of, words_of_numbers
from fastbcubed.results import table
from fastbcubed.results.table import order_of

NUMBERS = [0, -1, 5, 2**62, -(2**63), 2**63 - 1, 5, 0, 4, 12]
TEXTS = [
    "b",
    "",
    "a",
    "a\0",
    "ab",
    "a" * 8,
    "a" * 9,
    "a" * 16 + "é",
    "a" * 16 + "f",
    "a",
    "\U0001f600",
    "�",
    "b" * 300,
]


def in_order(values: list[Any]) -> list[int]:
    return sorted(range(len(values)), key=lambda row: (values[row], row))


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(NUMBERS),
        pa.array([n + 2**63 for n in NUMBERS], pa.uint64()),
        pa.array([3, 1, 2, 1], pa.int8()),
        pa.array(TEXTS),
        pa.array(TEXTS[:-1]),  # without the long one
        pa.array(TEXTS[:-1], pa.large_string()).slice(3),
        pa.array([text.encode() for text in TEXTS[:-1]]),
        pa.array([True, False, True]),
        pa.array(["x"]),
        pa.array([], pa.string()),
        pa.array([1.5, -2.0, 0.25, 1.5, float("inf"), -float("inf")]),
    ],
    ids=lambda ids: f"{ids.type} {len(ids)}",
)
def test_order_of_ids(ids: pa.Array) -> None:
    assert order_of_ids(ids).tolist() == in_order(ids.to_pylist())


def test_composite_ids_go_by_their_first_part_first() -> None:
    rows = [("b", 1), ("a", 3), ("a", -2), ("b", 0), ("a", 3)]
    ids = pa.StructArray.from_arrays(
        [pa.array([a for a, _ in rows]), pa.array([b for _, b in rows])], ["a", "b"]
    )
    assert order_of_words(words_of(ids), len(ids)).tolist() == in_order(rows)


@pytest.mark.parametrize("seed", range(5))
def test_ties_are_settled_by_further_bits_and_words(seed: int) -> None:
    """Numbers that differ in few or in many bits, so that groups tie again and again."""
    rng = np.random.default_rng(seed)
    first = (rng.integers(0, 2**63, 7)[rng.integers(0, 7, 500)] >> np.int64(seed)) ^ rng.integers(0, 3, 500)
    second = rng.choice([0.0, -0.0, 1.0, np.nan, -3.5], 500)
    found = order_of_words([words_of_numbers(each) for each in (first, second)], 500)
    assert found.tolist() == np.lexsort((np.arange(500), second + 0.0, first)).tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
@pytest.mark.parametrize("most", [1, 4, 2**11, 2**64 - 1])
def test_words_are_sorted_by_all_of_their_bits(n: int, most: int) -> None:
    words = np.random.default_rng(n).integers(0, most, n, np.uint64, endpoint=True)
    words[n // 2 :] ^= np.uint64(1)  # words that differ in the last bit only
    expected = sorted(range(n), key=words.tolist().__getitem__)
    assert order_of_words([lambda rows: words[rows]], n).tolist() == expected


def test_listings_are_in_the_same_order_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    figures, names = [rng.integers(0, 3, 200) / 3, -rng.integers(0, 2, 200)], [pa.array(map(str, range(200)))]
    expected = order_of(figures, names).to_pylist(), order_of([], [pa.array([3, None, 1])]).to_pylist()
    monkeypatch.setattr(table, "WORTH_WORDS", 0)
    assert order_of(figures, names).to_pylist() == expected[0]
    assert order_of(figures, names, 5).to_pylist() == expected[0][:5]
    assert order_of([], [pa.array([3, None, 1])]).to_pylist() == expected[1] == [2, 0, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NUMBERS, [5, 7, 2**62, 0]),
        (TEXTS[:-1], ["a", "a\0", "a" * 9, "b"]),
        (["a", "a" * 20], ["b", "a"]),  # texts of one word, and of several
        ([1.5, 2.5], [2.5]),
    ],
)
def test_same_ids(one: list[Any], other: list[Any]) -> None:
    rows, others = np.divmod(np.arange(len(one) * len(other)), len(other))
    found = same_ids(pa.array(one), pa.array(other))(rows, others)
    assert found.tolist() == [a == b for a in one for b in other]
