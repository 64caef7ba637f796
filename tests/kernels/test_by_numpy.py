"""Kernels on rows and cells: whole arrays give the same bits as loops."""

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fastbcubed import kernels
from fastbcubed.cells import build, partitioned
from fastbcubed.kernels import by_numpy, interpreter, jit
from fastbcubed.metrics import compiled
from fastbcubed.runtime.threads import Pool

MODULES = (
    kernels.cells,
    kernels.clusters,
    kernels.components,
    kernels.join,
    kernels.units,
    kernels.partition,
    kernels.preaggregate,
    kernels.sums,
    compiled,
)
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


@pytest.mark.cases(5, 99)
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
    space = np.empty((n_shares, kernels.partition.RUN)), np.empty((n_runs, k, kernels.partition.RUN))
    given = shares, sums, (baseline, of_scores, of_shares), (*space, np.empty(kernels.partition.RUN))
    powers, counted = np.full((2, n_runs, n_scores), 0.5), np.array([1.0, 2.0, 1e-9])
    (*_, powers, counted), (*_, others, others_counted) = (
        after for after, _ in both_ways(kernels.units.square_units, *given, powers, counted)
    )
    assert np.array_equal(powers, others, equal_nan=True) and np.isnan(powers).any()
    assert counted.tolist() == others_counted.tolist() and 0 < counted[0] < n


