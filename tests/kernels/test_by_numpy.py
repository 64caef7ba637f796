"""Kernels on rows and cells: whole arrays give the same bits as loops."""

from typing import Any

import numpy as np
import pytest

from fastbcubed import kernels
from fastbcubed.cells import build, partitioned
from fastbcubed.kernels import by_numpy, interpreter, jit
from fastbcubed.metrics import compiled
from fastbcubed.runtime.threads import Pool

MODULES = kernels.cells, kernels.partition, kernels.preaggregate, kernels.sums, compiled
#: Kernels that have both, with NumPy's function.
BY_NUMPY = {
    each: each._by_numpy
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, jit.Kernel) and each._by_numpy is not None
}
BITS = 3
N = 700


@pytest.fixture(autouse=True)
def interpreted_in_parts(monkeypatch):
    """Interpret all kernels, in eight parts, two tasks."""
    monkeypatch.setattr(jit, "_patience", np.inf)
    monkeypatch.setattr(partitioned, "part_bits", lambda *_: BITS)


def use_numpy(used: bool, monkeypatch) -> None:
    for each, function in BY_NUMPY.items():
        monkeypatch.setattr(each, "_by_numpy", function if used else None)
        vars(each).pop("python", None)


def results(true, pred, weight, absent: Any, *, outer: bool, outside: bool) -> list[bytes]:
    """Return the cells, their order, the cell of each row, the first row of each, and what is known of clusters."""
    rows = [(true, pred, weight, None)]
    how: dict[str, Any] = {"outer": outer, "outside": outside}
    with Pool(1) as pool:
        plan = partitioned.plan_parts([true], *absent)
        found = [build.build(plan, rows, pool, **how)]
        if absent == (None, None):
            plain = partitioned.Plan.of(true.size, BITS, true[:0], None, None, wide=False)
            shared = build.TrueRows.of(plain, true, weight, pool)
            found.append(build.build(plain, rows, pool, truth=shared, **how))
        arrays = [build.locate(plan, rows, pool, first=first) for first in (False, True)]
    assert arrays[1].tolist() == np.unique(arrays[0], return_index=True)[1].tolist()
    for each in found:
        arrays += [each.cells, each.pred_in_part, each.bounds, each.pred_base]
        arrays += [np.array([each.n_true, each.recall_if_alone])]
        if absent != (None, None):  # then there are cells without scores
            continue
        sums = np.empty((-(-each.cells.size // kernels.partition.RUN), 10))
        compiled.sum_scores(each.cells, 0, each.cells.size, outer, np.arange(9), sums)
        arrays.append(sums)
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("weights", ["none", "fractions", "whole", "negative zero"])
@pytest.mark.parametrize("n_clusters", [3, 400])  # cells of more than 64 rows, heavy clusters; small ones
@pytest.mark.parametrize("absent", [(None, None), (-7, -9)])
def test_cells_are_the_same_to_the_last_bit(weights, n_clusters, absent, monkeypatch) -> None:
    generator = np.random.default_rng([n_clusters, *(key is None for key in absent), len(weights)])
    true = generator.integers(0, n_clusters, N)
    pred = np.where(generator.random(N) < 0.7, true, generator.integers(0, n_clusters, N))
    for keys, key in ((true, absent[0]), (pred, absent[1])):
        if key is not None:
            keys[generator.random(N) < 0.1] = key
    weight = {
        "none": None,
        "fractions": generator.random(N) * 10.0 ** generator.integers(-5, 5, N),
        "whole": generator.integers(1, 9, N).astype(np.float64),
        "negative zero": np.where(np.arange(N) % 9 == 0, -0.0, 1.0),
    }[weights]
    if weights == "negative zero":  # clusters without weight divide by zero, which loops cannot
        absent = (None, None)
    for outer, outside in ((False, False), (True, True)):
        if (weight is None) if outer else (weights == "negative zero"):
            continue
        found = []
        for used in (True, False):
            use_numpy(used, monkeypatch)
            found.append(results(true, pred, weight, absent, outer=outer, outside=outside))
        assert found[0] == found[1]


def test_groups_are_numbered_by_their_first_row() -> None:
    firsts, numbers = by_numpy.number_groups(np.array([7, 5, 7, 9, 5]), np.array([1, 1, 1, 1, 2]))
    assert firsts.tolist() == [0, 1, 3, 4] and numbers.tolist() == [0, 1, 0, 2, 3]


def test_keys_whose_hashes_begin_alike_are_told_apart() -> None:
    inverse = pow(int(by_numpy.SPREAD), -1, 1 << 64)  # times which hashes are 0, 1, 2, ...
    hashes = np.array([3, 1, 3, 0, 1, 2, 3, 3], np.uint64)
    firsts, numbers = by_numpy.number_groups((hashes * np.uint64(inverse)).view(np.int64))
    assert firsts.tolist() == [0, 1, 3, 5] and numbers.tolist() == [0, 1, 0, 2, 1, 3, 0, 0]


@pytest.mark.parametrize("values", [[0.1, 1e16, 0.3, -1e16, 0.7] * 30, [1.0, 2.0, 3.0] * 50])
@pytest.mark.parametrize("n_codes", [1, 2, 40])
def test_sums_are_those_of_one_value_after_the_other(values, n_codes) -> None:
    codes = np.random.default_rng(n_codes).integers(0, n_codes, len(values))
    expected = [(0.0, 0.0)] * n_codes
    for k, x in zip(codes.tolist(), values, strict=True):
        expected[k] = kernels.partition.add_exactly.py_func(*expected[k], x)
    total, error = np.zeros(n_codes), np.zeros(n_codes)
    by_numpy.add_by_code(codes, np.array(values), total, error)
    assert [*zip(total.tolist(), error.tolist(), strict=True)] == expected


@pytest.mark.parametrize("n_shares", [1, 3])  # the same shares in all runs, or some of each
@pytest.mark.parametrize("baseline", [0, 3])  # a run, or none
def test_units_are_squared_to_the_last_bit(n_shares, baseline) -> None:
    """Of more units than a run has, some without weight; undefined scores stay undefined."""
    rng, n, n_runs, n_scores, k = np.random.default_rng(5), kernels.partition.RUN + 9, 3, 2, 4
    shares, sums = rng.random((n_shares, n)) * (rng.random(n) < 0.8) / n, rng.normal(size=(n_runs, n, k))
    sums[1, 3, 1] = np.nan
    of_scores, of_shares = rng.normal(size=(n_runs + 1, n_scores, k)), rng.normal(size=(n_runs + 1, n_scores))
    of_scores[-1], of_shares[-1], of_scores[:, 0, 1], of_scores[:, :, 2] = 0.0, 0.0, 0.0, -0.0
    found = []
    for square in (kernels.units.square_units.loops, kernels.units.square_units._by_numpy):
        powers, counted = np.full((2, n_runs, n_scores), 0.5), np.array([1.0, 2.0, 1e-9])
        space = np.empty((n_shares, kernels.partition.RUN)), np.empty((n_runs, k, kernels.partition.RUN))
        given = shares, sums, (baseline, of_scores, of_shares), (*space, np.empty(kernels.partition.RUN))
        if square is kernels.units.square_units.loops:
            copies = interpreter.Copies(jit.arrays_in((*given, powers, counted)))
            square(*map(copies.viewed, (*given, powers, counted)))
            copies.write_back()
        else:
            square(*given, powers, counted)
        found.append((powers, counted))
    (powers, counted), (by_numpy_powers, by_numpy_counted) = found
    assert np.array_equal(powers, by_numpy_powers, equal_nan=True) and np.isnan(powers).any()
    assert counted.tolist() == by_numpy_counted.tolist() and 0 < counted[0] < n
