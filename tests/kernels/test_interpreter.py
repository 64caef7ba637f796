"""Kernels run by Python: the same results as compiled ones, and which of both runs."""

import math

import numpy as np
import pytest

from fastbcubed.kernels import interpreter, jit
from fastbcubed.kernels.jit import at, kernel
from fastbcubed.kernels.partition import fetch, mix

RECORD = np.dtype([("n", np.int64), ("weight", np.float64), ("small", np.int32)], align=True)


@pytest.fixture(autouse=True)
def both_tiers(monkeypatch):
    """Interpret kernels, and compile them, as for users, whatever the environment of the tests says."""
    monkeypatch.setattr(jit, "_patience", 1.0)


@kernel
def of_records(cells, out):
    """Read and write fields, whole records and slices of records."""
    total = 0.0
    for i in range(cells.size):
        total += cells[at(i)].n * cells[at(i)].weight
        out[at(i)] = cells[at(cells.size - 1 - i)]
        out[at(i)].small += 1
    first = out[0]
    first.n = 7
    rest = out[1:]
    rest[0].weight = -0.0
    return total, first.n


@kernel
def of_matrices(sums, counts):
    """Read and write elements, rows, columns, and parts of each."""
    sums[0, 1] = 2.5
    sums[1][0] = 1.5
    sums[:, 2] = 4.0
    row = sums[1, :2]
    row[1] += sums[0, 1]
    more = sums[1:]
    more[0, 2] -= 0.5
    counts[:2] = -1
    counts[2:] = counts[:2]
    kept = counts[1:].copy()
    kept[:] = 9
    return sums.shape[0], sums.size, len(sums), counts.size, kept


@kernel(words=True)
def of_words(a, b, words):
    """Wrap at 64 bits."""
    a = np.uint64(a)
    words[0] = a * np.uint64(b) + (a << np.uint64(40)) - np.uint64(5)
    words[1] = ~a
    words[1] += a
    words[2] -= np.uint64(1)
    return np.int64(words[0]), mix(np.int64(words[1]))


@kernel
def of_numbers(values, codes, out):
    """Convert numbers, take logarithms, and name an element beyond the end of an array."""
    n = np.empty(values.size, np.int64)
    for i in range(values.size):
        fetch(values, i + 8)
        n[i] = np.int64(values[i])
        out[i] = math.log1p(values[i]) + np.log(values[i] + 1.0) + np.float64(n[i]) / 3
        codes[i] = values[i] > 1.0
    return n, values.size == codes.size


@kernel
def divide(a, b, out):
    """Divide; by zero, too."""
    out[0] = 1.0
    out[1] = a / b


@kernel
def run_for_long(n, out):
    """Run for about n microseconds in Python."""
    for _ in range(n):
        for k in range(20):
            out[0] += k


def arguments(function):
    """Return new arguments for one of the kernels."""
    if function is of_records:
        cells = np.zeros(4, RECORD)
        cells["n"], cells["weight"], cells["small"] = [3, 1, 2, 5], [0.1, 0.2, 0.3, 0.7], [1, 2, 3, 4]
        return cells, np.zeros(4, RECORD)
    if function is of_matrices:
        return np.zeros((2, 3)), np.arange(4, dtype=np.int32)
    if function is of_words:
        return 2**63 + 12345, 987654321987654321, np.zeros(3, np.uint64)
    return np.array([0.5, 2.25, 1e9]), np.zeros(3, np.bool_), np.zeros(3)


def interpret(function, *given):
    """Run a kernel by Python."""
    copies = interpreter.Copies(jit.arrays_in(given))
    with np.errstate(all="ignore"):
        result = function.python(*map(copies.viewed, given))
    copies.write_back()
    return interpreter.unviewed(result)


@pytest.mark.parametrize(
    "function", [of_records, pytest.param(of_matrices, marks=pytest.mark.slow), of_words, of_numbers]
)
def test_interpreted_kernels_do_what_compiled_ones_do(function) -> None:
    ours, theirs = arguments(function), arguments(function)
    found = interpret(function, *ours)
    with jit.compiling():
        expected = function(*theirs)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other) and type(one) is type(other)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, np.ndarray):
            assert one.tobytes() == other.tobytes()


def test_fields_of_packed_records_are_read_too() -> None:
    packed = np.dtype([(name, RECORD[name]) for name in RECORD.names])
    ours, theirs = ([array.astype(kind) for array in arguments(of_records)] for kind in (packed, RECORD))
    found = [interpret(of_records, *each) for each in (ours, theirs)]
    assert packed.itemsize == 20 < RECORD.itemsize and found[0] == found[1]
    assert ours[1].tolist() == theirs[1].tolist()


@kernel
def move(source, target, ahead):
    """Write numbers to other elements of what may be the same memory, and one to a field."""
    for i in range(source.size):
        target[i] = source[i] + 1
    ahead[0] = target[0]


@pytest.mark.parametrize("start", [0, 1, 3])
def test_arrays_that_share_memory_do_so_in_python(start) -> None:
    ours, theirs = np.arange(8), np.arange(8)
    interpret(move, ours[:4], ours[start : start + 4], ours[::-1])
    with jit.compiling():
        move(theirs[:4], theirs[start : start + 4], theirs[::-1])
    assert ours.tolist() == theirs.tolist()


def test_what_other_threads_write_meanwhile_stays() -> None:
    """They write other elements, and Python writes only those that the kernel changed."""
    shared = np.zeros(4, np.int64)
    copies = interpreter.Copies([shared])
    copies.viewed(shared)[1] = 5
    shared[2] = 7  # by another thread
    copies.write_back()
    assert shared.tolist() == [0, 5, 7, 0]


def test_what_python_cannot_do_is_compiled_with_the_arrays_as_they_were() -> None:
    out = np.array([5.0, 6.0])
    divide(1.0, 4.0, out)
    assert out.tolist() == [1.0, 0.25] and not divide.signatures
    out[:] = 5.0, 6.0
    divide(1.0, 0.0, out)
    assert out.tolist() == [1.0, np.inf] and len(divide.signatures) == 1


def test_a_kernel_is_interpreted_for_as_long_as_compiling_it_takes(monkeypatch) -> None:
    monkeypatch.setattr(jit, "COMPILING", 0.05)
    monkeypatch.setattr(jit, "IMPORTING", 0.0)
    out = np.zeros(1)
    run_for_long(10, out)
    assert not run_for_long.signatures and run_for_long.seconds > 0
    run_for_long(
        10**7, out
    )  # as slow as it is unexpected: minutes in Python, and then nothing would be compiled
    assert run_for_long.signatures
    assert out[0] == 190 * (10 + 10**7)


def test_kernels_are_compiled_for_large_arrays_and_called_for_small_ones() -> None:
    values = np.ones(3_000_000)
    of_numbers(values, np.zeros(values.size, np.bool_), np.zeros(values.size))
    assert len(of_numbers.signatures) == 1
    of_numbers(*arguments(of_numbers))
    assert len(of_numbers.signatures) == 1
    narrow = np.array([0.5], np.float32)
    of_numbers(narrow, np.zeros(1, np.bool_), np.zeros(1))  # other types, and small: interpreted
    assert len(of_numbers.signatures) == 1
    values.flags.writeable = False  # as arrays of Arrow are: the same code takes them
    of_numbers(values, np.zeros(values.size, np.bool_), np.zeros(values.size))
    assert len(of_numbers.signatures) == 1