def both_ways(kernel: jit.Kernel, *given: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Return the arguments afterwards, and the result, of a kernel as loops and as NumPy's function."""
    found = []
    for function in (kernel.loops, kernel._by_numpy):
        own = copy.deepcopy(given)
        copies = interpreter.Copies(jit.arrays_in(own))
        if function is kernel.loops:
            result = interpreter.unviewed(function(*map(copies.viewed, own)))
            copies.write_back()
        else:
            result = function(*own)
        found.append((own, result))
    return found


CELL = [("fp", "f8"), ("weight", "f8"), ("fn", "f8"), ("true", "i4"), ("n", "i4")]


def some_cells(n: int, seed: int) -> tuple[np.random.Generator, np.ndarray]:
    """Return cells, half of them exact, of clusters with up to several cells, some without weight."""
    rng = np.random.default_rng(seed)
    cells = np.zeros(n, CELL)
    cells["true"], cells["n"] = rng.integers(0, 1 + n // 2, n), rng.integers(1, 9, n)
    cells["weight"] = rng.random(n) * 10.0 ** rng.integers(-5, 5, n) * (rng.random(n) < 0.9)
    cells["fp"], cells["fn"] = rng.random((2, n)) * rng.integers(0, 2, (2, n))
    return rng, cells


@pytest.mark.parametrize("n", [0, 1, 700])
@pytest.mark.parametrize("selects", [False, True])
def test_cells_that_differ_are_found_and_paired_alike(n: int, selects: bool) -> None:
    rng, cells = some_cells(n, n + selects)
    wanted, linked = rng.random((1 + n // 2) * selects) < 0.1, np.zeros(1 + n // 2, np.bool_)
    room = np.zeros((5, n + 1), np.int32)
    found = both_ways(kernels.components.find_cells, cells, wanted, linked, *room[:3])
    (loops, n_found), (arrays, by_numpy_found) = found
    assert n_found == by_numpy_found
    assert loops[2].tolist() == arrays[2].tolist()
    stops = n_found[0], n_found[0], n_found[1]
    for own, others, stop in zip(loops[3:], arrays[3:], stops, strict=True):
        assert own[:stop].tolist() == others[:stop].tolist()
    pred, firsts = rng.integers(50, 50 + 1 + n // 3, n).astype(np.int32), np.full(1 + n // 3, -1, np.int32)
    firsts[::5] = 3  # known from cells before
    given = loops[3], loops[4], pred, loops[5][: n_found[1]], 50, firsts, *room[3:]
    (loops, n_pairs), (arrays, others) = both_ways(kernels.components.pair_clusters, *given)
    assert n_pairs == others and loops[5].tolist() == arrays[5].tolist()
    for own, other in zip(loops[6:], arrays[6:], strict=True):
        assert own[:n_pairs].tolist() == other[:n_pairs].tolist()


@pytest.mark.parametrize("n", [0, 1, 700])
def test_components_are_started_and_numbered_alike(n: int) -> None:
    rng = np.random.default_rng(n)
    linked, parents = rng.random(n) < 0.7, np.zeros(n, np.int32)
    (loops, _), (arrays, _) = both_ways(kernels.components.start_components, linked, parents)
    assert loops[1].tolist() == arrays[1].tolist() and (n < 2 or set(loops[1][~linked].tolist()) == {-1})
    parents, nodes = loops[1], np.flatnonzero(linked)
    for node in nodes[nodes.size // 3 :]:  # long chains, to smaller nodes
        parents[node] = rng.choice(nodes[nodes <= node][-3:])
    (loops, count), (arrays, others) = both_ways(kernels.components.number_components, parents)
    assert count == others and loops[0].tolist() == arrays[0].tolist()


@pytest.mark.parametrize("n", [0, 1, 700])
@pytest.mark.parametrize("outer", [False, True])
def test_cells_are_sorted_and_added_by_unit_alike(n: int, outer: bool) -> None:
    rng, cells = some_cells(n, n + outer)
    places, units = rng.permutation(n), rng.integers(0, 300, n).astype(np.int32)
    counts = np.bincount(units >> 4, minlength=19)
    given = cells, places, units, 4, np.cumsum(counts) - counts, np.zeros(n, CELL)
    (loops, _), (arrays, _) = both_ways(kernels.units.scatter_units, *given)
    assert loops[-1].tobytes() == arrays[-1].tobytes() and loops[-2].tolist() == arrays[-2].tolist()
    scored = loops[-1]
    scored["weight"] = np.maximum(scored["weight"], 1e-9)  # scored cells have weight
    formulas = np.array([0, 1, 4, 6]), np.array([1.0, 1.0, 1.0, 0.0]), np.array([3, 0, 1, 2])
    given = scored, 0, float(scored["weight"].sum()), outer, *formulas, np.zeros((300, 4))
    (loops, _), (arrays, _) = both_ways(compiled.add_by_unit, *given)
    assert loops[-1].tobytes() == arrays[-1].tobytes()


def assert_alike(kernel: jit.Kernel, *given: Any) -> tuple[Any, ...]:
    """Assert that loops and NumPy's function return and write the same to the last bit; return the arguments after."""
    (loops, result), (arrays, other) = both_ways(kernel, *given)
    assert result == other and type(result) is type(other)
    for own, found in zip(jit.arrays_in(loops), jit.arrays_in(arrays), strict=True):
        assert own.tobytes() == found.tobytes()
    return loops


@pytest.mark.parametrize("n", [0, 1, 700, 3000])
@pytest.mark.parametrize("outer", [False, True])
def test_outcomes_and_losses_of_clusters_are_added_alike(n: int, outer: bool) -> None:
    """Of cells in the middle; of clusters in a range of codes; onto what was found before."""
    rng, cells = some_cells(n, n + outer)
    cells["weight"] = np.maximum(cells["weight"], 1e-9)  # scored cells have weight
    pred, firsts = rng.integers(-1, 1 + n // 2, n).astype(np.int32), (n // 8, n // 9)
    marks = [np.zeros(n // 4, np.uint8), np.zeros(n // 3, np.uint8)]
    start, stop = min(n, 5), max(0, n - 7)
    of_cells = cells, pred, start, max(start, stop)
    *_, true_marks, pred_marks = assert_alike(kernels.clusters.mark_clusters, *of_cells, firsts, *marks)
    assert n < 700 or set(true_marks.tolist()) >= {0, 3, 5, 7}
    assert_alike(kernels.clusters.count_marks, true_marks, np.arange(4))
    n_runs = -(-n // kernels.partition.RUN)
    given = *of_cells, outer, firsts, true_marks, pred_marks, np.arange(8), np.full((n_runs, 3, 8), 0.1)
    assert_alike(compiled.add_by_outcome, *given)
    assert_alike(compiled.add_losses, *of_cells, outer, firsts, *(np.full(own.size, 0.1) for own in marks))


def test_scores_of_exact_clusters_are_alike() -> None:
    (_, loops), (_, arrays) = both_ways(compiled.origins, np.arange(len(compiled.FORMULAS)))
    assert loops.tolist() == arrays.tolist() and set(loops.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("n", [2, 700])
def test_pairs_are_joined_and_units_named_alike(n: int) -> None:
    rng = np.random.default_rng(n)
    parents = np.arange(1 + n, dtype=np.int32)
    left, right = rng.integers(0, 1 + n, (2, n // 2)).astype(np.int32)
    *_, parents = assert_alike(kernels.components.join_pairs, left, right, parents)
    assert_alike(kernels.components.join_pairs, right, left[::-1].copy(), parents)  # of chains
    assert (kernels.components.join_pairs._by_numpy(left[:1], right[:1], parents) is NotImplemented) == (
        n > 50
    )
    _, cells = some_cells(n, n)
    units = rng.permutation(1 + n).astype(np.int32)
    assert_alike(kernels.units.name_units, cells["true"].copy(), units, 4, np.ones(1 + (n >> 4), np.int64))
    assert_alike(kernels.units.add_shares, cells, 0, 3.7, np.full(1 + n // 2, 0.1))


@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("repeats", [0, 90])  # rows of an item again, matched or not
def test_items_are_matched_alike(with_rows: bool, repeats: int) -> None:
    rng = np.random.default_rng([with_rows, repeats])
    sides: list[Any] = []
    for _ in range(2):
        keys = rng.choice(np.arange(-N, N), N, replace=False)
        keys = np.sort(np.concatenate((keys, rng.choice(keys, repeats))))
        bounds = np.searchsorted(keys, [-2 * N, -N // 2, 0, N // 3, 2 * N])
        for a, b in pairwise(bounds):
            keys[a:b] = rng.permutation(keys[a:b])
        sides.append((keys, rng.permutation(keys.size) if with_rows else None, bounds))
    n = N + repeats
    space = np.empty(1 << 12, np.int32), np.empty(n, np.bool_), np.empty(n, np.int64)
    out = np.full(n, -1), np.zeros(n, np.bool_)
    for values in (None, rng.integers(0, 9, n)):
        given = *sides, 1, 4, space, *out, values, None if values is None else np.full(n, -5)
        (loops, found), (arrays, other) = both_ways(kernels.join.match_items, *given)
        assert found == other and (min(found) > 0) == (repeats > 0)
        for own, each in zip(jit.arrays_in(loops[5:]), jit.arrays_in(arrays[5:]), strict=True):
            assert own.tolist() == each.tolist()
        assert 0 < np.count_nonzero(loops[5] >= 0) < n and loops[6].any()
    few = [(keys[:9], None, np.array([0, 9])) for keys, *_ in sides]
    assert kernels.join.match_items._by_numpy(*few, 0, 1, space, *out, None, None) is NotImplemented


@pytest.mark.parametrize("n_values", [0, 50])
def test_rows_are_taken_alike(n_values: int) -> None:
    rng = np.random.default_rng(n_values)
    rows = rng.integers(-1, max(1, n_values), N)
    assert_alike(kernels.join.take_rows, rng.integers(0, 99, n_values), rows, 9, N - 9, np.zeros(N, np.int64))


@pytest.mark.parametrize("key", [np.int64, np.int32])
def test_runs_of_free_keys_are_found_alike(key: Any) -> None:
    keys = np.array([-3, 5, 100, 2**31 - 1], key)
    found = [
        both_ways(kernels.sums.find_run, keys, start, length)
        for start in (-(2**62), -4, -3, -2, 6, 100, 2**31 - 1)
        for length in (0, 1, 3, 2**62)
    ]
    assert {result for (_, result), _ in found} == {False, True}
    assert all(result is other for (_, result), (_, other) in found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_recall_of_truth_only_items_changes_alike(weighted: bool, outer: bool) -> None:
    rng = np.random.default_rng([weighted, outer])
    bounds, n_cells = np.array([0, 200, 200, 500]), np.array([190, 0, 222])
    n_clusters, cells = (
        np.array([40, 0, 70]),
        np.zeros(500, partitioned.NARROW_RECORDS["weighted cell" if weighted else "cell"]),
    )
    for part in range(3):
        cells["cluster"][bounds[part] : bounds[part + 1]] = rng.integers(
            0, max(1, n_clusters[part]), bounds[part + 1] - bounds[part]
        )
    cells["n"], cells["pred"] = rng.integers(1, 5, 500), rng.integers(0, 4, 500)
    if weighted:
        cells["x"] = rng.random(500)
    flag, changes = np.empty(0) if weighted else None, np.full(3, 0.5)
    given = cells, (bounds, n_cells, n_clusters), 0, 3, flag, outer, 2, np.empty((5, 70)), changes
    with np.errstate(all="ignore"):  # as all kernels are interpreted
        (loops, _), (arrays, _) = both_ways(kernels.cells.change_by_part, *given)
    assert loops[-1].tobytes() == arrays[-1].tobytes() and loops[-1][0] != 0.0 == loops[-1][1]
