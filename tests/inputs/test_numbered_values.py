"""Dictionaries of few values: rows get equal numbers exactly where their values are equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.errors import IdTypeError
from fastbcubed.inputs import keys
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.keys import number_codes
from fastbcubed.runtime.threads import Pool

KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()]
#: Chunks of (values of a dictionary, which may repeat; codes, which may be null).
chunks = st.lists(
    st.lists(st.text("abé", max_size=2), min_size=1, max_size=6).flatmap(
        lambda values: st.tuples(
            st.just(values), st.lists(st.none() | st.integers(0, len(values) - 1), max_size=9)
        )
    ),
    min_size=1,
    max_size=4,
)


def coded(values, codes, kind=None):
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int8()), pa.array(values).cast(kind or pa.string())
    )


@examples(80)
@given(chunks, st.sampled_from(KINDS), st.integers(0, 3))
def test_equal_numbers_are_equal_values(given, kind, skipped):
    data = pa.chunked_array([coded(*chunk, kind) for chunk in given]).slice(skipped)
    values = [None if code is None else values[code] for values, codes in given for code in codes][skipped:]
    with Pool(1) as pool:
        numbers = number_codes(data, pool)
    assert (numbers is None) == (not values)
    known = [
        (value, int(n))
        for value, n in zip(values, numbers if values else [], strict=True)
        if value is not None
    ]
    assert len(set(known)) == len({value for value, _ in known}) == len({n for _, n in known})


def test_only_dictionaries_of_few_values_are_numbered(monkeypatch):
    data = pa.chunked_array([coded("ab", [0, 1]), coded("ca", [1, 1])])
    one = coded("ab", [0, 1])
    same = pa.chunked_array([one.slice(k) for k in (0, 1, 0, 1)])
    with Pool(1) as pool:
        assert number_codes(pa.chunked_array([["a"]]), pool) is None
        monkeypatch.setattr(keys, "FEW_VALUES", 3)
        assert number_codes(data, pool) is None
        monkeypatch.setattr(keys, "FEW_VALUES", 4)
        assert number_codes(data, pool).tolist() == [0, 1, 0, 0]
        assert number_codes(same, pool).tolist() == [0, 1, 1, 0, 1, 1], "one dictionary of several chunks"


def test_what_is_not_valid_is_refused():
    beyond = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int8()), pa.array(["a", "b"]), safe=False)
    bytes_alone = pa.array([b"a", b"\xff"])
    text = pa.Array.from_buffers(pa.string(), 2, bytes_alone.buffers())
    for wrong, message in (
        (beyond, "not in its dictionary"),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), text), "not UTF-8"),
    ):
        with pytest.raises(IdTypeError, match=message):
            Column("cluster", [pa.chunked_array([wrong])]).keys()


@pytest.mark.parametrize("n_values", [7, 70_000])
def test_dictionaries_score_as_their_values(n_values):
    rng = np.random.default_rng(4)
    true, pred = rng.integers(0, n_values, (2, 5000))
    values = pa.array([f"c{k}" for k in range(n_values)])
    sides = [pa.DictionaryArray.from_arrays(pa.array(side), values) for side in (true, pred)]
    assert fb.evaluate(*sides, progress=False).overall == pytest.approx(
        dict(fb.evaluate(true, pred, progress=False).overall), rel=1e-12
    )
