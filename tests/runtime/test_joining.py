"""Matching one side with several others, and taking values by row."""

from __future__ import annotations

import numpy as np
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from fastbcubed.runtime import key_partitions
from fastbcubed.runtime.key_partitions import OneToMany, match, take
from fastbcubed.runtime.threads import Pool

KEYS = st.lists(st.integers(-5, 5), max_size=8, unique=True).map(lambda keys: np.array(keys, np.int64))


@examples(60)
@given(st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=4), KEYS)
def test_one_side_against_several(others, first):
    """Also where the first side becomes another one, which is then partitioned again."""
    join = OneToMany()
    sides = [(first, other) for pair in others for other in pair] + others
    with Pool(1) as pool:
        for true, pred in sides:
            found = join.match(true, pred, pool, values := 7 * pred)
            place = {key: row for row, key in enumerate(pred.tolist())}
            assert found.value_of_true.tolist() == [7 * key if key in place else 0 for key in true.tolist()]
            assert values.size == found.lacking.size
            assert found.pred_of_true.tolist() == [place.get(key, -1) for key in true.tolist()]
            place = {key: row for row, key in enumerate(true.tolist())}
            assert found.true_of_pred.tolist() == [place.get(key, -1) for key in pred.tolist()]


@examples(100)
@given(*[st.lists(st.integers(-6, 6), max_size=12).map(lambda keys: np.array(keys, np.int64))] * 2)
def test_rows_that_repeat_an_item(true, pred):
    """The first row of an item is its mate; each further one is counted, and lacks one."""
    firsts = [{key: row for row, key in reversed(list(enumerate(keys.tolist())))} for keys in (true, pred)]
    with Pool(1) as pool:
        found = match(true, pred, pool)
    assert (found.true_repeats, found.pred_repeats) == (
        true.size - len(firsts[0]),
        pred.size - len(firsts[1]),
    )
    for row, key in enumerate(true.tolist()):
        assert found.pred_of_true[row] == (firsts[1].get(key, -1) if firsts[0][key] == row else -1)
    for row, key in enumerate(pred.tolist()):
        mate = firsts[0].get(key, -1) if firsts[1][key] == row else -1
        assert found.true_of_pred[row] == mate and found.lacking[row] == (mate < 0)


def test_equal_keys_are_partitioned_once(monkeypatch):
    sizes = []
    for name in ("scatter_keys", "place_keys"):
        cut = getattr(key_partitions, name)
        monkeypatch.setattr(
            key_partitions, name, lambda keys, *rest, cut=cut: sizes.append(keys.size) or cut(keys, *rest)
        )
    rng = np.random.default_rng(0)
    true = rng.permutation(100_000)
    join = OneToMany()
    with Pool(2) as pool:
        for n in (90_000, 80_000, 800_000):
            pred = rng.permutation(n)
            found = join.match(true.copy(), pred, pool, pred)
            there = np.flatnonzero(true < n)
            np.testing.assert_array_equal(pred[found.pred_of_true[there]], true[there])
            assert np.count_nonzero(found.true_of_pred >= 0) == there.size
    # cut finer for the last, which is far larger
    assert sizes == [100_000, 90_000, 80_000, 100_000, 800_000]


def test_rows_that_are_none_get_any_value():
    values, rows = np.arange(10, 20), np.array([3, -1, 9, 0, -1])
    with Pool(1) as pool:
        found = take(values, rows, pool)
    assert found[rows >= 0].tolist() == [13, 19, 10] and found.size == 5
